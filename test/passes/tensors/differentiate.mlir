// RUN: tile-opt %s -split-input-file --differentiate=gradients=all --cse | FileCheck %s

// A rule for each op of arith and math.

// Both gradients are the sum's as it is: there is nothing to launch.
// CHECK-LABEL: func @addf(
// CHECK-SAME:      tile.backward = {gradients = {arg0 = {grad = 0 : i64}, arg1 = {grad = 0 : i64}}, inputs = [{grad = 0 : i64}]}
// CHECK-NOT:   @addf_backward
func.func @addf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @subf(
// CHECK-SAME:      tile.backward = {function = @subf_backward, gradients = {arg0 = {grad = 0 : i64}, arg1 = {result = 0 : i64}}, inputs = [{grad = 0 : i64}]}
// CHECK-LABEL: func @subf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DY:.*]] = arith.negf %[[G]]
// CHECK-NEXT:    return %[[DY]]
func.func @subf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.subf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @mulf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %[[G]], %[[Y]]
// CHECK-NEXT:    %[[DY:.*]] = arith.mulf %[[G]], %[[X]]
// CHECK-NEXT:    return %[[DX]], %[[DY]]
func.func @mulf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.mulf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Both operands are one value: its gradient is twice that of one.
// CHECK-LABEL: func @square_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK:         %[[TWICE:.*]] = arith.mulf %[[G]], %
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %[[TWICE]], %[[X]]
// CHECK-NEXT:    return %[[DX]]
func.func @square(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.mulf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @divf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[R:.*]] = arith.divf %[[X]], %[[Y]]
// CHECK-DAG:     %[[DX:.*]] = arith.divf %[[G]], %[[Y]]
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[DX]], %[[R]]
// CHECK-NEXT:    %[[DY:.*]] = arith.negf %[[P]]
// CHECK-NEXT:    return %[[DX]], %[[DY]]
func.func @divf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.divf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @negf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[DX:.*]] = arith.negf %[[G]]
// CHECK-NEXT:    return %[[DX]]
func.func @negf(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.negf %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Two equal values share the gradient; where either is NaN, as the result is,
// both have all of it.
// CHECK-LABEL: func @maximumf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZEROS:.*]] = tile.broadcast %[[ZERO]]
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-DAG:     %[[HALVES:.*]] = tile.broadcast %[[HALF]]
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[Y]]
// CHECK-DAG:     %[[HALFG:.*]] = arith.mulf %[[G]], %[[HALVES]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.select %[[EQUAL]], %[[HALFG]], %[[G]]
// CHECK-DAG:     %[[ISX:.*]] = arith.cmpf uge, %[[X]], %[[Y]]
// CHECK-DAG:     %[[ISY:.*]] = arith.cmpf uge, %[[Y]], %[[X]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[ISX]], %[[SHARE]], %[[ZEROS]]
// CHECK-DAG:     %[[DY:.*]] = arith.select %[[ISY]], %[[SHARE]], %[[ZEROS]]
// CHECK:         return %[[DX]], %[[DY]]
func.func @maximumf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.maximumf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @minimumf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZEROS:.*]] = tile.broadcast %[[ZERO]]
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-DAG:     %[[HALVES:.*]] = tile.broadcast %[[HALF]]
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[Y]]
// CHECK-DAG:     %[[HALFG:.*]] = arith.mulf %[[G]], %[[HALVES]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.select %[[EQUAL]], %[[HALFG]], %[[G]]
// CHECK-DAG:     %[[ISX:.*]] = arith.cmpf ule, %[[X]], %[[Y]]
// CHECK-DAG:     %[[ISY:.*]] = arith.cmpf ule, %[[Y]], %[[X]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[ISX]], %[[SHARE]], %[[ZEROS]]
// CHECK-DAG:     %[[DY:.*]] = arith.select %[[ISY]], %[[SHARE]], %[[ZEROS]]
// CHECK:         return %[[DX]], %[[DY]]
func.func @minimumf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.minimumf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Of a number and NaN, the number is the result and has the gradient.
// CHECK-LABEL: func @maxnumf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZEROS:.*]] = tile.broadcast %[[ZERO]]
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-DAG:     %[[HALVES:.*]] = tile.broadcast %[[HALF]]
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[Y]]
// CHECK-DAG:     %[[HALFG:.*]] = arith.mulf %[[G]], %[[HALVES]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.select %[[EQUAL]], %[[HALFG]], %[[G]]
// CHECK-DAG:     %[[WINSX:.*]] = arith.cmpf oge, %[[X]], %[[Y]]
// CHECK-DAG:     %[[ISNANY:.*]] = arith.cmpf uno, %[[Y]], %[[Y]]
// CHECK-DAG:     %[[ISX:.*]] = arith.ori %[[WINSX]], %[[ISNANY]]
// CHECK-DAG:     %[[WINSY:.*]] = arith.cmpf oge, %[[Y]], %[[X]]
// CHECK-DAG:     %[[ISNANX:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK-DAG:     %[[ISY:.*]] = arith.ori %[[WINSY]], %[[ISNANX]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[ISX]], %[[SHARE]], %[[ZEROS]]
// CHECK-DAG:     %[[DY:.*]] = arith.select %[[ISY]], %[[SHARE]], %[[ZEROS]]
// CHECK:         return %[[DX]], %[[DY]]
func.func @maxnumf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.maxnumf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @minnumf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZEROS:.*]] = tile.broadcast %[[ZERO]]
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-DAG:     %[[HALVES:.*]] = tile.broadcast %[[HALF]]
// CHECK-DAG:     %[[EQUAL:.*]] = arith.cmpf oeq, %[[X]], %[[Y]]
// CHECK-DAG:     %[[HALFG:.*]] = arith.mulf %[[G]], %[[HALVES]]
// CHECK-DAG:     %[[SHARE:.*]] = arith.select %[[EQUAL]], %[[HALFG]], %[[G]]
// CHECK-DAG:     %[[WINSX:.*]] = arith.cmpf ole, %[[X]], %[[Y]]
// CHECK-DAG:     %[[ISNANY:.*]] = arith.cmpf uno, %[[Y]], %[[Y]]
// CHECK-DAG:     %[[ISX:.*]] = arith.ori %[[WINSX]], %[[ISNANY]]
// CHECK-DAG:     %[[WINSY:.*]] = arith.cmpf ole, %[[Y]], %[[X]]
// CHECK-DAG:     %[[ISNANX:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK-DAG:     %[[ISY:.*]] = arith.ori %[[WINSY]], %[[ISNANX]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[ISX]], %[[SHARE]], %[[ZEROS]]
// CHECK-DAG:     %[[DY:.*]] = arith.select %[[ISY]], %[[SHARE]], %[[ZEROS]]
// CHECK:         return %[[DX]], %[[DY]]
func.func @minnumf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = arith.minnumf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A value equal to the constant that limits it passes the gradient on.
// CHECK-LABEL: func @clamp_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant 2.000000e+00
// CHECK-DAG:     %[[LIMITS:.*]] = tile.broadcast %[[LIMIT]]
// CHECK-DAG:     %[[BELOW:.*]] = arith.cmpf ole, %[[X]], %[[LIMITS]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[BELOW]], %[[G]],
// CHECK:         return %[[DX]]
func.func @clamp(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %limit = arith.constant 2.0 : f32
  %limits = tile.broadcast %limit like %x : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  %0 = arith.minimumf %limits, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @select_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[C:.*]] = arith.cmpf ogt, %[[X]], %[[Y]]
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.0
// CHECK-DAG:     %[[ZEROS:.*]] = tile.broadcast %[[ZERO]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[C]], %[[G]], %[[ZEROS]]
// CHECK-DAG:     %[[DY:.*]] = arith.select %[[C]], %[[ZEROS]], %[[G]]
// CHECK:         return %[[DX]], %[[DY]]
func.func @select(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c = arith.cmpf ogt, %x, %y : tensor<?x8xf32>
  %0 = arith.select %c, %x, %y : tensor<?x8xi1>, tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Casts pass the gradient on; it is computed in f32 and rounded once.
// CHECK-LABEL: func @casts_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[G]] : tensor<?x8xf16> to tensor<?x8xf32>
// CHECK-NEXT:    %[[DX:.*]] = arith.negf %[[WIDE]]
// CHECK-NEXT:    %[[ROUNDED:.*]] = arith.truncf %[[DX]] : tensor<?x8xf32> to tensor<?x8xbf16>
// CHECK-NEXT:    return %[[ROUNDED]]
func.func @casts(%x: tensor<?x8xbf16>) -> tensor<?x8xf16> {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = arith.negf %0 : tensor<?x8xf32>
  %2 = arith.truncf %1 : tensor<?x8xf32> to tensor<?x8xf16>
  return %2 : tensor<?x8xf16>
}

// -----

// float64 stays float64.
// CHECK-LABEL: func @f64_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-NOT:     f32
// CHECK:         arith.mulf {{.*}} : tensor<?x8xf64>
// CHECK-NOT:     f32
// CHECK:         return
func.func @f64(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  %0 = math.exp %x : tensor<?x8xf64>
  return %0 : tensor<?x8xf64>
}

// -----

// CHECK-LABEL: func @exp_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %[[G]], %[[E]]
// CHECK-NEXT:    return %[[DX]]
func.func @exp(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @exp2_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[LN20:.*]] = arith.constant 0.693147
// CHECK-DAG:     %[[LN2:.*]] = tile.broadcast %[[LN20]]
// CHECK-DAG:     %[[E:.*]] = math.exp2 %[[X]]
// CHECK-DAG:     %[[GE:.*]] = arith.mulf %[[G]], %[[E]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[GE]], %[[LN2]]
// CHECK:         return %[[DX]]
func.func @exp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.exp2 %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @expm1_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[E:.*]] = math.expm1 %[[X]]
// CHECK-DAG:     %[[E1:.*]] = arith.addf %[[E]], %[[ONE]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[G]], %[[E1]]
// CHECK:         return %[[DX]]
func.func @expm1(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.expm1 %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @log_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NEXT:    %[[DX:.*]] = arith.divf %[[G]], %[[X]]
// CHECK-NEXT:    return %[[DX]]
func.func @log(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.log %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @log2_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[LOG2E0:.*]] = arith.constant 1.44269
// CHECK-DAG:     %[[LOG2E:.*]] = tile.broadcast %[[LOG2E0]]
// CHECK-DAG:     %[[Q:.*]] = arith.divf %[[G]], %[[X]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[Q]], %[[LOG2E]]
// CHECK:         return %[[DX]]
func.func @log2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.log2 %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @log1p_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[X1:.*]] = arith.addf %[[X]], %[[ONE]]
// CHECK-DAG:     %[[DX:.*]] = arith.divf %[[G]], %[[X1]]
// CHECK:         return %[[DX]]
func.func @log1p(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.log1p %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @sqrt_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[HALF0:.*]] = arith.constant 5.000000e-01
// CHECK-DAG:     %[[HALF:.*]] = tile.broadcast %[[HALF0]]
// CHECK-DAG:     %[[S:.*]] = math.sqrt %[[X]]
// CHECK-DAG:     %[[Q:.*]] = arith.divf %[[G]], %[[S]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[Q]], %[[HALF]]
// CHECK:         return %[[DX]]
func.func @sqrt(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.sqrt %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @rsqrt_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[MINUSHALF0:.*]] = arith.constant -5.000000e-01
// CHECK-DAG:     %[[MINUSHALF:.*]] = tile.broadcast %[[MINUSHALF0]]
// CHECK-DAG:     %[[S:.*]] = math.rsqrt %[[X]]
// CHECK-DAG:     %[[S2:.*]] = arith.mulf %[[S]], %[[S]]
// CHECK-DAG:     %[[S3:.*]] = arith.mulf %[[S2]], %[[S]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.mulf %[[S3]], %[[MINUSHALF]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK:         return %[[DX]]
func.func @rsqrt(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.rsqrt %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @tanh_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[T:.*]] = math.tanh %[[X]]
// CHECK-DAG:     %[[T2:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.subf %[[ONE]], %[[T2]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK:         return %[[DX]]
func.func @tanh(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.tanh %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @erf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[SCALE0:.*]] = arith.constant 1.128379
// CHECK-DAG:     %[[SCALE:.*]] = tile.broadcast %[[SCALE0]]
// CHECK-DAG:     %[[X2:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-DAG:     %[[N:.*]] = arith.negf %[[X2]]
// CHECK-DAG:     %[[E:.*]] = math.exp %[[N]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.mulf %[[E]], %[[SCALE]]
// CHECK-DAG:     %[[P:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK:         return %[[P]]
func.func @erf(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.erf %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @erfc_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[SCALE0:.*]] = arith.constant 1.128379
// CHECK-DAG:     %[[SCALE:.*]] = tile.broadcast %[[SCALE0]]
// CHECK-DAG:     %[[X2:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-DAG:     %[[N:.*]] = arith.negf %[[X2]]
// CHECK-DAG:     %[[E:.*]] = math.exp %[[N]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.mulf %[[E]], %[[SCALE]]
// CHECK-DAG:     %[[P:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK:         %[[DX:.*]] = arith.negf %[[P]]
// CHECK-NEXT:    return %[[DX]]
func.func @erfc(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.erfc %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @sin_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NEXT:    %[[C:.*]] = math.cos %[[X]]
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %[[G]], %[[C]]
// CHECK-NEXT:    return %[[DX]]
func.func @sin(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.sin %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @cos_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NEXT:    %[[S:.*]] = math.sin %[[X]]
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[G]], %[[S]]
// CHECK-NEXT:    %[[DX:.*]] = arith.negf %[[P]]
// CHECK-NEXT:    return %[[DX]]
func.func @cos(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.cos %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// At zero the gradient is zero.
// CHECK-LABEL: func @absf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-DAG:     %[[ZERO0:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZERO:.*]] = tile.broadcast %[[ZERO0]]
// CHECK-DAG:     %[[ISNEGATIVE:.*]] = arith.cmpf olt, %[[X]], %[[ZERO]]
// CHECK-DAG:     %[[N:.*]] = arith.negf %[[G]]
// CHECK-DAG:     %[[BELOW:.*]] = arith.select %[[ISNEGATIVE]], %[[N]], %[[ZERO]]
// CHECK-DAG:     %[[ISPOSITIVE:.*]] = arith.cmpf ogt, %[[X]], %[[ZERO]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[ISPOSITIVE]], %[[G]], %[[BELOW]]
// CHECK:         return %[[DX]]
func.func @absf(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.absf %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @powf_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-DAG:     %[[ZERO0:.*]] = arith.constant 0.000000e+00
// CHECK-DAG:     %[[ZERO:.*]] = tile.broadcast %[[ZERO0]]
// CHECK-DAG:     %[[ONE0:.*]] = arith.constant 1.000000e+00
// CHECK-DAG:     %[[ONE:.*]] = tile.broadcast %[[ONE0]]
// CHECK-DAG:     %[[P:.*]] = math.powf %[[X]], %[[Y]]
// CHECK-DAG:     %[[Y1:.*]] = arith.subf %[[Y]], %[[ONE]]
// CHECK-DAG:     %[[P1:.*]] = math.powf %[[X]], %[[Y1]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.mulf %[[Y]], %[[P1]]
// CHECK-DAG:     %[[GSLOPE:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK-DAG:     %[[ISCONSTANT:.*]] = arith.cmpf oeq, %[[Y]], %[[ZERO]]
// CHECK-DAG:     %[[DX:.*]] = arith.select %[[ISCONSTANT]], %[[ZERO]], %[[GSLOPE]]
// CHECK-DAG:     %[[L:.*]] = math.log %[[X]]
// CHECK-DAG:     %[[PL:.*]] = arith.mulf %[[P]], %[[L]]
// CHECK-DAG:     %[[ISZERO:.*]] = arith.cmpf oeq, %[[X]], %[[ZERO]]
// CHECK-DAG:     %[[ISNOTBELOW:.*]] = arith.cmpf oge, %[[Y]], %[[ZERO]]
// CHECK-DAG:     %[[ISFLAT:.*]] = arith.andi %[[ISZERO]], %[[ISNOTBELOW]]
// CHECK-DAG:     %[[YSLOPE:.*]] = arith.select %[[ISFLAT]], %[[ZERO]], %[[PL]]
// CHECK-DAG:     %[[DY:.*]] = arith.mulf %[[G]], %[[YSLOPE]]
// CHECK:         return %[[DX]], %[[DY]]
func.func @powf(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.powf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A constant exponent takes no logarithm, and no comparison.
// CHECK-LABEL: func @constant_power_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-NOT:     select
// CHECK-DAG:     %[[C0:.*]] = arith.constant -3.000000e+00
// CHECK-DAG:     %[[C:.*]] = tile.broadcast %[[C0]]
// CHECK-DAG:     %[[P:.*]] = math.powf %[[X]], %[[C]]
// CHECK-DAG:     %[[D0:.*]] = arith.constant -2.000000e+00
// CHECK-DAG:     %[[D:.*]] = tile.broadcast %[[D0]]
// CHECK-DAG:     %[[SLOPE:.*]] = arith.mulf %[[P]], %[[D]]
// CHECK-DAG:     %[[DX:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK:         return %[[DX]]
func.func @constant_power(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c = arith.constant -2.0 : f32
  %y = tile.broadcast %c like %x : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  %0 = math.powf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @fma(
// CHECK-SAME:      tile.backward = {function = @fma_backward, gradients = {arg0 = {result = 0 : i64}, arg1 = {result = 1 : i64}, arg2 = {grad = 0 : i64}}, inputs = [{grad = 0 : i64}, {input = 0 : i64}, {input = 1 : i64}]}
// CHECK-LABEL: func @fma_backward(
// CHECK-SAME:      %[[G:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "grad_result0"}
// CHECK-SAME:      %[[X:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg0"}
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<{{[^>]*}}> {tile.name = "arg1"}
// CHECK-NEXT:    %[[DX:.*]] = arith.mulf %[[G]], %[[Y]]
// CHECK-NEXT:    %[[DY:.*]] = arith.mulf %[[G]], %[[X]]
// CHECK-NEXT:    return %[[DX]], %[[DY]]
func.func @fma(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %z: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = math.fma %x, %y, %z : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Steps are flat: x has no gradient, and so nothing is launched.
// CHECK-LABEL: func @floor(
// CHECK-SAME:      tile.backward = {gradients = {}, inputs = []}
// CHECK-NOT:   @floor_backward
func.func @floor(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.floor %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @ceil(
// CHECK-SAME:      tile.backward = {gradients = {}, inputs = []}
// CHECK-NOT:   @ceil_backward
func.func @ceil(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.ceil %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @round(
// CHECK-SAME:      tile.backward = {gradients = {}, inputs = []}
// CHECK-NOT:   @round_backward
func.func @round(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.round %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @roundeven(
// CHECK-SAME:      tile.backward = {gradients = {}, inputs = []}
// CHECK-NOT:   @roundeven_backward
func.func @roundeven(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.roundeven %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @trunc(
// CHECK-SAME:      tile.backward = {gradients = {}, inputs = []}
// CHECK-NOT:   @trunc_backward
func.func @trunc(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = math.trunc %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
