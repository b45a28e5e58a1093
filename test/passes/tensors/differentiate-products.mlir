// RUN: tile-opt %s --differentiate='gradients=all' --canonicalize -split-input-file | FileCheck %s

// Both gradients are products of the result's gradient, in the type of the
// operands, with the other operand.
// CHECK-LABEL: func @linear_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<?x4xf32> {{.*}}, %[[X:[^:]*]]: tensor<?x8xbf16> {{.*}}, %[[W:[^:]*]]: tensor<4x8xbf16>
// CHECK:         %[[G16:.*]] = arith.truncf %[[G]]
// CHECK-DAG:     tile.dot %[[G16]], %[[W]] contract [1, 0] : tensor<?x4xbf16>, tensor<4x8xbf16> -> tensor<?x8xf32>
// CHECK-DAG:     tile.dot %[[G16]], %[[X]] contract [0, 0] : tensor<?x4xbf16>, tensor<?x8xbf16> -> tensor<4x8xf32>
func.func @linear(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// The gradient of a matrix whose rows are summed over has its rows from the
// other operand.
// CHECK-LABEL: func @columns_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<8x4xf32> {{.*}}, %[[X:[^:]*]]: tensor<?x8xf32> {{.*}}, %[[W:[^:]*]]: tensor<?x4xf32>
// CHECK-DAG:     tile.dot %[[W]], %[[G]] contract [1, 1] : tensor<?x4xf32>, tensor<8x4xf32> -> tensor<?x8xf32>
// CHECK-DAG:     tile.dot %[[X]], %[[G]] contract [1, 0] : tensor<?x8xf32>, tensor<8x4xf32> -> tensor<?x4xf32>
func.func @columns(%x: tensor<?x8xf32>, %w: tensor<?x4xf32>) -> tensor<8x4xf32> {
  %0 = tile.dot %x, %w contract [0, 0] : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// A weight that all matrices of a batch share has the sum of their gradients.
// CHECK-LABEL: func @shared_backward(
// CHECK-DAG:     tile.dot {{.*}} contract [0, 0] : tensor<?x?x4xf32>, tensor<?x?x8xf32> -> tensor<4x8xf32>
// CHECK-DAG:     tile.dot {{.*}} contract [1, 0] : tensor<?x?x4xf32>, tensor<4x8xf32> -> tensor<?x?x8xf32>
func.func @shared(%x: tensor<?x?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// -----

// Where a product is summed over a dimension that one operand lacks, the other
// one's gradient repeats itself there.
// CHECK-LABEL: func @summed_backward(
// CHECK:         %[[P:.*]] = tile.dot {{.*}} contract [1, 0] : tensor<1x?x4xf32>, tensor<4x8xf32> -> tensor<1x?x8xf32>
// CHECK:         tile.broadcast %[[P]] like {{.*}} -> tensor<?x?x8xf32>
func.func @summed(%x: tensor<?x?x8xf32>, %w: tensor<4x8xf32>) -> tensor<1x?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<1x?x4xf32>
  return %0 : tensor<1x?x4xf32>
}

// -----

// A product that the backward needs is saved, not computed again.
// CHECK-LABEL: func @activation(
// CHECK:         %[[P:.*]] = tile.dot
// CHECK:         return %{{.*}}, %[[P]]
// CHECK-LABEL: func @activation_backward(
// CHECK-SAME:      tile.name = "saved0"
// CHECK:         math.tanh
// CHECK-COUNT-2: tile.dot
// CHECK-NOT:     tile.dot
func.func @activation(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %1 = math.tanh %0 : tensor<?x4xf32>
  %2 = arith.mulf %1, %0 : tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// Of a product that is rounded before anything else, the rounded values are
// saved, which have fewer bytes.
// CHECK-LABEL: func @rounded(
// CHECK:         %[[R:.*]] = arith.truncf
// CHECK:         return %{{.*}}, %[[R]] : tensor<?x4xf32>, tensor<?x4xbf16>
// CHECK-LABEL: func @rounded_backward(
// CHECK-SAME:      tensor<?x4xbf16> {{{[^}]*}}tile.name = "saved0"
func.func @rounded(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  %1 = arith.truncf %0 : tensor<?x4xf32> to tensor<?x4xbf16>
  %2 = arith.extf %1 : tensor<?x4xbf16> to tensor<?x4xf32>
  %3 = math.tanh %2 : tensor<?x4xf32>
  %4 = arith.mulf %3, %2 : tensor<?x4xf32>
  return %4 : tensor<?x4xf32>
}

// -----

// Where the unrounded product is needed as well, the rounded one follows from
// it.
// CHECK-LABEL: func @rounded_too(
// CHECK:         %[[P:.*]] = tile.dot
// CHECK:         return %{{.*}}, %[[P]] : tensor<?x4xf32>, tensor<?x4xf32>
// CHECK-LABEL: func @rounded_too_backward(
func.func @rounded_too(%x: tensor<?x8xbf16>, %w: tensor<4x8xbf16>) -> tensor<?x4xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  %1 = arith.truncf %0 : tensor<?x4xf32> to tensor<?x4xbf16>
  %2 = arith.extf %1 : tensor<?x4xbf16> to tensor<?x4xf32>
  %3 = math.tanh %2 : tensor<?x4xf32>
  %4 = arith.mulf %3, %0 : tensor<?x4xf32>
  return %4 : tensor<?x4xf32>
}

// -----

// Only an operand with the columns of a product says how many there are, where a call
// alone knows that: the gradient of a statistic of them does not.
// CHECK-LABEL: func @statistic_backward(
// CHECK:         tile.iota like {{.*}} : tensor<?x?x?xi32>, tensor<?x?x?xf32>
func.func @statistic(%x: tensor<?x?x8xf32>, %y: tensor<?x?x8xf32>) -> tensor<?x?x1xf32> {
  %0 = tile.dot %x, %y contract [1, 1] : tensor<?x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x?xf32>
  %1 = tile.iota like %0 : tensor<?x?x?xi32>, tensor<?x?x?xf32>
  %2 = arith.sitofp %1 : tensor<?x?x?xi32> to tensor<?x?x?xf32>
  %3 = arith.mulf %0, %2 : tensor<?x?x?xf32>
  %4 = math.exp %3 : tensor<?x?x?xf32>
  %5 = tile.reduce add %4 : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  return %5 : tensor<?x?x1xf32>
}

// -----

// No product is kept for the sizes of what is repeated beside it: the rows of its
// left factor are as many.
// CHECK-LABEL: func @sizes_of_product(
// CHECK-SAME:      -> (tensor<?x300xbf16>, tensor<?x8xbf16> {tile.name = "saved0"})
// CHECK-LABEL: func @sizes_of_product_backward(
// CHECK-NOT:     saved1
func.func @sizes_of_product(%x: tensor<?x16xbf16>, %w: tensor<8x16xbf16>, %b: tensor<8xf32>, %v: tensor<300x8xbf16>)
    -> tensor<?x300xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x16xbf16>, tensor<8x16xbf16> -> tensor<?x8xf32>
  %1 = tile.broadcast %b like %0 : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.addf %0, %1 : tensor<?x8xf32>
  %3 = arith.truncf %2 : tensor<?x8xf32> to tensor<?x8xbf16>
  %4 = arith.extf %3 : tensor<?x8xbf16> to tensor<?x8xf32>
  %one = arith.constant 1.0 : f32
  %5 = tile.broadcast %one like %0 : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  %6 = arith.addf %4, %5 : tensor<?x8xf32>
  %7 = arith.divf %4, %6 : tensor<?x8xf32>
  %8 = arith.truncf %7 : tensor<?x8xf32> to tensor<?x8xbf16>
  %9 = tile.dot %8, %v contract [1, 1] : tensor<?x8xbf16>, tensor<300x8xbf16> -> tensor<?x300xf32>
  %10 = arith.truncf %9 : tensor<?x300xf32> to tensor<?x300xbf16>
  return %10 : tensor<?x300xbf16>
}
