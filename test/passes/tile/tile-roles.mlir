// RUN: tile-opt %s --fuse --schedule=target=sm_90a --tile=target=sm_90a --canonicalize -split-input-file | FileCheck %s

// On Hopper, one thread copies boxes of the factors ahead, and two warpgroups
// multiply. The blocks of a cluster copy half of the right factor each, to both.
// CHECK-LABEL: tile.program @product_kernel(
// CHECK-SAME:      box = [128, 64], swizzle = 128> {tile.dimensions = ["m", "k"]}
// CHECK-SAME:      box = [128, 64], swizzle = 128> {tile.dimensions = ["n", "k"]}
// CHECK-SAME:      box = [16, 64], swizzle = 128> {tile.dimensions = ["m", "n"]}
// CHECK-SAME:      programs = {m = 256 : i64, n = 256 : i64}
// CHECK-SAME:      roles = 2, cluster = 2
// CHECK:         %[[X:.*]] = tile.buffer {offset = 0 : i64} : memref<4x128x64xbf16
// CHECK:         %[[W:.*]] = tile.buffer {offset = 65536 : i64} : memref<4x256x64xbf16
// CHECK:         %[[FULL:.*]] = tile.make_barriers arrivals 1
// CHECK:         %[[EMPTY:.*]] = tile.make_barriers arrivals 4
// CHECK:         tile.roles warps [4, 8] threads [1, 256] registers [40, 232]
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               tile.await %[[EMPTY]]
// CHECK:               tile.expect 49152 bytes at %[[FULL]]
// CHECK:               tile.copy_box {{.*}} to %[[X]]
// CHECK:               tile.copy_box {{.*}} to %[[W]][{{.*}}] row {{.*}} blocks
// CHECK:         }, {
// The sums' constant stays in the role, whose threads hold the tile.
// CHECK:           arith.constant dense<0.000000e+00> : tensor<128x256xf32, #tile.mma<warps = 8>>
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               tile.await %[[FULL]]
// CHECK:               tile.dot
// CHECK:               tile.wait_dots 1
// CHECK:               tile.arrive at %[[EMPTY]][{{.*}}] cluster
// CHECK:             tile.wait_dots 0
// Four parts of 64 columns, through two slots in turn.
// CHECK-COUNT-4:     tile.store_box {{.*}} warp
// What boxes do not take, threads copy.
// CHECK-LABEL: tile.program @product_kernel_unaligned(
// CHECK-SAME:      roles = 1, cluster = 1
// CHECK:         tile.copy_tile
// CHECK-LABEL: func @product(
// CHECK:         tile.launch [@product_kernel, @product_kernel_unaligned]
func.func @product(%x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>) -> tensor<?x?xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x?xbf16>, tensor<?x?xbf16> -> tensor<?x?xf32>
  %1 = arith.truncf %0 : tensor<?x?xf32> to tensor<?x?xbf16>
  return %1 : tensor<?x?xbf16>
}

// -----

// Two products share the left factor, and the registers that hold sums.
// CHECK-LABEL: tile.program @gated_kernel(
// CHECK-SAME:      programs = {m = 256 : i64, n = 128 : i64}
// CHECK:         tile.buffer {offset = 0 : i64} : memref<4x128x64xbf16
// CHECK:         tile.buffer {offset = 65536 : i64} : memref<4x128x64xbf16
// CHECK:         tile.buffer {offset = 131072 : i64} : memref<4x128x64xbf16
// CHECK:               tile.dot
// CHECK:               tile.dot
// CHECK:               tile.wait_dots 2
func.func @gated(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>, %u: tensor<512x64xbf16>) -> tensor<?x512xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  %1 = tile.dot %x, %u contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  %2 = arith.mulf %0, %1 : tensor<?x512xf32>
  return %2 : tensor<?x512xf32>
}

// -----

// Products of 8-bit floats begin at zero in each step, 128 columns at a time, and
// are added to the sums as floats. The first part's are before the second wait.
// CHECK-LABEL: tile.program @small_kernel(
// CHECK-SAME:      box = [128, 128], swizzle = 128> {tile.dimensions = ["m", "k"]}
// CHECK-SAME:      rows = 128, columns = 256, depth = 128, threads = 384
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               tile.expect 49152 bytes
// CHECK:         }, {
// CHECK:           %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x128xf32
// CHECK:             %[[SUMS:.*]]:3 = scf.for {{.*}} iter_args(%[[LEFT:.*]] = %[[ZERO]], %[[RIGHT:.*]] = %[[ZERO]],
// CHECK:               %[[F:.*]]:2 = tile.await
// CHECK:               %[[P0:.*]] = tile.dot %[[F]]#0, %[[F]]#1 contract [1, 1] : memref<128x128xf8E4M3FN
// CHECK-SAME:              -> !tile.pending<tensor<128x128xf32
// CHECK:               %[[D0:.*]] = tile.wait_dots 0 of %[[P0]]
// CHECK:               %[[S0:.*]] = arith.addf %[[LEFT]], %[[D0]]
// CHECK:               tile.wait_dots 0 after %[[S0]]
// CHECK:               tile.await
// CHECK:               %[[P1:.*]] = tile.dot {{.*}} contract [1, 1] column 128
// CHECK:               %[[D1:.*]] = tile.wait_dots 0 of %[[P1]]
// CHECK:               tile.arrive
// CHECK:               arith.addf %[[RIGHT]], %[[D1]]
// CHECK:             tile.join %[[SUMS]]#0, %[[SUMS]]#1
// CHECK-LABEL: tile.program @small_kernel_unaligned(
// CHECK-SAME:      roles = 1
func.func @small(%x: tensor<?x?xf8E4M3FN>, %w: tensor<?x?xf8E4M3FN>) -> tensor<?x?xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x?xf8E4M3FN>, tensor<?x?xf8E4M3FN> -> tensor<?x?xf32>
  %1 = arith.truncf %0 : tensor<?x?xf32> to tensor<?x?xbf16>
  return %1 : tensor<?x?xbf16>
}

// -----

// Rows of 60 elements are no multiple of 16 bytes, which boxes need.
// CHECK-LABEL: tile.program @short_kernel(
// CHECK-NOT:     tile.roles
func.func @short(%x: tensor<?x60xbf16>, %w: tensor<512x60xbf16>) -> tensor<?x512xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x60xbf16>, tensor<512x60xbf16> -> tensor<?x512xf32>
  return %0 : tensor<?x512xf32>
}

// -----

// Where the left factor is computed, the rows of inner products are copied once
// for a tile, those of the next tile ahead of time, and both right factors have
// stages of their own. Three warpgroups
// have 64 rows each. Behind the first step, inner products run ahead of the
// products of the step before, which are there once the maximum is, and ahead of
// the powers. Those of the last step stand behind the loop. A warpgroup has
// waited for what inner products read when its turn comes, and waits for what the
// others do once these have begun.
// CHECK-LABEL: tile.program @attention_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 192, columns = 64, depth = 128, threads = 512, vector = 2, stages = 3, roles = 2, cluster = 1>
// CHECK:         %[[Q:.*]] = tile.buffer {offset = 0 : i64} : memref<2x192x64xbf16
// CHECK:         %[[K:.*]] = tile.buffer {offset = 49152 : i64} : memref<3x128x64xbf16
// CHECK:         %[[V:.*]] = tile.buffer {offset = 98304 : i64} : memref<3x128x64xbf16
// CHECK:         tile.roles warps [4, 12] threads [1, 384] registers [32, 160]
// CHECK:           tile.copy_box {{.*}} to %[[Q]]
// CHECK:           scf.for
// CHECK:             tile.copy_box {{.*}} to %[[K]]
// CHECK:             tile.copy_box {{.*}} to %[[V]]
// CHECK:         }, {
// CHECK:           %[[ROWS:.*]] = tile.await {{.*}} of %[[Q]]
// CHECK:             tile.dot %[[ROWS]], %{{.*}} contract [1, 1]
// CHECK:             tile.wait_dots 0
// CHECK:             %[[FIRST:.*]] = math.exp2 {{.*}} : tensor<192x128xf32
// CHECK:             %[[FACTOR:.*]] = arith.truncf %[[FIRST]]
// CHECK:           %[[SUMS:.*]]:5 = scf.for {{.*}} = %[[FACTOR]]
// CHECK:             %[[KEYS:.*]] = tile.await {{.*}} of %[[K]]
// CHECK:             tile.take_turn
// CHECK:             %[[S:.*]] = tile.dot %[[ROWS]], %[[KEYS]] contract [1, 1]
// CHECK:             %[[VALUES:.*]] = tile.await {{.*}} of %[[V]]
// CHECK:             %[[O:.*]] = tile.dot %{{.*}}, %[[VALUES]], %{{.*}} contract [1, 0]
// CHECK:             tile.pass_turn
// CHECK:             tile.wait_dots 1 of %[[S]]
// CHECK:             tile.arrive
// CHECK:             %[[MOST:.*]] = arith.maximumf {{.*}} : tensor<192x1xf32
// CHECK:             %[[P:.*]] = math.exp2 {{.*}} : tensor<192x128xf32
// CHECK:             %[[READY:.*]]:2 = tile.wait_dots 0 of %[[O]] after %[[MOST]]
// CHECK:             arith.truncf %[[P]]
// CHECK:             arith.mulf %[[READY]]#0
// CHECK:             tile.arrive
// CHECK:           %[[VALUES:.*]] = tile.await {{.*}} of %[[V]]
// CHECK:           tile.dot %[[SUMS]]#3, %[[VALUES]], %{{.*}} contract [1, 0]
// CHECK:           tile.reduce add %[[SUMS]]#1
// CHECK:           tile.store_box
func.func @attention(%q: tensor<?x?x64xbf16>, %k: tensor<?x?x64xbf16>, %v: tensor<?x?x64xbf16>) -> tensor<?x?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %m = tile.reduce max %s : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?x?xf32>
  %e = math.exp %d : tensor<?x?x?xf32>
  %l = tile.reduce add %e : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x64xf32>
  %r = arith.truncf %o : tensor<?x?x64xf32> to tensor<?x?x64xbf16>
  return %r : tensor<?x?x64xbf16>
}

// -----

// The gradients of keys and values sum over queries, the rows of the factors
// that they compute. The keys and the values of a tile are copied once, and the
// queries and the gradients of their results in steps: inner products and sums
// read the same stages, of which a step and the one before hold one each. Numbers
// of queries come through shared memory as well.
// CHECK-LABEL: tile.program @gradients_kernel(
// CHECK-SAME:      programs = {b0 = 1 : i64, m = 128 : i64, n = 64 : i64}
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 1>
// CHECK-DAG:     %[[K:.*]] = tile.buffer {offset = 0 : i64} : memref<2x128x64xbf16
// CHECK-DAG:     %[[V:.*]] = tile.buffer {offset = 32768 : i64} : memref<2x128x64xbf16
// CHECK-DAG:     %[[Q:.*]] = tile.buffer {offset = 65536 : i64} : memref<4x64x64xbf16
// CHECK-DAG:     %[[DY:.*]] = tile.buffer {offset = 98304 : i64} : memref<4x64x64xbf16
// CHECK-NOT:     tile.buffer
// CHECK:         tile.roles warps [4, 8]
// CHECK:           tile.copy_box {{.*}} to %[[K]]
// CHECK:           tile.copy_box {{.*}} to %[[V]]
// CHECK:           scf.for
// CHECK:             tile.copy_box {{.*}} to %[[Q]]
// CHECK:             tile.copy_box {{.*}} to %[[DY]]
// CHECK:             tile.copy_numbers
// CHECK:         }, {
// CHECK:           %[[ROWS:.*]]:2 = tile.await {{.*}} of %[[K]], %[[V]]
// CHECK:           scf.for {{.*}} -> (tensor<128x64xf32, {{.*}}>, tensor<128x64xf32, {{.*}}>, tensor<128x64xbf16, {{.*}}>, tensor<128x64xbf16, {{.*}}>, index)
// CHECK:             %[[LAST:.*]]:2 = tile.get_tiles %[[Q]], %[[DY]]
// CHECK:             %[[STEP:.*]]:2 = tile.await {{.*}} of %[[Q]], %[[DY]]
// CHECK:             tile.take_numbers {{.*}} -> tensor<1x64xf32
// CHECK:             tile.take_turn
// CHECK:             %[[S:.*]] = tile.dot %[[ROWS]]#0, %[[STEP]]#0 contract [1, 1] {{.*}} -> !tile.pending<tensor<128x64xf32
// CHECK:             %[[DP:.*]] = tile.dot %[[ROWS]]#1, %[[STEP]]#1 contract [1, 1]
// CHECK:             %[[DV:.*]] = tile.dot %{{.*}}, %[[LAST]]#1, %{{.*}} contract [1, 0]
// CHECK:             %[[DK:.*]] = tile.dot %{{.*}}, %[[LAST]]#0, %{{.*}} contract [1, 0]
// CHECK:             tile.wait_dots 3 of %[[S]]
// CHECK:             math.exp2
// CHECK:             tile.wait_dots 1 of %[[DV]]
// CHECK:             tile.wait_dots 1 of %[[DP]]
// CHECK-NOT:         tile.arrive
// CHECK:             tile.wait_dots 0 of %[[DK]]
// CHECK:             tile.arrive
// What boxes do not take, threads copy.
// CHECK-LABEL: tile.program @gradients_kernel_unaligned(
// CHECK-SAME:      roles = 1, cluster = 1
func.func @gradients(%q: tensor<?x?x64xbf16>, %k: tensor<?x?x64xbf16>, %v: tensor<?x?x64xbf16>, %dy: tensor<?x?x64xbf16>, %lse: tensor<?x?x1xf32>) -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %ls = tile.broadcast %lse like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %s, %ls : tensor<?x?x?xf32>
  %p = math.exp %d : tensor<?x?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x64xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x64xf32>
  return %dk, %dv : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}

// -----

// Heads that share keys: a program goes through the queries of one head after
// the other, and copies the keys once.
// CHECK-LABEL: tile.program @shared_kernel(
// CHECK:         tile.roles
// CHECK:           scf.for
// CHECK:             tile.copy_box {{.*}} memref<2x128x64xbf16
// CHECK:             scf.for
// CHECK:               scf.for
// CHECK:                 tile.copy_box {{.*}} memref<4x{{.*}}x64xbf16
// CHECK:         }, {
// CHECK:           scf.for
// CHECK:             tile.await {{.*}} of
// CHECK:             scf.for
// CHECK:               scf.for
// CHECK:                 tile.dot
// CHECK:                 math.tanh
// CHECK:                 tile.dot
func.func @shared(%q: tensor<?x?x64xbf16>, %k: tensor<1x?x64xbf16>) -> tensor<1x?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<1x?x64xbf16> -> tensor<?x?x?xf32>
  %p = math.tanh %s : tensor<?x?x?xf32>
  %dk = tile.dot %p, %q contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<1x?x64xf32>
  return %dk : tensor<1x?x64xf32>
}

// -----

// Of keys that see all later queries, the first ones have the most steps. Where
// the cache holds all queries and gradients that are streamed, programs take the
// first tiles of all matrices ahead, and every other turn in reverse. Elsewhere
// a program has the two tiles of a pair one after the other, as far from both
// ends of the keys, the first one ahead. Of two matrices, the tiles in the middle
// may be a pair.
// CHECK-LABEL: tile.program @first_keys_kernel(
// CHECK:         tile.roles
// CHECK:           scf.for %[[PLACE:[a-z0-9]+]] = %
// CHECK:             %[[FITS:.*]] = arith.cmpi ule, %{{.*}}, %c33554432
// CHECK:             scf.if %[[FITS]]
// CHECK:               %[[IN_TURN:.*]] = arith.remui %[[PLACE]], %{{.*}}
// CHECK:               %{{.*}} = arith.subi %{{.*}}, %[[IN_TURN]]
// CHECK:               arith.select %{{.*}}, %{{.*}}, %[[IN_TURN]]
// CHECK:             } else {
// CHECK:               %[[LAST:.*]] = arith.subi %{{.*}}, %c1{{[_0-9]*}} : index
// CHECK-NEXT:          %[[FROM_OTHER:.*]] = arith.subi %[[LAST]], %[[FROM_END:.*]] : index
// CHECK:               arith.select %{{.*}}, %[[FROM_END]], %[[FROM_OTHER]]
func.func @first_keys(%q: tensor<?x?x64xbf16>, %k: tensor<?x?x64xbf16>, %dy: tensor<?x?x64xbf16>, %lse: tensor<?x?x1xf32>) -> tensor<?x?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %key = tile.iota like %s : tensor<?x?x?xi32>, tensor<?x?x?xf32>
  %row = tile.iota over [1] like %s : tensor<?x?x1xi32>, tensor<?x?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x?x1xi32>, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  %seen = arith.cmpi sle, %key, %query : tensor<?x?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?x?xi1>, tensor<?x?x?xf32>
  %ls = tile.broadcast %lse like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %x, %ls : tensor<?x?x?xf32>
  %p = math.exp %d : tensor<?x?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x64xf32>
  return %dv : tensor<?x?x64xf32>
}
