// RUN: tile-opt %s --fuse=target=sm_90a --split-crossed=target=sm_90a --schedule=target=sm_90a --tile=target=sm_90a --canonicalize --cse | FileCheck %s

!x = tensor<?x64xbf16>
!sums = tensor<?x64xf32>
!scores = tensor<?x?xf32>
!factor = tensor<?x?xbf16>

// With heads of 64, a fourth role multiplies what programs add up. The warpgroups
// give it the factor of a step in the next one, and wait for it before their results
// take the place of what it reads.
// CHECK-LABEL: tile.program @f_kernel1(
// CHECK-SAME: schedule = #tile.launch<threads = 512>
// CHECK: %[[WHOLE:.*]] = tile.buffer {{.*}} : memref<2x128x64xbf16
// CHECK: tile.roles warps [2, 2, 8, 4] threads [1, 1, 256, 128] registers [24, 24, 208, 72] {
// CHECK: }, {
// CHECK: tile.await_count
// CHECK: tile.await
// CHECK: tile.store_box %[[PARTS:.*]][{{.*}}] to
// CHECK: }, {
// CHECK: scf.if
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[DS:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) ->
// CHECK: tile.take_turn
// CHECK: tile.await %[[EMPTY:.*]][
// CHECK-NEXT: tile.keep %[[DS]], %[[FACTORS:.*]][
// CHECK-NEXT: tile.fence_shared
// CHECK-NEXT: tile.arrive at %[[FULL:.*]][{{.*}}] warps
// CHECK: tile.dot %[[DS]], %{{.*}} contract [1, 0]
// CHECK: tile.dot %[[P]], %{{.*}} contract [1, 0]
// CHECK: tile.pass_turn
// CHECK: tile.keep %[[DS_LAST:.*]], %[[FACTORS]][
// CHECK: tile.dot %[[DS_LAST]], %{{.*}} contract [1, 0]
// CHECK: tile.await %[[EMPTY]][
// CHECK: tile.await %[[EMPTY]][
// CHECK: tile.await %[[EMPTY]][
// CHECK: tile.synchronize
// CHECK: tile.store_box
// CHECK: }, {
// CHECK: %[[TILES:.*]]:2 = tile.await
// CHECK: %[[LAST:.*]]:2 = scf.for {{.*}} iter_args(%[[NUMBER:.*]] = %{{.*}}, %[[PART:.*]] = %{{.*}})
// CHECK: %[[FACTOR:.*]] = tile.await %[[FULL]][
// CHECK: %[[PRODUCT:.*]] = tile.dot %[[FACTOR]], %[[TILES]]#{{.}} contract [0, 0]
// CHECK: scf.if
// CHECK: tile.keep %[[PART]], %[[PARTS]][
// CHECK: %[[NEXT:.*]] = tile.wait_dots 0 of %[[PRODUCT]]
// CHECK: tile.arrive at %[[EMPTY]][
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK: scf.if
// CHECK: tile.keep %[[LAST]]#1, %[[PARTS]][
func.func @f(%q: !x, %k: !x, %v: !x, %g: !x) -> (!sums, !sums, !sums) {
  %s = tile.dot %q, %k contract [1, 1] : !x, !x -> !scores
  %t = math.tanh %s : !scores
  %dt = tile.dot %g, %v contract [1, 1] : !x, !x -> !scores
  %d = arith.mulf %t, %dt : !scores
  %p16 = arith.truncf %t : !scores to !factor
  %d16 = arith.truncf %d : !scores to !factor
  %dq = tile.dot %d16, %k contract [1, 0] : !factor, !x -> !sums
  %dk = tile.dot %d16, %q contract [0, 0] : !factor, !x -> !sums
  %dv = tile.dot %p16, %g contract [0, 0] : !factor, !x -> !sums
  return %dq, %dk, %dv : !sums, !sums, !sums
}
