// RUN: tile-opt %s --tile --keep-rows --canonicalize --cse -split-input-file | FileCheck %s
// RUN: tile-opt %s --tile -split-input-file | FileCheck %s --check-prefix=TILED

// Tiles of the row are copied to slots of their own, three ahead of the one that
// the first sweep computes on, and the second sweep takes them from there. The padding
// is kept as well. The pass `tile` says which loads are of the same tiles. What all rows share stays in the caches.
// TILED-LABEL: tile.program @kept(
// TILED-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[W:[^:]*]]: memref<1000xbf16>
// TILED:         scf.for
// TILED:           tile.load %[[X]]{{.*}} tile.row_tiles = 0 : i64
// TILED:         scf.for
// TILED:           tile.load %[[X]]{{.*}} tile.row_tiles = 0 : i64
// TILED:           tile.load %[[W]]{{.*}} {alignment = 16 : i64, invariant}
// CHECK-LABEL: tile.program @kept(
// CHECK-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[W:[^:]*]]: memref<1000xbf16>
// CHECK-DAG:     %[[STEP:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[AHEAD:.*]] = arith.constant 768 : index
// CHECK-DAG:     %[[END:.*]] = arith.constant 1024 : index
// CHECK-DAG:     %[[BUFFER:.*]] = tile.buffer {offset = 0 : i64} : memref<4x1x256xbf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-3: tile.copy_ahead %[[X]]
// CHECK-NOT:     tile.copy_ahead
// CHECK:         scf.for %[[COLUMN:[^ ]*]] =
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[COLUMN]], %[[AHEAD]]
// CHECK-NEXT:      %[[IS:.*]] = arith.cmpi ult, %[[NEXT]], %[[END]]
// CHECK-NEXT:      scf.if %[[IS]] {
// CHECK-NEXT:        %[[SLOT:.*]] = arith.divui %[[NEXT]], %[[STEP]]
// CHECK-NEXT:        tile.copy_ahead %[[X]][%{{.*}}, %[[NEXT]]] to %[[BUFFER]][%[[SLOT]]]
// CHECK:           tile.commit_copies
// CHECK-NEXT:      tile.wait_copies 3
// CHECK-NEXT:      %[[SLOT:.*]] = arith.divui %[[COLUMN]], %[[STEP]]
// CHECK-NEXT:      %[[TAKEN:.*]] = tile.take %[[BUFFER]][%[[SLOT]]]
// CHECK-NEXT:      arith.extf %[[TAKEN]]
// CHECK-NOT:     tile.load %[[X]]
// CHECK:         scf.for %[[COLUMN:[^ ]*]] =
// CHECK-NEXT:      %[[SLOT:.*]] = arith.divui %[[COLUMN]], %[[STEP]]
// CHECK-NEXT:      %[[TAKEN:.*]] = tile.take %[[BUFFER]][%[[SLOT]]]
// CHECK-NEXT:      arith.extf %[[TAKEN]]
// CHECK:           tile.load %[[W]]
// CHECK-NOT:       tile.load
// CHECK:           tile.store
// CHECK:         tile.return
// The program for any alignment follows the same schedule, but its elements are
// loaded before they are kept: no copy is as narrow.
// CHECK-LABEL: tile.program @kept_unaligned(
// CHECK-NOT:     tile.copy_ahead
// CHECK:         tile.load
// CHECK:         tile.keep
// CHECK:         tile.take
tile.kernel @kept(%x: tensor<?x1000xbf16>, %w: tensor<1000xbf16>) -> tensor<?x1000xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 256, reread = shared>} {
  %0 = arith.extf %x : tensor<?x1000xbf16> to tensor<?x1000xf32>
  %1 = arith.extf %w : tensor<1000xbf16> to tensor<1000xf32>
  %2 = tile.reduce max %0 : tensor<?x1000xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x1000xbf16> -> tensor<?x1000xf32>
  %4 = arith.subf %0, %3 : tensor<?x1000xf32>
  %5 = tile.broadcast %1 like %x : tensor<1000xf32>, tensor<?x1000xbf16> -> tensor<?x1000xf32>
  %6 = arith.mulf %4, %5 : tensor<?x1000xf32>
  tile.return %6 : tensor<?x1000xf32>
}
func.func @f(%x: tensor<?x1000xbf16>, %w: tensor<1000xbf16>) -> tensor<?x1000xf32> {
  %0 = tile.launch [@kept](%x, %w) : (tensor<?x1000xbf16>, tensor<1000xbf16>) -> tensor<?x1000xf32>
  return %0 : tensor<?x1000xf32>
}

// -----

// Nothing is kept unless the schedule says so.
// CHECK-LABEL: tile.program @loaded_again(
// CHECK-NOT:     tile.buffer
// CHECK-COUNT-2: tile.load
// CHECK-NOT:     tile.take
// CHECK:         tile.return
tile.kernel @loaded_again(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, reread = memory>} {
  %0 = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %2 = arith.subf %x, %1 : tensor<?x1024xf32>
  tile.return %2 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@loaded_again](%x) : (tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// -----

// Operands that only one sweep reads are not kept, nor are statistics of groups,
// which several threads hold. A block of a cluster has its part of each tile: a
// buffer begins behind those parts of the one before.
// TILED-LABEL: tile.program @two_operands(
// TILED-COUNT-2: tile.row_tiles = {{[01]}} : i64
// TILED:         tile.reduce
// TILED-COUNT-3: tile.row_tiles = {{[012]}} : i64
// CHECK-LABEL: tile.program @two_operands(
// CHECK-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[Y:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[S:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[Z:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}},
// CHECK-DAG:     %[[XKEPT:.*]] = tile.buffer {offset = 0 : i64} : memref<2x1x512xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[YKEPT:.*]] = tile.buffer {offset = 2048 : i64} : memref<2x1x512xbf16, #gpu.address_space<workgroup>>
// CHECK-NOT:     tile.buffer
// CHECK:         scf.for
// CHECK-DAG:       tile.load %[[S]]
// CHECK-DAG:       tile.take %[[XKEPT]]
// CHECK-DAG:       tile.take %[[YKEPT]]
// CHECK:         tile.reduce
// CHECK:         scf.for
// CHECK-DAG:       tile.load %[[S]]
// CHECK-DAG:       tile.load %[[Z]]
// CHECK-DAG:       tile.take %[[XKEPT]]
// CHECK-DAG:       tile.take %[[YKEPT]]
// CHECK:           tile.store
// CHECK:         tile.return
tile.kernel @two_operands(%x: tensor<?x1024xf32>, %y: tensor<?x1024xbf16>,
                          %s: tensor<?x32xf32>, %z: tensor<?x1024xf32>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 512, cluster = 2, reread = shared>} {
  %0 = arith.extf %y : tensor<?x1024xbf16> to tensor<?x1024xf32>
  %1 = tile.broadcast %s like %x : tensor<?x32xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %2 = arith.mulf %x, %0 : tensor<?x1024xf32>
  %3 = arith.mulf %2, %1 : tensor<?x1024xf32>
  %4 = tile.reduce add %3 : tensor<?x1024xf32> -> tensor<?x1xf32>
  %5 = tile.broadcast %4 like %x : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %6 = arith.subf %3, %5 : tensor<?x1024xf32>
  %7 = arith.addf %6, %z : tensor<?x1024xf32>
  tile.return %7 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x1024xf32>, %y: tensor<?x1024xbf16>, %s: tensor<?x32xf32>, %z: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@two_operands](%x, %y, %s, %z) : (tensor<?x1024xf32>, tensor<?x1024xbf16>, tensor<?x32xf32>, tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// -----

// A program that adds up rows in memory comes back to its sums, which change.
// CHECK-LABEL: tile.program @sums_in_memory(
// CHECK-SAME:      %[[X:[^:]*]]: memref<{{[^:]*}}> {tile{{[^}]*}}}, %[[SUMS:[^:]*]]: memref<?x1024xf32>
// CHECK-COUNT-1: tile.buffer
// CHECK:         tile.take
// CHECK:         tile.take
// CHECK:         tile.load %[[SUMS]]
// CHECK-NOT:     tile.take
// CHECK:         tile.return
tile.kernel @sums_in_memory(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, persistent = 1, reread = shared>} {
  %0 = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %2 = arith.subf %x, %1 : tensor<?x1024xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x1024xf32> -> tensor<?x1024xf32>
  tile.return %3 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@sums_in_memory](%x) : (tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// -----

// With more than two stages, rows are copied to slots that take turns, each as
// many rows ahead as there are others; a turn that copies nothing counts, too.
// Statistics are loaded a row ahead, and what all rows share where it is needed.
// CHECK-LABEL: tile.program @stages(
// CHECK-SAME:      index, %[[X:[^:]*]]: memref<?x256xf32,
// CHECK:         %[[BUFFER:.*]] = tile.buffer {offset = 0 : i64} : memref<3x1x256xf32,
// CHECK-COUNT-2: tile.copy_ahead %[[X]]
// CHECK:         scf.for %[[ROW:.*]] = {{.*}} iter_args({{.*}}%[[SLOT:[^ ]*]] = %c0
// CHECK:           scf.if
// CHECK:             tile.copy_ahead %[[X]]
// CHECK:           tile.commit_copies
// CHECK-NEXT:      tile.wait_copies 2
// CHECK:           tile.take %[[BUFFER]][%[[SLOT]]]
// CHECK-NOT:       tile.load %[[X]]
// CHECK:         tile.return
tile.kernel @stages(%x: tensor<?x256xf32>, %w: tensor<256xf32>, %s: tensor<?x1xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1, stages = 3>} {
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %1 = tile.broadcast %w like %x : tensor<256xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %2 = arith.mulf %0, %1 : tensor<?x256xf32>
  %3 = arith.mulf %2, %x : tensor<?x256xf32>
  tile.return %3 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>, %w: tensor<256xf32>, %s: tensor<?x1xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@stages](%x, %w, %s) : (tensor<?x256xf32>, tensor<256xf32>, tensor<?x1xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}
