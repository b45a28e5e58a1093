// RUN: tile-opt %s --differentiate='gradients=all' --canonicalize --cse -split-input-file | FileCheck %s

// The derivative of a sigmoid, whose numerator has another factor, is that of the
// whole: e / (1 + e)^2 by two products with 1 / (1 + e). No choice has a derivative.
// CHECK-LABEL: func.func @gate_backward(
// CHECK: %[[POWER:.*]] = math.exp
// CHECK: %[[NUMERATOR:.*]] = arith.select
// CHECK: %[[SUM:.*]] = arith.addf %[[POWER]], %
// CHECK: %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SUM]]
// CHECK: %[[SHARE:.*]] = arith.mulf %{{.*}}, %[[INVERSE]]
// CHECK: %[[PART:.*]] = arith.mulf %[[POWER]], %[[INVERSE]]
// CHECK: %[[SLOPE:.*]] = arith.mulf %[[SHARE]], %[[PART]]
// CHECK: arith.mulf %[[SLOPE]], %
// CHECK: arith.mulf %[[SHARE]], %[[NUMERATOR]]
// CHECK-NOT: arith.select
// CHECK: return
func.func @gate(%x: tensor<?x64xf32>, %up: tensor<?x64xf32>)
    -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %x : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %one = arith.constant 1.0 : f32
  %ones = tile.broadcast %one like %x : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %positive = arith.cmpf oge, %x, %zeros : tensor<?x64xf32>
  %negated = arith.negf %x : tensor<?x64xf32>
  %size = arith.select %positive, %negated, %x : tensor<?x64xi1>, tensor<?x64xf32>
  %power = math.exp %size : tensor<?x64xf32>
  %numerator = arith.select %positive, %ones, %power : tensor<?x64xi1>, tensor<?x64xf32>
  %sum = arith.addf %power, %ones : tensor<?x64xf32>
  %product = arith.mulf %up, %numerator : tensor<?x64xf32>
  %0 = arith.divf %product, %sum : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// The derivative of a softplus is the sigmoid.
// CHECK-LABEL: func.func @softplus_backward(
// CHECK: %[[POWER:.*]] = math.exp
// CHECK-NOT: math.log1p
// CHECK: %[[NUMERATOR:.*]] = arith.select
// CHECK: %[[SUM:.*]] = arith.addf %[[POWER]], %
// CHECK: %[[SIGMOID:.*]] = arith.divf %[[NUMERATOR]], %[[SUM]]
// CHECK: %[[RESULT:.*]] = arith.mulf %{{.*}}, %[[SIGMOID]]
// CHECK-NEXT: return %[[RESULT]]
func.func @softplus(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %x : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %positive = arith.cmpf ogt, %x, %zeros : tensor<?x64xf32>
  %negated = arith.negf %x : tensor<?x64xf32>
  %size = arith.select %positive, %negated, %x : tensor<?x64xi1>, tensor<?x64xf32>
  %power = math.exp %size : tensor<?x64xf32>
  %negative = arith.cmpf ole, %x, %zeros : tensor<?x64xf32>
  %largest = arith.select %negative, %zeros, %x : tensor<?x64xi1>, tensor<?x64xf32>
  %log = math.log1p %power : tensor<?x64xf32>
  %0 = arith.addf %largest, %log : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
