# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Conditions that one kernel finds and another needs, forward and backward."""

import numpy as np
import pytest

import floats
from runner import run_backward, tensor

ROW = tensor((None, None, 64), "f32")
CONDITION = tensor((None, None, 64), "i1")

# How a condition comes to be, from x of (5, 4, 64) and t of (1, 4, 64).
CONDITIONS = {
    "all rows": (
        """
  %s = tile.reduce_rows add %x : {row} -> tensor<64xf32>
  %z = arith.constant dense<0.0> : tensor<64xf32>
  %one = arith.cmpf ogt, %s, %z : tensor<64xf32>
  %c = tile.broadcast %one like %x : tensor<64xi1>, {row} -> {condition}""",
        lambda x, t: x.sum(axis=(0, 1)) > 0,
    ),
    "the largest of all rows, or another vector": (
        """
  %s = tile.reduce_rows max %x : {row} -> tensor<64xf32>
  %z = arith.constant dense<2.0> : tensor<64xf32>
  %more = arith.cmpf ogt, %s, %z : tensor<64xf32>
  %positive = arith.cmpf ogt, %w, %z : tensor<64xf32>
  %one = arith.ori %more, %positive : tensor<64xi1>
  %c = tile.broadcast %one like %x : tensor<64xi1>, {row} -> {condition}""",
        lambda x, t: x.max(axis=(0, 1)) > 2,
    ),
    "rows that are repeated": (
        """
  %half = arith.constant 0.5 : f32
  %h = tile.broadcast %half like %t : f32, {few} -> {few}
  %one = arith.cmpf olt, %t, %h : {few}
  %c = tile.broadcast %one like %x : {few_conditions}, {row} -> {condition}""",
        lambda x, t: t < 0.5,
    ),
    "statistics of rows that are repeated": (
        """
  %zero = arith.constant 0.0 : f32
  %h = tile.broadcast %zero like %t : f32, {few} -> tensor<1x?x1xf32>
  %s = tile.reduce add %t : {few} -> tensor<1x?x1xf32>
  %one = arith.cmpf olt, %s, %h : tensor<1x?x1xf32>
  %c = tile.broadcast %one like %x : tensor<1x?x1xi1>, {row} -> {condition}""",
        lambda x, t: t.sum(axis=-1, keepdims=True) < 0,
    ),
}


def make_source(lines):
    few, few_conditions = (tensor((1, None, 64), kind) for kind in ("f32", "i1"))
    lines = lines.format(
        row=ROW, condition=CONDITION, few=few, few_conditions=few_conditions
    )
    return f"""
func.func @f(%x: {ROW}, %t: {few}, %w: tensor<64xf32>) -> {ROW} {{{lines}
  %n = arith.mulf %x, %x : {ROW}
  %y = arith.select %c, %x, %n : {CONDITION}, {ROW}
  return %y : {ROW}
}}
"""


@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_of_another_kernel(name):
    lines, condition = CONDITIONS[name]
    x, dy = (floats.random("f32", (5, 4, 64), seed) for seed in (1, 2))
    t = floats.random("f32", (1, 4, 64), 3)
    (result,), got = run_backward(
        make_source(lines),
        {
            "x": ("f32", x),
            "t": ("f32", t),
            "w": ("f32", np.zeros(64)),
        },
        {"grad_result0": ("f32", dy)},
        ["f32"],
        {"x": "f32"},
    )
    holds = np.broadcast_to(condition(x, t), x.shape)
    assert holds.any() and not holds.all()
    square = (x * x).astype(np.float32)
    assert np.array_equal(result, np.where(holds, x, square).astype(np.float32))
    slope = np.where(holds, 1, 2 * x)
    assert np.array_equal(got["x"], (dy * slope).astype(np.float32))
