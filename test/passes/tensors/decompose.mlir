// RUN: tile-opt %s --decompose -split-input-file -verify-diagnostics | FileCheck %s

// (clamp(up) + 1) * g * sigmoid(1.702 * g), computed in float32.
// CHECK-LABEL: func @geglu_gpt_oss
// CHECK-SAME:      %[[GATE:.*]]: tensor<?x8xbf16>, %[[UP:.*]]: tensor<?x8xbf16>
func.func @geglu_gpt_oss(%gate: tensor<?x8xbf16>, %up: tensor<?x8xbf16>)
    -> tensor<?x8xbf16> {
  // CHECK-DAG:  %[[LIMIT:.*]] = arith.constant 7.000000e+00 : f32
  // CHECK-DAG:  %[[LOW:.*]] = arith.constant -7.000000e+00 : f32
  // CHECK-DAG:  %[[ALPHA:.*]] = arith.constant 1.702000e+00 : f32
  // CHECK-DAG:  %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK-DAG:  %[[GATE32:.*]] = arith.extf %[[GATE]] : tensor<?x8xbf16> to tensor<?x8xf32>
  // CHECK-DAG:  %[[UP32:.*]] = arith.extf %[[UP]] : tensor<?x8xbf16> to tensor<?x8xf32>
  // CHECK-DAG:  %[[HIGHS:.*]] = tile.broadcast %[[LIMIT]] like %[[GATE32]] : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK-DAG:  %[[G:.*]] = arith.minimumf %[[GATE32]], %[[HIGHS]]
  // CHECK-DAG:  %[[LOWS:.*]] = tile.broadcast %[[LOW]] like %[[UP32]]
  // CHECK-DAG:  %[[FLOORED:.*]] = arith.maximumf %[[UP32]], %[[LOWS]]
  // CHECK-DAG:  %[[UPHIGHS:.*]] = tile.broadcast %[[LIMIT]] like %[[FLOORED]]
  // CHECK-DAG:  %[[U:.*]] = arith.minimumf %[[FLOORED]], %[[UPHIGHS]]
  // CHECK-DAG:  %[[ALPHAS:.*]] = tile.broadcast %[[ALPHA]] like %[[G]]
  // CHECK-DAG:  %[[SCALED:.*]] = arith.mulf %[[G]], %[[ALPHAS]]
  // The sigmoid of s is 1 / (1 + e), or e / (1 + e) where s is negative, with
  // e = exp(-|s|), which does not overflow. Not by absf, which has no derivative
  // at 0.
  // CHECK-DAG:  %[[POSITIVE:.*]] = arith.cmpf oge, %[[SCALED]], %{{.*}}
  // CHECK-DAG:  %[[NEGATED:.*]] = arith.negf %[[SCALED]]
  // CHECK-DAG:  %[[BELOW:.*]] = arith.select %[[POSITIVE]], %[[NEGATED]], %[[SCALED]]
  // CHECK-DAG:  %[[EXP:.*]] = math.exp %[[BELOW]]
  // CHECK-DAG:  %[[NUMERATOR:.*]] = arith.select %[[POSITIVE]], %{{.*}}, %[[EXP]]
  // CHECK-DAG:  %[[SUM:.*]] = arith.addf %[[EXP]], %{{.*}}
  // CHECK-DAG:  %[[SIGMOID:.*]] = arith.divf %[[NUMERATOR]], %[[SUM]]
  // CHECK-DAG:  %[[U1:.*]] = arith.addf %[[U]]
  // CHECK-DAG:  %[[UG:.*]] = arith.mulf %[[U1]], %[[G]]
  // CHECK-DAG:  %[[PRODUCT:.*]] = arith.mulf %[[UG]], %[[SIGMOID]]
  // CHECK-DAG:  %[[RESULT:.*]] = arith.truncf %[[PRODUCT]] : tensor<?x8xf32> to tensor<?x8xbf16>
  // CHECK-NEXT: return %[[RESULT]]
  %0 = tile.geglu %gate, %up : tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}

// -----

// CHECK-LABEL: func @geglu_constants
func.func @geglu_constants(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-DAG: arith.constant 5.000000e-01 : f32
  // CHECK-DAG: arith.constant 2.000000e+00 : f32
  // CHECK-DAG: arith.constant -2.000000e+00 : f32
  %0 = tile.geglu %x, %x {alpha = 0.5, limit = 2.0} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @geglu_unlimited
func.func @geglu_unlimited(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NOT: minimumf
  // CHECK-NOT: maximumf
  // CHECK:     math.exp
  // CHECK:     return
  %0 = tile.geglu %x, %x {unlimited} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// gate * sigmoid(2 sqrt(2 / pi) (gate + 0.044715 gate^3)) * up
// CHECK-LABEL: func @geglu_tanh
// CHECK-SAME:      %[[GATE:.*]]: tensor<?x8xf32>, %[[UP:.*]]: tensor<?x8xf32>
func.func @geglu_tanh(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  // CHECK-DAG:  arith.constant 4.471500e-02 : f32
  // CHECK-DAG:  arith.constant 1.59576917 : f32
  // CHECK-NOT: math.tanh
  // CHECK:      math.exp
  // CHECK:      %[[SIGMOID:.*]] = arith.divf
  // CHECK-NEXT: %[[GELU:.*]] = arith.mulf %[[GATE]], %[[SIGMOID]]
  // CHECK-NEXT: %[[RESULT:.*]] = arith.mulf %[[GELU]], %[[UP]]
  // CHECK-NEXT: return %[[RESULT]]
  %0 = tile.geglu %gate, %up form(tanh) : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// 0.5 gate * erfc(-gate / sqrt(2)) * up
// CHECK-LABEL: func @geglu_erf
// CHECK-SAME:      %[[GATE:.*]]: tensor<?x8xf32>, %[[UP:.*]]: tensor<?x8xf32>
func.func @geglu_erf(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  // CHECK-DAG:  %[[SQRT:.*]] = arith.constant -0.707106769 : f32
  // CHECK-DAG:  %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
  // CHECK-DAG:  %[[HALVES:.*]] = tile.broadcast %[[HALF]] like %[[GATE]]
  // CHECK-DAG:  %[[HALFGATE:.*]] = arith.mulf %[[GATE]], %[[HALVES]]
  // CHECK-DAG:  %[[SQRTS:.*]] = tile.broadcast %[[SQRT]] like %[[GATE]]
  // CHECK-DAG:  %[[SCALED:.*]] = arith.mulf %[[GATE]], %[[SQRTS]]
  // CHECK-DAG:  %[[ERFC:.*]] = math.erfc %[[SCALED]]
  // CHECK-DAG:  %[[GELU:.*]] = arith.mulf %[[HALFGATE]], %[[ERFC]]
  // CHECK-DAG:  %[[RESULT:.*]] = arith.mulf %[[GELU]], %[[UP]]
  // CHECK-NEXT: return %[[RESULT]]
  %0 = tile.geglu %gate, %up form(erf) : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// float32 needs no casts.
// CHECK-LABEL: func @geglu_f32
func.func @geglu_f32(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NOT: extf
  // CHECK-NOT: truncf
  // CHECK:     return
  %0 = tile.geglu %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// float64 is computed in float64.
// CHECK-LABEL: func @geglu_f64
func.func @geglu_f64(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  // CHECK-NOT: f32
  // CHECK:     math.exp %{{.*}} : tensor<?x8xf64>
  // CHECK-NOT: f32
  // CHECK:     return
  %0 = tile.geglu %x, %x : tensor<?x8xf64>
  return %0 : tensor<?x8xf64>
}

// -----

// CHECK-LABEL: func @geglu_f16
func.func @geglu_f16(%x: tensor<?x?x8xf16>) -> tensor<?x?x8xf16> {
  // CHECK: math.exp %{{.*}} : tensor<?x?x8xf32>
  // CHECK: arith.truncf %{{.*}} : tensor<?x?x8xf32> to tensor<?x?x8xf16>
  %0 = tile.geglu %x, %x : tensor<?x?x8xf16>
  return %0 : tensor<?x?x8xf16>
}

// -----

// CHECK-LABEL: func @rms_norm
// CHECK-SAME:      %[[X:.*]]: tensor<?x2880xf32>
func.func @rms_norm(%x: tensor<?x2880xf32>) -> tensor<?x2880xf32> {
  // CHECK-DAG:  %[[EPS:.*]] = arith.constant 9.99999997E-7 : f32
  // CHECK-DAG:  %[[LENGTH:.*]] = arith.constant 2.880000e+03 : f32
  // CHECK:      %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]] : tensor<?x2880xf32>
  // CHECK-NEXT: %[[SUM:.*]] = tile.reduce add %[[SQUARE]] : tensor<?x2880xf32> -> tensor<?x1xf32>
  // CHECK-NEXT: %[[LENGTHS:.*]] = tile.broadcast %[[LENGTH]] like %[[SUM]]
  // CHECK-NEXT: %[[MEAN:.*]] = arith.divf %[[SUM]], %[[LENGTHS]]
  // CHECK-NEXT: %[[EPSES:.*]] = tile.broadcast %[[EPS]] like %[[MEAN]]
  // CHECK-NEXT: %[[MISALIGNMENTED:.*]] = arith.addf %[[MEAN]], %[[EPSES]]
  // CHECK-NEXT: %[[RSTD:.*]] = math.rsqrt %[[MISALIGNMENTED]] : tensor<?x1xf32>
  // CHECK-NEXT: %[[RSTDS:.*]] = tile.broadcast %[[RSTD]] like %[[X]]
  // CHECK-NEXT: %[[RESULT:.*]] = arith.mulf %[[X]], %[[RSTDS]]
  // CHECK-NEXT: return %[[RESULT]]
  %0 = tile.rms_norm %x : tensor<?x2880xf32>
  return %0 : tensor<?x2880xf32>
}

// -----

// Llama rounds before the weight multiplies.
// CHECK-LABEL: func @rms_norm_llama
// CHECK-SAME:      %{{.*}}: tensor<?x8xbf16>, %[[W:.*]]: tensor<8xbf16>
func.func @rms_norm_llama(%x: tensor<?x8xbf16>, %w: tensor<8xbf16>)
    -> tensor<?x8xbf16> {
  // CHECK:      %[[RSTD:.*]] = math.rsqrt
  // CHECK:      %[[NORMALIZED:.*]] = arith.mulf
  // CHECK:      %[[W32:.*]] = arith.extf %[[W]] : tensor<8xbf16> to tensor<8xf32>
  // CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[NORMALIZED]] : tensor<?x8xf32> to tensor<?x8xbf16>
  // CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[ROUNDED]] : tensor<?x8xbf16> to tensor<?x8xf32>
  // CHECK-NEXT: %[[WS:.*]] = tile.broadcast %[[W32]] like %[[WIDE]] : tensor<8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[WS]]
  // CHECK-NEXT: arith.truncf %[[PRODUCT]]
  %0 = tile.rms_norm %x, %w : tensor<?x8xbf16>, tensor<8xbf16>
  return %0 : tensor<?x8xbf16>
}

// -----

// Gemma rounds once, at the end, and adds one to the weight.
// CHECK-LABEL: func @rms_norm_gemma
// CHECK-SAME:      %{{.*}}: tensor<?x8xbf16>, %[[W:.*]]: tensor<8xf32>
func.func @rms_norm_gemma(%x: tensor<?x8xbf16>, %w: tensor<8xf32>)
    -> tensor<?x8xbf16> {
  // CHECK-DAG:  %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK:      math.rsqrt
  // CHECK:      %[[NORMALIZED:.*]] = arith.mulf
  // CHECK-NOT:  truncf
  // CHECK:      %[[ONES:.*]] = tile.broadcast %[[ONE]] : f32 -> tensor<8xf32>
  // CHECK-NEXT: %[[W1:.*]] = arith.addf %[[W]], %[[ONES]] : tensor<8xf32>
  // CHECK-NEXT: %[[W1S:.*]] = tile.broadcast %[[W1]] like %[[NORMALIZED]]
  // CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[NORMALIZED]], %[[W1S]]
  // CHECK-NEXT: arith.truncf %[[PRODUCT]]
  %0 = tile.rms_norm %x, %w casting(gemma) {offset = 1.0}
      : tensor<?x8xbf16>, tensor<8xf32>
  return %0 : tensor<?x8xbf16>
}

// -----

// Without a weight there is one rounding whatever the casting order.
// CHECK-LABEL: func @rms_norm_without_weight
func.func @rms_norm_without_weight(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16> {
  // CHECK-COUNT-1: truncf
  // CHECK-NOT:     truncf
  %0 = tile.rms_norm %x casting(llama) {eps = 1.0e-5} : tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}

// -----

// float64 has nothing to round in between.
// CHECK-LABEL: func @rms_norm_f64
func.func @rms_norm_f64(%x: tensor<?x8xf64>, %w: tensor<8xf64>)
    -> tensor<?x8xf64> {
  // CHECK-DAG: arith.constant 1.000000e-05 : f64
  // CHECK-NOT: truncf
  // CHECK:     return
  %0 = tile.rms_norm %x, %w {eps = 1.0e-5} : tensor<?x8xf64>, tensor<8xf64>
  return %0 : tensor<?x8xf64>
}

// -----

// Everything that stands for an op keeps its place in the source.
// CHECK-LABEL: func @other_ops_stay
func.func @other_ops_stay(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf
  // CHECK-NEXT: return %[[SUM]]
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @unknown_attribute(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'tile.rms_norm' op has the unknown attribute 'epsilon'}}
  %0 = tile.rms_norm %x {epsilon = 1.0e-5} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Attributes of other dialects pass through.
// CHECK-LABEL: func @foreign_attribute
func.func @foreign_attribute(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NOT: tile.rms_norm
  %0 = tile.rms_norm %x {llvm.note = "a note"} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A comparison with itself is one number, repeated, not a constant whose rows
// nothing tells.
// CHECK-LABEL: func @compared_with_itself(
// CHECK-SAME:      %[[I:[^:]*]]: tensor<?x8xi32>
// CHECK:         tile.broadcast %{{.*}} like %[[I]] : i1, tensor<?x8xi32> -> tensor<?x8xi1>
func.func @compared_with_itself(%i: tensor<?x8xi32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = arith.cmpi eq, %i, %i : tensor<?x8xi32>
  %1 = tile.broadcast %zero like %0 : f32, tensor<?x8xi1> -> tensor<?x8xf32>
  %2 = arith.select %0, %1, %x : tensor<?x8xi1>, tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
