// RUN: tile-opt %s --tile=target=sm_90a | FileCheck %s

// Rows that take the memory of an operand are stored in the last sweep that computes
// rows. The sum of a row, which is there behind the only sweep, needs none of its own.
// CHECK-LABEL: tile.program @add_and_sum(
// CHECK:         scf.for
// CHECK:           tile.store
// CHECK:           scf.yield
// CHECK:         tile.reduce
// CHECK:         tile.store
// CHECK-NOT:     scf.for
// CHECK:         tile.return
tile.kernel @add_and_sum(%x: tensor<?x1024xf32> {tile.in_place = 0 : i64}, %r: tensor<?x1024xf32>)
    -> (tensor<?x1024xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 256>} {
  %0 = arith.addf %x, %r : tensor<?x1024xf32>
  %1 = tile.reduce add %0 : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %0, %1 : tensor<?x1024xf32>, tensor<?x1xf32>
}

// Another sweep that reads the operand has the stores.
// CHECK-LABEL: tile.program @divide_by_sum(
// CHECK:         scf.for
// CHECK-NOT:       tile.store
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK:           tile.store
// CHECK:         tile.return
tile.kernel @divide_by_sum(%x: tensor<?x1024xf32> {tile.in_place = 0 : i64}) -> tensor<?x1024xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 256>} {
  %0 = tile.reduce add %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x1024xf32> -> tensor<?x1024xf32>
  %2 = arith.divf %x, %1 : tensor<?x1024xf32>
  tile.return %2 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x1024xf32>, %r: tensor<?x1024xf32>)
    -> (tensor<?x1024xf32>, tensor<?x1xf32>, tensor<?x1024xf32>) {
  %0, %1 = tile.launch [@add_and_sum](%x, %r) : (tensor<?x1024xf32>, tensor<?x1024xf32>) -> (tensor<?x1024xf32>, tensor<?x1xf32>)
  %2 = tile.launch [@divide_by_sum](%r) : (tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %0, %1, %2 : tensor<?x1024xf32>, tensor<?x1xf32>, tensor<?x1024xf32>
}
