# RUN: %pytest %s
"""Gradients computed with the result, against formulas derived by hand."""

import numpy as np
import pytest

from bounds import assert_within, check_gradients
from cases import CASES, REDUCTIONS, make
from runner import run


def short():
    for name in CASES:
        for length in (1, 2, 7, 33) if name in REDUCTIONS else (33,):
            yield name, length


@pytest.mark.parametrize("name,length", short())
def test_together(name, length):
    """In float64, with the result, which is a sum of products with what then is
    the gradient."""
    case = CASES[name]
    values, cotangents = make(case, 3, length, "f64")
    weights = {f"grad_result{i}": dy for i, dy in enumerate(cotangents)}
    result, *got = run(
        case.source(length, "f64", weighted=True),
        {one: ("f64", array) for one, array in {**values, **weights}.items()},
        {one: "f64" for one in ["result0", *("grad_" + one for one in values)]},
        "--value-and-grad=" + ",".join(values),
    )
    products = [
        dy * y for dy, y in zip(cotangents, case.expected(values, "f64"))
    ]
    size = 1 + sum(map(np.abs, products))
    assert_within("f64", result, sum(products), size, "result")
    check_gradients(case, dict(zip(values, got)), cotangents, values, "f64")


def run_in_place(name, length, only=None):
    """Gradients of the inputs that are `only`, or of all, in their memory."""
    case = CASES[name]
    values, cotangents = make(case, 7, length, "bf16")
    kinds = case.kinds("bf16")
    inputs = {one: (kinds[one], array) for one, array in values.items()}
    for i, dy in enumerate(cotangents):
        inputs[f"grad_result{i}"] = "bf16", dy
    names = [one for one, what in case.inputs.items() if only in (None, what)]
    got = run(
        case.source(length, "bf16", weighted=True),
        inputs,
        {"grad_" + one: kinds[one] for one in names},
        "--value-and-grad=" + ",".join(names),
        "--in-place",
    )
    got = dict(zip(names, got))
    check_gradients(case, got, cotangents, values, "bf16")


@pytest.mark.parametrize("name", CASES)
def test_in_place(name):
    inputs = CASES[name].inputs.values()
    run_in_place(name, 160, "wide" if "wide" in inputs else "row")


WITH_VECTORS = [
    name for name, case in CASES.items() if "vector" in case.inputs.values()
]


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_vectors_beside_in_place(name):
    """A gradient that sums rows has memory of its own."""
    run_in_place(name, 33)
