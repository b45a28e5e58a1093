// RUN: tile-opt %s --differentiate=gradients=all --cse | FileCheck %s

// The quotient, rounded towards zero, follows from what is left.
// CHECK-LABEL: func @remf(
// CHECK-SAME:      gradients = {arg0 = {grad = 0 : i64}, arg1 = {result = 0 : i64}}
// CHECK-LABEL: func @remf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK:         %[[WHOLE:.*]] = arith.subf %[[X]], %{{.*}}
// CHECK-NEXT:    %[[QUOTIENT:.*]] = arith.divf %[[WHOLE]], %[[Y]]
// CHECK-NEXT:    %[[ROUNDED:.*]] = math.roundeven %[[QUOTIENT]]
// CHECK-NEXT:    %[[SLOPE:.*]] = arith.mulf %[[G]], %[[ROUNDED]]
// CHECK-NEXT:    %[[DY:.*]] = arith.negf %[[SLOPE]]
// CHECK-NEXT:    return %[[DY]]
func.func @remf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.remf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
