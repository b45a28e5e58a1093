# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Random bits of rows and columns, by the arithmetic of integers on every target."""

import numpy as np
import pytest

from philox import philox
from runner import run, tensor

SIZES = (3, 5, 24)
ROW, COLUMN = tensor((None, None, 24), "i32"), tensor((None, None, 1), "i32")
WIDE = ROW.replace("i32", "i64")


def make_source(widen):
    """A function of x and a seed: the bits for each element, and their high 24 bits
    as floats."""
    lines = []

    def add(text):
        lines.append(f"  %v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    def constant(number, type, element):
        scalar = add(f"arith.constant {number} : {element}")
        return add(f"tile.broadcast {scalar} like %x : {element}, {ROW} -> {type}")

    rows = add(f"tile.iota over [0, 1] like %x : {COLUMN}, {ROW}")
    low = add(f"tile.broadcast {rows} like %x : {COLUMN}, {ROW} -> {ROW}")
    high = add(f"tile.iota like %x : {ROW}, {ROW}")
    key = add(f"tile.broadcast %s like %x : tensor<1xi32>, {ROW} -> {ROW}")
    factor = constant(0xD256D193, WIDE, "i64")
    mask = constant(0xFFFFFFFF, WIDE, "i64")
    shift = constant(32, WIDE, "i64")
    step = constant(0x9E3779B9 - 2**32, ROW, "i32")
    for _ in range(10):
        if widen == "unsigned":
            wide = add(f"arith.extui {low} : {ROW} to {WIDE}")
        else:
            wide = add(f"arith.extsi {low} : {ROW} to {WIDE}")
            wide = add(f"arith.andi {wide}, {mask} : {WIDE}")
        product = add(f"arith.muli {wide}, {factor} : {WIDE}")
        upper = add(f"arith.shrui {product}, {shift} : {WIDE}")
        upper = add(f"arith.trunci {upper} : {WIDE} to {ROW}")
        upper = add(f"arith.xori {upper}, {key} : {ROW}")
        low, high = (
            add(f"arith.xori {upper}, {high} : {ROW}"),
            add(f"arith.trunci {product} : {WIDE} to {ROW}"),
        )
        key = add(f"arith.addi {key}, {step} : {ROW}")
    eight = constant(8, ROW, "i32")
    part = add(f"arith.shrui {low}, {eight} : {ROW}")
    floats = ROW.replace("i32", "f32")
    part = add(f"arith.sitofp {part} : {ROW} to {floats}")
    return "\n".join(
        [
            f"func.func @f(%x: {ROW}, %s: tensor<1xi32>) -> ({ROW}, {floats}) {{",
            *lines,
            f"  return {low}, {part} : {ROW}, {floats}",
            "}\n",
        ]
    )


@pytest.mark.parametrize("widen", ["signed", "unsigned"])
@pytest.mark.parametrize("arguments", [(), ("--emulate",)], ids=["here", "emulated"])
@pytest.mark.parametrize("seed", [0, -5])
def test_bits(seed, arguments, widen):
    inputs = {
        "x": ("i32", np.zeros(SIZES, np.int32)),
        "s": ("i32", np.array([seed], np.int32)),
    }
    bits, numbers = run(make_source(widen), inputs, ["i32", "f32"], *arguments)
    rows = np.arange(15).reshape(3, 5, 1)
    expected, _ = philox(seed % 2**32, rows, np.arange(24))
    assert np.array_equal(bits.view(np.uint32), expected)
    assert np.array_equal(numbers, (expected >> 8).astype(np.float32))
