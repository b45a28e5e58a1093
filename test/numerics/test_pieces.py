# RUN: %pytest %s
"""Pieces of a single element, beside rows that are longer."""

import numpy as np
import pytest

import floats
from runner import run, target, tensor

HOST = ("", "vector=1,columns=16", "rows=3,columns=32")
GPU = ("", "threads=32,columns=64", "rows=4,threads=64,vector=1,columns=64")


@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
@pytest.mark.parametrize("words", ("", "interleaved", "interleaved parts(2)"))
@pytest.mark.parametrize("reduced", (False, True))
def test_single_elements(words, schedule, reduced):
    four, one, row = (tensor((None, n), "f32") for n in (4, 1, 304))
    factor = "%p1" if not reduced else "%s"
    source = f"""
func.func @f(%x: {four}, %y: {row}) -> ({four}, {row}) {{
  %p0, %p1, %p2, %p3 = tile.split {words} %x
      : {four} -> {one}, {one}, {one}, {one}
  %m = tile.reduce max %y : {row} -> {one}
  %s = arith.mulf %p1, %m : {one}
  %0 = tile.broadcast {factor} like %y : {one}, {row} -> {row}
  %1 = arith.mulf %y, %0 : {row}
  %2 = arith.negf %p3 : {one}
  %3 = tile.join {words} %p1, %p0, %2, %p2
      : {one}, {one}, {one}, {one} -> {four}
  return %3, %1 : {four}, {row}
}}
"""
    x, y = floats.random("f32", (7, 4), 1), floats.random("f32", (7, 304), 2)
    flags = [f"--schedule={schedule}"] if schedule else []
    pieces, product = run(
        source, {"x": ("f32", x), "y": ("f32", y)}, ["f32"] * 2, *flags
    )
    assert np.array_equal(pieces, (x * [1, 1, 1, -1])[:, [1, 0, 3, 2]])
    factor = x[:, 1:2]
    if reduced:
        factor = (factor * y.max(axis=1, keepdims=True)).astype(np.float32)
    assert np.array_equal(product, (y * factor).astype(np.float32))
