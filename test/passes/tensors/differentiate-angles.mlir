// RUN: tile-opt %s -split-input-file --differentiate=gradients=all --cse | FileCheck %s

// A rule for each trigonometric and hyperbolic function and each inverse; those
// of sin, cos and tanh stand in differentiate.mlir.

// From the result, not from another function of x.
// CHECK-LABEL: func @tan_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[T:.*]] = math.tan %[[X]]
// CHECK-DAG:     %[[T2:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.addf %[[T2]], %[[ONE]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK:         return %[[DX]]
func.func @tan(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.tan %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @sinh_backward(
// CHECK:         %[[C:.*]] = math.cosh
// CHECK-NEXT:    arith.mulf %{{.*}}, %[[C]]
func.func @sinh(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.sinh %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @cosh_backward(
// CHECK:         %[[S:.*]] = math.sinh
// CHECK-NEXT:    arith.mulf %{{.*}}, %[[S]]
func.func @cosh(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.cosh %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @acos_backward(
// CHECK:         %[[X2:.*]] = arith.mulf %[[X:.*]], %[[X]]
// CHECK:         %[[REST:.*]] = arith.subf %{{.*}}, %[[X2]]
// CHECK-NEXT:    %[[ROOT:.*]] = math.rsqrt %[[REST]]
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %{{.*}}, %[[ROOT]]
// CHECK-NEXT:    arith.negf %[[DX]]
func.func @acos(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.acos %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @atan_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK:         %[[X2:.*]] = arith.mulf %[[X:.*]], %[[X]]
// CHECK:         %[[SQUARE:.*]] = arith.addf %[[X2]]
// CHECK-NEXT:    arith.divf %[[G]], %[[SQUARE]]
func.func @atan(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.atan %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// One division serves both, and the origin has a gradient of zero.
// CHECK-LABEL: func @atan2_backward(
// CHECK-COUNT-1: arith.divf
// CHECK:         %[[SHARE:.*]] = arith.select
// CHECK-NEXT:    %[[DY:.*]] = arith.mulf %[[SHARE]]
// CHECK-NEXT:    %[[OTHER:.*]] = arith.mulf %[[SHARE]]
// CHECK-NEXT:    %[[DX:.*]] = arith.negf %[[OTHER]]
// CHECK-NEXT:    return %[[DY]], %[[DX]]
func.func @atan2(%y: tensor<?x8xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.atan2 %y, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
