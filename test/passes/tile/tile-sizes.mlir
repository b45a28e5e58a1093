// RUN: tile-opt %s --tile | FileCheck %s

// Rows that a result repeats do not merge with the other leading dimension,
// although no operand has as many.
// CHECK-LABEL: tile.program @repeated(
// CHECK-SAME:      memref<?x?x8xf32
// CHECK-SAME:      memref<?x?x8xf32
// CHECK-NOT:   tile.program @repeated_strided
tile.kernel @repeated(%x: tensor<1x4x8xf32>) -> tensor<2x4x8xf32>
    attributes {schedule = #tile.rows<rows = 4, threads = 32, vector = 1, columns = 8>} {
  %0 = tile.broadcast %x : tensor<1x4x8xf32> -> tensor<2x4x8xf32>
  tile.return %0 : tensor<2x4x8xf32>
}
func.func @f(%x: tensor<1x4x8xf32>) -> tensor<2x4x8xf32> {
  %0 = tile.launch [@repeated](%x) : (tensor<1x4x8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// An operand that only gives its sizes may lie anywhere.
// CHECK-LABEL: tile.program @sizes(
// CHECK-SAME:      memref<?x66xf32{{[^>]*>>}} {tile.alignment = 4 : i64
// CHECK-SAME:      memref<?x12xf32{{[^>]*>>}} {tile.alignment = 16 : i64
tile.kernel @sizes(%x: tensor<?x66xf32>) -> tensor<?x12xf32>
    attributes {schedule = #tile.rows<rows = 8, threads = 32, vector = 4, columns = 16>} {
  %cst = arith.constant 1.0 : f32
  %0 = tile.broadcast %cst like %x : f32, tensor<?x66xf32> -> tensor<?x12xf32>
  tile.return %0 : tensor<?x12xf32>
}
func.func @g(%x: tensor<?x66xf32>) -> tensor<?x12xf32> {
  %0 = tile.launch [@sizes](%x) : (tensor<?x66xf32>) -> tensor<?x12xf32>
  return %0 : tensor<?x12xf32>
}
