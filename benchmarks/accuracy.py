# Part of Bastile, under the MIT License. See LICENSE.
"""Errors of each op and gradient against float64, beside PyTorch's eager mode.

Writes docs/accuracy.md. Needs `tilec` and `tile-run` in build/bin (or under
$BASTILE_BUILD) and a Python with PyTorch, NumPy and pytest. With several targets
the file has a section for each; PyTorch runs on the same device.

    python3 benchmarks/accuracy.py
    python3 benchmarks/accuracy.py --targets host gpu
"""

import argparse
import os
import pathlib
import platform
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "numerics" / "Inputs"))

import eager  # noqa: E402
import floats  # noqa: E402
import gradients  # noqa: E402
import reference  # noqa: E402
from cases import CASES  # noqa: E402
from elementary import FUNCTIONS, LENGTH as WIDTH, errors, spread  # noqa: E402
from loss import Loss  # noqa: E402
from runner import function, run, run_backward, tensor  # noqa: E402

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
ROWS, LENGTH = 64, 2880
# Attributes that change constants alone are left out.
NAMES = [
    name
    for name in CASES
    if not name.endswith(("narrow", "scaled", "plain", "no bias"))
    and not name.startswith("add_bias, ")
    and not name.startswith("swiglu, ")
    and not name.startswith("rms_norm, f32")
]

HEADER = """# Accuracy

Written by `make accuracy` (`benchmarks/accuracy.py`); do not edit.

The error of each op and of each gradient against float64, beside PyTorch's eager
mode on the same inputs: its formulas are those that models are written in
(`test/numerics/Inputs/eager.py`), its gradients autograd's. The first of each pair
of columns is Bastile's, the second PyTorch's.

Errors are in units in the last place of the result's type, element by element,
where the unit is that of the float64 value. Where the terms of a gradient cancel,
that unit is far smaller than the rounding of a term, so that one element of a
hundred thousand decides both its maximum and its root mean square. The columns
*of terms* have the maximum in units of the sum of the absolute values of the
terms, which such chance does not reach.

Inputs are normal random numbers rounded to the type, {rows} rows of {length}
elements (rope: heads of 128; cross-entropy: {loss_rows} rows of {vocabulary}
logits, no reduction). Gradients are of the function that computes them later,
given normal random gradients of the results. The reference is the formula in
float64 on the rounded inputs (`test/numerics/Inputs/reference.py`,
`gradients.py`).

The rule: neither maximum nor root mean square is more than the larger of 1.5 times
PyTorch's and one unit. An error **passes** if it keeps to that; it says *cancels*
if the rule holds for the errors of terms alone, and **worse** if for none.

Tables of functions have the largest error of each over numbers of all exponents and
both signs, those next to 1 and special ones; of functions of two operands, over pairs
of such. `test/numerics/test_functions.py` allows float32 2.5 units on the host and 4
on a GPU, for the sake of an approximate power of 2, and float64 4. In a kernel whose
results are rounded to 16 bits or fewer, a GPU may compute less exactly what cannot be
seen in them.
"""


class OfCase:
    """An op of the tests' table."""

    def __init__(self, name):
        self.case = CASES[name]
        self.formula = eager.FORMULAS[name]

    def source(self, kind):
        return self.case.source(LENGTH, kind)

    def inputs(self, kind):
        values = self.case.values(ROWS, LENGTH, kind)
        kinds = self.case.kinds(kind)
        return {name: (kinds[name], array) for name, array in values.items()}

    def differentiable(self, kind):
        return self.case.kinds(kind)

    def results(self, kind):
        return [(kind, (ROWS, LENGTH))] * len(self.case.results)

    def expected(self, cotangents, values, kind):
        found = self.case.gradients(cotangents, values, kind)
        return self.case.expected(values, kind), found


class OfRope:
    """Queries of (batch, heads, sequence, size), and angles of their type."""

    SHAPE = (2, 8, 64, 128)
    formula = staticmethod(eager.rope)

    def source(self, kind):
        row = tensor((None, None, None, 128), kind)
        angles = tensor((1, 1, None, 128), kind)
        return (
            f"func.func @f(%x: {row}, %cosine: {angles}, %sine: {angles})"
            f" -> {row} {{\n"
            f"  %0 = tile.rope %x, %cosine, %sine : {row}, {angles}\n"
            f"  return %0 : {row}\n}}\n"
        )

    def inputs(self, kind):
        steps = np.arange(64)[:, None] * 1e4 ** -(np.arange(128) % 64 / 64)
        angles = [
            floats.round_to(kind, wave(steps).astype(np.float32))
            for wave in (np.cos, np.sin)
        ]
        return {
            "x": (kind, floats.random(kind, self.SHAPE, 1)),
            "cosine": (kind, angles[0][None, None]),
            "sine": (kind, angles[1][None, None]),
        }

    def differentiable(self, kind):
        return {"x": kind}

    def results(self, kind):
        return [(kind, self.SHAPE)]

    def expected(self, cotangents, values, kind):
        angles = values["cosine"], values["sine"]
        found = gradients.rope(*cotangents, *angles)
        return (reference.rope(**values),), {"x": found}


class OfLoss:
    """The loss of each token, as Hugging Face's Transformers computes it: of
    logits extended to float32."""

    ROWS, VOCABULARY = 32, 50257
    loss = Loss(reduction="none")

    def source(self, kind):
        row = tensor((None, self.VOCABULARY), kind)
        targets = tensor((None, 1), "i64")
        return (
            f"func.func @f(%x: {row}, %targets: {targets}) -> tensor<?x1xf32> {{\n"
            f"  %0:4 = tile.cross_entropy %x, %targets reduction(none)"
            f" : {row}, {targets}\n"
            f"  return %0#0 : tensor<?x1xf32>\n}}\n"
        )

    def formula(self, x, targets):
        loss = torch.nn.functional.cross_entropy(
            x.float(), targets[:, 0], reduction="none"
        )
        return loss[:, None]

    def inputs(self, kind):
        x = floats.random(kind, (self.ROWS, self.VOCABULARY), 1, 2)
        generator = np.random.default_rng(2)
        targets = generator.integers(0, self.VOCABULARY, (self.ROWS, 1))
        targets[3] = -100
        return {"x": (kind, x), "targets": ("i64", targets)}

    def differentiable(self, kind):
        return {"x": kind}

    def results(self, kind):
        return [("f32", (self.ROWS, 1))]

    def expected(self, cotangents, values, kind):
        found = self.loss.backward(*cotangents, values["x"], values["targets"])
        result = self.loss.forward(values["x"], values["targets"])[:1]
        return result, {"x": found}


def run_eager(op, inputs, cotangents, wanted, device):
    """What PyTorch computes, as float64."""

    def send(kind, array):
        if kind == "i64":
            return torch.from_numpy(array).to(device)
        return torch.from_numpy(array).to(device, TYPES[kind])

    tensors = {name: send(*value) for name, value in inputs.items()}
    leaves = {name: tensors.pop(name) for name in wanted}
    results, found = eager.differentiate(
        lambda **given: op.formula(**given, **tensors),
        leaves,
        [send(*value) for value in cotangents],
    )

    def receive(x):
        return x.detach().double().cpu().numpy()

    return (
        [receive(result) for result in results],
        {name: receive(gradient) for name, gradient in found.items()},
    )


def is_no_worse(mine, its):
    return mine <= max(1.5 * its, 1)


class Errors:
    """Of one tensor, ours or PyTorch's. `size` is that of the terms."""

    def __init__(self, kind, got, expected, size):
        errors = floats.ulp_errors(kind, got, expected)
        self.maximum = errors.max()
        self.rms = np.sqrt(np.mean(np.square(errors)))
        self.position = np.unravel_index(np.argmax(errors), errors.shape)
        self.of_terms = None
        if size is not None:
            self.of_terms = np.max(np.abs(got - expected) / floats.ulp(kind, size))

    def judge(self, other):
        if is_no_worse(self.maximum, other.maximum) and is_no_worse(
            self.rms, other.rms
        ):
            return "pass"
        if self.of_terms is not None and is_no_worse(self.of_terms, other.of_terms):
            return "cancels"
        return "**worse**"


def measure(op, kind, device):
    """Rows of the table: what was measured, our errors, PyTorch's, and the
    three arrays."""
    inputs = op.inputs(kind)
    cotangents = [
        (result_kind, floats.random(result_kind, shape, 77 + i))
        for i, (result_kind, shape) in enumerate(op.results(kind))
    ]
    wanted = op.differentiable(kind)
    results, found = run_backward(
        op.source(kind),
        inputs,
        {f"grad_result{i}": value for i, value in enumerate(cotangents)},
        [result_kind for result_kind, _ in cotangents],
        wanted,
    )
    exact_results, exact_gradients = op.expected(
        [array for _, array in cotangents],
        {name: array for name, (_, array) in inputs.items()},
        kind,
    )
    theirs, their_gradients = run_eager(op, inputs, cotangents, wanted, device)

    def compare(what, result_kind, mine, exact, its, size=None):
        mine = floats.decode(result_kind, mine)
        errors = [Errors(result_kind, got, exact, size) for got in (mine, its)]
        return what, *errors, (mine, exact, its)

    for i, (result_kind, _) in enumerate(cotangents):
        what = f"result {i}" if len(results) > 1 else "result"
        yield compare(what, result_kind, results[i], exact_results[i], theirs[i])
    for name, result_kind in wanted.items():
        exact, size = exact_gradients[name]
        yield compare(
            f"gradient of {name}",
            result_kind,
            found[name],
            exact,
            their_gradients[name],
            np.broadcast_to(size, exact.shape),
        )


def show(number):
    if number is None:
        return ""
    return f"{number:.3f}" if number < 100 else f"{number:.3g}"


def explain(name, kind, what, ours, mine, exact, its):
    """One line on the worst element of what does not pass."""
    at = ours.position
    return (
        f"{name} {kind} {what} at {tuple(map(int, at))}: exact {exact[at]:.17g}, "
        f"Bastile {mine[at]:.9g}, PyTorch {its[at]:.9g}"
    )


def describe(target):
    if target != "host":
        return torch.cuda.get_device_name()
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":")[1].strip()
                break
    return model


def measure_function(name, kind):
    """The largest error of an elementary function, and of which operands."""
    formula, count = FUNCTIONS[name]
    operands = {one: spread(kind, i + 1) for i, one in enumerate("xy"[:count])}
    row = tensor((None, WIDTH), kind)
    names = ", ".join(f"%{one}" for one in operands)
    (result,) = run(
        function([(one, row) for one in operands], [row], [f"{name} {names} : {row}"]),
        {one: (kind, array) for one, array in operands.items()},
        [kind],
    )
    with np.errstate(all="ignore"):
        expected = formula(*(array.ravel() for array in operands.values()))
    off = errors(kind, floats.decode(kind, result), expected)
    worst = np.argmax(off)
    return off[worst], [array.ravel()[worst] for array in operands.values()]


def write_functions(target, out):
    # A GPU computes no float64.
    kinds = ("f32", "f64") if target == "host" else ("f32",)
    print("\n| function | type | maximum | at |\n|---|---|---|---|", file=out)
    for name in FUNCTIONS:
        if name == "arith.remf" and target != "host":
            # Quotients of more digits than float32 has.
            continue
        for kind in kinds:
            error, where = measure_function(name, kind)
            at = ", ".join(f"{x:.9g}" for x in where) if error else ""
            print(f"| {name} | {kind} | {show(error)} | {at} |", file=out)


def write_section(target, out):
    os.environ["BASTILE_TEST_TARGET"] = target
    device = "cpu" if target == "host" else "cuda"
    print(
        f"\n## {target}\n\n{describe(target)}, PyTorch {torch.__version__}.\n\n"
        "| op | type | of | maximum | PyTorch | rms | PyTorch "
        "| of terms | PyTorch | |\n"
        "|---|---|---|---|---|---|---|---|---|---|",
        file=out,
    )
    ops = {name: OfCase(name) for name in NAMES}
    ops["rope"], ops["cross_entropy"] = OfRope(), OfLoss()
    failures = []
    for name, op in ops.items():
        for kind in TYPES:
            for what, ours, theirs, arrays in measure(op, kind, device):
                pairs = (
                    (ours.maximum, theirs.maximum),
                    (ours.rms, theirs.rms),
                    (ours.of_terms, theirs.of_terms),
                )
                verdict = ours.judge(theirs)
                cells = [name, kind, what]
                cells += [show(number) for pair in pairs for number in pair]
                print("|", " | ".join([*cells, verdict]), "|", file=out)
                if verdict != "pass":
                    line = explain(name, kind, what, ours, *arrays)
                    failures.append(f"{verdict.strip('*')}: {line}")
    write_functions(target, out)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--targets", nargs="+", choices=("host", "gpu"), default=["host"]
    )
    parser.add_argument("-o", "--output", default=ROOT / "docs" / "accuracy.md")
    arguments = parser.parse_args()
    # A table is written as a whole or not at all.
    pathlib.Path(arguments.output).parent.mkdir(exist_ok=True)
    temporary = pathlib.Path(f"{arguments.output}.part")
    with open(temporary, "w") as out:
        out.write(
            HEADER.format(
                rows=ROWS,
                length=LENGTH,
                loss_rows=OfLoss.ROWS,
                vocabulary=OfLoss.VOCABULARY,
            )
        )
        failures = [
            line for target in arguments.targets for line in write_section(target, out)
        ]
    temporary.rename(arguments.output)
    print("\n".join(failures) or "nothing is worse than the rule")


if __name__ == "__main__":
    main()
