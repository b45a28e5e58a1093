// Results keep their attributes where others are returned beside them.

// RUN: tile-opt %s -split-input-file --differentiate=gradients=all --cse | FileCheck %s
// RUN: tile-opt %s -split-input-file "--differentiate=gradients=all together in-place" --cse | FileCheck %s --check-prefix=TOGETHER

// CHECK-LABEL: func @named(
// CHECK-SAME:      -> (tensor<?x8xf32> {tile.name = "scaled"}, tensor<?x1xf32> {tile.name = "saved0"})
// CHECK-LABEL: func @named_backward(
// CHECK-SAME:      {tile.name = "grad_scaled"}
// TOGETHER-LABEL: func @named(
// TOGETHER-SAME:      -> (tensor<?x8xf32> {tile.name = "scaled"}, tensor<?x8xf32> {tile.in_place = 0 : index, tile.in_place_if_possible, tile.name = "grad_x"})
func.func @named(%x: tensor<?x8xf32> {tile.name = "x"})
    -> (tensor<?x8xf32> {tile.name = "scaled"}) {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = math.exp %0 : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x
      : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.mulf %x, %2 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// A result may take the place of an argument unless the backward reads that
// one; two results may not take the place of the same.
// CHECK-LABEL: func @in_place(
// CHECK-SAME:      -> (tensor<?x8xf32> {tile.in_place = 1 : index}, tensor<?x8xf32>) attributes
// TOGETHER-LABEL: func @in_place(
// TOGETHER-SAME:      -> (tensor<?x8xf32> {tile.in_place = 1 : index}, tensor<?x8xf32> {tile.in_place = 0 : index},
// TOGETHER-SAME:          tensor<?x8xf32> {tile.name = "grad_x"}, tensor<?x8xf32> {tile.name = "grad_y"})
func.func @in_place(%x: tensor<?x8xf32> {tile.name = "x"},
                    %y: tensor<?x8xf32> {tile.name = "y"})
    -> (tensor<?x8xf32> {tile.in_place = 1 : index},
        tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = math.sin %x : tensor<?x8xf32>
  %1 = arith.addf %0, %y : tensor<?x8xf32>
  %2 = arith.negf %x : tensor<?x8xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}
