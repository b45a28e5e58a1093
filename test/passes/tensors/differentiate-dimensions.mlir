// RUN: tile-opt %s --differentiate=gradients=all --canonicalize --cse -split-input-file | FileCheck %s
// The gradient of a result has the result's dimensions, which the ops of the
// backward alone may not show: here it has two chains, of tensors that the
// forward adds.

// CHECK-LABEL: func.func @chains_backward(
// CHECK-SAME:    tensor<?x1x8xf32> {tile.dimensions = ["d0", 1, "d1"], tile.name = "grad_result0"}
// CHECK-SAME:    tensor<?x1x8xf32> {tile.dimensions = ["d0", 1, "d1"], tile.name = "grad_result1"}
func.func @chains(%x: tensor<?x1x8xf32> {tile.name = "x"}, %y: tensor<?x1x8xf32> {tile.name = "y"})
    -> (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xi8>) {
  %0 = arith.negf %x : tensor<?x1x8xf32>
  %1 = arith.negf %y : tensor<?x1x8xf32>
  %2 = arith.cmpf olt, %x, %y : tensor<?x1x8xf32>
  %3 = arith.extui %2 : tensor<?x1x8xi1> to tensor<?x1x8xi8>
  return %0, %1, %3 : tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xi8>
}

// -----

// Here they show it.
// CHECK-LABEL: func.func @square_backward(
// CHECK-NOT:     tile.dimensions
func.func @square(%x: tensor<?x8xf32> {tile.name = "x"}) -> tensor<?x8xf32> {
  %0 = arith.mulf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
