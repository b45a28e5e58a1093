// RUN: tile-opt %s --fuse=target=sm_90a --split-crossed=target=sm_90a | FileCheck %s --check-prefixes=CHECK,SPLIT
// RUN: tile-opt %s --fuse=target=sm_90a --split-crossed=target=sm_90a --schedule=target=sm_90a --tile=target=sm_90a --canonicalize --cse | FileCheck %s --check-prefix=TILED
// RUN: tile-opt %s --fuse=target=sm_80 --split-crossed=target=sm_80 | FileCheck %s --check-prefixes=CHECK,WHOLE

!x = tensor<?x128xbf16>
!sums = tensor<?x128xf32>
!scores = tensor<?x?xf32>
!factor = tensor<?x?xbf16>

// The kernel over columns returns its sums, and what follows them by constants is
// a kernel, behind both.
// CHECK-LABEL: tile.kernel @scaled_kernel0(
// SPLIT-SAME: -> tensor<?x128xf32>
// SPLIT: %[[SUMS:.*]] = tile.dot %{{.*}}, %{{.*}} contract [1, 0]
// SPLIT-NEXT: tile.return %[[SUMS]]
// SPLIT: tile.kernel @scaled_kernel0_end(%[[ALL:.*]]: tensor<?x128xf32>) -> tensor<?x128xbf16>
// SPLIT-DAG: %[[HALF:.*]] = arith.constant 5.0
// SPLIT: %[[HALVES:.*]] = tile.broadcast %[[HALF]] like %[[ALL]]
// SPLIT: %[[SCALED:.*]] = arith.mulf %[[ALL]], %[[HALVES]]
// SPLIT: arith.truncf %[[SCALED]]
// WHOLE-SAME: -> tensor<?x128xbf16>
// WHOLE-NOT: @scaled_kernel0_end
// CHECK-LABEL: func.func @scaled(
// SPLIT: %[[L:.*]] = tile.launch [@scaled_kernel0]
// SPLIT-NEXT: tile.launch [@scaled_kernel1]
// SPLIT-NEXT: tile.launch [@scaled_kernel0_end](%[[L]])
//
// One program has both kernels, and a role that adds to memory. Programs of
// few tiles come after each other where boxes do not take operands.
// TILED-LABEL: tile.program @scaled_kernel1_unaligned(
// TILED-SAME: tile.counters = {k = 64 : i64}
// TILED-SAME: merged = ["scaled_kernel0"]
// TILED: %[[COUNT:.*]] = tile.program_count
// TILED: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[COUNT]]
// TILED: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[COUNT]]
// TILED-LABEL: tile.program @scaled_kernel1(
// TILED-SAME: %[[SUMS:[a-z0-9]*]]: !tile.tensor_map<memref<?x128xf32, strided<[?, 1]>>, box = [64, 32], swizzle = 128> {tile.dimensions = ["k", "n"]}, %[[COUNTERS:[a-z0-9]*]]: memref<?xi32> {tile.counters = {k = 64 : i64}}
// TILED-SAME: merged = ["scaled_kernel0"]
// TILED-SAME: schedule = #tile.launch<threads = 384>
// TILED: tile.roles warps [2, 2, 8] threads [1, 1, 256] registers [24, 24, 240] {
// TILED: }, {
// TILED: %[[LAST:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[BEFORE:.*]] = %{{.*}}, %[[COUNT:.*]] = %{{.*}})
// TILED: scf.if
// TILED-NEXT: tile.await_count %[[COUNTERS]][%[[TURN:.*]]] reaches
// TILED: scf.if
// TILED-NEXT: tile.store_box %[[PARTS:.*]][{{.*}}] to %[[SUMS]]
// TILED-NEXT: } else {
// TILED-NEXT: tile.store_box %[[PARTS]][{{.*}}] to %[[SUMS]][{{.*}}] add
// TILED: tile.release_count %[[COUNTERS]][%[[BEFORE]]] to %[[COUNT]] pending 1
// TILED: tile.wait_stores 0
// TILED: tile.release_count %[[COUNTERS]][%[[LAST]]#1] to %[[LAST]]#2 :
// TILED: }, {
// TILED: scf.for
// TILED: tile.keep %[[DS:.*]], %[[FACTORS:.*]][
// TILED: tile.dot %{{.*}} contract [0, 0]
// TILED: tile.dot %[[DS]], %{{.*}} contract [1, 0]
// TILED: %[[PART:.*]] = tile.wait_dots 2 of
// TILED: tile.keep %[[PART]], %[[PARTS]][{{.*}}] transposed
func.func @scaled(%q: !x, %k: !x, %v: !x, %g: !x) -> (!x, !x, !x) {
  %s = tile.dot %q, %k contract [1, 1] : !x, !x -> !scores
  %t = math.tanh %s : !scores
  %dt = tile.dot %g, %v contract [1, 1] : !x, !x -> !scores
  %d = arith.mulf %t, %dt : !scores
  %p16 = arith.truncf %t : !scores to !factor
  %d16 = arith.truncf %d : !scores to !factor
  %a = tile.dot %d16, %k contract [1, 0] : !factor, !x -> !sums
  %b = tile.dot %d16, %q contract [0, 0] : !factor, !x -> !sums
  %c = tile.dot %p16, %g contract [0, 0] : !factor, !x -> !sums
  %half = arith.constant 0.5 : f32
  %halves = tile.broadcast %half like %q : f32, !x -> !sums
  %scaled = arith.mulf %a, %halves : !sums
  %dq = arith.truncf %scaled : !sums to !x
  %dk = arith.truncf %b : !sums to !x
  %dv = arith.truncf %c : !sums to !x
  return %dq, %dk, %dv : !x, !x, !x
}

// What follows needs more than the sums.
// CHECK-LABEL: tile.kernel @of_rows_kernel0(
// CHECK-SAME: -> tensor<?x128xbf16>
// CHECK-NOT: _end
func.func @of_rows(%q: !x, %k: !x, %v: !x, %g: !x) -> (!x, !x, !x) {
  %s = tile.dot %q, %k contract [1, 1] : !x, !x -> !scores
  %t = math.tanh %s : !scores
  %dt = tile.dot %g, %v contract [1, 1] : !x, !x -> !scores
  %d = arith.mulf %t, %dt : !scores
  %p16 = arith.truncf %t : !scores to !factor
  %d16 = arith.truncf %d : !scores to !factor
  %a = tile.dot %d16, %k contract [1, 0] : !factor, !x -> !sums
  %b = tile.dot %d16, %q contract [0, 0] : !factor, !x -> !sums
  %c = tile.dot %p16, %g contract [0, 0] : !factor, !x -> !sums
  %wide = arith.extf %q : !x to !sums
  %scaled = arith.mulf %a, %wide : !sums
  %dq = arith.truncf %scaled : !sums to !x
  %dk = arith.truncf %b : !sums to !x
  %dv = arith.truncf %c : !sums to !x
  return %dq, %dk, %dv : !x, !x, !x
}

// Tiles with later rows do not have more steps.
// CHECK-LABEL: tile.kernel @window_kernel0(
// CHECK-SAME: -> tensor<?x128xbf16>
// CHECK-NOT: _end
func.func @window(%q: !x, %k: !x, %v: !x, %g: !x) -> (!x, !x, !x) {
  %s = tile.dot %q, %k contract [1, 1] : !x, !x -> !scores
  %t = math.tanh %s : !scores
  %i = tile.iota over [0] like %t : tensor<?x1xi32>, !scores
  %is = tile.broadcast %i like %t : tensor<?x1xi32>, !scores -> tensor<?x?xi32>
  %j = tile.iota like %t : tensor<?x?xi32>, !scores
  %far = arith.subi %is, %j : tensor<?x?xi32>
  %most = arith.constant 100 : i32
  %mosts = tile.broadcast %most like %t : i32, !scores -> tensor<?x?xi32>
  %near = arith.cmpi slt, %far, %mosts : tensor<?x?xi32>
  %zero = arith.constant 0.0 : f32
  %zeros = tile.broadcast %zero like %t : f32, !scores -> !scores
  %m = arith.select %near, %t, %zeros : tensor<?x?xi1>, !scores
  %dt = tile.dot %g, %v contract [1, 1] : !x, !x -> !scores
  %d = arith.mulf %m, %dt : !scores
  %p16 = arith.truncf %m : !scores to !factor
  %d16 = arith.truncf %d : !scores to !factor
  %a = tile.dot %d16, %k contract [1, 0] : !factor, !x -> !sums
  %b = tile.dot %d16, %q contract [0, 0] : !factor, !x -> !sums
  %c = tile.dot %p16, %g contract [0, 0] : !factor, !x -> !sums
  %half = arith.constant 0.5 : f32
  %halves = tile.broadcast %half like %q : f32, !x -> !sums
  %scaled = arith.mulf %a, %halves : !sums
  %dq = arith.truncf %scaled : !sums to !x
  %dk = arith.truncf %b : !sums to !x
  %dv = arith.truncf %c : !sums to !x
  return %dq, %dk, %dv : !x, !x, !x
}
