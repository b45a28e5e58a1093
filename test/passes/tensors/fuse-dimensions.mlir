// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s
// Kernels go along dimensions that ops have in common, not along rows that
// happen to have one length.

// A statistic has no columns: what it is of and what it is for are two.
// CHECK-LABEL: tile.kernel @of_one_length_kernel0(
// CHECK-SAME:      tensor<?x8xf32>) -> tensor<?x1xf32>
// CHECK-LABEL: tile.kernel @of_one_length_kernel1(
// CHECK-SAME:      -> tensor<?x8xf32>
// CHECK-NOT:   tile.kernel
func.func @of_one_length(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %y, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// The function's arguments say that the columns are one dimension, and so does the
// space of the kernel, whose ops do not show it.
// CHECK-LABEL: tile.kernel @of_one_name_kernel(
// CHECK-SAME:      #tile.space<[rows = ?, reduction columns = 8]
// CHECK-SAME:      arguments = [(rows, columns), (rows, columns)], results = [(rows, columns)]
// CHECK-NOT:   tile.kernel
func.func @of_one_name(%x: tensor<?x8xf32> {tile.dimensions = ["rows", "columns"]},
                       %y: tensor<?x8xf32> {tile.dimensions = ["rows", "columns"]})
    -> tensor<?x8xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %y, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// Columns that have their groups in common are one dimension: the groups are,
// and so are the places in a group.
// CHECK-LABEL: tile.kernel @of_one_group_kernel(
// CHECK-SAME:      tensor<?x8xf32>, %{{.*}}: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @of_one_group(
func.func @of_one_group(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x2xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %y, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// An op that needs rows of another length, which need the op's own operands,
// runs in a third kernel, though it has an operand in common with the first.
// CHECK-LABEL: func @both_ways(
// CHECK:         %[[SUM:.*]] = tile.launch [@both_ways_kernel0]
// CHECK:         %[[OTHER:.*]]:2 = tile.launch [@both_ways_kernel1](%[[SUM]]
// CHECK:         %[[LAST:.*]] = tile.launch [@both_ways_kernel2](%[[OTHER]]#
// CHECK:         return %[[OTHER]]#{{[01]}}, %[[LAST]]
func.func @both_ways(%x: tensor<?x8xf32>, %y: tensor<?x16xf32>)
    -> (tensor<?x16xf32>, tensor<?x8xf32>) {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y
      : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %2 = tile.reduce add %1 : tensor<?x16xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x
      : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %1, %3 : tensor<?x16xf32>, tensor<?x8xf32>
}

// -----

// Square tensors with the same rows have the columns that their names say.
// CHECK-LABEL: tile.kernel @square_kernel0(
// CHECK-SAME:      tensor<8x8xf32>) -> tensor<8x1xf32>
// CHECK-LABEL: tile.kernel @square_kernel1(
// CHECK-SAME:      -> tensor<8x8xf32>
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @square(
func.func @square(%w: tensor<8x8xf32> {tile.dimensions = ["m", "k"]},
                  %t: tensor<8x8xf32> {tile.dimensions = ["m", "n"]}) -> tensor<8x8xf32> {
  %0 = tile.reduce add %w : tensor<8x8xf32> -> tensor<8x1xf32>
  %1 = tile.broadcast %0 : tensor<8x1xf32> -> tensor<8x8xf32>
  %2 = arith.mulf %t, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// The second kernel combines partial rows of as many programs, a dimension for
// which a name is left that the function does not give to another.
// CHECK-LABEL: tile.kernel @names_kernel1(
// CHECK-SAME:      #tile.space<[reduction r1 = ?, r = 8]
// CHECK-SAME:      arguments = [(r1, r), (r1, r)], results = [(r), (r)]
func.func @names(%x: tensor<?x8xf32> {tile.dimensions = ["rows", "r"]})
    -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = tile.reduce_rows add %x : tensor<?x8xf32> -> tensor<8xf32>
  %1 = tile.reduce_rows max %x : tensor<?x8xf32> -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Pieces of the same rows are one dimension, and so are rows of the same pieces:
// the result has the columns of the argument, whose halves it swaps. Interleaved
// pieces lie elsewhere in the rows.
// CHECK-LABEL: tile.kernel @halves_kernel(
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @halves(
func.func @halves(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = tile.join %high, %low : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %one = arith.constant 1.0 : f32
  %1 = tile.broadcast %one like %low : f32, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = tile.join %1, %1 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return %0, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}
