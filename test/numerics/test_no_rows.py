# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Tensors without rows: a combination of rows is that of no rows."""

import numpy as np
import pytest

import floats
from runner import run, run_backward, target, tensor

LENGTH = 72
ROW, VECTOR = tensor((None, LENGTH), "f32"), tensor((LENGTH,), "f32")

HOST = ("", "vector=1,columns=24", "rows=4")
GPU = ("", "rows=4,threads=32", "stages=2", "stages=3,rows=1,threads=32")


@pytest.fixture(params=HOST if target() == "host" else GPU)
def flags(request):
    return [f"--schedule={request.param}"] if request.param else []


def make(rows, *kinds):
    shapes = {"x": (rows, LENGTH), "w": (LENGTH,)}
    return {
        name: ("f32", floats.random("f32", shapes[name], seed))
        for seed, name in enumerate(kinds)
    }


@pytest.mark.parametrize("rows", (0, 3))
def test_what_follows_a_sum(rows, flags):
    source = f"""
func.func @f(%x: {ROW}, %w: {VECTOR}) -> ({VECTOR}, {VECTOR}) {{
  %0 = tile.reduce_rows add %x : {ROW} -> {VECTOR}
  %1 = arith.addf %0, %w : {VECTOR}
  %2 = math.cos %0 : {VECTOR}
  return %1, %2 : {VECTOR}, {VECTOR}
}}
"""
    inputs = make(rows, "x", "w")
    shifted, cosine = run(source, inputs, ["f32", "f32"], *flags)
    total = inputs["x"][1].sum(axis=0)
    assert np.allclose(shifted, total + inputs["w"][1], atol=1e-5)
    assert np.allclose(cosine, np.cos(total), atol=1e-5)


@pytest.mark.parametrize("kind, nothing", (("max", -np.inf), ("min", np.inf)))
def test_others_than_sums(kind, nothing, flags):
    source = f"""
func.func @f(%x: {ROW}) -> {VECTOR} {{
  %0 = tile.reduce_rows {kind} %x : {ROW} -> {VECTOR}
  return %0 : {VECTOR}
}}
"""
    (result,) = run(source, make(0, "x"), ["f32"], *flags)
    assert np.all(result == nothing)


@pytest.mark.parametrize("rows", (0, 3))
def test_later_stages(rows, flags):
    """A sum that rows read and sum again, and vectors that depend on no rows."""
    source = f"""
func.func @f(%x: {ROW}, %w: {VECTOR}) -> ({ROW}, {VECTOR}, {VECTOR}) {{
  %0 = tile.reduce_rows add %x : {ROW} -> {VECTOR}
  %1 = arith.addf %0, %w : {VECTOR}
  %2 = tile.broadcast %1 like %x : {VECTOR}, {ROW} -> {ROW}
  %3 = arith.mulf %x, %2 : {ROW}
  %4 = tile.reduce_rows add %3 : {ROW} -> {VECTOR}
  %5 = arith.subf %4, %1 : {VECTOR}
  %6 = arith.mulf %w, %w : {VECTOR}
  return %3, %5, %6 : {ROW}, {VECTOR}, {VECTOR}
}}
"""
    inputs = make(rows, "x", "w")
    x, w = inputs["x"][1], inputs["w"][1]
    scaled, rest, square = run(source, inputs, ["f32"] * 3, *flags)
    first = x.sum(axis=0) + w
    assert scaled.shape == x.shape
    assert np.allclose(scaled, x * first, atol=1e-5)
    assert np.allclose(rest, (x * first).sum(axis=0) - first, atol=1e-4)
    assert np.allclose(square, w * w)


def test_mean_of_nothing(flags):
    """The mean of no rows is NaN and not zero, as in PyTorch."""
    source = f"""
func.func @f(%x: {ROW}) -> {VECTOR} {{
  %0 = tile.reduce_rows add %x : {ROW} -> {VECTOR}
  %1 = arith.constant 1.0 : f32
  %2 = tile.broadcast %1 like %x : f32, {ROW} -> {ROW}
  %3 = tile.reduce_rows add %2 : {ROW} -> {VECTOR}
  %4 = arith.divf %0, %3 : {VECTOR}
  return %4 : {VECTOR}
}}
"""
    (result,) = run(source, make(0, "x"), ["f32"], *flags)
    assert np.all(np.isnan(result))


@pytest.mark.parametrize("rows", (0, 3))
def test_gradient_of_a_vector_with_and_without_rows(rows):
    """It is the sum of a part that has rows and one that has none."""
    source = f"""
func.func @f(%x: {ROW}, %w: {VECTOR}) -> ({ROW}, {VECTOR}) {{
  %0 = tile.broadcast %w like %x : {VECTOR}, {ROW} -> {ROW}
  %1 = arith.mulf %x, %0 : {ROW}
  %2 = arith.addf %w, %w : {VECTOR}
  return %1, %2 : {ROW}, {VECTOR}
}}
"""
    inputs = make(rows, "x", "w")
    x = inputs["x"][1]
    given = {
        "grad_result0": ("f32", floats.random("f32", x.shape, 3)),
        "grad_result1": ("f32", floats.random("f32", (LENGTH,), 4)),
    }
    _, gradients = run_backward(
        source, inputs, given, ["f32", "f32"], {"w": "f32", "x": "f32"}
    )
    expected = (given["grad_result0"][1] * x).sum(axis=0)
    expected = expected + 2 * given["grad_result1"][1]
    assert np.allclose(gradients["w"], expected, atol=1e-5)
    assert gradients["x"].shape == x.shape
