// RUN: tile-opt %s --fuse=target=sm_90a --schedule=target=sm_90a -split-input-file | FileCheck %s

// Where warps have roles, a step of a transposed factor is as long as leaves
// registers and shared memory beside the sums: 64 queries beside 128 columns.
// CHECK-LABEL: tile.kernel @wide_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 128, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 1>
// CHECK-SAME:    unaligned_schedule = #tile.matmul<{{.*}} roles = 1, cluster = 1>
func.func @wide(%q: tensor<?x128xbf16>, %k: tensor<?x128xbf16>, %v: tensor<?x128xbf16>, %dy: tensor<?x128xbf16>) -> tensor<?x128xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  return %dk : tensor<?x128xf32>
}

// -----

// Two sums of 128 columns, of one set of scores, leave no registers for the
// factors of another step beside 64 queries: each step ends before the next one
// begins.
// CHECK-LABEL: tile.kernel @both_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 128, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 1, steps = 1>
func.func @both(%q: tensor<?x128xbf16>, %k: tensor<?x128xbf16>, %v: tensor<?x128xbf16>, %dy: tensor<?x128xbf16>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  return %dk, %dv : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// Three numbers of each query in four stages, and the barriers behind them, do
// not fit beside the boxes: there are three stages.
// CHECK-LABEL: tile.kernel @numbers_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 128, depth = 64, threads = 384, vector = 2, stages = 3, roles = 2, cluster = 1, steps = 1>
func.func @numbers(%q: tensor<?x128xbf16>, %k: tensor<?x128xbf16>, %v: tensor<?x128xbf16>, %dy: tensor<?x128xbf16>, %lse: tensor<?x1xf32>, %delta: tensor<?x1xf32>, %slope: tensor<?x1xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %slopes = tile.broadcast %slope like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %lses = tile.broadcast %lse like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %deltas = tile.broadcast %delta like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %biased = arith.mulf %s, %slopes : tensor<?x?xf32>
  %x = arith.subf %biased, %lses : tensor<?x?xf32>
  %p = math.exp %x : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %less = arith.subf %dp, %deltas : tensor<?x?xf32>
  %ds = arith.mulf %p, %less : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  return %dk, %dv : tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

// A schedule may have each step end before the next one begins.
// CHECK-LABEL: tile.kernel @ended_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 1, steps = 1>
func.func @ended(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %dy: tensor<?x64xbf16>) -> tensor<?x64xf32> attributes {tile.schedule = #tile.matmul<steps = 1>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dk : tensor<?x64xf32>
}

// -----

// The rows of two inner products would take half of the shared memory here, and
// leave none for the three stages of a step: there is one warpgroup.
// CHECK-LABEL: tile.kernel @widest_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 64, columns = 256, depth = 32, threads = 256, vector = 2, stages = 4, roles = 2, cluster = 1>
func.func @widest(%q: tensor<?x256xbf16>, %k: tensor<?x256xbf16>, %v: tensor<?x256xbf16>, %dy: tensor<?x256xbf16>) -> tensor<?x256xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x256xbf16>, tensor<?x256xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x256xbf16>, tensor<?x256xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x256xbf16> -> tensor<?x256xf32>
  return %dk : tensor<?x256xf32>
}

// -----

// Boxes do not take rows of 120 bytes.
// CHECK-LABEL: tile.kernel @short_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 256, vector = 2, stages = 2>
func.func @short(%q: tensor<?x60xbf16>, %k: tensor<?x60xbf16>, %v: tensor<?x60xbf16>, %dy: tensor<?x60xbf16>) -> tensor<?x60xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x60xbf16>, tensor<?x60xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x60xbf16>, tensor<?x60xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x60xbf16> -> tensor<?x60xf32>
  return %dk : tensor<?x60xf32>
}

// -----

// Each head of a group has keys of its own to multiply, which boxes would have
// to copy again for each of them.
// CHECK-LABEL: tile.kernel @own_keys_kernel(
// CHECK-SAME:    schedule = #tile.matmul<
// CHECK-NOT:     roles
// CHECK-SAME:    space
func.func @own_keys(%q: tensor<?x?x64xbf16>, %k: tensor<?x?x64xbf16>) -> tensor<1x?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %p = math.exp %s : tensor<?x?x?xf32>
  %dk = tile.dot %p, %q contract [0, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<1x?x64xf32>
  return %dk : tensor<1x?x64xf32>
}
