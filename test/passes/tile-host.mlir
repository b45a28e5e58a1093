// RUN: tile-opt %s --tile=target=host -split-input-file | FileCheck %s

// The host's accesses cost the same whatever their alignment.
// CHECK-LABEL: tile.kernel @unaligned(
// CHECK-SAME:      tile.alignment = 4 : i64, tile.readonly
// CHECK-NOT:   tile.kernel
// CHECK:       tile.launch [@unaligned](
tile.kernel @unaligned(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.schedule<rows = 1, threads = 1, vector = 16, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @f(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = tile.launch [@unaligned](%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

// CHECK-LABEL: tile.kernel @leading(
// CHECK:       tile.kernel @leading_strided(
// CHECK-NOT:   tile.kernel
// CHECK:       tile.launch [@leading, @leading_strided](
tile.kernel @leading(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
    attributes {schedule = #tile.schedule<rows = 1, threads = 1, vector = 16, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x?x128xf32>
  tile.return %0 : tensor<?x?x128xf32>
}
func.func @f(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xf32> {
  %0 = tile.launch [@leading](%x) : (tensor<?x?x128xf32>) -> tensor<?x?x128xf32>
  return %0 : tensor<?x?x128xf32>
}
