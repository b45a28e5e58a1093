// RUN: tile-opt %s --fuse --schedule='target=sm_90' | FileCheck %s
// RUN: not tile-opt %s --fuse --schedule='target=sm_90 schedule="linear_kernel: rows=2"' 2>&1 | FileCheck %s --check-prefix=PINNED

// PINNED: error: schedule #tile.schedule<rows = 2> is pinned for kernel @linear_kernel, which multiplies; products have no fields to choose

// CHECK-LABEL: tile.kernel @linear_kernel(
// CHECK-SAME:      schedule = #tile.schedule<rows = 128, threads = 128, vector = 2, columns = 128, stages = 4>
func.func @linear(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: tile.kernel @wide_kernel(
// CHECK-SAME:      schedule = #tile.schedule<rows = 64, threads = 256, vector = 1, columns = 64>
func.func @wide(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
