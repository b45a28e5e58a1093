// RUN: tile-opt %s --decompose -split-input-file | FileCheck %s

// CHECK-LABEL: func @row
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xbf16>
func.func @row(%x: tensor<?x8xbf16>) -> (tensor<?x8xf8E4M3FN>, tensor<?x1xf32>) {
  // CHECK-DAG:  %[[LIMIT:.*]] = arith.constant 4.480000e+02 : f32
  // CHECK-DAG:  %[[LEAST:.*]] = arith.constant 1.17549435E-38 : f32
  // CHECK:      %[[X32:.*]] = arith.extf %[[X]]
  // CHECK:      %[[ABS:.*]] = math.absf %[[X32]]
  // CHECK:      %[[MAX:.*]] = tile.reduce max %[[ABS]] : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK:      %[[AMAX:.*]] = tile.stop_gradient %[[MAX]]
  // CHECK:      %[[LIMITS:.*]] = tile.broadcast %[[LIMIT]] like
  // CHECK:      %[[RATIO:.*]] = arith.divf %[[AMAX]], %[[LIMITS]]
  // CHECK:      %[[LEASTS:.*]] = tile.broadcast %[[LEAST]] like
  // CHECK:      %[[NORMAL:.*]] = arith.maximumf %[[RATIO]], %[[LEASTS]]
  // CHECK:      %[[ZERO:.*]] = arith.cmpf ole, %[[AMAX]]
  // CHECK:      %[[SCALE:.*]] = arith.select %[[ZERO]], %{{.*}}, %[[NORMAL]]
  // CHECK:      %[[RECIPROCAL:.*]] = arith.divf %{{.*}}, %[[SCALE]] : tensor<?x1xf32>
  // CHECK:      %[[RECIPROCALS:.*]] = tile.broadcast %[[RECIPROCAL]] like %[[X32]]
  // CHECK:      %[[QUOTIENT:.*]] = arith.mulf %[[X32]], %[[RECIPROCALS]]
  // What is missing is added: x - quotient * scale, times the reciprocal.
  // CHECK-DAG:  %[[SCALES:.*]] = tile.broadcast %[[SCALE]] like %[[X32]]
  // CHECK-DAG:  %[[NEGATIVE:.*]] = arith.negf %[[X32]]
  // CHECK:      %[[REST:.*]] = math.fma %[[QUOTIENT]], %[[SCALES]], %[[NEGATIVE]]
  // CHECK:      %[[MINUS:.*]] = arith.negf %[[RECIPROCAL]]
  // CHECK:      %[[FACTOR:.*]] = tile.broadcast %[[MINUS]] like %[[X32]]
  // CHECK:      %[[EXACT:.*]] = math.fma %[[REST]], %[[FACTOR]], %[[QUOTIENT]]
  // CHECK:      %[[Q:.*]] = arith.truncf %[[EXACT]] : tensor<?x8xf32> to tensor<?x8xf8E4M3FN>
  // CHECK:      return %[[Q]], %[[SCALE]]
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x8xf8E4M3FN>, tensor<?x1xf32>
  return %q, %s : tensor<?x8xf8E4M3FN>, tensor<?x1xf32>
}

// -----

// Rounded up by integers: what is in the fraction carries into the exponent.
// CHECK-LABEL: func @power_of_two
func.func @power_of_two(%x: tensor<?x8xbf16>) -> (tensor<?x8xf8E5M2>, tensor<?x2xf32>) {
  // CHECK-DAG:  %[[FRACTION:.*]] = arith.constant 8388607 : i32
  // CHECK-DAG:  %[[REST:.*]] = arith.constant -8388608 : i32
  // CHECK-DAG:  %[[LIMIT:.*]] = arith.constant 5.734400e+04 : f32
  // CHECK:      tile.reduce max %{{.*}} : tensor<?x8xf32> -> tensor<?x2xf32>
  // CHECK:      %[[SCALE:.*]] = arith.maximumf
  // CHECK:      %[[BITS:.*]] = arith.bitcast %[[SCALE]] : tensor<?x2xf32> to tensor<?x2xi32>
  // CHECK:      %[[FRACTIONS:.*]] = tile.broadcast %[[FRACTION]]
  // CHECK:      %[[CARRIED:.*]] = arith.addi %[[BITS]], %[[FRACTIONS]]
  // CHECK:      %[[MASK:.*]] = tile.broadcast %[[REST]]
  // CHECK:      %[[CUT:.*]] = arith.andi %[[CARRIED]], %[[MASK]]
  // CHECK:      %[[POWER:.*]] = arith.bitcast %[[CUT]] : tensor<?x2xi32> to tensor<?x2xf32>
  // CHECK:      %[[NUMBER:.*]] = arith.cmpf ord, %[[SCALE]], %[[SCALE]]
  // CHECK:      arith.select %[[NUMBER]], %[[POWER]], %[[SCALE]]
  %q, %s = tile.quantize %x format(e5m2) power_of_two : tensor<?x8xbf16> -> tensor<?x8xf8E5M2>, tensor<?x2xf32>
  return %q, %s : tensor<?x8xf8E5M2>, tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func @all_rows
func.func @all_rows(%x: tensor<?x8xbf16>) -> (tensor<?x8xf8E4M3FN>, tensor<1xf32>) {
  // CHECK:      %[[MAX:.*]] = tile.reduce max %{{.*}} : tensor<?x8xf32> -> tensor<?x1xf32>
  // CHECK:      %[[ALL:.*]] = tile.reduce_rows max %[[MAX]] : tensor<?x1xf32> -> tensor<1xf32>
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x8xf8E4M3FN>, tensor<1xf32>
  return %q, %s : tensor<?x8xf8E4M3FN>, tensor<1xf32>
}

// -----

// CHECK-LABEL: func @dequantize
// CHECK-SAME:      %[[X:.*]]: tensor<?x8xf8E5M2>, %[[S:.*]]: tensor<?x2xf32>
func.func @dequantize(%x: tensor<?x8xf8E5M2>, %s: tensor<?x2xf32>) -> tensor<?x8xbf16> {
  // CHECK:      %[[X32:.*]] = arith.extf %[[X]]
  // CHECK:      %[[SCALES:.*]] = tile.broadcast %[[S]] like %[[X32]] : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK:      %[[PRODUCT:.*]] = arith.mulf %[[X32]], %[[SCALES]]
  // CHECK:      arith.truncf %[[PRODUCT]] : tensor<?x8xf32> to tensor<?x8xbf16>
  %0 = tile.dequantize %x, %s : tensor<?x8xf8E5M2>, tensor<?x2xf32> -> tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}
