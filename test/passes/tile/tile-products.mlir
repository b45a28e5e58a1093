// RUN: tile-opt %s --schedule=target=sm_90 --tile=target=sm_90 -split-input-file | FileCheck %s
// RUN: tile-opt %s --schedule=target=host --tile=target=host -split-input-file | FileCheck %s --check-prefix=HOST

// A program computes a tile of the product over named dimensions, and what
// follows it.
// CHECK-LABEL: tile.program @linear(
// CHECK-SAME:      tile.dimensions = ["m", "k"]
// CHECK-SAME:      tile.dimensions = ["n", "k"]
// CHECK-SAME:      tile.dimensions = ["n"]
// CHECK-SAME:      tile.dimensions = ["m", "n"]
// CHECK-SAME:      dimensions = ["m", "k", "n"]
// CHECK-SAME:      programs = {m = 64 : i64, n = 64 : i64}
// CHECK:         %[[P:.*]] = tile.load_dot %{{.*}}[%[[M:.*]]], %{{.*}}[%[[N:.*]]], %{{.*}} contract [1, 1]
// CHECK-SAME:      -> tensor<64x64xf32, #tile.blocked<vector = 1, threadRows = 16, threadColumns = 16>>
// CHECK:         %[[B:.*]] = tile.load %{{.*}}[%[[N]]] {invariant}
// CHECK-SAME:      -> tensor<1x64xf32
// CHECK:         tile.broadcast %[[B]]
// CHECK:         tile.store %{{.*}}, %{{.*}}[%[[M]], %[[N]]]
// HOST-LABEL:  tile.program @linear(
// HOST:          tile.load_dot
// HOST-SAME:       #tile.blocked<vector = 4, threadRows = 1, threadColumns = 1>
tile.kernel @linear(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>)
    -> tensor<?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %1 = tile.broadcast %b like %0 : tensor<4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = arith.addf %0, %1 : tensor<?x4xf32>
  tile.return %2 : tensor<?x4xf32>
}
func.func @launch(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>)
    -> tensor<?x4xf32> {
  %0 = tile.launch [@linear](%x, %w, %b) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// An operand that is both factors is two operands of the program, since its
// dimensions are others in each.
// CHECK-LABEL: tile.program @gram(
// CHECK-SAME:      %[[A:[^:]*]]: memref<?x8xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.dimensions = ["k", "m"]
// CHECK-SAME:      %[[B:[^:]*]]: memref<?x8xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.dimensions = ["k", "n"]
// CHECK:         tile.load_dot %[[A]][%{{.*}}], %[[B]][
// CHECK-LABEL: func @launch(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>
// CHECK:         tile.launch [@gram](%[[X]], %[[X]])
tile.kernel @gram(%x: tensor<?x8xf32>) -> tensor<8x8xf32> {
  %0 = tile.dot %x, %x contract [0, 0] : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<8x8xf32>
  tile.return %0 : tensor<8x8xf32>
}
func.func @launch(%x: tensor<?x8xf32>) -> tensor<8x8xf32> {
  %0 = tile.launch [@gram](%x) : (tensor<?x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Matrices of a batch have programs of their own, unless they are added up.
// CHECK-LABEL: tile.program @batches(
// CHECK-SAME:      programs = {b1 = 1 : i64, m = 64 : i64, n = 64 : i64}
// CHECK:         scf.for
// CHECK:           tile.load_dot
// CHECK:         tile.store
tile.kernel @batches(%x: tensor<?x?x?x8xf32>, %w: tensor<?x?x4x8xf32>) -> tensor<?x1x?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x?x?x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x1x?x4xf32>
  tile.return %0 : tensor<?x1x?x4xf32>
}
func.func @launch(%x: tensor<?x?x?x8xf32>, %w: tensor<?x?x4x8xf32>) -> tensor<?x1x?x4xf32> {
  %0 = tile.launch [@batches](%x, %w) : (tensor<?x?x?x8xf32>, tensor<?x?x4x8xf32>) -> tensor<?x1x?x4xf32>
  return %0 : tensor<?x1x?x4xf32>
}

// -----

// Elements of 16 bits are copied ahead to shared memory, for tensor cores: here
// of a matrix whose rows are summed over, and of one whose columns are. Operands
// of any other alignment have variants of their own.
// CHECK-LABEL: tile.program @staged(
// CHECK-SAME:      tile.alignment = 16 : i64, tile.dimensions = ["k", "m"]
// CHECK-SAME:      tile.alignment = 16 : i64, tile.dimensions = ["n", "k"]
// CHECK-SAME:      alignments = array<i64: 4, 2>
// CHECK:         %[[A:.*]] = tile.buffer {offset = 0 : i64} : memref<4x32x128xbf16, #tile.shared<swizzle = 128>>
// CHECK:         %[[B:.*]] = tile.buffer {offset = 32768 : i64} : memref<4x128x32xbf16, #tile.shared<swizzle = 64>>
// CHECK:         %[[STEPS:.*]] = arith.ceildivui
// CHECK:         %[[ALL:.*]] = arith.addi %[[STEPS]], %[[AHEAD:.*]] : index
// CHECK:         scf.for %[[STEP:.*]] = %{{.*}} to %[[ALL]]
// CHECK:           tile.wait_copies 2
// CHECK:           tile.synchronize
// CHECK:           tile.copy_tile {{.*}} to %[[A]]
// CHECK:           tile.copy_tile {{.*}} to %[[B]]
// CHECK:           tile.commit_copies
// CHECK:           %[[FULL:.*]] = arith.cmpi uge, %[[STEP]], %[[AHEAD]]
// CHECK:           scf.if %[[FULL]]
// CHECK:             tile.take %[[A]][%{{.*}}] transposed
// CHECK:             tile.take %[[B]]
// CHECK:             tile.dot
// CHECK:         tile.wait_copies 0
// CHECK:         tile.synchronize
// CHECK:         arith.truncf
// CHECK:         tile.keep
// CHECK:         tile.synchronize
// CHECK:         tile.store_tile
tile.kernel @staged(%x: tensor<?x256xbf16>, %w: tensor<96x64xbf16>) -> tensor<256x96xbf16> {
  %0 = tile.dot %x, %w contract [0, 1] : tensor<?x256xbf16>, tensor<96x64xbf16> -> tensor<256x96xf32>
  %1 = arith.truncf %0 : tensor<256x96xf32> to tensor<256x96xbf16>
  tile.return %1 : tensor<256x96xbf16>
}
func.func @launch(%x: tensor<?x256xbf16>, %w: tensor<96x64xbf16>) -> tensor<256x96xbf16> {
  %0 = tile.launch [@staged](%x, %w) : (tensor<?x256xbf16>, tensor<96x64xbf16>) -> tensor<256x96xbf16>
  return %0 : tensor<256x96xbf16>
}

// -----

// Where much follows a product on tensor cores, its sums wait in shared memory,
// and a loop computes some columns at a time. Results pass through the memory
// behind them.
// CHECK-LABEL: tile.program @parts(
// CHECK:         tile.dot
// CHECK:         tile.synchronize
// CHECK-NEXT:    %[[SUMS:.*]] = tile.buffer {offset = 0 : i64} : memref<8x128x16xf32, #tile.shared<swizzle = 64>>
// CHECK:         %[[PIECES:.*]]:8 = tile.split
// CHECK:         tile.keep %[[PIECES]]#0, %[[SUMS]][%{{.*}}]
// CHECK:         tile.keep %[[PIECES]]#7, %[[SUMS]][%{{.*}}]
// CHECK-NOT:     tile.keep
// CHECK:         scf.for %[[PART:.*]] =
// CHECK:           %[[BEFORE:.*]] = arith.muli %[[PART]], %{{.*}}
// CHECK:           %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[BEFORE]]
// CHECK:           tile.take %[[SUMS]][%[[PART]]]
// CHECK-SAME:        -> tensor<128x16xf32, #tile.mma<warps = 4>>
// CHECK:           tile.load %{{.*}}[%{{.*}}, %[[COLUMN]]]
// CHECK:           tile.buffer {offset = 65536 : i64} : memref<1x128x16xbf16
// CHECK:           tile.keep
// CHECK:           tile.store_tile {{.*}}[%{{.*}}, %[[COLUMN]]]
tile.kernel @parts(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>, %r: tensor<?x96xbf16>) -> tensor<?x96xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %1 = math.tanh %0 : tensor<?x96xf32>
  %2 = arith.extf %r : tensor<?x96xbf16> to tensor<?x96xf32>
  %3 = arith.addf %1, %2 : tensor<?x96xf32>
  %4 = arith.truncf %3 : tensor<?x96xf32> to tensor<?x96xbf16>
  tile.return %4 : tensor<?x96xbf16>
}
func.func @launch(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>, %r: tensor<?x96xbf16>) -> tensor<?x96xbf16> {
  %0 = tile.launch [@parts](%x, %w, %r) : (tensor<?x64xbf16>, tensor<96x64xbf16>, tensor<?x96xbf16>) -> tensor<?x96xbf16>
  return %0 : tensor<?x96xbf16>
}

// -----

// Registers hold four neighbours of 8-bit factors. What a step multiplies is added
// to the sums as floats. Scales are factors of rows and columns behind the loop.
// CHECK-LABEL: tile.program @small(
// CHECK-SAME:      tile.alignment = 16
// CHECK-SAME:      alignments = array<i64: 4, 1>
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = tile.take {{.*}} -> tensor<128x32xf8E4M3FN, #tile.mma<warps = 4, vector = 4>>
// CHECK:           %[[B:.*]] = tile.take {{.*}} -> tensor<64x32xf8E4M3FN, #tile.mma_rhs<vector = 4>>
// CHECK:           %[[P:.*]] = tile.dot %[[A]], %[[B]] contract [1, 1]
// CHECK:           arith.addf %{{.*}}, %[[P]] : tensor<128x64xf32, #tile.mma<warps = 4>>
// CHECK:         arith.mulf
// CHECK:         arith.mulf
// CHECK:         arith.truncf %{{.*}} to tensor<128x64xf8E5M2
// CHECK:         tile.store_tile
// HOST-LABEL:  tile.program @small(
// HOST:          tile.load_dot
tile.kernel @small(%x: tensor<?x64xf8E4M3FN>, %w: tensor<96x64xf8E4M3FN>, %s: tensor<?x1xf32>, %t: tensor<96xf32>)
    -> tensor<?x96xf8E5M2> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf8E4M3FN>, tensor<96x64xf8E4M3FN> -> tensor<?x96xf32>
  %1 = tile.broadcast %s like %0 : tensor<?x1xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
  %2 = arith.mulf %0, %1 : tensor<?x96xf32>
  %3 = tile.broadcast %t like %0 : tensor<96xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
  %4 = arith.mulf %2, %3 : tensor<?x96xf32>
  %5 = arith.truncf %4 : tensor<?x96xf32> to tensor<?x96xf8E5M2>
  tile.return %5 : tensor<?x96xf8E5M2>
}
func.func @launch_small(%x: tensor<?x64xf8E4M3FN>, %w: tensor<96x64xf8E4M3FN>, %s: tensor<?x1xf32>, %t: tensor<96xf32>)
    -> tensor<?x96xf8E5M2> {
  %0 = tile.launch [@small](%x, %w, %s, %t) : (tensor<?x64xf8E4M3FN>, tensor<96x64xf8E4M3FN>, tensor<?x1xf32>, tensor<96xf32>) -> tensor<?x96xf8E5M2>
  return %0 : tensor<?x96xf8E5M2>
}

// -----

// A factor that is a result, too, is an operand of its own with the rows and columns
// of results.
// CHECK-LABEL: tile.program @kept_factor(
// CHECK-SAME:      %{{[^:]*}}: memref<8x8xf32, strided<[?, 1]>> {{{[^}]*}}tile.dimensions = ["k", "m"]
// CHECK-SAME:      %{{[^:]*}}: memref<8x8xf32, strided<[?, 1]>> {{{[^}]*}}tile.dimensions = ["k", "n"]
// CHECK-SAME:      %[[OWN:[^:]*]]: memref<8x8xf32, strided<[?, 1]>> {{{[^}]*}}tile.dimensions = ["m", "n"]
// CHECK:         %[[X:.*]] = tile.load %[[OWN]]
// CHECK:         tile.store %[[X]]
// HOST-LABEL:  tile.program @kept_factor(
tile.kernel @kept_factor(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = tile.dot %x, %x contract [0, 0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  tile.return %0, %x : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func @launch_kept_factor(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0:2 = tile.launch [@kept_factor](%x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
