// RUN: tile-opt %s --tile --keep-rows --canonicalize --cse -split-input-file | FileCheck %s

// A vector that does not divide the row: the columns of all tiles count from an
// address ahead of each row that vectors divide. A row vector is read for each
// row, a statistic as ever. All operands whose rows the program goes through
// have one phase, whatever their types.
// CHECK-LABEL: tile.program @several_rows(
// CHECK-SAME:      %{{[^:]*}}: index,
// CHECK-SAME:      %[[X:[^:]*]]: memref<?x261xbf16, strided<[?, 1]>> {tile.alignment = 2 : i64, tile.phase = 8 : i64, tile.readonly},
// CHECK-SAME:      %[[W:[^:]*]]: memref<261xf32> {tile.alignment = 4 : i64, tile.readonly},
// CHECK-SAME:      %[[S:[^:]*]]: memref<?x1xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.readonly},
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x261xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.phase = 8 : i64})
// CHECK:         %[[MISALIGNMENT:.*]] = tile.misalignment %[[X]][%[[ROW:.*]]] to 8 : {{.*}} -> tensor<2x1xi32>
// CHECK-NEXT:    tile.load %[[X]][%[[ROW]], %[[ZERO:.*]]] misaligned %[[MISALIGNMENT]] {alignment = 16 : i64, invariant} : {{.*}} -> tensor<2x512xbf16>
// CHECK-NEXT:    tile.load %[[W]][%[[ZERO]]] misaligned %[[MISALIGNMENT]] {alignment = 4 : i64, invariant} : {{.*}} -> tensor<2x512xf32>
// CHECK-NEXT:    tile.load %[[S]][%[[ROW]], %[[ZERO]]] {alignment = 4 : i64, invariant} : {{.*}} -> tensor<2x1xf32>
// CHECK:         tile.mask %{{.*}} from %[[ZERO]] misaligned %[[MISALIGNMENT]] limit 261 else 0xFF800000
// CHECK:         tile.iota from %[[ZERO]] misaligned %[[MISALIGNMENT]] of tensor<2x1xi32> : tensor<2x512xi32>
// CHECK:         tile.store %{{.*}}, %[[Y]][%[[ROW]], %[[ZERO]]] misaligned %[[MISALIGNMENT]] {alignment = 16 : i64}
// One more program takes what has other phases or does not merge.
// CHECK:       tile.program @several_rows_unaligned(%{{[^:]*}}: index, %{{[^:]*}}: index,
// CHECK-NOT:     tile.phase
// CHECK-NOT:     misaligned
// CHECK-NOT:   tile.program @
// CHECK:       tile.launch [@several_rows, @several_rows_unaligned](
tile.kernel @several_rows(%x: tensor<?x?x261xbf16>, %w: tensor<261xf32>, %s: tensor<?x?x1xf32>)
    -> tensor<?x?x261xf32> attributes {
    schedule = #tile.rows<rows = 2, threads = 128, vector = 8, columns = 512>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 64>} {
  %0 = arith.extf %x : tensor<?x?x261xbf16> to tensor<?x?x261xf32>
  %1 = tile.broadcast %w like %x : tensor<261xf32>, tensor<?x?x261xbf16> -> tensor<?x?x261xf32>
  %2 = arith.mulf %0, %1 : tensor<?x?x261xf32>
  %3 = tile.reduce max %2 : tensor<?x?x261xf32> -> tensor<?x?x1xf32>
  %4 = arith.mulf %3, %s : tensor<?x?x1xf32>
  %5 = tile.broadcast %4 like %x : tensor<?x?x1xf32>, tensor<?x?x261xbf16> -> tensor<?x?x261xf32>
  %6 = arith.mulf %2, %5 : tensor<?x?x261xf32>
  %7 = tile.iota like %x : tensor<?x?x261xi32>, tensor<?x?x261xbf16>
  %8 = arith.sitofp %7 : tensor<?x?x261xi32> to tensor<?x?x261xf32>
  %9 = arith.mulf %6, %8 : tensor<?x?x261xf32>
  tile.return %9 : tensor<?x?x261xf32>
}
func.func @f(%x: tensor<?x?x261xbf16>, %w: tensor<261xf32>, %s: tensor<?x?x1xf32>) -> tensor<?x?x261xf32> {
  %0 = tile.launch [@several_rows](%x, %w, %s)
      : (tensor<?x?x261xbf16>, tensor<261xf32>, tensor<?x?x1xf32>) -> tensor<?x?x261xf32>
  return %0 : tensor<?x?x261xf32>
}

// -----

// Tiles cover the row wherever it begins in the first one: 512 columns would hold
// this one. They are copied ahead and kept for the second sweep.
// CHECK-LABEL: tile.program @kept(
// CHECK-DAG:     %[[SPAN:.*]] = arith.constant 518 : index
// CHECK-DAG:     %[[BUFFER:.*]] = tile.buffer {offset = 0 : i64} : memref<3x1x256xbf16
// CHECK:         %[[MISALIGNMENT:.*]] = tile.misalignment %[[X:.*]][%[[ROW:.*]]] to 8
// CHECK:         tile.copy_ahead %[[X]][%[[ROW]], %{{.*}}] misaligned %[[MISALIGNMENT]] to %[[BUFFER]]
// CHECK:         scf.for %{{.*}} to %[[SPAN]]
// CHECK:           tile.copy_ahead %[[X]][%[[ROW]], %{{.*}}] misaligned %[[MISALIGNMENT]] to %[[BUFFER]]
// CHECK:           tile.take
// CHECK:         scf.for %[[COLUMN:[^ ]*]] = %{{.*}} to %[[SPAN]]
// CHECK:           tile.take
// CHECK:           tile.store %{{.*}}[%[[ROW]], %[[COLUMN]]] misaligned %[[MISALIGNMENT]] {alignment = 16 : i64}
// CHECK-LABEL: tile.program @kept_unaligned(
// CHECK-NOT:     misaligned
// CHECK:         tile.return
tile.kernel @kept(%x: tensor<?x511xbf16>) -> tensor<?x511xf32> attributes {
    schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 256, reread = shared>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 64>} {
  %0 = arith.extf %x : tensor<?x511xbf16> to tensor<?x511xf32>
  %1 = tile.reduce max %0 : tensor<?x511xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x511xbf16> -> tensor<?x511xf32>
  %3 = arith.subf %0, %2 : tensor<?x511xf32>
  tile.return %3 : tensor<?x511xf32>
}
func.func @f(%x: tensor<?x511xbf16>) -> tensor<?x511xf32> {
  %0 = tile.launch [@kept](%x) : (tensor<?x511xbf16>) -> tensor<?x511xf32>
  return %0 : tensor<?x511xf32>
}

// -----

// An operand that is there for its sizes alone may begin anywhere, and what is
// stored has a phase of its own to go by.
// CHECK-LABEL: tile.program @sizes(
// CHECK-SAME:      memref<?x261xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.readonly},
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x261xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.phase = 4 : i64})
// CHECK:         tile.misalignment %[[Y]]
tile.kernel @sizes(%x: tensor<?x261xf32>, %w: tensor<261xf32>) -> tensor<?x261xf32> attributes {
    schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = tile.broadcast %w like %x : tensor<261xf32>, tensor<?x261xf32> -> tensor<?x261xf32>
  tile.return %0 : tensor<?x261xf32>
}
func.func @f(%x: tensor<?x261xf32>, %w: tensor<261xf32>) -> tensor<?x261xf32> {
  %0 = tile.launch [@sizes](%x, %w) : (tensor<?x261xf32>, tensor<261xf32>) -> tensor<?x261xf32>
  return %0 : tensor<?x261xf32>
}
