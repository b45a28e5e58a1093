// RUN: tile-opt %s -split-input-file --differentiate=gradients=all --cse | FileCheck %s

//===----------------------------------------------------------------------===//
// What the backward reads
//===----------------------------------------------------------------------===//

// A statistic is returned by the forward in addition; all else is computed again.
// CHECK-LABEL: func @saved(
// CHECK-SAME:      -> (tensor<?x8xf32>, tensor<?x1xf32> {tile.name = "saved0"})
// CHECK-SAME:      inputs = [{grad = 0 : i64}, {input = 0 : i64}, {output = 1 : i64}]
// CHECK:         %[[SUM:.*]] = tile.reduce
// CHECK:         return %{{.*}}, %[[SUM]] :
// CHECK-LABEL: func @saved_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[S:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "saved0"}
// CHECK:         math.exp %[[X]]
func.func @saved(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = tile.reduce add %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = arith.divf %0, %2 : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// -----

// A statistic that the function returns is read from there.
// CHECK-LABEL: func @returned_statistic(
// CHECK-SAME:      -> (tensor<?x8xf32>, tensor<?x1xf32>) attributes
// CHECK-SAME:      inputs = [{grad = 0 : i64}, {grad = 1 : i64}, {input = 0 : i64}, {output = 1 : i64}]
func.func @returned_statistic(%x: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x1xf32>) {
  %0 = arith.mulf %x, %x : tensor<?x8xf32>
  %1 = tile.reduce add %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  %2 = math.sqrt %1 : tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %4 = arith.divf %x, %3 : tensor<?x8xf32>
  return %4, %2 : tensor<?x8xf32>, tensor<?x1xf32>
}

// -----

// Of statistics that follow from each other, one is saved: the exponential's sum,
// not its reciprocal.
// CHECK-LABEL: func @derived_statistic(
// CHECK:         %[[SUM:.*]] = tile.reduce
// CHECK:         return %{{.*}}, %[[SUM]] : tensor<?x8xf32>, tensor<?x1xf32>
// CHECK-LABEL: func @derived_statistic_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[S:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "saved0"}
// CHECK:         arith.divf %{{.*}}, %[[S]]
func.func @derived_statistic(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = tile.reduce add %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %ones = tile.broadcast %one like %1 : tensor<1xf32>, tensor<?x1xf32> -> tensor<?x1xf32>
  %2 = arith.divf %ones, %1 : tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %4 = arith.mulf %0, %3 : tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// Two addends are read as their sum, which the function returns.
// CHECK-LABEL: func @sum_instead_of_addends(
// CHECK-SAME:      inputs = [{grad = 0 : i64}, {grad = 1 : i64}, {output = 1 : i64}, {output = 2 : i64}]
func.func @sum_instead_of_addends(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  %s = tile.reduce add %0 : tensor<?x8xf32> -> tensor<?x1xf32>
  %ss = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %0, %ss : tensor<?x8xf32>
  return %1, %0 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A result that takes fewer bytes than the arguments is read in their place.
// CHECK-LABEL: func @result_instead_of_argument(
// CHECK-SAME:      inputs = [{grad = 0 : i64}, {output = 0 : i64}]
func.func @result_instead_of_argument(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %a, %b = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = math.exp %b : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Where both take as many bytes, the argument is read and the result computed again.
// CHECK-LABEL: func @argument_as_cheap(
// CHECK-SAME:      inputs = [{grad = 0 : i64}, {input = 0 : i64}]
func.func @argument_as_cheap(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A gradient that nothing depends on is not read.
// CHECK-LABEL: func @unread_gradient(
// CHECK-SAME:      tile.backward = {function = @unread_gradient_backward, gradients = {arg0 = {result = 0 : i64}}, inputs = [{grad = 0 : i64}]}
func.func @unread_gradient(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.negf %x : tensor<?x8xf32>
  %1 = math.floor %y : tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// What the backward returns
//===----------------------------------------------------------------------===//

// Arguments whose gradients are one value share a result.
// CHECK-LABEL: func @shared_gradient(
// CHECK-SAME:      gradients = {arg0 = {result = 0 : i64}, arg1 = {result = 0 : i64}}
// CHECK-LABEL: func @shared_gradient_backward(
// CHECK-SAME:      -> (tensor<?x8xf32> {tile.name = "grad_arg0"})
func.func @shared_gradient(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  %1 = math.exp %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// Arguments and results keep their names.
// CHECK-LABEL: func @names(
// CHECK-SAME:      gradients = {logits = {result = 0 : i64}}
// CHECK-LABEL: func @names_backward(
// CHECK-SAME:      {tile.name = "grad_scores"}
// CHECK-SAME:      {tile.name = "logits"}
// CHECK-SAME:      -> (tensor<?x8xf32> {tile.name = "grad_logits"})
func.func @names(%x: tensor<?x8xf32> {tile.name = "logits"})
    -> (tensor<?x8xf32> {tile.name = "scores"}) {
  %0 = math.exp %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// What the backward reads may be approximate where it rounds all that it makes of it.
// CHECK-LABEL: func @rounded(
// CHECK-SAME:      -> (tensor<?x8xbf16>, tensor<?x1xf32> {tile.approximate, tile.name = "saved0"})
func.func @rounded(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = arith.mulf %0, %0 : tensor<?x8xf32>
  %2 = tile.reduce add %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %4 = arith.divf %0, %3 : tensor<?x8xf32>
  %5 = arith.truncf %4 : tensor<?x8xf32> to tensor<?x8xbf16>
  return %5 : tensor<?x8xbf16>
}

// -----

// Not where one gradient has all bits.
// CHECK-LABEL: func @weighted(
// CHECK-NOT:     tile.approximate
// CHECK:         return
func.func @weighted(%x: tensor<?x8xbf16>, %w: tensor<8xf32>) -> tensor<?x8xbf16> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = arith.mulf %0, %0 : tensor<?x8xf32>
  %2 = tile.reduce add %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %4 = arith.divf %0, %3 : tensor<?x8xf32>
  %5 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xbf16> -> tensor<?x8xf32>
  %6 = arith.mulf %4, %5 : tensor<?x8xf32>
  %7 = arith.truncf %6 : tensor<?x8xf32> to tensor<?x8xbf16>
  return %7 : tensor<?x8xbf16>
}
