# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Products of 8-bit floats with scales, and rounding to such floats behind products,
against what they mean in float64 (tile-run --check), on the host and as a GPU's code."""

import pytest

from runner import target
from test_dots import PLACES, check

#: One scale for each row of x and each row of w. {e} is the type of the factors, {k}
#: the elements of their rows, {o} the type of the result.
SCALED = """
func.func @f(%x: tensor<?x{k}x{e}>, %w: tensor<{n}x{k}x{e}>, %s: tensor<?x1xf32>, %t: tensor<{n}xf32>) -> tensor<?x{n}x{o}> {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x{k}x{e}>, tensor<{n}x{k}x{e}> -> tensor<?x{n}xf32>
  %1 = tile.broadcast %s like %0 : tensor<?x1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %2 = arith.mulf %0, %1 : tensor<?x{n}xf32>
  %3 = tile.broadcast %t like %0 : tensor<{n}xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %4 = arith.mulf %2, %3 : tensor<?x{n}xf32>
  %5 = arith.truncf %4 : tensor<?x{n}xf32> to tensor<?x{n}x{o}>
  return %5 : tensor<?x{n}x{o}>
}}
"""

#: A scale for each row of the product, which follows from the row's maximum.
QUANTIZED = """
func.func @f(%x: tensor<?x{k}xbf16>, %w: tensor<{n}x{k}xbf16>) -> (tensor<?x{n}x{o}>, tensor<?x1xf32>) {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x{k}xbf16>, tensor<{n}x{k}xbf16> -> tensor<?x{n}xf32>
  %q, %s = tile.quantize %0 format({format}) : tensor<?x{n}xf32> -> tensor<?x{n}x{o}>, tensor<?x1xf32>
  return %q, %s : tensor<?x{n}x{o}>, tensor<?x1xf32>
}}
"""

#: What was quantized is multiplied, with the scales behind the product.
BETWEEN = """
func.func @f(%x: tensor<?x{k}xbf16>, %w: tensor<{n}x{k}xf8E4M3FN>, %t: tensor<1xf32>) -> tensor<?x{n}xbf16> {{
  %q, %s = tile.quantize %x : tensor<?x{k}xbf16> -> tensor<?x{k}xf8E4M3FN>, tensor<?x1xf32>
  %0 = tile.dot %q, %w contract [1, 1] : tensor<?x{k}xf8E4M3FN>, tensor<{n}x{k}xf8E4M3FN> -> tensor<?x{n}xf32>
  %1 = tile.broadcast %s like %0 : tensor<?x1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %2 = arith.mulf %0, %1 : tensor<?x{n}xf32>
  %3 = tile.broadcast %t like %0 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %4 = arith.mulf %2, %3 : tensor<?x{n}xf32>
  %5 = arith.truncf %4 : tensor<?x{n}xf32> to tensor<?x{n}xbf16>
  return %5 : tensor<?x{n}xbf16>
}}
"""

#: Sizes, and where tensors lie.
CASES = [
    (rows, n, k, place)
    for (rows, n, k), place in zip(
        [(1, 7, 17), (7, 48, 64), (33, 130, 40), (129, 17, 100), (2, 64, 1)],
        (PLACES * 2)[:5],
    )
]


def check_everywhere(source, rows, *arguments):
    check(source, f"--rows={rows}", *arguments)
    if target() == "host":
        check(source, f"--rows={rows}", "--emulate", *arguments)


@pytest.mark.long(every=23)
@pytest.mark.parametrize("rows, n, k, place", CASES)
@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_scaled_products(element, rows, n, k, place):
    source = SCALED.format(e=element, o="bf16", n=n, k=k)
    check_everywhere(source, rows, *place, "--grad")


@pytest.mark.long(every=7)
@pytest.mark.parametrize("rows, n, k, place", CASES)
@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_rounding_behind_products(element, rows, n, k, place):
    check_everywhere(SCALED.format(e=element, o=element, n=n, k=k), rows, *place)
    check_everywhere(SCALED.format(e="bf16", o=element, n=n, k=k), rows, *place)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("rows, n, k, place", CASES)
@pytest.mark.parametrize("form, element", [("e4m3", "f8E4M3FN"), ("e5m2", "f8E5M2")])
def test_quantized_products(form, element, rows, n, k, place):
    source = QUANTIZED.format(format=form, o=element, n=n, k=k)
    check_everywhere(source, rows, *place)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("rows, n, k, place", CASES)
def test_products_of_what_is_quantized(rows, n, k, place):
    check_everywhere(BETWEEN.format(n=n, k=k), rows, *place)


def test_older_gpus_without_such_tensor_cores():
    source = SCALED.format(e="f8E4M3FN", o="bf16", n=40, k=48)
    if target() == "host":
        check(source, "--rows=9", "--emulate", "--target=sm_80")
