// RUN: tile-opt %s --split-rows --fuse -split-input-file | FileCheck %s
// Each kernel says which dimensions it goes along, and which of them its tensors
// have.

// Rows of any length, columns that are summed, and a weight that has columns
// alone.
// CHECK-LABEL: tile.kernel @rows_kernel(
// CHECK-SAME:    space = #tile.space<[r = ?, r1 = ?, reduction c = 64],
// CHECK-SAME:      arguments = [(r, r1, c), (c)], results = [(r, r1, c), (r, r1, 1)],
// CHECK-SAME:      values = [(r, r1, 1), (r, r1, c), (r, r1, c), (r, r1, c), (r, r1, c)]>
func.func @rows(%x: tensor<?x?x64xf32>, %w: tensor<64xf32>) -> (tensor<?x?x64xf32>, tensor<?x?x1xf32>) {
  %0 = tile.reduce add %x : tensor<?x?x64xf32> -> tensor<?x?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x?x1xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  %2 = tile.broadcast %w like %x : tensor<64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  %3 = arith.mulf %x, %2 : tensor<?x?x64xf32>
  %4 = arith.mulf %3, %1 : tensor<?x?x64xf32>
  return %4, %0 : tensor<?x?x64xf32>, tensor<?x?x1xf32>
}

// -----

// Groups of columns follow from these. A group of 8 and 8 rows are two
// dimensions.
// CHECK-LABEL: tile.kernel @groups_kernel(
// CHECK-SAME:    space = #tile.space<[r = 8, reduction c = 64, g = groups(c, 8)],
// CHECK-SAME:      arguments = [(r, c)], results = [(r, c)],
// CHECK-SAME:      values = [(r, g), (r, c), (r, c)]>
func.func @groups(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = tile.reduce max %x : tensor<8x64xf32> -> tensor<8x8xf32>
  %1 = tile.broadcast %0 like %x : tensor<8x8xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %2 = arith.divf %x, %1 : tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// -----

// The product makes one of the rows and of the groups.
// CHECK-LABEL: tile.kernel @groups_of_rows_kernel0(
// CHECK-SAME:    space = #tile.space<[reduction c = 64, r = groups(c, 8)],
// CHECK-SAME:      arguments = [(r, c)], results = [(r, r)], values = [(r, r)]>
func.func @groups_of_rows(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = tile.reduce max %x : tensor<8x64xf32> -> tensor<8x8xf32>
  %1 = tile.dot %0, %x contract [1, 0] : tensor<8x8xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// -----

// Of the argument only pieces are read, which go along the columns.
// CHECK-LABEL: tile.kernel @pieces_kernel(
// CHECK-SAME:    space = #tile.space<[r = ?, c = 32, w = pieces(c, 2)],
// CHECK-SAME:      arguments = [(r, w)], results = [(r, c)],
// CHECK-SAME:      values = [(r, c), (r, c), (r, c)]>
func.func @pieces(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %low, %high = tile.split %x : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x32xf32>
  %0 = arith.mulf %low, %high : tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// Each program leaves a row of a sum over all rows.
// CHECK-LABEL: tile.kernel @sums_kernel0(
// CHECK-SAME:    space = #tile.space<[reduction r = ?, c = 64, r1 = ?],
// CHECK-SAME:      arguments = [(r, c)], results = [(r1, c)], values = [(r1, c)]>
func.func @sums(%x: tensor<?x64xf32>) -> tensor<64xf32> {
  %0 = tile.reduce_rows add %x : tensor<?x64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Of an argument that only gives sizes, no columns are of use.
// CHECK-LABEL: tile.kernel @sizes_kernel(
// CHECK-SAME:    space = #tile.space<[c = 8, r = ?],
// CHECK-SAME:      arguments = [(c), (r, 64)], results = [(r, c)], values = [(r, c)]>
func.func @sizes(%x: tensor<?x64xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x64xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A square weight has two dimensions, and so has the product of a square matrix
// and its weight, a residual of which is read along m and n.
// CHECK-LABEL: tile.kernel @square_kernel(
// CHECK-SAME:    space = #tile.space<[m = 64, reduction k = 64, n = 64],
// CHECK-SAME:      arguments = [(m, k) | (m, n), (n, k)], results = [(m, n)],
// CHECK-SAME:      values = [(m, n), (m, n)]>
func.func @square(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = arith.addf %0, %x : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}

// -----

// The same weight by its transpose: the other of its dimensions is summed over.
// CHECK-LABEL: tile.kernel @transposed_kernel(
// CHECK-SAME:      arguments = [(m, k), (k, n)], results = [(m, n)]
func.func @transposed(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = tile.dot %x, %w contract [1, 0] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// Keys and queries may be equally many in one call, and are two dimensions: k
// and m. The scores have both, and lie in no memory.
// CHECK-LABEL: tile.kernel @attention_kernel(
// CHECK-SAME:    space = #tile.space<[b0 = ?, m = ?, reduction d = 64, reduction k = ?, n = 64],
// CHECK-SAME:      arguments = [(b0, m, d), (b0, k, d), (b0, k, n)], results = [(b0, m, n)],
// CHECK-SAME:      values = [(b0, m, k), (b0, m, 1), (b0, m, k), (b0, m, k), (b0, m, k), (b0, m, 1), (b0, m, k), (b0, m, k), (b0, m, n)]>
func.func @attention(%q: tensor<?x?x64xbf16>, %k: tensor<?x?x64xbf16>, %v: tensor<?x?x64xbf16>) -> tensor<?x?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %m = tile.reduce max %s : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?x?xf32>
  %e = math.exp %d : tensor<?x?x?xf32>
  %l = tile.reduce add %e : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// -----

// Queries, keys and values are one tensor, of which each is another reading.
// CHECK-LABEL: tile.kernel @self_attention_kernel(
// CHECK-SAME:      arguments = [(m, d) | (k, d) | (k, n)], results = [(m, n)]
func.func @self_attention(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %s = tile.dot %x, %x contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %m = tile.reduce max %s : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %x contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// A computed value whose last dimension only a call knows: the kernel goes along
// it, as its row is too long for any tile.
// CHECK-LABEL: tile.kernel @any_length_kernel(
// CHECK-SAME:    space = #tile.space<[m = ?, reduction k = ?],
// CHECK-SAME:      arguments = [(m, k)], results = [(m, 1)], values = [(m, k), (m, 1)]>
func.func @any_length(%x: tensor<?x?xf32>) -> tensor<?x1xf32> {
  %0 = math.exp %x : tensor<?x?xf32>
  %1 = tile.reduce add %0 : tensor<?x?xf32> -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}

// -----

// A product that is added up over the batch, and one whose batch shares a factor.
// CHECK-LABEL: tile.kernel @batch_kernel(
// CHECK-SAME:    space = #tile.space<[reduction b0 = ?, reduction k = ?, m = 64, n = 32],
// CHECK-SAME:      arguments = [(b0, k, m), (b0, k, n)], results = [(m, n)]
func.func @batch(%x: tensor<?x?x64xf32>, %y: tensor<?x?x32xf32>) -> tensor<64x32xf32> {
  %0 = tile.dot %x, %y contract [0, 0] : tensor<?x?x64xf32>, tensor<?x?x32xf32> -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// -----

// Pieces of two tensors have as many columns by chance, and are two kernels, though
// one tensor gives the other's rows their size.
// CHECK-LABEL: tile.kernel @pieces_of_two_kernel0(
// CHECK:         tile.split interleaved
// CHECK:         tile.reduce_rows
// CHECK-LABEL: tile.kernel @pieces_of_two_kernel1(
// CHECK:         tile.join
func.func @pieces_of_two(%x: tensor<?x6xf32>, %y: tensor<?x6xf32>, %s: tensor<?x1xf32>) -> (tensor<2xf32>, tensor<?x8xf32>) {
  %0 = tile.reduce_rows max %x : tensor<?x6xf32> -> tensor<6xf32>
  %1:3 = tile.split interleaved %0 : tensor<6xf32> -> tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  %2:3 = tile.split %y : tensor<?x6xf32> -> tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
  %3 = tile.join %2#2, %2#1, %2#0, %2#0 : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x8xf32>
  %4 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x6xf32> -> tensor<?x8xf32>
  %5 = arith.addf %3, %4 : tensor<?x8xf32>
  return %1#2, %5 : tensor<2xf32>, tensor<?x8xf32>
}

// -----

// A kernel that combines all rows of a batch takes their number from a tensor
// with columns of a known number.
// CHECK-LABEL: tile.kernel @weights_kernel1(
// CHECK-SAME:      tensor<8xf32>, %[[X:[^:]*]]: tensor<?x?x8xf32>) -> tensor<?x8xf32>
// CHECK:         tile.broadcast {{.*}} like %[[X]]
// CHECK-LABEL: func @weights(
func.func @weights(%scores: tensor<?x?x?xf32>, %w: tensor<8xf32>, %x: tensor<?x?x8xf32>)
    -> (tensor<?x?x8xf32>, tensor<8xf32>) {
  %0 = tile.dot %scores, %x contract [1, 0] : tensor<?x?x?xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %1 = tile.broadcast %w like %scores : tensor<8xf32>, tensor<?x?x?xf32> -> tensor<?x?x8xf32>
  %2 = arith.maximumf %1, %x : tensor<?x?x8xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x?x8xf32> -> tensor<8xf32>
  return %0, %3 : tensor<?x?x8xf32>, tensor<8xf32>
}
