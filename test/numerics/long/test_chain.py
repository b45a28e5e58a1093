# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""A chain of ops in one function, over the grid of types and shapes."""

import pytest

import floats
import reference
from runner import LENGTHS, ROWS, check_rows, function, run, tensor

# Bounds in units in the last place, as in test_geglu.py and test_rms_norm.py.
SUM_BOUND = 0.5
NORM_BOUNDS = {"f16": 1.51, "bf16": 1.51, "f32": 64, "f64": 64}
GEGLU_BOUNDS = {"f16": 0.51, "bf16": 0.51, "f32": 64, "f64": 64}
# From the inputs to the end, the sum and the norm's two products add three roundings.
# Each costs up to a unit of its value, which the activation makes up to three units,
# as these tests keep the gate.
CHAIN_BOUNDS = {"f16": 9.6, "bf16": 9.6, "f32": 256, "f64": 256}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", floats.TYPES)
def test_chain(kind, length):
    row, vector = tensor((None, length), kind), tensor((length,), kind)
    inputs = [("x", row), ("residual", row), ("weight", vector), ("up", row)]
    body = [
        f"arith.addf %x, %residual : {row}",
        f"tile.rms_norm %0, %weight : {row}, {vector}",
        f"tile.geglu %1, %up : {row}",
    ]
    shape = (max(ROWS), length)
    x = floats.random(kind, shape, 0)
    residual = floats.random(kind, shape, 1)
    # Errors of one rounding grow without bound in the tails of the activation,
    # so the gate is kept within about one.
    weight = floats.random(kind, length, 2, scale=0.05)
    up = floats.random(kind, shape, 3)
    values = {
        name: (kind, numbers)
        for (name, _), numbers in zip(inputs, (x, residual, weight, up))
    }
    total = x + residual
    normalized = reference.rms_norm(total, weight)
    check_rows(
        function(inputs, [row], body),
        values,
        [reference.geglu(normalized, up)],
        CHAIN_BOUNDS[kind],
    )

    # With the values between returned too, each step is measured by what the
    # one before it has really given.
    results = run(function(inputs, [row] * 3, body), values, [kind] * 3)
    got = [floats.decode(kind, result) for result in results]
    for result, expected, bound in [
        (got[0], total, SUM_BOUND),
        (got[1], reference.rms_norm(got[0], weight), NORM_BOUNDS[kind]),
        (got[2], reference.geglu(got[1], up), GEGLU_BOUNDS[kind]),
    ]:
        assert floats.ulp_errors(kind, result, expected).max() <= bound
