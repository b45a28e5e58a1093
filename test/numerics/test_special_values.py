# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""NaN and infinities go through the formulas as through NumPy's and PyTorch's:
minima and maxima of a NaN are NaN."""

import math

import numpy as np
import pytest

import floats
import reference
from runner import function, run, tensor

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e3, -1e3, 6e4]
# A vector of elements at a time, and one.
LENGTHS = (128, 33)


def gelu_tanh(gate, up):
    u = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
    return 0.5 * gate * (1 + np.tanh(u)) * up


def fill(length, values):
    """A row that begins with `values`."""
    row = np.linspace(-2, 2, length)
    row[: len(values)] = values
    return row


def assert_alike(kind, got, expected):
    # The tails of textbook formulas vanish before those of the compiler's.
    vanishing = np.abs(expected) < 1e-6
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    assert np.array_equal(np.isinf(got), np.isinf(expected))
    assert np.all(np.abs(got[vanishing]) < 1e-6)
    rest = np.isfinite(expected) & ~vanishing
    bound = 1 if kind in floats.NARROW else 64
    errors = floats.ulp_errors(kind, got[rest], expected[rest])
    assert errors.size == 0 or errors.max() <= bound
    signs = np.isinf(expected)
    assert np.array_equal(got[signs], expected[signs])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", floats.TYPES)
@pytest.mark.parametrize(
    "form,formula",
    [
        ("", reference.geglu),
        (" {unlimited}", lambda g, u: reference.geglu(g, u, limit=None)),
        (" form(tanh)", gelu_tanh),
        (" form(erf)", reference.geglu_erf),
    ],
)
def test_geglu(form, formula, kind, length):
    row = tensor((None, length), kind)
    source = function(
        [("gate", row), ("up", row)],
        [row],
        [f"tile.geglu %gate, %up{form} : {row}"],
    )
    # Every special value beside every other.
    gate = np.stack([fill(length, SPECIAL)] * len(SPECIAL))
    up = np.stack([np.full(length, value) for value in SPECIAL])
    gate, up = (
        floats.round_to(kind, numbers.astype(np.float32))
        if kind == "bf16"
        else floats.round_to(kind, numbers)
        for numbers in (gate, up)
    )
    (result,) = run(source, {"gate": (kind, gate), "up": (kind, up)}, [kind])
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # Rounded, so that what overflows the type is infinite here too.
        expected = formula(gate, up)
        overflow = np.abs(expected) > float(
            {"f16": 65519, "bf16": 3.3e38, "f32": 3.4e38}.get(kind, math.inf)
        )
        expected[overflow] = np.copysign(math.inf, expected[overflow])
    assert_alike(kind, floats.decode(kind, result), expected)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", floats.TYPES)
def test_rms_norm(kind, length):
    row = tensor((None, length), kind)
    source = function([("x", row)], [row], [f"tile.rms_norm %x : {row}"])
    rows = [[math.nan], [math.inf, -math.inf], [0.0], [math.nan, math.inf]]
    x = np.stack([fill(length, values) for values in rows])
    # And a row of zeros, whose norm is that of eps.
    x = np.concatenate([x, np.zeros((1, length))]).astype(np.float32)
    x = floats.round_to(kind, x)
    (result,) = run(source, {"x": (kind, x)}, [kind])
    with np.errstate(invalid="ignore"):
        expected = reference.rms_norm(x)
    assert_alike(kind, floats.decode(kind, result), expected)
