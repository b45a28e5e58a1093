// RUN: tile-opt %s --tile --keep-rows --merge-launches --canonicalize --cse | FileCheck %s

// What is copied ahead, and where rows begin, is of the row space whose rows they are.
// CHECK-LABEL: tile.program @merged(
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x509xf32, strided<[?, 1]>> {tile.alignment = 4 : i64, tile.phase = 4 : i64, tile.readonly, tile.space = 1 : i64}
// CHECK:         scf.if
// CHECK-NOT:       space = 1
// CHECK:         } else {
// CHECK:           %[[MISALIGNMENT:.*]] = tile.misalignment %[[Y]][%{{.*}}] to 4 {space = 1 : i64}
// CHECK:           tile.copy_ahead %[[Y]][{{.*}}] misaligned %[[MISALIGNMENT]] to %{{.*}} {space = 1 : i64, tile = tensor<4x256xf32>}
#tiles = #tile.rows<rows = 4, threads = 64, vector = 4, columns = 256, reread = shared>
#others = #tile.rows<rows = 1, threads = 64, vector = 1, columns = 64>
tile.kernel @merged(%x: tensor<?x509xf32>, %v: tensor<509xf32>) -> tensor<?x509xf32>
    attributes {schedule = #tiles, unaligned_schedule = #others} {
  %0 = tile.reduce max %x : tensor<?x509xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x509xf32> -> tensor<?x509xf32>
  %2 = arith.subf %x, %1 : tensor<?x509xf32>
  tile.return %2 : tensor<?x509xf32>
}
tile.kernel @second(%x: tensor<?x509xf32>, %v: tensor<509xf32>) -> tensor<?x509xf32>
    attributes {schedule = #tiles, unaligned_schedule = #others} {
  %0 = tile.reduce min %x : tensor<?x509xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x509xf32> -> tensor<?x509xf32>
  %2 = arith.subf %x, %1 : tensor<?x509xf32>
  tile.return %2 : tensor<?x509xf32>
}
func.func @f(%x: tensor<?x509xf32>, %y: tensor<?x509xf32>, %v: tensor<509xf32>)
    -> (tensor<?x509xf32>, tensor<?x509xf32>) {
  %0 = tile.launch [@merged](%x, %v) : (tensor<?x509xf32>, tensor<509xf32>) -> tensor<?x509xf32>
  %1 = tile.launch [@second](%y, %v) : (tensor<?x509xf32>, tensor<509xf32>) -> tensor<?x509xf32>
  return %0, %1 : tensor<?x509xf32>, tensor<?x509xf32>
}
