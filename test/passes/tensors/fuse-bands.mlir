// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// What reduces bands stays with what is elementwise: a program holds a band.
// CHECK-LABEL: tile.kernel @one_kernel(
// CHECK:         tile.reduce max
// CHECK:         tile.reduce_bands max %{{.*}} of 128
// CHECK:         tile.pack_bands
// CHECK:         tile.return
// CHECK-NOT:   tile.kernel
func.func @one(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x2xf32>) {
  %0 = tile.reduce max %x : tensor<?x256xf32> -> tensor<?x2xf32>
  %1 = tile.reduce_bands max %0 of 128 : tensor<?x2xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %3 = arith.subf %x, %2 : tensor<?x256xf32>
  %4 = tile.pack_bands %1 of 128 : tensor<?x2xf32> -> tensor<?x2xf32>
  return %3, %4 : tensor<?x256xf32>, tensor<?x2xf32>
}

// -----

// It waits for reductions of rows in a kernel of its own, which reads what these
// leave and computes the rest again.
// CHECK-LABEL: tile.kernel @after_rows_kernel0(
// CHECK-SAME:      %{{.*}}: tensor<?x256xf32>) -> tensor<?x1xf32>
// CHECK-NOT:     tile.reduce_bands
// CHECK-LABEL: tile.kernel @after_rows_kernel1(
// CHECK-SAME:      -> tensor<?x256xf32>
// CHECK:         arith.mulf
// CHECK:         tile.reduce max %{{.*}} -> tensor<?x2xf32>
// CHECK-NEXT:    tile.reduce_bands
func.func @after_rows(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = arith.mulf %x, %x : tensor<?x256xf32>
  %1 = tile.reduce add %0 : tensor<?x256xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %3 = arith.divf %0, %2 : tensor<?x256xf32>
  %4 = tile.reduce max %3 : tensor<?x256xf32> -> tensor<?x2xf32>
  %5 = tile.reduce_bands max %4 of 128 : tensor<?x2xf32>
  %6 = tile.broadcast %5 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  return %6 : tensor<?x256xf32>
}

// -----

// Reductions of rows and bands that do not depend on each other stay apart.
// CHECK-LABEL: tile.kernel @beside_rows_kernel0(
// CHECK-LABEL: tile.kernel @beside_rows_kernel1(
func.func @beside_rows(%x: tensor<?x256xf32>) -> (tensor<?x1xf32>, tensor<?x256xf32>) {
  %0 = tile.reduce add %x : tensor<?x256xf32> -> tensor<?x1xf32>
  %1 = tile.reduce_bands max %x of 128 : tensor<?x256xf32>
  return %0, %1 : tensor<?x1xf32>, tensor<?x256xf32>
}

// -----

// Packed bands are rows of their own: ops on them do not have the rows that the
// bands are repeated for.
// CHECK-LABEL: tile.kernel @packed_kernel0(
// CHECK-SAME:      %{{.*}}: tensor<?x2xf32>) -> tensor<?x2xf32>
// CHECK-NEXT:    arith.negf
// CHECK-LABEL: tile.kernel @packed_kernel1(
// CHECK:         tile.repeat_bands
// CHECK:         arith.mulf
func.func @packed(%x: tensor<?x256xf32>, %s: tensor<?x2xf32>) -> tensor<?x256xf32> {
  %0 = arith.negf %s : tensor<?x2xf32>
  %1 = tile.repeat_bands %0 of 128 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x2xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %3 = arith.mulf %x, %2 : tensor<?x256xf32>
  return %3 : tensor<?x256xf32>
}

// -----

// A piece of an argument that has a row for each band is stored first: bands are
// loaded from what has nothing else.
// CHECK-LABEL: func @piece(
// CHECK-SAME:      %[[X:.*]]: tensor<?x256xf32>, %[[S:.*]]: tensor<?x4xf32>)
// CHECK:         %[[PIECE:.*]] = tile.launch [@{{.*}}](%[[S]]) : (tensor<?x4xf32>) -> tensor<?x2xf32>
// CHECK:         tile.launch [@{{.*}}](%[[PIECE]], %[[X]])
func.func @piece(%x: tensor<?x256xf32>, %s: tensor<?x4xf32>) -> tensor<?x256xf32> {
  %low, %high = tile.split %s : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
  %0 = tile.repeat_bands %low of 64 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x2xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %2 = arith.subf %x, %1 : tensor<?x256xf32>
  return %2 : tensor<?x256xf32>
}

// -----

// What another kernel packs is repeated in a kernel of its own, though both read
// the same rows: a program holds one band, and reads the number of each.
// CHECK-LABEL: tile.kernel @packed_here_kernel0(
// CHECK:         tile.pack_bands
// CHECK-NOT:     tile.repeat_bands
// CHECK-LABEL: tile.kernel @packed_here_kernel1(
// CHECK:         tile.repeat_bands %{{arg[0-9]}} of 64
// CHECK-LABEL: func @packed_here(
// CHECK:         %[[BANDS:.*]] = tile.launch [@packed_here_kernel0](%[[X:.*]]) : (tensor<?x256xf32>) -> tensor<?x2xf32>
// CHECK:         tile.launch [@packed_here_kernel1](%[[BANDS]], %[[X]])
func.func @packed_here(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = tile.reduce max %x : tensor<?x256xf32> -> tensor<?x2xf32>
  %1 = tile.reduce_bands max %0 of 64 : tensor<?x2xf32>
  %2 = tile.pack_bands %1 of 64 : tensor<?x2xf32> -> tensor<?x2xf32>
  %3 = tile.repeat_bands %2 of 64 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x2xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %5 = arith.subf %x, %4 : tensor<?x256xf32>
  return %5 : tensor<?x256xf32>
}
