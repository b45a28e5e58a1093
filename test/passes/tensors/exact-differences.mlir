// RUN: tile-opt %s --decompose | FileCheck %s

// The difference of a number and the largest of such, whatever computes it again; that
// of a number and a mean is none.
// CHECK-LABEL: func.func @largest(
// CHECK:         arith.subf %{{.*}}, %{{.*}} {tile.exact}
// CHECK:         arith.subf %{{.*}}, %{{.*}} : tensor<?x8xf32>
func.func @largest(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  %2 = tile.reduce max %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %4 = arith.mulf %x, %0 : tensor<?x8xf32>
  %5 = arith.subf %4, %3 : tensor<?x8xf32>
  %6 = tile.reduce add %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %6 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %8 = arith.subf %1, %7 : tensor<?x8xf32>
  return %5, %8 : tensor<?x8xf32>, tensor<?x8xf32>
}

// A sum with what is chosen from the negated number is such a difference.
// CHECK-LABEL: func.func @clamped(
// CHECK:         arith.addf %{{.*}}, %{{.*}} {tile.exact}
func.func @clamped(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.mulf %x, %y : tensor<?x8xf32>
  %1 = arith.negf %0 : tensor<?x8xf32>
  %2 = arith.maximumf %1, %x : tensor<?x8xf32>
  %3 = arith.addf %0, %2 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}
