# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Products of 8-bit floats whose warps have roles, where tensor cores add 128 products
at a time and floats the rest, against what they mean in float64 (tile-run --check): on
the emulator, or on a GPU."""

import pytest
from runner import HOPPER
from test_dots import check
from test_small_products import SCALED

ELEMENTS = ("f8E4M3FN", "f8E5M2")

#: Products of two weights, with the scale of a tensor, rounded to 8 bits.
GATED = """
func.func @f(%x: tensor<?x{k}x{e}>, %w: tensor<{n}x{k}x{e}>, %u: tensor<{n}x{k}x{e}>, %s: tensor<1xf32>) -> tensor<?x{n}x{e}> {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x{k}x{e}>, tensor<{n}x{k}x{e}> -> tensor<?x{n}xf32>
  %1 = tile.dot %x, %u contract [1, 1] : tensor<?x{k}x{e}>, tensor<{n}x{k}x{e}> -> tensor<?x{n}xf32>
  %2 = math.tanh %0 : tensor<?x{n}xf32>
  %3 = arith.mulf %2, %1 : tensor<?x{n}xf32>
  %4 = tile.broadcast %s like %0 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %5 = arith.mulf %3, %4 : tensor<?x{n}xf32>
  %6 = arith.truncf %5 : tensor<?x{n}xf32> to tensor<?x{n}x{e}>
  return %6 : tensor<?x{n}x{e}>
}}
"""

#: Matrices of a batch, some of which share a weight, with bias and residual.
BATCHED = """
func.func @f(%x: tensor<2x?x{k}x{e}>, %w: tensor<{weights}x{n}x{k}x{e}>, %v: tensor<{n}xf32>, %r: tensor<2x?x{n}xbf16>) -> tensor<2x?x{n}xbf16> {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<2x?x{k}x{e}>, tensor<{weights}x{n}x{k}x{e}> -> tensor<2x?x{n}xf32>
  %1 = tile.broadcast %v like %0 : tensor<{n}xf32>, tensor<2x?x{n}xf32> -> tensor<2x?x{n}xf32>
  %2 = arith.addf %0, %1 : tensor<2x?x{n}xf32>
  %3 = arith.extf %r : tensor<2x?x{n}xbf16> to tensor<2x?x{n}xf32>
  %4 = arith.addf %2, %3 : tensor<2x?x{n}xf32>
  %5 = arith.truncf %4 : tensor<2x?x{n}xf32> to tensor<2x?x{n}xbf16>
  return %5 : tensor<2x?x{n}xbf16>
}}
"""

#: Both types of 8 bits in one product.
MIXED = """
func.func @f(%x: tensor<?x{k}x{a}>, %w: tensor<{n}x{k}x{b}>) -> tensor<?x{n}xf32> {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x{k}x{a}>, tensor<{n}x{k}x{b}> -> tensor<?x{n}xf32>
  return %0 : tensor<?x{n}xf32>
}}
"""

#: Products that are added up over a batch.
SUMMED = """
func.func @f(%x: tensor<3x?x{k}x{e}>, %w: tensor<3x{n}x{k}x{e}>) -> tensor<?x{n}xf32> {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<3x?x{k}x{e}>, tensor<3x{n}x{k}x{e}> -> tensor<?x{n}xf32>
  return %0 : tensor<?x{n}xf32>
}}
"""


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "rows, n, k", [(1, 16, 16), (71, 8, 144), (129, 136, 128), (300, 264, 272)]
)
@pytest.mark.parametrize("element", ELEMENTS)
def test_scaled_products(element, rows, n, k):
    """Rows that end within tiles, a part of a step, and several steps."""
    source = SCALED.format(e=element, o="bf16", n=n, k=k)
    check(source, f"--rows={rows}", *HOPPER)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("a, b", [ELEMENTS, ELEMENTS[::-1]])
@pytest.mark.parametrize("n, k", [(136, 144), (40, 50)])
@pytest.mark.parametrize("grad", [(), ("--grad",)])
def test_two_types(a, b, n, k, grad):
    """On warpgroups, on warps where rows are no multiple of 16 bytes, by threads where
    there are no such tensor cores, and on the host."""
    source = MIXED.format(a=a, b=b, n=n, k=k)
    check(source, "--rows=70", *grad, *HOPPER)
    if HOPPER:
        check(source, "--rows=9", "--emulate", "--target=sm_80", *grad)
        check(source, "--rows=9", *grad)


@pytest.mark.parametrize("n, place", [(17, ()), (16, ("--offset=1",))])
def test_what_boxes_do_not_take(n, place):
    source = SCALED.format(e="f8E4M3FN", o="f8E5M2", n=n, k=48)
    check(source, "--rows=9", *place, *HOPPER)


@pytest.mark.parametrize("element", ELEMENTS)
def test_two_weights(element):
    check(GATED.format(e=element, n=144, k=160), "--rows=200", *HOPPER)


@pytest.mark.parametrize("weights", [1, 2])
def test_batches(weights):
    source = BATCHED.format(e="f8E4M3FN", weights=weights, n=72, k=176)
    check(source, "--shape=x=2x67x176", "--shape=r=2x67x72", *HOPPER)


def test_sums_over_a_batch():
    check(SUMMED.format(e="f8E5M2", n=68, k=144), "--shape=x=3x70x144", *HOPPER)


SCHEDULES = [
    "rows = 64",
    "columns = 64",
    "columns = 128, cluster = 1",
    "columns = 192",
    "stages = 2",
    "depth = 64",
    "cluster = 4",
    "roles = 1",
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule):
    source = SCALED.format(e="f8E4M3FN", o="bf16", n=264, k=272)
    check(source, "--rows=150", f"--schedule=#tile.matmul<{schedule}>", *HOPPER)
