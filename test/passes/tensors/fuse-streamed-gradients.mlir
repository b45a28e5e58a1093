// RUN: tile-opt %s --differentiate='gradients=all' --fuse -split-input-file | FileCheck %s

// The backward computes the weights again, from the one number of each row that
// the forward leaves, its maximum and the logarithm of its sum: no kernel leaves
// scores or powers. What a row of the gradient of
// scores has in common, a sum over keys of powers times their gradients, is that
// of the result times its gradient.
// CHECK-LABEL: tile.kernel @attention_kernel(
// CHECK-SAME: -> (tensor<?x64xbf16>, tensor<?x1xf32> {tile.approximate}) attributes
// CHECK: %[[MAX:.*]] = tile.reduce max
// CHECK: %[[TOTAL:.*]] = tile.reduce add
// CHECK: %[[LOG:.*]] = math.log %[[TOTAL]]
// CHECK: arith.addf %[[MAX]], %[[LOG]]
// CHECK-LABEL: tile.kernel @attention_backward_kernel0(
// CHECK-SAME: -> (tensor<?x1xf32> {tile.approximate})
// CHECK: %[[PRODUCT:.*]] = arith.mulf %{{.*}} : tensor<?x64xf32>
// CHECK: %[[SUM:.*]] = tile.reduce add %[[PRODUCT]]
// CHECK: arith.negf %[[SUM]]
// The gradient of queries sums over keys.
// CHECK-LABEL: tile.kernel @attention_backward_kernel1(
// CHECK-SAME: -> tensor<?x64xbf16>
// CHECK: tile.dot %{{.*}} contract [1, 1]
// CHECK: %[[POWER:.*]] = math.exp
// CHECK: %[[GRADIENT:.*]] = tile.dot %{{.*}} contract [1, 1]
// CHECK-NOT: arith.divf
// CHECK: %[[LESS:.*]] = arith.addf %[[GRADIENT]], %
// CHECK: arith.mulf %[[LESS]], %[[POWER]]
// CHECK: tile.dot %{{.*}} contract [1, 0] : tensor<?x?xbf16>, tensor<?x64xbf16> -> tensor<?x64xf32>
// Those of keys and values sum over queries, in one kernel.
// CHECK-LABEL: tile.kernel @attention_backward_kernel2(
// CHECK-SAME: -> (tensor<?x64xbf16>, tensor<?x64xbf16>)
// CHECK: tile.dot %{{.*}} contract [1, 1]
// CHECK: tile.dot %{{.*}} contract [1, 1]
// CHECK: tile.dot %{{.*}} contract [0, 0] : tensor<?x?xbf16>, tensor<?x64xbf16> -> tensor<?x64xf32>
// CHECK: tile.dot %{{.*}} contract [0, 0] : tensor<?x?xbf16>, tensor<?x64xbf16> -> tensor<?x64xf32>
// CHECK-NOT: tile.kernel
// CHECK: func.func @attention_backward(
func.func @attention(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
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

// -----

// Sums of several heads' queries, where they share keys.
// CHECK-LABEL: tile.kernel @shared_backward_kernel2(
// CHECK-SAME: -> (tensor<1x?x64xf32>, tensor<1x?x64xf32>)
// CHECK: tile.dot %{{.*}} contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xf32> -> tensor<1x?x64xf32>
// CHECK: tile.dot %{{.*}} contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xf32> -> tensor<1x?x64xf32>
// CHECK: func.func @shared_backward(
func.func @shared(%q: tensor<?x?x64xf32>, %k: tensor<1x?x64xf32>, %v: tensor<1x?x64xf32>) -> tensor<?x?x64xf32> {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xf32>, tensor<1x?x64xf32> -> tensor<?x?x?xf32>
  %m = tile.reduce max %x : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?x?xf32>
  %e = math.exp %d : tensor<?x?x?xf32>
  %l = tile.reduce add %e : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?x?xf32>, tensor<1x?x64xf32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// -----

// The gradient of a bias for each score is a result of its own, which the loop
// over keys leaves.
// CHECK-LABEL: tile.kernel @biased_backward_kernel1(
// CHECK-SAME: -> (tensor<?x64xf32>, tensor<?x?xf32>)
// CHECK-LABEL: tile.kernel @biased_backward_kernel2(
// CHECK-SAME: -> (tensor<?x64xf32>, tensor<?x64xf32>)
// CHECK: func.func @biased_backward(
func.func @biased(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>, %bias: tensor<?x?xf32>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %x = arith.addf %s, %bias : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// Powers that are zero in some places, and larger in others, are those that the
// product has for its left factor.
// CHECK-LABEL: tile.kernel @dropped_backward_kernel0(
// CHECK-SAME: -> tensor<?x1xf32>
// CHECK: tile.reduce add %{{.*}} : tensor<?x64xf32> -> tensor<?x1xf32>
// CHECK-LABEL: tile.kernel @dropped_backward_kernel1(
// CHECK-SAME: -> tensor<?x64xf32>
// CHECK-NOT: tile.reduce
// CHECK-LABEL: tile.kernel @dropped_backward_kernel2(
func.func @dropped(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>, %kept: tensor<?x?xi32>) -> tensor<?x64xf32> {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %two = arith.constant 2.0 : f32
  %twos = tile.broadcast %two like %x : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %x : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %none = arith.constant 0 : i32
  %nones = tile.broadcast %none like %x : i32, tensor<?x?xf32> -> tensor<?x?xi32>
  %is_kept = arith.cmpi ne, %kept, %nones : tensor<?x?xi32>
  %larger = arith.mulf %p, %twos : tensor<?x?xf32>
  %z = arith.select %is_kept, %larger, %zeros : tensor<?x?xi1>, tensor<?x?xf32>
  %o = tile.dot %z, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// Two softmaxes in one left factor have sums of their own, which no result tells:
// powers lie in memory. So do they where something else follows them.
// CHECK-LABEL: tile.kernel @mixed_backward_kernel
// CHECK: tile.reduce add %{{.*}} : tensor<?x?xf32> -> tensor<?x1xf32>
// CHECK: func.func @mixed_backward(
// CHECK: tile.launch {{.*}} -> {{.*}}tensor<?x?xf32>
func.func @mixed(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %e2 = math.exp2 %d : tensor<?x?xf32>
  %l2 = tile.reduce add %e2 : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls2 = tile.broadcast %l2 like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p2 = arith.divf %e2, %ls2 : tensor<?x?xf32>
  %z = arith.subf %p, %p2 : tensor<?x?xf32>
  %o = tile.dot %z, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: tile.kernel @bent_backward_kernel
// CHECK: tile.reduce add %{{.*}} : tensor<?x?xf32> -> tensor<?x1xf32>
// CHECK: func.func @bent_backward(
// CHECK: tile.launch {{.*}} -> {{.*}}tensor<?x?xf32>
func.func @bent(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %fixed = tile.stop_gradient %m : tensor<?x1xf32>
  %ms = tile.broadcast %fixed like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %z = math.tanh %p : tensor<?x?xf32>
  %o = tile.dot %z, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// The gradient of a maximum goes to those that equal it: another sum over keys, so
// that the first one is left as it is, beside it.
// CHECK-LABEL: tile.kernel @unstopped_backward_kernel
// CHECK: tile.reduce add %{{.*}} : tensor<?x?xf32> -> tensor<?x1xf32>
// CHECK: tile.reduce add %{{.*}} : tensor<?x?xf32> -> tensor<?x1xf32>
// CHECK: func.func @unstopped_backward(
func.func @unstopped(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
