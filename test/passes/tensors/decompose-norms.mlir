// RUN: tile-opt %s --decompose --cse -split-input-file | FileCheck %s

// CHECK-LABEL: func @add_bias(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xbf16>, %[[B:[^:]*]]: tensor<8xf32>)
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK-NEXT:    %[[BS:.*]] = tile.broadcast %[[B]] like %[[WIDE]]
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[WIDE]], %[[BS]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.truncf %[[SUM]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @add_bias(%x: tensor<?x8xbf16>, %b: tensor<8xf32>) -> tensor<?x8xbf16> {
  %0 = tile.add_bias %x, %b : tensor<?x8xbf16>, tensor<8xf32>
  return %0 : tensor<?x8xbf16>
}

// -----

// The variance is that of the centered row: no difference of large numbers.
// CHECK-LABEL: func @layer_norm(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[W:[^:]*]]: tensor<8xf32>, %[[B:[^:]*]]: tensor<8xf32>)
// CHECK:         %[[SUM:.*]] = tile.reduce {{ *}}add %[[X]]
// CHECK:         %[[MEAN:.*]] = arith.divf %[[SUM]],
// CHECK-NEXT:    %[[MEANS:.*]] = tile.broadcast %[[MEAN]] like %[[X]]
// CHECK-NEXT:    %[[C:.*]] = arith.subf %[[X]], %[[MEANS]]
// CHECK-NEXT:    %[[SQUARE:.*]] = arith.mulf %[[C]], %[[C]]
// CHECK-NEXT:    tile.reduce {{ *}}add %[[SQUARE]]
// CHECK:         %[[RSTD:.*]] = math.rsqrt
// CHECK-NEXT:    %[[RSTDS:.*]] = tile.broadcast %[[RSTD]]
// CHECK-NEXT:    %[[NORM:.*]] = arith.mulf %[[C]], %[[RSTDS]]
// CHECK-NEXT:    %[[WS:.*]] = tile.broadcast %[[W]]
// CHECK-NEXT:    %[[SCALED:.*]] = arith.mulf %[[NORM]], %[[WS]]
// CHECK-NEXT:    %[[BS:.*]] = tile.broadcast %[[B]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.addf %[[SCALED]], %[[BS]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @layer_norm(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.layer_norm %x, %w bias(%b) : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func @layer_norm_plain(
// CHECK:         arith.constant 2.000000e+00
// CHECK:         math.rsqrt
// CHECK-NEXT:    tile.broadcast
// CHECK-NEXT:    %[[NORM:.*]] = arith.mulf
// CHECK-NEXT:    return %[[NORM]]
func.func @layer_norm_plain(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.layer_norm %x {eps = 2.0} : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// The sum is rounded before it is normalized, and it is what is returned. The
// attributes are those of the norm.
// CHECK-LABEL: func @add_rms_norm(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xbf16>, %[[R:[^:]*]]: tensor<?x8xbf16>, %[[W:[^:]*]]: tensor<8xbf16>)
// CHECK-DAG:     arith.constant 9.99999974E-6
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK-NEXT:    %[[ROUNDED:.*]] = arith.truncf %[[SUM]]
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[ROUNDED]]
// CHECK-NEXT:    arith.mulf %[[WIDE]], %[[WIDE]]
// CHECK-NOT:     arith.truncf
// CHECK:         %[[RESULT:.*]] = arith.truncf
// CHECK-NEXT:    return %[[RESULT]], %[[ROUNDED]]
func.func @add_rms_norm(%x: tensor<?x8xbf16>, %r: tensor<?x8xbf16>, %w: tensor<8xbf16>)
    -> (tensor<?x8xbf16>, tensor<?x8xbf16>) {
  %0, %1 = tile.add_rms_norm %x, %r, %w casting(gemma) {eps = 1.0e-5, offset = 1.0}
      : tensor<?x8xbf16>, tensor<8xbf16>
  return %0, %1 : tensor<?x8xbf16>, tensor<?x8xbf16>
}

// -----

// A wider residual is added, kept and normalized in its type.
// CHECK-LABEL: func @add_wide_residual(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xbf16>, %[[R:[^:]*]]: tensor<?x8xf32>)
// CHECK:         %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[WIDE]], %[[R]]
// CHECK-NEXT:    arith.mulf %[[SUM]], %[[SUM]]
// CHECK:         %[[RESULT:.*]] = arith.truncf
// CHECK-NEXT:    return %[[RESULT]], %[[SUM]]
func.func @add_wide_residual(%x: tensor<?x8xbf16>, %r: tensor<?x8xf32>)
    -> (tensor<?x8xbf16>, tensor<?x8xf32>) {
  %0, %1 = tile.add_rms_norm %x, %r : tensor<?x8xbf16> + tensor<?x8xf32>
  return %0, %1 : tensor<?x8xbf16>, tensor<?x8xf32>
}

// -----

// Each group has a mean, which its elements share.
// CHECK-LABEL: func @norm_of_groups(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[B:[^:]*]]: tensor<8xf32>)
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT:    tile.reduce {{ *}}add %[[SQUARE]] : tensor<?x8xf32> -> tensor<?x2xf32>
// CHECK:         %[[RSTD:.*]] = math.rsqrt
// CHECK-NEXT:    %[[RSTDS:.*]] = tile.broadcast %[[RSTD]]
// CHECK-NEXT:    %[[NORM:.*]] = arith.mulf %[[X]], %[[RSTDS]]
// CHECK-NEXT:    %[[BS:.*]] = tile.broadcast %[[B]]
// CHECK-NEXT:    %[[RESULT:.*]] = arith.addf %[[NORM]], %[[BS]]
// CHECK-NEXT:    return %[[RESULT]]
func.func @norm_of_groups(%x: tensor<?x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = tile.rms_norm %x bias(%b) casting(gemma) {groups = 2} : tensor<?x8xf32>, tensor<8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Squares, mean, sum, root and product are rounded one by one.
// CHECK-LABEL: func @norm_that_casts_nothing(
// CHECK-COUNT-5: arith.truncf
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @norm_that_casts_nothing(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16> {
  %0 = tile.rms_norm %x casting(none) : tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}
