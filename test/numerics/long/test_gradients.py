# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients computed after the result, against formulas derived by hand."""

import numpy as np
import pytest

import floats
from bounds import check_backward, check_gradients
from cases import CASES, make
from runner import run_backward, target


def grid():
    for name in CASES:
        yield name, "bf16", 127, 160
        yield name, "f32", 3, 33
    # No rows, and one.
    for name in ("geglu", "add_bias", "layer_norm", "add_rms_norm"):
        yield name, "bf16", 0, 33
        yield name, "f32", 1, 128


@pytest.mark.parametrize("name,kind,rows,length", grid())
def test_backward(name, kind, rows, length):
    check_backward(name, kind, rows, length)


@pytest.mark.skipif(target() != "host", reason="a GPU's programs walk few rows")
def test_sums_of_many_rows():
    """The error of a sum does not grow with the rows that a program adds up."""
    case = CASES["add_bias"]
    values, cotangents = make(case, 4096, 32, "f32")
    # The correction of a sum must leave infinity alone.
    cotangents[0][7, 3] = np.inf
    _, got = run_backward(
        case.source(32, "f32"),
        {one: ("f32", array) for one, array in values.items()},
        {"grad_result0": ("f32", cotangents[0])},
        ["f32"],
        case.kinds("f32"),
        "--host-threads=1",
    )
    assert got["bias"][3] == np.inf
    terms, sums = (
        np.delete(array.astype(np.float64), 3, axis=-1)
        for array in (cotangents[0], got["bias"])
    )
    errors = np.abs(sums - terms.sum(axis=0))
    assert np.all(errors < 0.25 * floats.ulp("f32", np.abs(terms).sum(axis=0)))


HOST = (
    "rows=2,columns=64,vector=4",
    "vector=1,columns=1",
    "rows=3,columns=256,persistent=1",
)
GPU = (
    "rows=1,threads=32,vector=1,columns=32",
    "rows=2,threads=64,vector=4,columns=256,persistent=2",
    "threads=128,persistent=1",
)


@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
@pytest.mark.parametrize(
    "name",
    (
        "rms_norm",
        "layer_norm",
        "softmax",
        "geglu, interleaved, bias",
    ),
)
def test_schedule(name, schedule):
    """Rows that take one or several sweeps, and are summed by few programs."""
    case = CASES[name]
    values, cotangents = make(case, 31, 160, "f32")
    kinds = case.kinds("f32")
    _, got = run_backward(
        case.source(160, "f32"),
        {one: ("f32", array) for one, array in values.items()},
        {"grad_result0": ("f32", cotangents[0])},
        ["f32"],
        kinds,
        f"--schedule={schedule}",
    )
    check_gradients(case, got, cotangents, values, "f32")
