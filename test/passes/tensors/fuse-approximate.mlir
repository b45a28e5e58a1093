// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// Which results of kernels may be approximate: those that others read, as far as all that
// they make of them is rounded to 16 bits.

// Partial sums of a weight's gradient.
// CHECK-LABEL: tile.kernel @rounded_sum_kernel0(
// CHECK-SAME:      -> (tensor<?x8xbf16>, tensor<?x8xf32> {tile.approximate})
func.func @rounded_sum(%x: tensor<?x8xf32>) -> (tensor<?x8xbf16>, tensor<8xbf16>) {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = arith.truncf %0 : tensor<?x8xf32> to tensor<?x8xbf16>
  %2 = tile.reduce_rows add %0 : tensor<?x8xf32> -> tensor<8xf32>
  %3 = arith.truncf %2 : tensor<8xf32> to tensor<8xbf16>
  return %1, %3 : tensor<?x8xbf16>, tensor<8xbf16>
}

// -----

// What the function returns unrounded is not.
// CHECK-LABEL: tile.kernel @wide_sum_kernel0(
// CHECK-NOT:     tile.approximate
// CHECK-LABEL: func.func @wide_sum(
func.func @wide_sum(%x: tensor<?x8xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<?x8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Nor is what it returns besides.
// CHECK-LABEL: tile.kernel @returned_too_kernel0(
// CHECK-NOT:     tile.approximate
// CHECK-LABEL: func.func @returned_too(
func.func @returned_too(%x: tensor<?x8xf32>, %y: tensor<?x16xbf16>) -> (tensor<?x1xf32>, tensor<?x16xbf16>) {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x16xbf16> -> tensor<?x16xf32>
  %2 = arith.extf %y : tensor<?x16xbf16> to tensor<?x16xf32>
  %3 = arith.mulf %1, %2 : tensor<?x16xf32>
  %4 = arith.truncf %3 : tensor<?x16xf32> to tensor<?x16xbf16>
  return %0, %4 : tensor<?x1xf32>, tensor<?x16xbf16>
}

// -----

// A statistic goes through the partial sums of the kernel that reads it.
// CHECK-LABEL: tile.kernel @chain_kernel0(
// CHECK-SAME:      -> (tensor<?x1xf32> {tile.approximate})
// CHECK-LABEL: tile.kernel @chain_kernel1(
// CHECK-SAME:      -> (tensor<?x16xf32> {tile.approximate})
// CHECK-LABEL: tile.kernel @chain_kernel2(
// CHECK-SAME:      -> tensor<16xbf16>
func.func @chain(%x: tensor<?x8xf32>, %y: tensor<?x16xf32>) -> tensor<16xbf16> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %2 = arith.mulf %1, %y : tensor<?x16xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x16xf32> -> tensor<16xf32>
  %4 = arith.truncf %3 : tensor<16xf32> to tensor<16xbf16>
  return %4 : tensor<16xbf16>
}

// -----

// Whoever asks for equal numbers computes them again, and has to find the same bits.
// CHECK-LABEL: tile.kernel @equal_kernel0(
// CHECK-NOT:     tile.approximate
// CHECK-LABEL: func.func @equal(
func.func @equal(%x: tensor<?x8xf32>, %y: tensor<?x16xf32>) -> tensor<?x16xbf16> {
  %0 = tile.reduce max %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %2 = arith.cmpf oeq, %1, %y : tensor<?x16xf32>
  %3 = arith.select %2, %y, %1 : tensor<?x16xi1>, tensor<?x16xf32>
  %4 = arith.truncf %3 : tensor<?x16xf32> to tensor<?x16xbf16>
  return %4 : tensor<?x16xbf16>
}
