// RUN: tile-opt %s --differentiate='gradients=all' --canonicalize --cse -split-input-file | FileCheck %s

// The weights of a softmax are computed again of one number of each row, in units of
// log 2, which the forward leaves; where it has none such, it is as it was. The
// gradient of scores has no division for each element, and the scale of the scores
// multiplies the products of their gradient, also where a condition drops weights.
// CHECK-LABEL: func.func @dropped(
// CHECK: %[[MAX:.*]] = tile.reduce max
// CHECK: %[[TOTAL:.*]] = tile.reduce add
// CHECK: %[[LOG:.*]] = math.log %[[TOTAL]]
// CHECK: %[[SUM:.*]] = arith.addf %[[MAX]], %[[LOG]]
// CHECK: %[[LOG2:.*]] = arith.mulf %[[SUM]], %
// CHECK: %[[IS_FINITE:.*]] = arith.cmpf ogt, %[[LOG2]], %
// CHECK: %[[SAVED:.*]] = arith.select %[[IS_FINITE]], %[[LOG2]], %[[SUM]]
// CHECK: return %{{.*}}, %[[SAVED]] : tensor<?x64xbf16>, tensor<?x1xf32>
// CHECK-LABEL: func.func @dropped_backward(
// CHECK-SAME: %[[NUMBER:[^ ]*]]: tensor<?x1xf32> {tile.name = "saved0"}
// CHECK: %[[LN2:.*]] = arith.constant 0.693147182 : f32
// CHECK: %[[LN2S:.*]] = tile.broadcast %[[LN2]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[NUMBER]], %[[LN2S]] : tensor<?x1xf32>
// CHECK: %[[ALL:.*]] = tile.broadcast %[[SCALED]]
// CHECK: %[[EXPONENT:.*]] = arith.subf %{{.*}}, %[[ALL]]
// CHECK: %[[WEIGHTS:.*]] = math.exp %[[EXPONENT]] {tile.flushed}
// CHECK-NOT: arith.divf
// CHECK: %[[LESS:.*]] = arith.addf
// CHECK: %[[GRADIENT:.*]] = arith.mulf %[[LESS]], %[[WEIGHTS]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[GRADIENT]]
// CHECK: %[[QUERIES:.*]] = tile.dot %[[ROUNDED]]
// CHECK: arith.mulf %[[QUERIES]], %
// CHECK: %[[KEYS:.*]] = tile.dot %[[ROUNDED]]
// CHECK: arith.mulf %[[KEYS]], %
func.func @dropped(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %c = arith.constant 0.125 : f32
  %cs = tile.broadcast %c like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.mulf %s, %cs : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %key = tile.iota like %x : tensor<?x?xi32>, tensor<?x?xf32>
  %seven = arith.constant 7 : i32
  %sevens = tile.broadcast %seven like %x : i32, tensor<?x?xf32> -> tensor<?x?xi32>
  %kept = arith.cmpi ne, %key, %sevens : tensor<?x?xi32>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %x : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %w = arith.select %kept, %p, %zeros : tensor<?x?xi1>, tensor<?x?xf32>
  %o = tile.dot %w, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %t = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %t : tensor<?x64xbf16>
}

// -----

// The range of f16 may need the scale ahead of the rounding.
// CHECK-LABEL: func.func @half_backward(
// CHECK: %[[LESS:.*]] = arith.addf
// CHECK: %[[GRADIENT:.*]] = arith.mulf %[[LESS]], %{{.*}} : tensor<?x?xf32>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[GRADIENT]], %
// CHECK: arith.truncf %[[SCALED]]
func.func @half(%q: tensor<?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf16>, tensor<?x64xf16> -> tensor<?x?xf32>
  %c = arith.constant 0.125 : f32
  %cs = tile.broadcast %c like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.mulf %s, %cs : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf16> -> tensor<?x64xf32>
  %t = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xf16>
  return %t : tensor<?x64xf16>
}

// -----

// A bias may make all scores of a row as low as numbers are: what they are relative
// to a maximum of such is exact, which their sum with a logarithm is not.
// CHECK-LABEL: func.func @biased(
// CHECK: %[[MAX:.*]] = tile.reduce max
// CHECK: %[[TOTAL:.*]] = tile.reduce add
// CHECK: %[[LOG:.*]] = math.log %[[TOTAL]]
// CHECK: %[[LOG2:.*]] = arith.mulf %[[LOG]], %
// CHECK: %[[SAVED:.*]] = arith.select %{{.*}}, %[[LOG2]], %[[LOG]]
// CHECK: return %{{.*}}, %[[MAX]], %[[SAVED]]
// CHECK-LABEL: func.func @biased_backward(
// CHECK: %[[FIRST:.*]] = arith.subf
// CHECK: %[[EXPONENT:.*]] = arith.subf %[[FIRST]], %
// CHECK: math.exp %[[EXPONENT]] {tile.flushed}
// CHECK-NOT: arith.divf
// CHECK: return
func.func @biased(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %b: tensor<?x1xf32>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %bs = tile.broadcast %b like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.addf %s, %bs : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %t = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %t : tensor<?x64xbf16>
}
