// RUN: tile-opt %s --fuse --schedule='target=sm_90' | FileCheck %s
// RUN: tile-opt %s --fuse --schedule='target=host' | FileCheck %s --check-prefix=HOST
// RUN: tile-opt %s --fuse --schedule='target=sm_80' | FileCheck %s --check-prefix=OLD

// Products of 16-bit matrices run on tensor cores.
// CHECK-LABEL: tile.kernel @linear_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 128, depth = 32, threads = 128, vector = 2, stages = 4>
// On the host a block is one thread.
// HOST-LABEL: tile.kernel @linear_kernel(
// HOST-SAME:      schedule = #tile.matmul<rows = {{[0-9]+}}, columns = 4, threads = 1, vector = 4>
func.func @linear(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// So do those of 8-bit floats along their rows, on GPUs that have them.
// CHECK-LABEL: tile.kernel @small_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 128, vector = 2, stages = 4>
// OLD-LABEL: tile.kernel @small_kernel(
// OLD-SAME:      schedule = #tile.matmul<rows = 64, columns = 64, threads = 256, vector = 1>
func.func @small(%x: tensor<?x64xf8E4M3FN>, %w: tensor<96x64xf8E4M3FN>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf8E4M3FN>, tensor<96x64xf8E4M3FN> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: tile.kernel @small_columns_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 64, columns = 64, threads = 256, vector = 1>
func.func @small_columns(%x: tensor<?x64xf8E5M2>, %w: tensor<64x96xf8E5M2>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 0] : tensor<?x64xf8E5M2>, tensor<64x96xf8E5M2> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: tile.kernel @wide_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 64, columns = 64, threads = 256, vector = 1>
func.func @wide(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// What is pinned in a function is for its kernels of that kind, here the
// product and not the sum behind it.
// CHECK-LABEL: tile.kernel @pinned_kernel0(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, depth = 32, threads = 128, vector = 2, stages = 4>
// CHECK-LABEL: tile.kernel @pinned_kernel1(
// CHECK-SAME:      schedule = #tile.rows<
// A tile that is for many threads is not for the host.
// HOST-LABEL: tile.kernel @pinned_kernel0(
// HOST-SAME:      schedule = #tile.matmul<rows = {{[0-9]+}}, columns = 4, threads = 1, vector = 4>
func.func @pinned(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x1xf32>
    attributes {tile.schedule = #tile.matmul<columns = 64, threads = 128>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %1 = tile.reduce add %0 : tensor<?x96xf32> -> tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}
