# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""The error of each function, over numbers of all sizes, in units in the last
place."""

import numpy as np
import pytest

import floats
from elementary import FUNCTIONS, LENGTH, errors, spread
from runner import function, run, run_backward, target, tensor

EXACT = (
    "math.absf math.floor math.ceil math.round math.roundeven math.copysign "
    "arith.remf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf"
).split()
ROUNDED = ("math.sqrt", "arith.divf")


def bound(name, kind):
    """In units in the last place. Functions of float64 are the library's, and
    so are NumPy's; a GPU's ex2 alone may be 4 off."""
    if name in EXACT:
        return 0
    if name in ROUNDED:
        return 0.5
    return 2.5 if kind == "f32" and target() == "host" else 4


@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind", ("f32", "f64"))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, kind):
    formula, operands = FUNCTIONS[name]
    names = ("x", "y")[:operands]
    row = tensor((None, LENGTH), kind)
    arguments = ", ".join(f"%{one}" for one in names)
    source = function(
        [(one, row) for one in names], [row], [f"{name} {arguments} : {row}"]
    )
    values = {one: spread(kind, seed + 1) for seed, one in enumerate(names)}
    if name == "arith.remf" and target() != "host":
        # Larger quotients lose bits on a GPU.
        with np.errstate(all="ignore"):
            is_large = ~(np.abs(values["x"] / values["y"]) < 2.0**24)
        values["x"] = np.where(is_large, 1.0, values["x"])
        values["y"] = np.where(is_large, 3.0, values["y"])
    (result,) = run(
        source, {one: (kind, array) for one, array in values.items()}, [kind]
    )
    got = floats.decode(kind, result)
    with np.errstate(all="ignore"):
        expected = formula(*(array.ravel() for array in values.values()))
    off = errors(kind, got, expected.reshape(got.shape))
    worst = np.argmax(off)
    where = [array.ravel()[worst] for array in values.values()]
    assert off[worst] <= bound(name, kind), (
        off[worst],
        where,
        got.ravel()[worst],
        expected[worst],
    )


@pytest.mark.parametrize("options", ([], ["--emulate"]))
@pytest.mark.parametrize("kind", ("i8", "i32", "i64"))
def test_division_by_zero_does_not_end_the_process(kind, options):
    """Nor does the least integer divided by -1, whatever results they have."""
    least = -(2 ** (int(kind[1:]) - 1))
    x = np.array([[7, -7, 0, least, least, 5, -5, 6]])
    y = np.array([[0, 0, 0, -1, 0, 2, 2, -1]])
    row = tensor((None, 8), kind)
    names = ("divsi remsi floordivsi ceildivsi divui remui ceildivui").split()
    inputs = {"x": (kind, x), "y": (kind, y)}
    results = run(
        function(
            [("x", row), ("y", row)],
            [row] * len(names),
            [f"arith.{name} %x, %y : {row}" for name in names],
        ),
        inputs,
        [kind] * len(names),
        *options,
    )
    signed = [array[0, 5:].astype(np.int64).tolist() for array in results[:4]]
    assert signed == [[2, -2, -6], [1, -1, 0], [2, -3, -6], [3, -2, -6]]


HALF_PI = np.longdouble("1.57079632679489661923132169163975144")


def angles(kind):
    """Of each size that `kind` has, those nearest to multiples of pi / 2, and
    vectors of which a few are large or no numbers."""
    generator = np.random.default_rng(5)
    multiples = (np.arange(1, 2**20) * HALF_PI).astype(np.float32)
    distances = np.abs(multiples - np.arange(1, 2**20) * HALF_PI)
    nearest = multiples[np.argsort(distances)[:LENGTH]]
    largest = {"f16": 16, "bf16": 128, "f32": 128}[kind]
    exponents = np.arange(3 * LENGTH) % (largest + 30) - 30
    sizes = generator.uniform(1, 2, 3 * LENGTH) * np.exp2(exponents)
    # What is nearest to a multiple of pi / 2 among all of float32.
    sizes[:2] = 16367173 * 2.0**72, 9170257 * 2.0**77
    mixed = generator.uniform(-10, 10, LENGTH)
    mixed[::7] *= 2.0 ** (largest - 5)
    mixed[::45] = np.resize([np.inf, -np.inf, np.nan], mixed[::45].shape)
    numbers = np.concatenate([nearest, sizes, mixed]).reshape(5, LENGTH)
    numbers[1::2] *= -1
    if kind == "f16":
        numbers = np.where(np.abs(numbers) > 65504, 1.5, numbers)
    return floats.round_to(kind, numbers.astype(np.float32))


@pytest.mark.parametrize("kind", ("f32", "f16", "bf16"))
@pytest.mark.parametrize("name", ("sin", "cos"))
def test_angle_of_any_size(name, kind):
    """Compares the result and the derivative."""
    references = {"sin": np.sin, "cos": np.cos}
    x = angles(kind)
    row = tensor((None, LENGTH), kind)
    (result,), gradient = run_backward(
        function([("x", row)], [row], [f"math.{name} %x : {row}"]),
        {"x": (kind, x)},
        {"grad_result0": (kind, np.ones_like(x))},
        [kind],
        {"x": kind},
    )
    with np.errstate(invalid="ignore"):
        value = references[name](x)
        slope = np.cos(x) if name == "sin" else -np.sin(x)
    for got, expected in ((result, value), (gradient["x"], slope)):
        off = errors(kind, floats.decode(kind, got), expected)
        worst = np.argmax(off)
        assert off[worst] <= (1.5 if kind == "f32" else 0.51), (
            off[worst],
            x.ravel()[worst],
            expected.ravel()[worst],
        )
