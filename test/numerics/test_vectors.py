# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Functions of row vectors alone, and results that depend on no rows."""

import numpy as np
import pytest

import floats
from runner import run, run_backward, target, tensor

HOST = ("", "vector=1,columns=1", "rows=4,columns=32", "persistent=1")
GPU = ("", "threads=32", "rows=4,threads=32,columns=64", "persistent=1")


@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
@pytest.mark.parametrize("length", (1, 7, 32, 2880, 4097))
def test_vectors(length, schedule):
    vector = tensor((length,), "f32")
    one = tensor((1,), "f32")
    source = f"""
func.func @f(%w: {vector}, %s: {one}) -> ({vector}, {one}, {vector}) {{
  %0 = arith.negf %s : {one}
  %1 = tile.broadcast %0 : {one} -> {vector}
  %2 = arith.mulf %w, %1 : {vector}
  %3 = arith.constant dense<3.0> : {vector}
  return %2, %0, %3 : {vector}, {one}, {vector}
}}
"""
    w, s = floats.random("f32", (length,), 1), floats.random("f32", (1,), 2)
    flags = [f"--schedule={schedule}"] if schedule else []
    product, negative, constant = run(
        source, {"w": ("f32", w), "s": ("f32", s)}, ["f32"] * 3, *flags
    )
    assert np.array_equal(product, (w * -s).astype(np.float32))
    assert np.array_equal(negative, -s.astype(np.float32))
    assert np.all(constant == 3)


@pytest.mark.parametrize("rows", (0, 5))
def test_gradient_without_rows(rows):
    """The gradient of a vector that is returned beside the rows that it scales."""
    row, vector = tensor((None, 40), "f32"), tensor((40,), "f32")
    source = f"""
func.func @f(%x: {row}, %w: {vector}) -> ({row}, {vector}) {{
  %0 = arith.addf %x, %x : {row}
  %1 = arith.mulf %w, %w : {vector}
  return %0, %1 : {row}, {vector}
}}
"""
    x, w = floats.random("f32", (rows, 40), 1), floats.random("f32", (40,), 2)
    given = floats.random("f32", (40,), 3)
    results, gradients = run_backward(
        source,
        {"x": ("f32", x), "w": ("f32", w)},
        {"grad_result0": ("f32", x), "grad_result1": ("f32", given)},
        ["f32", "f32"],
        {"w": "f32"},
    )
    assert np.array_equal(results[1], (w * w).astype(np.float32))
    assert np.array_equal(gradients["w"], (2 * given * w).astype(np.float32))
