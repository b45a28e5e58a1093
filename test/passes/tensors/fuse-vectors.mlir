// RUN: tile-opt %s --fuse -split-input-file | FileCheck %s

// A row vector that depends on no rows is computed in a kernel of its own, and
// again where rows need it.
// CHECK-LABEL: tile.kernel @beside_rows_kernel0(
// CHECK-SAME:      %{{.*}}: tensor<8xf32>, %{{.*}}: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK:         arith.mulf %{{.*}} : tensor<8xf32>
// CHECK-LABEL: tile.kernel @beside_rows_kernel1(
// CHECK-SAME:      %[[W:.*]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[SQUARE:.*]] = arith.mulf %[[W]], %[[W]]
// CHECK-NEXT:    tile.return %[[SQUARE]]
func.func @beside_rows(%x: tensor<?x8xf32>, %w: tensor<8xf32>)
    -> (tensor<?x8xf32>, tensor<8xf32>) {
  %0 = arith.mulf %w, %w : tensor<8xf32>
  %1 = tile.broadcast %0 like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.addf %x, %1 : tensor<?x8xf32>
  return %2, %0 : tensor<?x8xf32>, tensor<8xf32>
}

// -----

// Vectors of one length share a kernel; one of length 1 is repeated in it.
// CHECK-LABEL: tile.kernel @lengths_kernel0(
// CHECK-SAME:      -> (tensor<8xf32>, tensor<8xf32>)
// CHECK:         arith.negf %{{.*}} : tensor<1xf32>
// CHECK-LABEL: tile.kernel @lengths_kernel1(
// CHECK-SAME:      -> tensor<1xf32>
// CHECK:         arith.negf %{{.*}} : tensor<1xf32>
func.func @lengths(%w: tensor<8xf32>, %s: tensor<1xf32>)
    -> (tensor<8xf32>, tensor<1xf32>, tensor<8xf32>) {
  %0 = arith.negf %s : tensor<1xf32>
  %1 = tile.broadcast %0 : tensor<1xf32> -> tensor<8xf32>
  %2 = arith.mulf %w, %1 : tensor<8xf32>
  return %2, %0, %w : tensor<8xf32>, tensor<1xf32>, tensor<8xf32>
}

// -----

// What is put together is computed in pieces, each time that it is returned; what
// is not taken apart is not among them.
// CHECK-LABEL: tile.kernel @pieces_kernel0(
// CHECK-SAME:      %{{.*}}: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>)
// CHECK:         tile.split
// CHECK-COUNT-2: tile.join
// CHECK-NOT:     tile.copy
// CHECK-LABEL: tile.kernel @pieces_kernel1(
// CHECK-NEXT:    tile.copy
func.func @pieces(%w: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a, %b = tile.split interleaved %w : tensor<8xf32> -> tensor<4xf32>, tensor<4xf32>
  %0 = arith.negf %a : tensor<4xf32>
  %1 = tile.join interleaved %0, %b : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return %1, %0, %1, %w : tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>
}
