// RUN: tile-opt %s -split-input-file --differentiate=gradients=all --cse | FileCheck %s

// A rule for each op of tile.

// A vector that all rows share gets the sum over them.
// CHECK-LABEL: func @broadcast_vector_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DW:.*]] = tile.reduce_rows add %[[G]] : tensor<?x8xf32> -> tensor<8xf32>
// CHECK-NEXT:    return %[[DW]]
func.func @broadcast_vector(%x: tensor<?x8xf32>, %w: tensor<8xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.broadcast %w like %x : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %x, %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// A statistic gets the sum of its row.
// CHECK-LABEL: func @broadcast_statistic_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DS:.*]] = tile.reduce {{ *}}add %[[G]] : tensor<?x8xf32> -> tensor<?x1xf32>
// CHECK-NEXT:    return %[[DS]]
func.func @broadcast_statistic(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %x, %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// One number for all gets the sum of all, rows first.
// CHECK-LABEL: func @broadcast_one_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[ROWS:.*]] = tile.reduce {{ *}}add %[[G]]
// CHECK-NEXT:    %[[DS:.*]] = tile.reduce_rows add %[[ROWS]] : tensor<?x1xf32> -> tensor<1xf32>
// CHECK-NEXT:    return %[[DS]]
func.func @broadcast_one(%x: tensor<?x8xf32>, %s: tensor<1xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : tensor<1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.addf %x, %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// The sizes come from the gradient: x is not read for them.
// CHECK-LABEL: func @reduce_add_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DX:.*]] = tile.broadcast %[[G]] like %[[G]] : tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x8xf32>
// CHECK-NEXT:    return %[[DX]]
func.func @reduce_add(%x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// All elements that are the largest share the gradient. The others have none of
// it, which is NaN if the largest is.
// CHECK-LABEL: func @reduce_max_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[R:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "result0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[ZERO0:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZERO:.*]] = tile.broadcast %[[ZERO0]]
// CHECK-DAG:     %[[RS:.*]] = tile.broadcast %[[R]] like
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[RS]]
// CHECK-DAG:     %[[COUNTED:.*]] = arith.select %[[EQUAL]], %[[ONE]], %[[ZERO]]
// CHECK-DAG:     %[[COUNT:.*]] = tile.reduce {{ *}}add %[[COUNTED]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.divf %[[G]], %[[COUNT]]
// CHECK-DAG:     %[[SHARES:.*]] = tile.broadcast %[[SHARE]]
// CHECK-DAG:     %[[REST:.*]] = arith.mulf %[[SHARE]], %{{.*}}
// CHECK-DAG:     %[[RESTS:.*]] = tile.broadcast %[[REST]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[EQUAL]], %[[SHARES]], %[[RESTS]]
// CHECK:         return %[[DX]]
func.func @reduce_max(%x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce max %x : tensor<?x8xf32> -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// CHECK-LABEL: func @reduce_min_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[R:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "result0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[ZERO0:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZERO:.*]] = tile.broadcast %[[ZERO0]]
// CHECK-DAG:     %[[RS:.*]] = tile.broadcast %[[R]] like
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[RS]]
// CHECK-DAG:     %[[COUNTED:.*]] = arith.select %[[EQUAL]], %[[ONE]], %[[ZERO]]
// CHECK-DAG:     %[[COUNT:.*]] = tile.reduce {{ *}}add %[[COUNTED]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.divf %[[G]], %[[COUNT]]
// CHECK-DAG:     %[[SHARES:.*]] = tile.broadcast %[[SHARE]]
// CHECK-DAG:     %[[REST:.*]] = arith.mulf %[[SHARE]], %{{.*}}
// CHECK-DAG:     %[[RESTS:.*]] = tile.broadcast %[[REST]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[EQUAL]], %[[SHARES]], %[[RESTS]]
// CHECK:         return %[[DX]]
func.func @reduce_min(%x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce min %x : tensor<?x8xf32> -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// CHECK-LABEL: func @reduce_rows_add_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NEXT:    %[[DX:.*]] = tile.broadcast %[[G]] like %[[X]] : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
// CHECK-NEXT:    return %[[DX]]
func.func @reduce_rows_add(%x: tensor<?x8xf32>) -> tensor<8xf32> {
  %0 = tile.reduce_rows add %x : tensor<?x8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func @reduce_rows_max_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[R:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "result0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[ZERO0:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZERO:.*]] = tile.broadcast %[[ZERO0]]
// CHECK-DAG:     %[[RS:.*]] = tile.broadcast %[[R]] like
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[RS]]
// CHECK-DAG:     %[[COUNTED:.*]] = arith.select %[[EQUAL]], %[[ONE]], %[[ZERO]]
// CHECK-DAG:     %[[COUNT:.*]] = tile.reduce_rows add %[[COUNTED]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.divf %[[G]], %[[COUNT]]
// CHECK-DAG:     %[[SHARES:.*]] = tile.broadcast %[[SHARE]]
// CHECK-DAG:     %[[REST:.*]] = arith.mulf %[[SHARE]], %{{.*}}
// CHECK-DAG:     %[[RESTS:.*]] = tile.broadcast %[[REST]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[EQUAL]], %[[SHARES]], %[[RESTS]]
// CHECK:         return %[[DX]]
func.func @reduce_rows_max(%x: tensor<?x8xf32>) -> tensor<8xf32> {
  %0 = tile.reduce_rows max %x : tensor<?x8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Pieces that nothing depends on have a gradient of zero.
// CHECK-LABEL: func @split_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-DAG:     %[[ZERO0:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZERO:.*]] = tile.broadcast %[[ZERO0]]
// CHECK-DAG:     %[[DB:.*]] = arith.negf %[[G]]
// CHECK-DAG:     %[[DX:.*]] = tile.join %[[ZERO]], %[[DB]]
// CHECK:         return %[[DX]]
func.func @split(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %a, %b = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.negf %b : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func @join_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[P:.*]]:2 = tile.split interleaved %[[G]] : tensor<?x16xf32>
// CHECK-NEXT:    return %[[P]]#0, %[[P]]#1
func.func @join(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x16xf32> {
  %0 = tile.join interleaved %x, %y : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

// CHECK-LABEL: func @parts_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK:         %[[P:.*]]:4 = tile.split interleaved parts(2) %[[G]] : tensor<?x16xf32>
// CHECK:         %[[DX:.*]] = tile.join interleaved parts(2) %[[P]]#3, %[[P]]#2, %[[P]]#1, %[[P]]#0
// CHECK-NEXT:    return %[[DX]]
func.func @parts(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %0:4 = tile.split interleaved parts(2) %x
      : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %1 = tile.join interleaved parts(2) %0#3, %0#2, %0#1, %0#0
      : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}

// -----

// What is stopped counts as a constant, and no stop is left.
// CHECK-NOT:   tile.stop_gradient
// CHECK-LABEL: func @stop_gradient_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %[[G]], %[[X]]
// CHECK-NEXT:    return %[[DX]]
// CHECK-NOT:   tile.stop_gradient
func.func @stop_gradient(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.stop_gradient %x : tensor<?x8xf32>
  %1 = arith.mulf %0, %x : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// Integers, such as targets, have none.
// CHECK-LABEL: func @integers(
// CHECK-SAME:      tile.backward = {function = @integers_backward, gradients = {arg0 = {result = 0 : i64}}, inputs = [{grad = 0 : i64}, {input = 1 : i64}]}
func.func @integers(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>)
    -> tensor<?x8xf32> {
  %0 = arith.sitofp %t : tensor<?x1xi64> to tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %x, %1 : tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// Rows that are repeated over leading dimensions get the sums over these.
// CHECK-LABEL: func @repeated_rows_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DX:.*]] = tile.reduce_rows add %[[G]] : tensor<?x?x?x8xf32> -> tensor<1x?x1x8xf32>
// CHECK-NEXT:    return %[[DX]]
func.func @repeated_rows(%x: tensor<1x?x1x8xf32>, %y: tensor<?x?x?x8xf32>)
    -> tensor<?x?x?x8xf32> {
  %0 = tile.broadcast %x like %y
      : tensor<1x?x1x8xf32>, tensor<?x?x?x8xf32> -> tensor<?x?x?x8xf32>
  %1 = arith.addf %y, %0 : tensor<?x?x?x8xf32>
  return %1 : tensor<?x?x?x8xf32>
}

// -----

// So do statistics, of the sums of their rows, and vectors that say that all rows
// share them.
// CHECK-LABEL: func @repeated_statistics_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DW:.*]] = tile.reduce_rows add %[[G]] : tensor<?x?x8xf32> -> tensor<1x1x8xf32>
// CHECK-NEXT:    %[[ROW:.*]] = tile.reduce {{ *}}add %[[G]] : tensor<?x?x8xf32> -> tensor<?x?x1xf32>
// CHECK-NEXT:    %[[DX:.*]] = tile.reduce_rows add %[[ROW]] : tensor<?x?x1xf32> -> tensor<1x?x1xf32>
// CHECK-NEXT:    return %[[DX]], %[[DW]]
func.func @repeated_statistics(%x: tensor<1x?x1xf32>, %w: tensor<1x1x8xf32>,
                               %y: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %0 = tile.broadcast %x like %y
      : tensor<1x?x1xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %1 = tile.broadcast %w like %y
      : tensor<1x1x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %2 = arith.addf %1, %0 : tensor<?x?x8xf32>
  return %2 : tensor<?x?x8xf32>
}

// -----

// Where they are repeated twice, there is one sum.
// CHECK-LABEL: func @repeated_twice_backward(
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK-NEXT:    %[[DX:.*]] = tile.reduce_rows add %[[SUM]] : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
// CHECK-NEXT:    return %[[DX]]
func.func @repeated_twice(%x: tensor<1x?x8xf32>, %y: tensor<?x?x16xf32>)
    -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>) {
  %low, %high = tile.split %y
      : tensor<?x?x16xf32> -> tensor<?x?x8xf32>, tensor<?x?x8xf32>
  %0 = tile.broadcast %x like %low
      : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %1 = tile.broadcast %x like %high
      : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return %0, %1 : tensor<?x?x8xf32>, tensor<?x?x8xf32>
}

// -----

// A sum of some rows is repeated for them.
// CHECK-LABEL: func @sum_of_some_rows_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}, %[[X:[^:]*]]:
// CHECK-NEXT:    %[[DX:.*]] = tile.broadcast %[[G]] like %[[X]] : tensor<1x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
// CHECK-NEXT:    return %[[DX]]
func.func @sum_of_some_rows(%x: tensor<?x?x8xf32>) -> tensor<1x?x8xf32> {
  %0 = tile.reduce_rows add %x : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  return %0 : tensor<1x?x8xf32>
}
