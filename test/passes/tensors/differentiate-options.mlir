// RUN: tile-opt %s -split-input-file --differentiate=gradients=x --cse | FileCheck %s --check-prefix=NAMED
// RUN: tile-opt %s -split-input-file "--differentiate=gradients=x,w together" --cse | FileCheck %s --check-prefix=TOGETHER
// RUN: tile-opt %s -split-input-file "--differentiate=gradients=x,w together in-place" --cse | FileCheck %s --check-prefix=PLACE
// RUN: tile-opt %s -split-input-file "--differentiate=gradients=x,w together drop-value" --cse --canonicalize | FileCheck %s --check-prefix=ALONE
// RUN: tile-opt %s -split-input-file --differentiate --cse | FileCheck %s --check-prefix=NONE

// Only what is named gets a gradient; functions without such an argument stay.
// NAMED-LABEL: func @named(
// NAMED-SAME:      gradients = {x = {result = 0 : i64}}
// NAMED-LABEL: func @named_backward(
// NAMED-SAME:      -> (tensor<?x8xf32> {tile.name = "grad_x"})
// NAMED-LABEL: func @other(
// NAMED-NOT:     tile.backward
// NAMED:         return
// Together, the function returns the gradients of its first result's sum: that of
// the result itself is one, and no backward is made.
// TOGETHER-LABEL: func @named(
// TOGETHER-SAME:      -> (tensor<?x8xf32>, tensor<?x8xf32> {tile.name = "grad_x"}, tensor<8xf32> {tile.name = "grad_w"}) {
// TOGETHER-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00
// TOGETHER-DAG:     %[[SEED:.*]] = tile.broadcast %[[ONE]]
// TOGETHER-DAG:     %[[WS:.*]] = tile.broadcast %arg1
// TOGETHER-DAG:     %[[DX:.*]] = arith.mulf %[[SEED]], %[[WS]]
// TOGETHER-DAG:     %[[DWS:.*]] = arith.mulf %[[SEED]], %arg0
// TOGETHER-DAG:     %[[DW:.*]] = tile.reduce_rows add %[[DWS]]
// TOGETHER:         return %{{.*}}, %[[DX]], %[[DW]]
// TOGETHER-LABEL: func @other(
// TOGETHER-NOT:   _backward
// TOGETHER:         return
// PLACE-LABEL: func @named(
// PLACE-SAME:      -> (tensor<?x8xf32>, tensor<?x8xf32> {tile.in_place = 0 : index, tile.in_place_if_possible, tile.name = "grad_x"}, tensor<8xf32> {tile.name = "grad_w"})
// ALONE-LABEL: func @named(
// ALONE-SAME:      -> (tensor<?x8xf32> {tile.name = "grad_x"}, tensor<8xf32> {tile.name = "grad_w"}) {
// ALONE:         return %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<8xf32>
// NONE-NOT:    tile.backward
// NONE-NOT:    _backward
func.func @named(%x: tensor<?x8xf32> {tile.name = "x"},
                 %w: tensor<8xf32> {tile.name = "w"}) -> tensor<?x8xf32> {
  %0 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
func.func @other(%y: tensor<?x8xf32> {tile.name = "y"}) -> tensor<?x8xf32> {
  %0 = math.exp %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Of several results the first one counts; the others stay.
// TOGETHER-LABEL: func @first_result(
// TOGETHER-SAME:      -> (tensor<1xf32>, tensor<?x8xf32>, tensor<?x8xbf16> {tile.name = "grad_x"})
// TOGETHER:         %[[LOG:.*]] = math.log
// TOGETHER-NOT:     math.log
// TOGETHER-NOT:     arith.divf
// TOGETHER:         return %{{.*}}, %[[LOG]],
// A 16-bit gradient takes the place of an argument of its type, too.
// PLACE-LABEL: func @first_result(
// PLACE-SAME:      tensor<?x8xbf16> {tile.in_place = 0 : index, tile.in_place_if_possible, tile.name = "grad_x"})
func.func @first_result(%x: tensor<?x8xbf16> {tile.name = "x"},
                        %w: tensor<?x8xf32> {tile.name = "w"})
    -> (tensor<1xf32>, tensor<?x8xf32>) {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = math.exp %0 : tensor<?x8xf32>
  %2 = tile.reduce add %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x1xf32> -> tensor<1xf32>
  %4 = math.log %w : tensor<?x8xf32>
  return %3, %4 : tensor<1xf32>, tensor<?x8xf32>
}
