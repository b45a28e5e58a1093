# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients computed with the result, against formulas derived by hand."""

import numpy as np
import pytest

import floats
from bounds import assert_within, check_gradients
from cases import CASES, REDUCTIONS, make
from runner import run, tensor


def short():
    for name in CASES:
        for length in (1, 2, 7, 33) if name in REDUCTIONS else (33,):
            yield name, length


@pytest.mark.long(every=5)
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
    products = [dy * y for dy, y in zip(cotangents, case.expected(values, "f64"))]
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


@pytest.mark.parametrize("place", ([], ["--in-place"]))
@pytest.mark.parametrize("factor", (1.0, -0.375))
@pytest.mark.parametrize("rows", (0, 300))
def test_scale(rows, factor, place):
    """The gradients of a loss times the loss's own, in place and in other memory."""
    row, vector = tensor((None, 130), "bf16"), tensor((130,), "f32")
    source = f"""
func.func @f(%x: {row}, %w: {vector}) -> tensor<1xf32> {{
  %0 = arith.extf %x : {row} to tensor<?x130xf32>
  %1 = tile.broadcast %w like %x : {vector}, {row} -> tensor<?x130xf32>
  %2 = arith.mulf %0, %1 : tensor<?x130xf32>
  %3 = tile.reduce add %2 : tensor<?x130xf32> -> tensor<?x1xf32>
  %4 = tile.reduce_rows add %3 : tensor<?x1xf32> -> tensor<1xf32>
  return %4 : tensor<1xf32>
}}
"""
    x, w = floats.random("bf16", (rows, 130), 1), floats.random("f32", (130,), 2)
    got_x, got_w = run(
        source,
        {
            "grad_result0": ("f32", np.array([factor])),
            "grad_x": ("bf16", x),
            "grad_w": ("f32", w),
        },
        {"grad_x": "bf16", "grad_w": "f32"},
        "--value-and-grad",
        "--function=f_scale",
        *place,
    )
    assert np.array_equal(got_x, floats.encode("bf16", np.float32(x * factor)))
    assert np.array_equal(got_w, (w * factor).astype(np.float32))
