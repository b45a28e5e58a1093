# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients at NaN, infinities and kinks are as PyTorch's."""

import math

import numpy as np
import pytest

import floats
import reference
from bounds import assert_within
from cases import CASES
from runner import run_backward

LENGTH = 33


def backward(name, values, kind, cotangent=None):
    """The result, and the gradient of the input x for a cotangent."""
    case = CASES[name]
    length = values["x"].shape[-1]
    if cotangent is None:
        cotangent = np.ones_like(values["x"])
    kinds = case.kinds(kind)
    (result,), got = run_backward(
        case.source(length, kind),
        {one: (kinds[one], array) for one, array in values.items()},
        {"grad_result0": (kind, cotangent)},
        [kind],
        {"x": kind},
    )
    return floats.decode(kind, result), floats.decode(kind, got["x"])


@pytest.mark.parametrize("kind", ("f32", "bf16"))
@pytest.mark.parametrize("name", ("softmax", "log_softmax"))
def test_masked(name, kind):
    """An entry of -inf is as if it were not there; a row of nothing else, or
    with +inf or NaN, is NaN, and no other row notices."""
    x = floats.random(kind, (7, LENGTH), 1)
    dy = floats.random(kind, (7, LENGTH), 2)
    masked = np.zeros(x.shape, bool)
    masked[:, 5:12] = True
    masked[2, :20] = True
    x[masked] = -math.inf
    x[3, 20], x[4, 20], x[5, :] = math.nan, math.inf, -math.inf
    # The gradient of a result of -inf is not used in a model.
    dy[masked] = 0
    result, got = backward(name, {"x": x}, kind, dy)
    assert np.isnan(got[[3, 5]]).all()
    assert np.isnan(result[[3, 5]]).all()
    assert np.isnan(got[4, 20])
    for row in (0, 1, 2, 6):
        there = ~masked[row]
        part = {"x": x[row : row + 1, there]}
        expected = CASES[name].gradients([dy[row : row + 1, there]], part, kind)
        gradient, size = expected["x"]
        assert_within(
            kind,
            floats.encode(kind, got[row : row + 1, there]),
            gradient,
            size,
            row,
        )
        assert not got[row, ~there].any()
        (forward,) = CASES[name].expected(part, kind)
        assert np.allclose(result[row, there], forward[0], 1e-2)


@pytest.mark.parametrize("name", ("rms_norm, plain", "layer_norm, plain"))
def test_norms(name):
    """A row with a NaN or an infinity has no gradient, a row of zeros has one."""
    x = floats.random("f32", (5, LENGTH), 1)
    x[1, 3], x[2, 3], x[3, :] = math.nan, math.inf, 0
    dy = floats.random("f32", (5, LENGTH), 2)
    _, got = backward(name, {"x": x}, "f32", dy)
    assert np.isnan(got[1]).all()
    assert np.isnan(got[2, 3])
    rest = [0, 3, 4]
    gradient, size = CASES[name].gradients([dy[rest]], {"x": x[rest]}, "f32")["x"]
    got = floats.encode("f32", got[rest])
    assert_within("f32", got, gradient, size, "x")


# Derivatives at kinks, where that on the left or on the right is taken, and far out.
KINKS = {
    "relu_squared": {0.0: 0.0},
    "silu": {0.0: 0.5, -100.0: 0.0, 100.0: 1.0, -3e38: 0.0, 3e38: 1.0},
    "gelu": {0.0: 0.5, -100.0: 0.0, 100.0: 1.0, -3e38: 0.0, 3e38: 1.0},
    "gelu, tanh": {0.0: 0.5, -100.0: 0.0, 100.0: 1.0},
}


@pytest.mark.parametrize("kind", ("f32", "bf16"))
@pytest.mark.parametrize("name", KINKS)
def test_far_and_at_kinks(name, kind):
    points = list(KINKS[name])
    x = floats.round_to(kind, np.array([points], np.float32))
    _, got = backward(name, {"x": x}, kind)
    assert np.allclose(got[0], list(KINKS[name].values()), atol=1e-30)


@pytest.mark.parametrize("name", KINKS)
def test_not_a_number(name):
    """The gradient passes, and neighbours do not change."""
    x = np.array([[1.0, math.nan, 2.0]])
    _, got = backward(name, {"x": x}, "f32")
    assert np.array_equal(np.isnan(got), np.isnan(x))


def test_clamps():
    """Inside and at the limits the gradient passes, beyond it is zero."""
    case = CASES["geglu"]
    gate = np.array([[6.9375, 7.0, 7.0625, -100.0, 1.0, 1.0, 1.0, 1.0]])
    up = np.array([[1.0, 1.0, 1.0, 1.0, 7.0, 7.0625, -7.0, -7.0625]])
    values = {"gate": gate, "up": up}
    dy = np.ones_like(gate)
    _, got = run_backward(
        case.source(gate.shape[-1], "bf16"),
        {one: ("bf16", array) for one, array in values.items()},
        {"grad_result0": ("bf16", dy)},
        ["bf16"],
        {"gate": "bf16", "up": "bf16"},
    )
    expected = case.gradients([dy], values, "bf16")
    for name, (gradient, size) in expected.items():
        assert_within("bf16", got[name], gradient, size, name)


def test_reglu_at_zero():
    case = CASES["reglu"]
    gate, up = np.array([[0.0, -0.0, 1.0]]), np.array([[2.0, 3.0, 4.0]])
    _, got = run_backward(
        case.source(3, "f32"),
        {"gate": ("f32", gate), "up": ("f32", up)},
        {"grad_result0": ("f32", np.ones_like(gate))},
        ["f32"],
        {"gate": "f32", "up": "f32"},
    )
    assert np.array_equal(got["gate"], [[0, 0, 4]])
    assert np.array_equal(got["up"], reference.reglu(gate, np.ones_like(up)))
