// RUN: tile-opt %s --fuse --schedule=target=sm_90 --tile=target=sm_90 --canonicalize --cse -split-input-file | FileCheck %s

// Powers of scores as powers of 2, which take one multiplication and addition for
// each score: the loop multiplies the maximum of a tile, not its elements. The number
// of the row is in units of log 2, unless it has none such.
// CHECK-LABEL: tile.program @scaled_kernel(
// CHECK-DAG: %[[SCALE:.*]] = arith.constant dense<1.250000e-01> : tensor<128x1xf32
// CHECK-DAG: %[[LOG2E:.*]] = arith.constant dense<1.44269502> : tensor<128x1xf32
// CHECK-DAG: %[[BOTH:.*]] = arith.constant dense<0.180336878> : tensor<128x64xf32
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = tile.dot {{.*}} -> tensor<128x64xf32
// CHECK: %[[DOTS:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[FIRST]] contract
// CHECK: %[[SHOWN:.*]] = scf.if
// CHECK: scf.yield %[[DOTS]]
// CHECK: arith.select %{{.*}}, %[[DOTS]], %
// CHECK: %[[MAX:.*]] = tile.reduce max
// CHECK: %[[SCALED:.*]] = arith.mulf %[[MAX]], %[[SCALE]]
// CHECK: %[[NEW:.*]] = arith.maximumf %{{.*}}, %[[SCALED]]
// CHECK: %[[BASE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NEW]]
// CHECK: %[[LOG2:.*]] = arith.mulf %[[BASE]], %[[LOG2E]]
// CHECK: %[[LESS:.*]] = arith.maximumf %[[LOG2]], %
// CHECK: %[[MINUS:.*]] = arith.negf %[[LESS]]
// CHECK: %[[ALL:.*]] = tile.broadcast %[[MINUS]]
// CHECK: %[[EXPONENT:.*]] = math.fma %{{.*}}, %[[BOTH]], %[[ALL]]
// CHECK: math.exp2 %[[EXPONENT]]
// CHECK-NOT: math.exp
// CHECK: scf.yield
func.func @scaled(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %c = arith.constant 0.125 : f32
  %cs = tile.broadcast %c like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %y = arith.mulf %s, %cs : tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %y, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}

// -----

// The largest of scores times a negative number is not the number times the largest.
// CHECK-LABEL: tile.program @negative_kernel(
// CHECK: %[[FIRST:.*]] = tile.dot {{.*}} -> tensor<128x64xf32
// CHECK: %[[DOTS:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[FIRST]] contract
// CHECK: arith.mulf %[[DOTS]], %
// CHECK: math.fma
// CHECK: math.exp2
func.func @negative(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %c = arith.constant -0.125 : f32
  %cs = tile.broadcast %c like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.mulf %s, %cs : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}

// -----

// Something else than powers and maxima reads the scores as they are.
// CHECK-LABEL: tile.program @read_kernel(
// CHECK: %[[FIRST:.*]] = tile.dot {{.*}} -> tensor<128x64xf32
// CHECK: %[[DOTS:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[FIRST]] contract
// CHECK: arith.mulf %[[DOTS]], %
// CHECK: math.fma
// CHECK: math.exp2
func.func @read(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %c = arith.constant 0.125 : f32
  %cs = tile.broadcast %c like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.mulf %s, %cs : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %p = arith.mulf %e, %x : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}

// -----

// Scores with something added may be as low as numbers are, where no error of the
// row's number is small.
// CHECK-LABEL: tile.program @biased_kernel(
// CHECK: math.exp %
// CHECK-NOT: math.exp2
// CHECK: tile.return
func.func @biased(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %b: tensor<?x1xf32>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %bs = tile.broadcast %b like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.addf %s, %bs : tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}

// -----

// Nothing rounds the sum of the powers, but the scores are of rounded factors. What
// else the kernel does with such a sum may count on each bit: the power says itself
// that it may be approximate.
// CHECK-LABEL: tile.program @summed_kernel(
// CHECK-NOT: math.exp %
// CHECK: math.exp2 %{{.*}} fastmath<afn>
// CHECK: tile.return
func.func @summed(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> (tensor<?x64xbf16>, tensor<?x1xf32>) {
  %x = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r, %l : tensor<?x64xbf16>, tensor<?x1xf32>
}
