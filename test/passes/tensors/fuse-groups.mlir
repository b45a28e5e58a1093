// RUN: tile-opt %s --decompose --differentiate --fuse -split-input-file | FileCheck %s

// What is computed of groups of columns belongs to the rows that they are of:
// one kernel, and what is normalized is rounded, but never written.
// CHECK-LABEL: tile.kernel @norm_and_blocks_kernel
// CHECK:         tile.reduce add %{{.*}} -> tensor<?x1xf32>
// CHECK:         arith.truncf %{{.*}} : tensor<?x4096xf32> to tensor<?x4096xbf16>
// CHECK:         %[[NORM:.*]] = arith.truncf %{{.*}} : tensor<?x4096xf32> to tensor<?x4096xbf16>
// CHECK:         %[[ROUNDED:.*]] = arith.extf %[[NORM]]
// CHECK:         %[[ABS:.*]] = math.absf %[[ROUNDED]]
// CHECK:         tile.reduce max %[[ABS]] : tensor<?x4096xf32> -> tensor<?x32xf32>
// CHECK-LABEL: func.func @norm_and_blocks
// CHECK:         tile.launch [@norm_and_blocks_kernel](%{{.*}}, %{{.*}}) : (tensor<?x4096xbf16>, tensor<4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>)
// CHECK-NOT:     tile.launch
func.func @norm_and_blocks(%x: tensor<?x4096xbf16>, %w: tensor<4096xbf16>)
    -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>) {
  %n = tile.rms_norm %x, %w : tensor<?x4096xbf16>, tensor<4096xbf16>
  %q, %s = tile.quantize %n : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}

// -----

// CHECK-LABEL: func.func @gate_and_blocks
// CHECK:         tile.launch [@gate_and_blocks_kernel](%{{.*}}, %{{.*}}) : (tensor<?x2880xbf16>, tensor<?x2880xbf16>) -> (tensor<?x2880xf8E4M3FN>, tensor<?x90xf32>)
// CHECK-NOT:     tile.launch
func.func @gate_and_blocks(%x: tensor<?x2880xbf16>, %y: tensor<?x2880xbf16>)
    -> (tensor<?x2880xf8E4M3FN>, tensor<?x90xf32>) {
  %n = tile.geglu %x, %y : tensor<?x2880xbf16>
  %q, %s = tile.quantize %n power_of_two : tensor<?x2880xbf16> -> tensor<?x2880xf8E4M3FN>, tensor<?x90xf32>
  return %q, %s : tensor<?x2880xf8E4M3FN>, tensor<?x90xf32>
}

// -----

// CHECK-LABEL: func.func @sum_norm_and_row
// CHECK:         tile.launch [@sum_norm_and_row_kernel]
// CHECK-SAME:      -> (tensor<?x64xf8E5M2>, tensor<?x1xf32>, tensor<?x64xbf16>)
// CHECK-NOT:     tile.launch
func.func @sum_norm_and_row(%x: tensor<?x64xbf16>, %y: tensor<?x64xbf16>, %w: tensor<64xbf16>)
    -> (tensor<?x64xf8E5M2>, tensor<?x1xf32>, tensor<?x64xbf16>) {
  %n, %sum = tile.add_rms_norm %x, %y, %w : tensor<?x64xbf16>, tensor<64xbf16>
  %q, %s = tile.quantize %n format(e5m2) : tensor<?x64xbf16> -> tensor<?x64xf8E5M2>, tensor<?x1xf32>
  return %q, %s, %sum : tensor<?x64xf8E5M2>, tensor<?x1xf32>, tensor<?x64xbf16>
}

// -----

// Numbers of groups that are rows of their own, with a reduction, get a kernel.
// CHECK-LABEL: func.func @rows_of_groups
// CHECK:         %[[MAX:.*]] = tile.launch [@rows_of_groups_kernel0](%{{.*}}) : (tensor<?x64xf32>) -> tensor<?x4xf32>
// CHECK:         tile.launch [@rows_of_groups_kernel1](%[[MAX]]) : (tensor<?x4xf32>) -> tensor<?x1xf32>
func.func @rows_of_groups(%x: tensor<?x64xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce max %x : tensor<?x64xf32> -> tensor<?x4xf32>
  %1 = tile.reduce add %0 : tensor<?x4xf32> -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}

// -----

// A row of half the length that nothing groups stays apart, as before.
// CHECK-LABEL: func.func @half
// CHECK:         tile.launch [@half_kernel0]
// CHECK:         tile.launch [@half_kernel1]
func.func @half(%x: tensor<?x64xf32>, %y: tensor<?x32xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %0 = tile.reduce max %x : tensor<?x64xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  %2 = arith.mulf %x, %1 : tensor<?x64xf32>
  %3 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %4 = arith.mulf %y, %3 : tensor<?x32xf32>
  return %2, %4 : tensor<?x64xf32>, tensor<?x32xf32>
}

// -----

// A piece of a row that is repeated to as many columns as the row has: the row
// and the result go along two dimensions.
// CHECK-LABEL: tile.kernel @repeated_piece_kernel(
// CHECK-SAME:      space = #tile.space<[r = ?, c = 16, g = groups(c, 4), w = pieces(g, 4)],
// CHECK-SAME:      arguments = [(r, w)], results = [(r, c)],
func.func @repeated_piece(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %0:4 = tile.split %x : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %1 = tile.broadcast %0#3 like %0#3 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}

// -----

// Rows and columns of a Gram matrix are one dimension, but a kernel that takes nothing
// but sizes of it has columns of its own.
// CHECK-LABEL: tile.kernel @sizes_of_gram_kernel1(
// CHECK-SAME:      space = #tile.space<[r = ?, r1 = 64, reduction c = 64, g = groups(c, 32)],
// CHECK-SAME:      arguments = [(r, r1, 64)], results = [(r, r1, g)],
// CHECK:         tile.reduce add
func.func @sizes_of_gram(%x: tensor<?x?x64xf32>) -> (tensor<?x64x64xf32>, tensor<?x64x2xf32>) {
  %one = arith.constant 1.0 : f32
  %0 = tile.dot %x, %x contract [0, 0] : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x64x64xf32>
  %1 = tile.broadcast %one like %0 : f32, tensor<?x64x64xf32> -> tensor<?x64x64xf32>
  %2 = tile.reduce add %1 : tensor<?x64x64xf32> -> tensor<?x64x2xf32>
  return %0, %2 : tensor<?x64x64xf32>, tensor<?x64x2xf32>
}
