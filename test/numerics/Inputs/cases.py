# Part of Bastile, under the MIT License. See LICENSE.
"""The model ops of rows and row vectors, in all forms: for each a function in MLIR,
its formula, and the formulas of its gradients."""

from functools import partial

import floats
import gradients
import reference
from runner import tensor

# The kinds of inputs; a narrow case has vectors of float32.
SHAPES = {"row": 1, "wide": 2, "vector": 1, "wide vector": 2, "f32 vector": 1}


class Case:
    def __init__(
        self, inputs, body, forward, backward, rounds=False, scale=(), seen=()
    ):
        """`inputs` maps names to kinds (see `SHAPES`). `body` is the text
        of the op, or a list of lines of which the last names the results `%y`,
        with the types of the inputs in braces. Where values are rounded on
        the way, `rounds` is true and the formulas get the rounding function.
        `scale` maps inputs to the spread of their values, and `seen` names
        gradients that see a factor rounded to the type of the row."""
        self.inputs = inputs
        self.lines = ["%y = " + body] if isinstance(body, str) else body
        self.forward = forward
        self.backward = backward
        self.rounds = rounds
        self.scale = dict(scale)
        self.seen = seen
        self.results = ["%y", "%sum"] if "%y, %sum" in self.lines[-1] else ["%y"]

    def kind_of(self, what, kind):
        return "f32" if what == "f32 vector" and kind != "f64" else kind

    def type_of(self, what, length, kind):
        size = SHAPES[what] * length
        if what.endswith("vector"):
            return tensor((size,), self.kind_of(what, kind))
        return tensor((None, size), kind)

    def source(self, length, kind, weighted=False):
        """A function of the inputs. If `weighted`, it returns the sum of its results,
        each times an input, which is then the gradient of that result."""
        types = {
            what.replace(" ", "_"): self.type_of(what, length, kind) for what in SHAPES
        }
        row = types["row"]
        names = {
            name: self.type_of(what, length, kind) for name, what in self.inputs.items()
        }
        lines = [line.format(**types) for line in self.lines]
        results = self.results
        if weighted:
            for i, value in enumerate(self.results):
                names[f"grad_result{i}"] = row
                lines.append(f"%z{i} = arith.mulf {value}, %grad_result{i} : {row}")
            results = ["%z0"]
            if len(self.results) == 2:
                lines.append(f"%z = arith.addf %z0, %z1 : {row}")
                results = ["%z"]
        arguments = ", ".join(f"%{name}: {type}" for name, type in names.items())
        outputs = ", ".join([row] * len(results))
        return "\n".join(
            [f"func.func @f({arguments}) -> ({outputs}) {{"]
            + lines
            + [f"return {', '.join(results)} : {outputs}", "}\n"]
        )

    def kinds(self, kind):
        """The element type of each input."""
        return {name: self.kind_of(what, kind) for name, what in self.inputs.items()}

    def values(self, rows, length, kind):
        """Random inputs, as float64."""
        result = {}
        for seed, (name, what) in enumerate(self.inputs.items()):
            size = SHAPES[what] * length
            shape = size if what.endswith("vector") else (rows, size)
            result[name] = floats.random(
                self.kinds(kind)[name],
                shape,
                100 * length + seed,
                self.scale.get(name, 1),
            )
        return result

    def _arguments(self, kind):
        return {"rounded": partial(floats.round_inside, kind)} if self.rounds else {}

    def expected(self, values, kind):
        result = self.forward(**values, **self._arguments(kind))
        return result if isinstance(result, tuple) else (result,)

    def gradients(self, cotangents, values, kind):
        return self.backward(*cotangents, **values, **self._arguments(kind))


def gated(body, forward, backward, **given):
    return Case(
        {"gate": "row", "up": "row"},
        body + " : {row}",
        forward,
        backward,
        **given,
    )


def unary(body, forward, backward):
    return Case({"x": "row"}, body + " : {row}", forward, backward, scale={"x": 2})


def packed(op, gate, interleaved=False, bias=False):
    word = "interleaved " if interleaved else ""
    lines = [
        f"%gate, %up = tile.split {word}%{'b' if bias else 'x'} : {{wide}} -> "
        "{row}, {row}",
        f"%y = {op} : {{row}}",
    ]
    inputs = {"x": "wide"}
    if bias:
        inputs["bias"] = "wide vector"
        lines.insert(0, "%b = tile.add_bias %x, %bias : {wide}, {wide_vector}")
    return Case(
        inputs,
        lines,
        reference.split_gate(getattr(reference, gate), interleaved),
        gradients.split_gate(getattr(gradients, gate), interleaved),
        rounds=bias,
        scale={"x": 2},
    )


def of(module_function, **given):
    """The formula and its gradient with these arguments."""
    return (
        partial(getattr(reference, module_function), **given),
        partial(getattr(gradients, module_function), **given),
    )


# Wide enough to meet the clamps.
LIMITED = {"scale": {"gate": 1.5, "up": 3}}
WEIGHTED = {"x": "row", "weight": "vector"}
WITH_BIAS = {**WEIGHTED, "bias": "vector"}
# The gradient of the weight sees a factor that was rounded.
LLAMA = {"seen": ("weight",)}

ELEMENTWISE = {
    "geglu": gated("tile.geglu %gate, %up", *of("geglu"), **LIMITED),
    "geglu, narrow": gated(
        "tile.geglu %gate, %up {{alpha = 1.25, limit = 1.5}}",
        *of("geglu", alpha=1.25, limit=1.5),
        **LIMITED,
    ),
    "geglu, unlimited": gated(
        "tile.geglu %gate, %up {{unlimited}}", *of("geglu", limit=None)
    ),
    "geglu, tanh": gated("tile.geglu %gate, %up form(tanh)", *of("geglu_tanh")),
    "geglu, erf": gated("tile.geglu %gate, %up form(erf)", *of("geglu_erf")),
    "swiglu": gated("tile.swiglu %gate, %up", *of("swiglu")),
    "swiglu, scaled": gated(
        "tile.swiglu %gate, %up {{gate_scale = 0.75, output_scale = 1.375}}",
        *of("swiglu", gate_scale=0.75, output_scale=1.375),
    ),
    "reglu": gated("tile.reglu %gate, %up", *of("reglu")),
    "relu_squared": unary("tile.relu_squared %x", *of("relu_squared")),
    "gelu": unary("tile.gelu %x", *of("gelu_erf")),
    "gelu, tanh": unary("tile.gelu %x form(tanh)", *of("gelu_tanh")),
    "silu": unary("tile.silu %x", *of("silu")),
    "add_bias": Case(
        {"x": "row", "bias": "vector"},
        "tile.add_bias %x, %bias : {row}, {vector}",
        *of("add_bias"),
    ),
    "add_bias, f32 bias": Case(
        {"x": "row", "bias": "f32 vector"},
        "tile.add_bias %x, %bias : {row}, {f32_vector}",
        *of("add_bias"),
    ),
    "swiglu, halves": packed("tile.swiglu %gate, %up", "swiglu"),
    "geglu, interleaved": packed("tile.geglu %gate, %up", "geglu", True),
    "geglu, interleaved, bias": packed("tile.geglu %gate, %up", "geglu", True, True),
    "geglu, tanh, halves, bias": packed(
        "tile.geglu %gate, %up form(tanh)", "geglu_tanh", False, True
    ),
}

REDUCTIONS = {
    "rms_norm": Case(
        WEIGHTED,
        "tile.rms_norm %x, %weight : {row}, {vector}",
        *of("rms_norm"),
        **LLAMA,
    ),
    "rms_norm, gemma": Case(
        WEIGHTED,
        "tile.rms_norm %x, %weight casting(gemma) {{eps = 1.0e-5, offset = 1.0}}"
        " : {row}, {vector}",
        *of("rms_norm", eps=1e-5, offset=1.0),
    ),
    "rms_norm, plain": Case(
        {"x": "row"},
        "tile.rms_norm %x {{eps = 1.0e-3}} : {row}",
        *of("rms_norm", eps=1e-3),
    ),
    "rms_norm, bias": Case(
        WITH_BIAS,
        "tile.rms_norm %x, %weight bias(%bias) casting(gemma) "
        ": {row}, {vector}, {vector}",
        *of("rms_norm"),
    ),
    "rms_norm, f32 weight": Case(
        {"x": "row", "weight": "f32 vector"},
        "tile.rms_norm %x, %weight : {row}, {f32_vector}",
        *of("rms_norm"),
        **LLAMA,
    ),
    "add_rms_norm": Case(
        {"x": "row", "residual": "row", "weight": "vector"},
        ["%y, %sum = tile.add_rms_norm %x, %residual, %weight : {row}, {vector}"],
        *of("add_rms_norm"),
        rounds=True,
        **LLAMA,
    ),
    "add_rms_norm, gemma": Case(
        {"x": "row", "residual": "row", "weight": "vector"},
        [
            "%y, %sum = tile.add_rms_norm %x, %residual, %weight casting(gemma) "
            "{{eps = 1.0e-5, offset = 1.0}} : {row}, {vector}"
        ],
        *of("add_rms_norm", eps=1e-5, offset=1.0),
        rounds=True,
    ),
    "layer_norm": Case(
        WITH_BIAS,
        "tile.layer_norm %x, %weight bias(%bias) : {row}, {vector}, {vector}",
        *of("layer_norm"),
    ),
    "layer_norm, no bias": Case(
        WEIGHTED,
        "tile.layer_norm %x, %weight {{eps = 1.0e-3}} : {row}, {vector}",
        *of("layer_norm", eps=1e-3),
    ),
    "layer_norm, plain": Case(
        {"x": "row"}, "tile.layer_norm %x : {row}", *of("layer_norm")
    ),
    "softmax": Case({"x": "row"}, "tile.softmax %x : {row}", *of("softmax")),
    "log_softmax": Case(
        {"x": "row"}, "tile.log_softmax %x : {row}", *of("log_softmax")
    ),
}

CASES = {**ELEMENTWISE, **REDUCTIONS}


def make(case, rows, length, kind):
    """Random inputs of a case, and gradients of its results."""
    values = case.values(rows, length, kind)
    cotangents = [
        floats.random(kind, (rows, length), 7 * length + i)
        for i in range(len(case.results))
    ]
    return values, cotangents
