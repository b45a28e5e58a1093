# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients at zeros, infinities and ties are PyTorch's, and do not depend on which
other gradients are asked for."""

import itertools

import numpy as np
import pytest

import floats
from elementary import FUNCTIONS
from runner import function, run, run_backward, tensor

POINTS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, np.inf, -np.inf, np.nan]
FLAT = ("math.floor", "math.ceil", "math.round", "math.roundeven")
# No user has needed the derivatives of these.
WITHOUT_DERIVATIVE = ("math.copysign",)
# The gradient of an operand is that of the result, and nothing to compute.
PASSING = ("arith.addf", "arith.subf", "arith.remf")
EXTREMA = (
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
)


def gradients(formula, values, kind, names):
    """The gradients of `names` in `formula`, the lines of a body, given ones."""
    length = values["x"].shape[-1]
    types = {
        "ROW": tensor((None, length), kind),
        "STATISTIC": tensor((None, 1), kind),
        "CONDITION": tensor((None, length), "i1"),
    }
    row = types["ROW"]
    is_statistic = formula[-1].endswith("STATISTIC")
    for name, text in types.items():
        formula = [line.replace(name, text) for line in formula]
    source = function(
        [(name, row) for name in values],
        [types["STATISTIC"] if is_statistic else row],
        formula,
    )
    shape = values["x"].shape
    if is_statistic:
        shape = (*shape[:-1], 1)
    _, got = run_backward(
        source,
        {name: (kind, array) for name, array in values.items()},
        {"grad_result0": (kind, np.ones(shape))},
        [kind],
        dict.fromkeys(names, kind),
    )
    return {name: floats.decode(kind, array) for name, array in got.items()}


def every_pair():
    """Rows of a length that vectors divide: quick to compile."""
    pairs = np.resize(list(itertools.product(POINTS, POINTS)), (128, 2))
    return {"x": pairs[None, :, 0].copy(), "y": pairs[None, :, 1].copy()}


def assert_same(kind, got, expected, *what):
    """Whether gradients are equal but for roundings and the sign of zero."""
    with np.errstate(invalid="ignore", over="ignore"):
        if kind != "f64":
            expected = floats.round_to(kind, expected.astype(np.float32))
    tolerance = {"f64": 1e-14, "f32": 1e-6, "bf16": 2.0**-7}[kind]
    np.testing.assert_allclose(got, expected, rtol=tolerance, err_msg=str(what))


def power_of_constant(x, y):
    """PyTorch's power of a number, which takes a root for 1/2 and -1/2."""
    if abs(y) == 0.5:
        return np.sqrt(x) if y > 0 else 1 / np.sqrt(x)
    return np.power(x, y)


def slope_of_base(x, y):
    """PyTorch's pow_backward_self, of a gradient of 1."""
    return np.where(y == 0, 0.0, y * np.power(x, y - 1))


def slope_of_exponent(x, y):
    """PyTorch's pow_backward_exponent, of a gradient of 1."""
    return np.where((x == 0) & (y >= 0), 0.0, np.power(x, y) * np.log(x))


@pytest.mark.parametrize("kind", ("f32", "bf16", "f64"))
def test_power(kind):
    values = every_pair()
    got = gradients(["math.powf %x, %y : ROW"], values, kind, "xy")
    with np.errstate(all="ignore"):
        assert_same(kind, got["x"], slope_of_base(**values), "base")
        assert_same(kind, got["y"], slope_of_exponent(**values), "exponent")


def repeated(number, element):
    """The lines of a body whose value %1 is `number` everywhere."""
    return [
        f"arith.constant {float(number)!r} : {element}",
        f"tile.broadcast %0 like %x : {element}, ROW -> ROW",
    ]


CONSTANTS = (0, 1, 2, 3, 8, -1, -2, -3, -8, -9, 0.5, -0.5, 1.5)


@pytest.mark.parametrize("kind", ("f32", "f64"))
@pytest.mark.parametrize("exponent", CONSTANTS[1:])
def test_power_of_constant_exponent(exponent, kind):
    x = np.array([POINTS + [1e-30, -1e30, 1e-5]])
    got = gradients(
        repeated(exponent, kind) + ["math.powf %x, %1 : ROW"],
        {"x": x},
        kind,
        "x",
    )
    with np.errstate(all="ignore"):
        x = floats.round_to(kind, x)
        expected = exponent * power_of_constant(x, exponent - 1.0)
    assert_same(kind, got["x"], expected, exponent)


@pytest.mark.parametrize("options", ([], ["--emulate"]))
@pytest.mark.parametrize("kind", ("f32", "bf16"))
@pytest.mark.parametrize("exponent", (0.5, -0.5))
def test_root_as_power(exponent, kind, options):
    """Also those of -0 and -infinity, for which C's pow gives no roots."""
    x = np.array([[4.0, 0.0, -0.0, np.inf, -np.inf, -1.0, np.nan, 0.25]])
    row = tensor((None, x.shape[-1]), kind)
    body = [
        line.replace("ROW", row)
        for line in repeated(exponent, kind) + ["math.powf %x, %1 : ROW"]
    ]
    (got,) = run(
        function([("x", row)], [row], body), {"x": (kind, x)}, [kind], *options
    )
    got = floats.decode(kind, got)
    with np.errstate(all="ignore"):
        expected = power_of_constant(x, exponent)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    is_number = ~np.isnan(expected)
    signs = np.signbit(got), np.signbit(expected)
    assert np.array_equal(signs[0][is_number], signs[1][is_number])


def test_power_of_zero_is_flat():
    """The gradient of a step is zero, so there is none."""
    body = repeated(0, "f32") + [
        "math.powf %x, %1 : ROW",
        "arith.mulf %2, %x : ROW",
    ]
    got = gradients(body, {"x": np.array([POINTS])}, "f32", "x")
    assert np.array_equal(got["x"], np.ones((1, len(POINTS))))


@pytest.mark.parametrize("kind", ("f32", "f64"))
@pytest.mark.parametrize("base", (0.0, 1.0, 2.0, 0.5, -2.0))
def test_power_of_constant_base(base, kind):
    y = np.array([POINTS])
    got = gradients(
        repeated(base, kind) + ["math.powf %1, %x : ROW"], {"x": y}, kind, "x"
    )
    with np.errstate(all="ignore"):
        assert_same(kind, got["x"], slope_of_exponent(base, y), base)


def expected_shares(name, x, y):
    """Two equal values get half of the gradient each; otherwise the one that is the
    result gets all of it, and with a NaN both do."""
    sign = 1 if "max" in name else -1
    wins = ~(sign * x < sign * y)
    if "num" in name:
        wins = (sign * x >= sign * y) | np.isnan(y)
    return np.where(x == y, 0.5, wins * 1.0)


@pytest.mark.parametrize("name", EXTREMA)
def test_ties(name):
    values = every_pair()
    got = gradients([f"{name} %x, %y : ROW"], values, "f32", "xy")
    with np.errstate(invalid="ignore"):
        x, y = values["x"], values["y"]
        assert np.array_equal(got["x"], expected_shares(name, x, y))
        assert np.array_equal(got["y"], expected_shares(name, y, x))


@pytest.mark.parametrize("name", EXTREMA)
def test_ties_with_numbers(name):
    """A number takes no part of the gradient."""
    x = np.array([[1.0, 2.0, 3.0]])
    body = repeated(2, "f32")
    for operands in ("%x, %1", "%1, %x"):
        got = gradients(body + [f"{name} {operands} : ROW"], {"x": x}, "f32", "x")
        beyond = [0, 1, 1] if "max" in name else [1, 1, 0]
        assert np.array_equal(got["x"], [beyond])


@pytest.mark.parametrize("kind", ("max", "min"))
def test_ties_in_rows(kind):
    """Equal elements share the gradient; a row with NaN has gradients of NaN, as in
    PyTorch's amax."""
    x = np.array([[1.0, 3.0, 3.0, 1.0], [2, 2, 2, 2], [1, np.nan, 3, 1]])
    got = gradients(
        [f"tile.reduce {kind} %x : ROW -> STATISTIC"],
        {"x": x},
        "f32",
        "x",
    )
    shares = [0, 0.5, 0.5, 0] if kind == "max" else [0.5, 0, 0, 0.5]
    assert np.array_equal(got["x"][:2], [shares, [0.25] * 4])
    assert np.isnan(got["x"][2]).all()


def primitives():
    """Bodies of each primitive of several operands, and of compositions where an
    operand's gradient has two terms."""
    for name, (_, operands) in FUNCTIONS.items():
        if name in FLAT + WITHOUT_DERIVATIVE + PASSING:
            continue
        if operands == 2:
            yield name, [f"{name} %x, %y : ROW"]
        else:
            yield name, [f"{name} %x : ROW", "arith.mulf %0, %y : ROW"]
    for name in ("arith.mulf", *PASSING):
        yield name, [f"{name} %x, %y : ROW", "arith.mulf %0, %y : ROW"]
    yield "math.fma", ["math.fma %x, %y, %x : ROW"]
    yield (
        "arith.select",
        [
            "arith.cmpf olt, %x, %y : ROW",
            "arith.select %0, %x, %y : CONDITION, ROW",
        ],
    )
    for kind in ("add", "max", "min"):
        yield (
            f"tile.reduce {kind}",
            [
                "arith.mulf %x, %y : ROW",
                f"tile.reduce {kind} %0 : ROW -> STATISTIC",
                "tile.broadcast %1 like %x : STATISTIC, ROW -> ROW",
                "arith.maximumf %2, %y : ROW",
            ],
        )
    yield (
        "a composition",
        [
            "arith.minimumf %x, %y : ROW",
            "arith.maximumf %y, %0 : ROW",
            "math.powf %x, %1 : ROW",
        ],
    )


def bits(array):
    """The bits, but for the sign of NaN, which no standard defines."""
    return np.where(np.isnan(array), np.nan, array).tobytes()


PRIMITIVES = dict(primitives())


@pytest.mark.parametrize("name", PRIMITIVES)
def test_one_gradient_is_as_with_others(name):
    """Gradients are the same to the bit, whichever others are asked for."""
    values = every_pair()
    both = gradients(PRIMITIVES[name], values, "f32", "xy")
    for one in "xy":
        alone = gradients(PRIMITIVES[name], values, "f32", one)
        assert bits(alone[one]) == bits(both[one]), one
