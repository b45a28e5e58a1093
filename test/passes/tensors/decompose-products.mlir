// RUN: tile-opt %s --decompose -split-input-file | FileCheck %s

// The sum of products and bias is rounded once.
// CHECK-LABEL: func @linear(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x?x8xbf16>, %[[W:[^:]*]]: tensor<3x8xbf16>, %[[B:[^:]*]]: tensor<3xbf16>)
// CHECK-DAG:     %[[DOT:.*]] = tile.dot %[[X]], %[[W]] contract [1, 1] : {{.*}} -> tensor<?x?x3xf32>
// CHECK-DAG:     %[[WIDE:.*]] = arith.extf %[[B]]
// CHECK:         %[[BS:.*]] = tile.broadcast %[[WIDE]] like %[[DOT]]
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[DOT]], %[[BS]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.truncf %[[SUM]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @linear(%x: tensor<?x?x8xbf16>, %w: tensor<3x8xbf16>, %b: tensor<3xbf16>)
    -> tensor<?x?x3xbf16> {
  %0 = tile.linear %x, %w, %b : tensor<?x?x8xbf16>, tensor<3x8xbf16>, tensor<3xbf16>
  return %0 : tensor<?x?x3xbf16>
}

// -----

// CHECK-LABEL: func @double(
// CHECK:         %[[DOT:.*]] = tile.dot {{.*}} -> tensor<?x3xf64>
// CHECK-NEXT:    return %[[DOT]]
func.func @double(%x: tensor<?x8xf64>, %w: tensor<3x8xf64>) -> tensor<?x3xf64> {
  %0 = tile.linear %x, %w : tensor<?x8xf64>, tensor<3x8xf64>
  return %0 : tensor<?x3xf64>
}
