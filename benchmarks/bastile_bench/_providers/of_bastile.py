# Part of Bastile, under the MIT License. See LICENSE.
"""Bastile's ops, and the kernels that they run."""

import functools

import bastile
from bastile import functional, functions, ops
from bastile._compiler import tensor_types
from bastile._tuning import jobs


def load() -> dict:
    return {
        "rms_norm": ops.rms_norm,
        "add_rms_norm": ops.add_rms_norm,
        "layer_norm": ops.layer_norm,
        "geglu": ops.geglu,
        "geglu_interleaved": _geglu_interleaved,
        "geglu_tanh": lambda gate, up: ops.geglu(gate, up, form="tanh"),
        "geglu_erf": lambda gate, up: ops.geglu(gate, up, form="erf"),
        "swiglu": ops.swiglu,
        "reglu": ops.reglu,
        "relu_squared": ops.relu_squared,
        "gelu": ops.gelu,
        "silu": ops.silu,
        "softmax": ops.softmax,
        "log_softmax": ops.log_softmax,
        "rope": functional.rope,
        "quantize_rows": functional.quantize,
        "quantize_blocks": lambda x: functional.quantize(x, group=128),
        "cross_entropy": _cross_entropy,
        "cross_entropy_loss": functional.cross_entropy,
    }


def make(formula):
    return bastile.compile(formula.function(_FUNCTIONS))


#: By name, for random formulas.
_FUNCTIONS = {name: getattr(functions, name) for name in functions.__all__}


def _cross_entropy(logits, targets):
    # PyTorch forbids to overwrite a leaf of autograd, but not a view of it.
    if logits.requires_grad and logits.is_leaf:
        logits = logits.view_as(logits)
    return functional.cross_entropy(logits, targets, in_place=True)


def _geglu_interleaved(gate_up):
    return _interleaved_kernel(gate_up.shape[-1], gate_up.dtype)(gate_up)


@functools.cache
def _interleaved_kernel(columns, dtype):
    def geglu_interleaved(gate_up):
        gate, up = functions.split(gate_up, 2, interleaved=True)
        return functions.op.geglu(gate, up)

    return bastile.compile(
        geglu_interleaved, {"gate_up": (1, columns)}, dtype=dtype, grad=True
    )


@functools.cache
def _rope_kernel(shape, dtype):
    def rope(q, k, cosine, sine):
        return tuple(functions.op.rope(x, cosine, sine) for x in (q, k))

    batch, positions, heads, pairs, length = shape
    angles = (1, positions, 1, length // 2)
    shapes = {
        "q": (batch, positions, heads, length),
        "k": (batch, positions, pairs, length),
        "cosine": angles,
        "sine": angles,
    }
    return bastile.compile(rope, shapes, dtype=dtype, grad=("q", "k"))


#: Vectors that calls give to an op, which could do without them.
_VECTORS = {
    "rms_norm": ("weight",),
    "add_rms_norm": ("weight",),
    "layer_norm": ("weight", "bias"),
}

#: What differs from the op of the same name, with gradients of all operands.
_SPECS = {
    "geglu_tanh": {"op": "geglu", "attributes": {"form": "tanh"}},
    "geglu_erf": {"op": "geglu", "attributes": {"form": "erf"}},
    "cross_entropy": {"grad": ("logits",), "together": True},
    "cross_entropy_loss": {"grad": False},
    "quantize_rows": {"op": "quantize", "grad": False},
    "quantize_blocks": {"op": "quantize", "grad": False},
}


#: A call that wants the loss alone: what else the op could return costs nothing.
_LOSS = """func.func @cross_entropy(%logits: tensor<?x{columns}x{type}>,
    %targets: tensor<?x1xi64>) -> tensor<1xf32> {{
  %0:5 = tile.cross_entropy %logits, %targets
      : tensor<?x{columns}x{type}>, tensor<?x1xi64>
  return %0#0 : tensor<1xf32>
}}"""


def kernel(op: str, shape, dtype):
    """The compiled function of the op, for what its kernels are like."""
    columns = shape[-1]
    if op == "geglu_interleaved":
        return _interleaved_kernel(2 * columns, dtype)
    if op == "rope":
        return _rope_kernel(tuple(shape), dtype)
    fields = {"op": op, "shape": list(shape), "grad": True, **_SPECS.get(op, {})}
    if op in _VECTORS:
        vectors = dict.fromkeys(_VECTORS[op], [columns])
        fields["shape"] = {"input": list(shape), **vectors}
    if op.startswith("cross_entropy"):
        element = tensor_types.element_type(dtype)
        fields["op"] = _LOSS.format(columns=columns, type=element)
    if op.startswith("quantize"):
        scales = columns // 128 if op.endswith("blocks") else 1
        fields["results"] = (
            f"tensor<?x{columns}xf8E4M3FN>",
            f"tensor<?x{scales}xf32>",
        )
    return jobs.Spec(dtype=dtype, **fields).kernel()
