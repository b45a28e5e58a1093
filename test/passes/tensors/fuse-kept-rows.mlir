// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// Rows that combine others have a kernel of their own, with what follows them
// element by element.
// CHECK-LABEL: tile.kernel @followed_kernel0(
// CHECK:         %[[EXP:.*]] = math.exp
// CHECK-NEXT:    tile.return %[[EXP]]
// CHECK-LABEL: tile.kernel @followed_kernel1(
// CHECK-SAME:      %[[ROWS:[^:]*]]: tensor<?x?x8xf32>, %[[T:[^:]*]]: tensor<1x?x8xf32>) -> tensor<1x?x8xbf16>
// CHECK:         %[[SUM:.*]] = tile.reduce_rows add %[[ROWS]] : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
// CHECK-NEXT:    %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[T]]
// CHECK-NEXT:    %[[TWO:.*]] = tile.broadcast %{{.*}} like %[[T]]
// CHECK-NEXT:    %[[TWICE:.*]] = arith.mulf %[[SCALED]], %[[TWO]]
// CHECK-NEXT:    arith.truncf %[[TWICE]]
// CHECK-LABEL: func.func @followed(
// CHECK-NEXT:    %[[G:.*]] = tile.launch [@followed_kernel0]
// CHECK-NEXT:    tile.launch [@followed_kernel1](%[[G]], %{{.*}})
func.func @followed(%x: tensor<?x?x8xf32>, %t: tensor<1x?x8xf32>)
    -> tensor<1x?x8xbf16> {
  %two = arith.constant 2.0 : f32
  %0 = math.exp %x : tensor<?x?x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  %2 = arith.mulf %1, %t : tensor<1x?x8xf32>
  %3 = tile.broadcast %two like %t
      : f32, tensor<1x?x8xf32> -> tensor<1x?x8xf32>
  %4 = arith.mulf %2, %3 : tensor<1x?x8xf32>
  %5 = arith.truncf %4 : tensor<1x?x8xf32> to tensor<1x?x8xbf16>
  return %5 : tensor<1x?x8xbf16>
}

// -----

// What rows of the same sizes are computed ahead of it is not: the kernel whose
// rows are combined may need it.
// CHECK-LABEL: func.func @before_and_after(
// CHECK-NEXT:    %[[AHEAD:.*]]:2 = tile.launch [@before_and_after_kernel0](%[[T:[^)]*]])
// CHECK-NEXT:    %[[G:.*]] = tile.launch [@before_and_after_kernel1]({{.*}}%[[AHEAD]]#
// CHECK-NEXT:    tile.launch [@before_and_after_kernel2](%[[G]], %[[AHEAD]]#
func.func @before_and_after(%x: tensor<?x?x8xf32>, %t: tensor<1x?x8xf32>)
    -> tensor<1x?x8xf32> {
  %0 = math.cos %t : tensor<1x?x8xf32>
  %1 = tile.broadcast %0 like %x
      : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %2 = arith.mulf %x, %1 : tensor<?x?x8xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  %4 = math.sin %t : tensor<1x?x8xf32>
  %5 = arith.mulf %3, %4 : tensor<1x?x8xf32>
  return %5 : tensor<1x?x8xf32>
}

// -----

// Two sums have two kernels, and their sum a third one.
// CHECK-LABEL: func.func @two_sums(
// CHECK-NEXT:    %[[FIRST:.*]] = tile.launch
// CHECK-NEXT:    %[[SECOND:.*]] = tile.launch
// CHECK-NEXT:    tile.launch {{.*}}(%[[FIRST]], %[[SECOND]])
func.func @two_sums(%x: tensor<?x?x8xf32>, %y: tensor<?x?x8xf32>)
    -> tensor<1x?x8xf32> {
  %0 = tile.reduce_rows add %x : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  %1 = tile.reduce_rows add %y : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  %2 = arith.addf %0, %1 : tensor<1x?x8xf32>
  return %2 : tensor<1x?x8xf32>
}

// -----

// What reduces such rows waits for them in memory, and so do larger rows for
// which they are repeated.
// CHECK-LABEL: func.func @repeated_again(
// CHECK-NEXT:    %[[SUM:.*]] = tile.launch [@repeated_again_kernel0](%[[X:[^)]*]])
// CHECK-NEXT:    tile.launch {{.*}}(%[[SUM]], %[[X]])
func.func @repeated_again(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %0 = tile.reduce_rows add %x : tensor<?x?x8xf32> -> tensor<?x1x8xf32>
  %1 = tile.broadcast %0 like %x
      : tensor<?x1x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %2 = arith.subf %x, %1 : tensor<?x?x8xf32>
  return %2 : tensor<?x?x8xf32>
}

// -----

// Pieces of an argument are addresses: sums of them, which become other pieces,
// read it where it is.
// CHECK-LABEL: tile.kernel @sums_of_pieces
// CHECK-SAME:    tensor<1x?x4xf32>
func.func @sums_of_pieces(%x: tensor<1x?x4xf32>) -> tensor<1x1x4xf32> {
  %0:2 = tile.split %x : tensor<1x?x4xf32> -> tensor<1x?x2xf32>, tensor<1x?x2xf32>
  %1 = tile.reduce_rows add %0#0 : tensor<1x?x2xf32> -> tensor<1x1x2xf32>
  %2 = tile.reduce_rows add %0#1 : tensor<1x?x2xf32> -> tensor<1x1x2xf32>
  %3 = tile.join %1, %2 : tensor<1x1x2xf32>, tensor<1x1x2xf32> -> tensor<1x1x4xf32>
  return %3 : tensor<1x1x4xf32>
}

// -----

// The kernel that combines the rows of a batch repeats numbers for what follows,
// although their rows need none of the batch.
// CHECK-LABEL: tile.kernel @scaled_sum_kernel(
// CHECK:         tile.reduce_rows
// CHECK:         arith.mulf
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @scaled_sum(
func.func @scaled_sum(%x: tensor<3x5x32xf32>) -> tensor<1x5x32xf32> {
  %cst = arith.constant 0.5 : f32
  %0 = tile.broadcast %cst : f32 -> tensor<1x5x32xf32>
  %1 = tile.reduce_rows add %x : tensor<3x5x32xf32> -> tensor<1x5x32xf32>
  %2 = arith.mulf %1, %0 : tensor<1x5x32xf32>
  return %2 : tensor<1x5x32xf32>
}

// -----

// What goes along the columns of rows that are left, as a norm's gradient does, is
// computed by another kernel: the statistic that is repeated here, the reduction, and the
// number of its shape.
// CHECK-LABEL: tile.kernel @norm_of_sums_kernel0(
// CHECK-SAME:    -> tensor<?x1x8xf32>
// CHECK:         tile.broadcast
// CHECK-LABEL: tile.kernel @norm_of_sums_kernel1(
// CHECK:         tile.reduce_rows
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    tile.return
// CHECK-LABEL: tile.kernel @norm_of_sums_kernel2(
// CHECK:         tile.reduce add
// CHECK:         arith.mulf
// CHECK-LABEL: func @norm_of_sums(
func.func @norm_of_sums(%x: tensor<?x1x8xf32>, %g: tensor<?x?x8xf32>, %r: tensor<?x1x1xf32>)
    -> tensor<?x1x1xf32> {
  %0 = tile.reduce_rows add %g : tensor<?x?x8xf32> -> tensor<?x1x8xf32>
  %1 = tile.broadcast %r like %x : tensor<?x1x1xf32>, tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  %2 = arith.mulf %0, %1 : tensor<?x1x8xf32>
  %3 = tile.reduce add %2 : tensor<?x1x8xf32> -> tensor<?x1x1xf32>
  %half = arith.constant 0.5 : f32
  %4 = tile.broadcast %half like %0 : f32, tensor<?x1x8xf32> -> tensor<?x1x1xf32>
  %5 = arith.mulf %3, %4 : tensor<?x1x1xf32>
  return %5 : tensor<?x1x1xf32>
}
