# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients of trigonometric and hyperbolic functions, their inverses and roots,
against PyTorch's formulas in float64; also at the ends of their domains, and of
large numbers."""

import itertools

import numpy as np
import pytest

import floats
from runner import function, run_backward, tensor

SLOPES = {
    "math.tan": lambda x: np.tan(x) ** 2 + 1,
    "math.sinh": np.cosh,
    "math.cosh": np.sinh,
    "math.asin": lambda x: 1 / np.sqrt(1 - x * x),
    "math.acos": lambda x: -1 / np.sqrt(1 - x * x),
    "math.atan": lambda x: 1 / (x * x + 1),
    "math.asinh": lambda x: 1 / np.sqrt(x * x + 1),
    "math.acosh": lambda x: 1 / np.sqrt(x * x - 1),
    "math.atanh": lambda x: 1 / (1 - x * x),
    "math.cbrt": lambda x: 1 / (3 * np.cbrt(x) ** 2),
    "math.log10": lambda x: 1 / (x * np.log(10)),
}
POINTS = (0, 0.25, 0.5, 0.75, 1, 1.25, 2, 7, 40, 1e4, 2.0**50, np.inf)


def slopes(name, values, kind, options):
    """The gradients of the operands, given ones."""
    names = list(values)
    row = tensor((None, values["x"].shape[-1]), kind)
    operands = ", ".join(f"%{one}" for one in names)
    _, got = run_backward(
        function([(one, row) for one in names], [row], [f"{name} {operands} : {row}"]),
        {one: (kind, array) for one, array in values.items()},
        {"grad_result0": (kind, np.ones_like(values["x"]))},
        [kind],
        dict.fromkeys(names, kind),
        *options,
    )
    return {one: floats.decode(kind, array) for one, array in got.items()}


TARGETS = [("f32", []), ("f64", []), ("f32", ["--emulate"])]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind, options", TARGETS)
@pytest.mark.parametrize("name", SLOPES)
def test_slope(name, kind, options):
    x = np.array([[sign * x for x in POINTS for sign in (1, -1)]])
    got = slopes(name, {"x": x}, kind, options)
    with np.errstate(all="ignore"):
        expected = SLOPES[name](x)
        if kind == "f32":
            # Powers of e beyond float32.
            expected = expected.astype(np.float32)
    tolerance = 2e-6 if kind == "f32" else 1e-14
    np.testing.assert_allclose(got["x"], expected, rtol=tolerance)


@pytest.mark.parametrize("kind, options", TARGETS)
def test_slopes_of_atan2(kind, options):
    """At the origin, gradients are zero, as PyTorch's are."""
    numbers = (0, -0.0, 1, -2, 0.5, 1e-3, -40)
    pairs = np.array(list(itertools.product(numbers, numbers)))
    y, x = pairs[None, :, 0].copy(), pairs[None, :, 1].copy()
    got = slopes("math.atan2", {"x": y, "y": x}, kind, options)
    squares = x * x + y * y
    squares[squares == 0] = np.inf
    tolerance = 2e-6 if kind == "f32" else 1e-14
    np.testing.assert_allclose(got["x"], x / squares, rtol=tolerance)
    np.testing.assert_allclose(got["y"], -y / squares, rtol=tolerance)
