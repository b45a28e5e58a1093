// RUN: tilec %s --explain --target=sm_90 | FileCheck %s

// A weight is counted once, and a product as long as its sums are.
// CHECK-LABEL: linear_kernel
// CHECK:         schedule {{ *}}rows = 128, columns = 128, depth = 32, threads = 128, vector = 2, stages = 4
// CHECK:         bytes moved {{.*}}(320 a row, 12288 once)
// CHECK:         operations {{ *}}12384 a row
// A block takes 4 parts of each factor, of 128 x 32 elements of 2 bytes.
// CHECK:         shared memory {{.*}}0 bytes a block, and [[#mul(mul(4,2),mul(mul(128,32),2))]] of tiles
func.func @linear(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %1 = arith.truncf %0 : tensor<?x96xf32> to tensor<?x96xbf16>
  return %1 : tensor<?x96xbf16>
}
