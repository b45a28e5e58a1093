// RUN: tile-opt %s --fuse --schedule=target=sm_90a --tile=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// The gradients of keys and values where warps have roles. A warp copies the
// numbers of the queries of a step, whose barriers stand for them as for boxes,
// and the other role reads them where it needs them. It waits for a step once:
// the products of the step before read what inner ones have waited for. Factors
// are rounded before what lies beyond the last query is masked.
// CHECK-LABEL: tile.program @gradients_kernel(
// CHECK:         %[[NUMBERS:.*]] = tile.make_numbers : memref<4x64xf32
// CHECK:         tile.buffer {{.*}} memref<2x128x64xbf16
// CHECK:         %[[Q:.*]] = tile.buffer {{.*}} : memref<4x64x64xbf16
// CHECK:         %[[FULL:.*]] = tile.make_barriers arrivals 2 : <4>
// CHECK-NEXT:    %[[EMPTY:.*]] = tile.make_barriers arrivals 8 : <4>
// CHECK:         tile.roles warps [4, 8] threads [32, 256]
// CHECK:           tile.await %[[EMPTY]]
// CHECK-NEXT:      tile.expect 16384 bytes at %[[FULL]]
// CHECK:           tile.copy_numbers %{{.*}} to %[[NUMBERS]]
// CHECK-NEXT:      tile.arrive at %[[FULL]][%{{.*}}] warps
// CHECK:         }, {
// Ahead of the loop, the first step has begun.
// CHECK:           tile.await %[[FULL]]
// CHECK:           tile.take_numbers %[[NUMBERS]]
// CHECK:           scf.for
// CHECK-NOT:         tile.await
// CHECK:             %[[LAST_Q:.*]]:2 = tile.get_tiles %[[Q]], %{{.*}}[%{{.*}}]
// CHECK:             tile.await %[[FULL]]
// CHECK-NOT:         tile.await
// CHECK:             tile.take_numbers %[[NUMBERS]]
// CHECK:             tile.take_turn
// CHECK:             %[[S:.*]] = tile.dot {{.*}} -> !tile.pending<tensor<128x64xf32
// CHECK:             %[[DP:.*]] = tile.dot {{.*}} -> !tile.pending<tensor<128x64xf32
// CHECK:             tile.dot %{{.*}}, %[[LAST_Q]]#0, %{{.*}} contract [1, 0]
// CHECK:             tile.pass_turn
// CHECK:             tile.wait_dots 3 of %[[S]]
// CHECK:             %[[P:.*]] = arith.truncf
// CHECK:             scf.if
// CHECK:               arith.select {{.*}} : tensor<128x64xi1, {{.*}}>, tensor<128x64xbf16
// CHECK:             tile.wait_dots 1 of %[[DP]]
// CHECK:             tile.arrive at %[[EMPTY]][%{{.*}}] warps
func.func @gradients(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %dy: tensor<?x64xbf16>, %lse: tensor<?x1xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %ls = tile.broadcast %lse like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %s, %ls : tensor<?x?xf32>
  %p = math.exp %d : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dk, %dv : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// Where a step ends before the next one begins, there is no step ahead of the
// loop, and its own products follow its factors.
// CHECK-LABEL: tile.program @ended_kernel(
// CHECK:         }, {
// CHECK-NOT:       tile.dot
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               %[[S:.*]] = tile.dot {{.*}} contract [1, 1]
// CHECK:               tile.wait_dots 0 of %[[S]]
// CHECK:               %[[LEFT:.*]] = scf.if
// CHECK:               %[[BEGUN:.*]] = tile.begin_dots
// CHECK-NEXT:          %[[SUM:.*]] = tile.dot %[[LEFT]], %{{.*}}, %[[BEGUN]] contract [1, 0]
// CHECK-NEXT:          %[[NEXT:.*]] = tile.wait_dots 0 of %[[SUM]]
// CHECK-NEXT:          tile.arrive
// CHECK:               scf.yield %[[NEXT]]
func.func @ended(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>) -> tensor<?x64xf32> attributes {tile.schedule = #tile.matmul<steps = 1>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dk = tile.dot %p, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dk : tensor<?x64xf32>
}

// -----

// Nor is there another step's product to wait for where factors are summed along
// their rows: so both products read one copy of the keys, which is free behind
// the second one.
// CHECK-LABEL: tile.program @queries_kernel(
// CHECK:         tile.buffer {{.*}} : memref<2x128x64xbf16
// CHECK:         tile.buffer {{.*}} : memref<3x128x64xbf16
// CHECK-NOT:     tile.buffer
// CHECK:         }, {
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               %[[KEYS:.*]] = tile.await
// CHECK:               %[[S:.*]] = tile.dot %{{.*}}, %[[KEYS]] contract [1, 1]
// CHECK:               tile.wait_dots 0 of %[[S]]
// CHECK-NOT:           tile.arrive
// CHECK:               tile.dot %{{.*}}, %[[KEYS]], %{{.*}} contract [1, 0]
// CHECK:               tile.arrive
func.func @queries(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>) -> tensor<?x64xf32> attributes {tile.schedule = #tile.matmul<rows = 128, depth = 128, steps = 1>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dq = tile.dot %p, %k contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dq : tensor<?x64xf32>
}
