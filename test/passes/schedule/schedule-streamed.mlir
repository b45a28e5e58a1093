// RUN: tile-opt %s --fuse --schedule='target=sm_90' | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: tile-opt %s --fuse --schedule='target=sm_86' | FileCheck %s --check-prefixes=CHECK,SM86

// Two inner products and two sums share the registers with each other: a step is
// shorter.
// CHECK-LABEL: tile.kernel @one_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 256, vector = 2, stages = 2>
func.func @one(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// CHECK-LABEL: tile.kernel @two_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, depth = 32, threads = 256, vector = 2, stages = 2>
func.func @two(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %dy: tensor<?x64xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dk, %dv : tensor<?x64xf32>, tensor<?x64xf32>
}

// Wide heads have a kernel for each sum, with fewer rows where shared memory would
// not hold the whole rows of both inner products.
// CHECK-LABEL: tile.kernel @wide_kernel0(
// SM90-SAME:       schedule = #tile.matmul<rows = 128, columns = 128, depth = 64, threads = 256, vector = 2, stages = 2>
// CHECK-LABEL: tile.kernel @wide_kernel1(
// SM90-SAME:       schedule = #tile.matmul<rows = 128, columns = 128, depth = 32, threads = 256, vector = 2, stages = 2>
// SM86-SAME:       schedule = #tile.matmul<rows = 64, columns = 128, depth = 32, threads = 128, vector = 2, stages = 2>
func.func @wide(%q: tensor<?x128xbf16>, %k: tensor<?x128xbf16>, %v: tensor<?x128xbf16>, %dy: tensor<?x128xbf16>) -> (tensor<?x128xf32>, tensor<?x128xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  return %dk, %dv : tensor<?x128xf32>, tensor<?x128xf32>
}

// Without tensor cores, a thread has sums of fewer rows.
// CHECK-LABEL: tile.kernel @own_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 32, columns = 96, depth = 64, threads = 256, vector = 1>
func.func @own(%q: tensor<?x96xf32>, %k: tensor<?x96xf32>, %v: tensor<?x96xf32>, %dy: tensor<?x96xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
  return %dk, %dv : tensor<?x96xf32>, tensor<?x96xf32>
}
