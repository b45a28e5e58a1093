# RUN: %pytest %s
"""A chain of ops in one function, over the grid of types and shapes."""

import numpy as np
import pytest

import floats
import reference
from runner import LENGTHS, ROWS, check_rows, function, run, tensor

# As in test_geglu.py and test_rms_norm.py.
SUM_BOUND = 0.5
NORM_BOUNDS = {"f16": 1.51, "bf16": 1.51, "f32": 16, "f64": 16}
GEGLU_BOUNDS = {"f16": 0.51, "bf16": 0.51, "f32": 32, "f64": 32}


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
    values = {
        name: (
            kind,
            floats.random(kind, length if name == "weight" else shape, seed),
        )
        for seed, (name, _) in enumerate(inputs)
    }
    x, residual, weight, up = (values[name][1] for name, _ in inputs)

    # Each step is measured by what the one before it has really given: errors
    # of one rounding grow without bound in the tails of the activation.
    results = run(function(inputs, [row] * 3, body), values, [kind] * 3)
    total, normalized, gated = (floats.decode(kind, r) for r in results)
    for got, expected, bound in [
        (total, x + residual, SUM_BOUND),
        (normalized, reference.rms_norm(total, weight), NORM_BOUNDS[kind]),
        (gated, reference.geglu(normalized, up), GEGLU_BOUNDS[kind]),
    ]:
        assert floats.ulp_errors(kind, got, expected).max() <= bound

    # A row depends neither on how many there are nor on what else is returned.
    stored = results[2]
    if kind == "bf16":
        stored = np.ascontiguousarray(stored).view("V2")
    check_rows(function(inputs, [row], body), values, [stored], 0)
