// RUN: tile-opt %s --schedule --tile --mlir-timing -o /dev/null 2>&1 | FileCheck %s

// What `schedule` finds out of a kernel, `tile` knows.
// CHECK:     Schedule
// CHECK:     (A) bastile::KernelSpace
// CHECK:     (A) bastile::KernelShape
// CHECK:     Tile
// CHECK-NOT: (A) bastile
tile.kernel @rows(%x: tensor<?x2880xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce max %x : tensor<?x2880xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x2880xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@rows](%x) : (tensor<?x2880xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
