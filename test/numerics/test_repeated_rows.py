# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients of tensors repeated over leading dimensions: sums over these."""

import os
import re

import numpy as np
import pytest

import floats
from runner import run, run_backward, tensor
from test_dots import check

LENGTH = 48


def make(shapes, seed=1):
    return {
        name: ("f32", floats.random("f32", shape, seed + i))
        for i, (name, shape) in enumerate(shapes.items())
    }


def sum_over(array, shape):
    """The sums of `array` over the dimensions in which `shape` has 1."""
    dimensions = tuple(d for d, size in enumerate(shape) if size == 1)
    return array.sum(axis=dimensions, keepdims=True)


# The sizes of the larger tensor, and which of them the other one has: None is a
# size known only at launch.
SHAPES = [
    ((5, 7, LENGTH), (None, 1, LENGTH)),  # a scale for each image, as AdaLN has it
    ((5, 7, LENGTH), (1, None, LENGTH)),  # an embedding of positions
    ((5, 7, LENGTH), (1, None, 1)),  # a weight for each channel, as in a GroupNorm
    ((5, 7, LENGTH), (None, 1, 1)),
    ((5, 7, LENGTH), (1, 1, LENGTH)),
    ((300, LENGTH), (1, LENGTH)),
    ((3, 70, 6, LENGTH), (1, None, 1, LENGTH)),  # angles that heads share
    ((3, 5, 6, LENGTH), (None, 1, None, LENGTH)),
    ((3, 5, 6, LENGTH), (None, 1, 1, LENGTH)),
    ((3, 5, 6, LENGTH), (1, 1, None, 1)),
    ((2, 3, 4, 5, LENGTH), (1, None, 1, None, LENGTH)),
    # No rows to combine, whose sum is 0, and no rows of either tensor.
    ((0, 7, LENGTH), (1, None, LENGTH)),
    ((5, 0, LENGTH), (None, 1, LENGTH)),
    ((0, 5, 6, LENGTH), (1, None, 1, LENGTH)),
    ((3, 5, 0, LENGTH), (1, None, 1, LENGTH)),
    ((3, 0, 6, LENGTH), (1, None, 1, LENGTH)),
    ((0, LENGTH), (1, LENGTH)),
]


@pytest.mark.long(every=17)
@pytest.mark.parametrize("sizes, kept", SHAPES)
def test_gradients(sizes, kept):
    row = tensor((None,) * (len(sizes) - 1) + (LENGTH,), "f32")
    repeated = tensor(kept, "f32")
    shape = tuple(size if k is None else k for size, k in zip(sizes, kept))
    source = f"""
func.func @f(%x: {row}, %t: {repeated}) -> {row} {{
  %0 = math.sin %t : {repeated}
  %1 = tile.broadcast %0 like %x : {repeated}, {row} -> {row}
  %2 = arith.mulf %x, %1 : {row}
  return %2 : {row}
}}
"""
    inputs = make({"x": sizes, "t": shape})
    given = make({"grad_result0": sizes}, seed=5)
    results, gradients = run_backward(
        source, inputs, given, ["f32"], {"x": "f32", "t": "f32"}
    )
    x, t = (inputs[name][1].astype(np.float64) for name in "xt")
    g = given["grad_result0"][1].astype(np.float64)
    assert np.allclose(results[0], x * np.sin(t), atol=1e-5)
    assert np.allclose(gradients["x"], g * np.sin(t), atol=1e-5)
    expected = sum_over(g * x, shape) * np.cos(t)
    scale = sum_over(np.abs(g * x), shape).max(initial=1)
    assert gradients["t"].shape == shape
    assert np.allclose(gradients["t"], expected, atol=1e-6 * scale)


def test_modulated_norm():
    """AdaLN: a norm without weight, scaled and shifted for each image."""
    row = tensor((None, None, LENGTH), "bf16")
    image = tensor((None, 1, LENGTH), "bf16")
    wide, wide_image = row.replace("bf16", "f32"), image.replace("bf16", "f32")
    source = f"""
func.func @f(%x: {row}, %scale: {image}, %shift: {image}) -> {row} {{
  %0 = tile.layer_norm %x : {row}
  %1 = arith.extf %0 : {row} to {wide}
  %2 = arith.extf %scale : {image} to {wide_image}
  %3 = tile.broadcast %2 like %x : {wide_image}, {row} -> {wide}
  %4 = arith.mulf %1, %3 : {wide}
  %5 = arith.addf %4, %1 : {wide}
  %6 = arith.extf %shift : {image} to {wide_image}
  %7 = tile.broadcast %6 like %x : {wide_image}, {row} -> {wide}
  %8 = arith.addf %5, %7 : {wide}
  %9 = arith.truncf %8 : {wide} to {row}
  return %9 : {row}
}}
"""
    shapes = {"x": (3, 50, LENGTH), "scale": (3, 1, LENGTH), "shift": (3, 1, LENGTH)}
    inputs = {
        name: ("bf16", floats.random("bf16", shape, seed))
        for seed, (name, shape) in enumerate(shapes.items())
    }
    g = floats.random("bf16", shapes["x"], 9)
    _, gradients = run_backward(
        source,
        inputs,
        {"grad_result0": ("bf16", g)},
        ["bf16"],
        {"scale": "bf16", "shift": "bf16"},
    )
    x = inputs["x"][1].astype(np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    expected = {"scale": g * normed, "shift": g}
    for name, terms in expected.items():
        got = floats.decode("bf16", gradients[name])
        bound = 2**-8 * np.abs(terms).sum(axis=1, keepdims=True)
        assert np.all(np.abs(got - terms.sum(axis=1, keepdims=True)) <= bound)


@pytest.mark.parametrize("batch", (0, 3))
def test_extremes(batch):
    """Combinations other than sums, and a sum that is repeated again."""
    row, left = tensor((None, None, LENGTH), "f32"), tensor((None, 1, LENGTH), "f32")
    source = f"""
func.func @f(%x: {row}) -> ({left}, {row}) {{
  %0 = tile.reduce_rows max %x : {row} -> {left}
  %1 = tile.broadcast %0 like %x : {left}, {row} -> {row}
  %2 = arith.subf %x, %1 : {row}
  return %0, %2 : {left}, {row}
}}
"""
    inputs = make({"x": (batch, 20, LENGTH)})
    x = inputs["x"][1]
    most, rest = run(source, inputs, ["f32", "f32"])
    assert np.array_equal(most, x.max(axis=1, keepdims=True).astype(np.float32))
    assert np.allclose(rest, x - most, atol=1e-6)


def test_angles_of_heads():
    """Those of queries that are normalized and rotated, as in Qwen3."""
    path = os.path.join(os.path.dirname(__file__), "../../examples/qk_norm_rope.mlir")
    with open(path, encoding="utf-8") as file:
        source = re.sub(r"bf16", "f32", file.read()).replace("@qk_norm_rope", "@f")
    shapes = {"q": (2, 9, 4, 128), "weight": (128,)}
    shapes |= {"cos": (1, 9, 1, 64), "sin": (1, 9, 1, 64)}
    inputs = make(shapes)
    given = make({"grad_result0": shapes["q"]}, seed=7)
    _, gradients = run_backward(
        source, inputs, given, ["f32"], {"cos": "f32", "sin": "f32"}
    )
    q, weight = inputs["q"][1], inputs["weight"][1]
    normed = q / np.sqrt((q**2).mean(axis=-1, keepdims=True) + 1e-6) * weight
    low, high = np.split(normed, 2, axis=-1)
    g_low, g_high = np.split(given["grad_result0"][1], 2, axis=-1)
    expected = {
        "cos": sum_over(g_low * low + g_high * high, shapes["cos"]),
        "sin": sum_over(g_high * low - g_low * high, shapes["sin"]),
    }
    for name, sums in expected.items():
        assert np.allclose(gradients[name], sums, atol=1e-5 * np.abs(sums).max())


def test_rows_of_size_one():
    """Over dimensions of size 1 there is nothing to combine."""
    row = tensor((None, 1, LENGTH), "f32")
    source = f"""
func.func @f(%x: {row}, %y: {row}) -> {row} {{
  %0 = tile.reduce_rows add %x : {row} -> {row}
  %1 = arith.addf %0, %y : {row}
  return %1 : {row}
}}
"""
    inputs = make({"x": (7, 1, LENGTH), "y": (7, 1, LENGTH)})
    x, y = inputs["x"][1], inputs["y"][1]
    (total,) = run(source, inputs, ["f32"])
    assert np.array_equal(total, (x + y).astype(np.float32))


def test_norm_of_rows_that_are_repeated():
    """Its gradient goes along the columns of sums over the rows that repeat it."""
    row, one, number = (tensor((None, *x), "f32") for x in ((None, 8), (1, 8), (1, 1)))
    check(
        f"""
func.func @f(%x: {one}, %w: {row}) -> {row} {{
  %0 = arith.mulf %x, %x : {one}
  %1 = tile.reduce add %0 : {one} -> {number}
  %2 = math.rsqrt %1 : {number}
  %3 = tile.broadcast %2 like %x : {number}, {one} -> {one}
  %4 = arith.mulf %x, %3 : {one}
  %5 = tile.broadcast %4 like %w : {one}, {row} -> {row}
  %6 = arith.mulf %5, %w : {row}
  return %6 : {row}
}}
""",
        "--shape=x=3x1x8",
        "--shape=w=3x4x8",
        "--grad",
    )
