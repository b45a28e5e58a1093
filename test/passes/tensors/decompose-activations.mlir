// RUN: tile-opt %s --decompose --cse -split-input-file | FileCheck %s

// A NaN is not below zero, so it stays; at zero the derivative is that of zero.
// CHECK-LABEL: func @reglu(
// CHECK-SAME:      %[[GATE:[^:]*]]: tensor<?x8xf32>, %[[UP:[^:]*]]: tensor<?x8xf32>)
// CHECK:         %[[ZERO:.*]] = tile.broadcast
// CHECK-NEXT:    %[[BELOW:.*]] = arith.cmpf ole, %[[GATE]], %[[ZERO]]
// CHECK-NEXT:    %[[RELU:.*]] = arith.select %[[BELOW]], %[[ZERO]], %[[GATE]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.mulf %[[RELU]], %[[UP]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @reglu(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.reglu %gate, %up : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @relu_squared(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xbf16>)
// CHECK-DAG:     %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK-DAG:     %[[BELOW:.*]] = arith.cmpf ole, %[[WIDE]],
// CHECK-DAG:     %[[RELU:.*]] = arith.select %[[BELOW]], %{{.*}}, %[[WIDE]]
// CHECK-NEXT:    %[[SQUARE:.*]] = arith.mulf %[[RELU]], %[[RELU]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.truncf %[[SQUARE]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @relu_squared(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16> {
  %0 = tile.relu_squared %x : tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}

// -----

// CHECK-LABEL: func @silu(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>)
// CHECK:         math.exp
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[X]]
// CHECK:         %[[RESULT:.*]] = arith.divf %[[PRODUCT]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.silu %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A scale of 1 is no product: silu(gate) * up.
// CHECK-LABEL: func @swiglu(
// CHECK-SAME:      %[[GATE:[^:]*]]: tensor<?x8xf32>, %[[UP:[^:]*]]: tensor<?x8xf32>)
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[GATE]]
// CHECK:         %[[SILU:.*]] = arith.divf %[[PRODUCT]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.mulf %[[SILU]], %[[UP]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @swiglu(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.swiglu %gate, %up : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @swiglu_scales(
// CHECK-SAME:      %[[GATE:[^:]*]]: tensor<?x8xf32>, %[[UP:[^:]*]]: tensor<?x8xf32>)
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-DAG:     %[[THREE:.*]] = arith.constant 3.000000e+00
// CHECK:         %[[HALVES:.*]] = tile.broadcast %[[HALF]]
// CHECK-NEXT:    %[[SCALED:.*]] = arith.mulf %[[GATE]], %[[HALVES]]
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[SCALED]],
// CHECK:         %[[SILU:.*]] = arith.divf %[[PRODUCT]],
// CHECK-NEXT:    %[[GATED:.*]] = arith.mulf %[[SILU]], %[[UP]]
// CHECK-NEXT:    %[[THREES:.*]] = tile.broadcast %[[THREE]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.mulf %[[GATED]], %[[THREES]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @swiglu_scales(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.swiglu %gate, %up {gate_scale = 0.5, output_scale = 3.0} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// 0.5 x * erfc(-x / sqrt(2))
// CHECK-LABEL: func @gelu_erf(
// CHECK-DAG:     %[[ERFC:.*]] = math.erfc
// CHECK-NEXT:    %[[RESULT:.*]] = arith.mulf %{{.*}}, %[[ERFC]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @gelu_erf(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.gelu %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))
// CHECK-LABEL: func @gelu_tanh(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>)
// CHECK-DAG:     arith.constant 4.471500e-02
// CHECK-DAG:     arith.constant 1.59576917
// CHECK:         %[[SIGMOID:.*]] = arith.divf
// CHECK-NEXT:    %[[RESULT:.*]] = arith.mulf %[[X]], %[[SIGMOID]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @gelu_tanh(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.gelu %x form(tanh) : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
