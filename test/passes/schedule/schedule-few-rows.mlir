// RUN: tile-opt %s --fuse --schedule=target=sm_90a | FileCheck %s
// RUN: tile-opt %s --fuse --schedule=target=sm_90a --tile=target=sm_90a | FileCheck %s --check-prefix=TILE

// Of few rows, all multiprocessors read a part of the weight: 64 tiles of 64
// columns, each in a cluster of two blocks. Of four blocks, no 32 clusters run at
// once.
// CHECK-LABEL: tile.kernel @square_kernel(
// CHECK-SAME:      few_rows = array<i64: 32, 64, 128, 256, 512, 768>
// CHECK-SAME:      few_rows_schedules = [
// CHECK-SAME:        #tile.matmul<rows = 64, columns = 64, depth = 64, threads = 256, vector = 2, stages = 8, roles = 2, cluster = 1, split = 2>
// CHECK-SAME:        #tile.matmul<rows = 64, columns = 64, depth = 64, threads = 256, vector = 2, stages = 8, roles = 2, cluster = 1, split = 2>
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 384, vector = 2, stages = 6, roles = 2, cluster = 1, split = 2>
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 384, vector = 2, stages = 8, roles = 2, cluster = 1, split = 1>
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 128, depth = 64, threads = 384, vector = 2, stages = 6, roles = 2, cluster = 1, split = 1>
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 192, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 1, split = 1>]
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 256, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 2>
// The program for more rows comes first, for calls that have them.
// TILE-LABEL: tile.program @square_kernel(
// TILE-SAME:      least = {m = 769 : i64}
// TILE-LABEL: tile.program @square_kernel_768_rows(
// TILE-SAME:      least = {m = 513 : i64}
// TILE-SAME:      programs = {m = 128 : i64, n = 192 : i64}
// TILE-LABEL: tile.program @square_kernel_512_rows(
// TILE-SAME:      least = {m = 257 : i64}
// TILE-SAME:      programs = {m = 128 : i64, n = 128 : i64}
// TILE-LABEL: tile.program @square_kernel_256_rows(
// TILE-SAME:      least = {m = 129 : i64}
// TILE-LABEL: tile.program @square_kernel_128_rows(
// TILE-SAME:      least = {m = 65 : i64}
// TILE-LABEL: tile.program @square_kernel_64_rows(
// TILE-SAME:      box = [64, 64]
// TILE-SAME:      least = {m = 33 : i64}
// TILE-SAME:      programs = {m = 64 : i64, n = 64 : i64}
// Up to 32 rows have boxes of 16, of which those without a row are copied in the
// first round of stages alone.
// TILE-LABEL: tile.program @square_kernel_32_rows(
// TILE-SAME:      box = [16, 64]
// TILE-NOT:       least
// TILE-SAME:      programs = {m = 64 : i64, n = 64 : i64}
// TILE:           %[[IS_FIRST:.*]] = arith.cmpi ult
// TILE:           %[[NEEDED:.*]] = arith.select %[[IS_FIRST]]
// TILE:           arith.cmpi eq, %[[NEEDED]]
// TILE:           scf.if
// TILE-NEXT:        tile.expect 10240
// TILE:           else
// TILE:             tile.expect 12288
// TILE:             tile.expect 14336
// TILE:             tile.expect 16384
// TILE-LABEL: tile.program @square_kernel_unaligned(
// TILE-LABEL: func @square(
// TILE:         tile.launch [@square_kernel, @square_kernel_768_rows, @square_kernel_512_rows, @square_kernel_256_rows, @square_kernel_128_rows, @square_kernel_64_rows, @square_kernel_32_rows, @square_kernel_unaligned]
func.func @square(%x: tensor<?x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<?x4096xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x4096xbf16>, tensor<4096x4096xbf16> -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}

// CHECK-LABEL: tile.kernel @narrow_kernel(
// CHECK-SAME:      few_rows_schedules = [#tile.matmul<rows = 64, columns = 64, {{[^>]*}}, split = 4>
func.func @narrow(%x: tensor<?x4096xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<?x1024xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x4096xbf16>, tensor<1024x4096xbf16> -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// Wide weights have tiles for all multiprocessors. From one number of rows to the
// next, other tiles are in as few waves as there can be.
// CHECK-LABEL: tile.kernel @wide_kernel(
// CHECK-SAME:      few_rows = array<i64: 32, 64, 128, 256, 384, 512, 640>
// CHECK-SAME:      few_rows_schedules = [#tile.matmul<rows = 64, columns = 128, {{[^>]*}}, split = 1>, #tile.matmul<{{[^>]*}}>,
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 128, {{[^>]*}}, cluster = 1, split = 1>,
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 256, {{[^>]*}}, cluster = 2>,
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 256, {{[^>]*}}, cluster = 1, split = 1>,
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 256, {{[^>]*}}, cluster = 2>,
// CHECK-SAME:        #tile.matmul<rows = 128, columns = 192, {{[^>]*}}, cluster = 1, split = 1>]
func.func @wide(%x: tensor<?x4096xbf16>, %w: tensor<28672x4096xbf16>) -> tensor<?x28672xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x4096xbf16>, tensor<28672x4096xbf16> -> tensor<?x28672xf32>
  return %0 : tensor<?x28672xf32>
}

// So may a batch of matrices, as a call may have many.
// CHECK-LABEL: tile.kernel @batch_kernel(
// CHECK-SAME:      few_rows = array<i64: 32, 64>
// CHECK-SAME:      few_rows_schedules = [{{.*}}, split = 1>]
func.func @batch(%x: tensor<?x?x256xbf16>, %w: tensor<?x64x256xbf16>) -> tensor<?x?x64xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x?x256xbf16>, tensor<?x64x256xbf16> -> tensor<?x?x64xf32>
  return %0 : tensor<?x?x64xf32>
}

// Where there are never more, there is one schedule.
// CHECK-LABEL: tile.kernel @always_kernel(
// CHECK-NOT:       few_rows
// CHECK-SAME:      schedule = #tile.matmul<rows = 64, {{.*}}, split = 2>
func.func @always(%x: tensor<16x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<16x4096xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<16x4096xbf16>, tensor<4096x4096xbf16> -> tensor<16x4096xf32>
  return %0 : tensor<16x4096xf32>
}

// The gradient of a small weight has few tiles, and long sums. What blocks send to
// each other takes two stages' memory.
// CHECK-LABEL: tile.kernel @gradient_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 128, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 1, split = 2>
func.func @gradient(%dy: tensor<?x1024xbf16>, %x: tensor<?x1024xbf16>) -> tensor<1024x1024xf32> {
  %0 = tile.dot %dy, %x contract [0, 0] : tensor<?x1024xbf16>, tensor<?x1024xbf16> -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}

// So has that of a narrow one, whose tiles are no wider.
// CHECK-LABEL: tile.kernel @narrow_gradient_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, {{.*}}, split = 2>
func.func @narrow_gradient(%dy: tensor<?x4096xbf16>, %x: tensor<?x16xbf16>) -> tensor<4096x16xf32> {
  %0 = tile.dot %dy, %x contract [0, 0] : tensor<?x4096xbf16>, tensor<?x16xbf16> -> tensor<4096x16xf32>
  return %0 : tensor<4096x16xf32>
}

// Where tiles of 256 columns are 64, those of 128 are as many as multiprocessors.
// CHECK-LABEL: tile.kernel @wide_gradient_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 128, {{.*}}, split = 1>
func.func @wide_gradient(%dy: tensor<?x2048xbf16>, %x: tensor<?x1024xbf16>) -> tensor<2048x1024xf32> {
  %0 = tile.dot %dy, %x contract [0, 0] : tensor<?x2048xbf16>, tensor<?x1024xbf16> -> tensor<2048x1024xf32>
  return %0 : tensor<2048x1024xf32>
}

// That of a large one has enough.
// CHECK-LABEL: tile.kernel @large_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 256, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 2>
func.func @large(%dy: tensor<?x2048xbf16>, %x: tensor<?x2048xbf16>) -> tensor<2048x2048xf32> {
  %0 = tile.dot %dy, %x contract [0, 0] : tensor<?x2048xbf16>, tensor<?x2048xbf16> -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}

// Short sums are not worth adding up.
// CHECK-LABEL: tile.kernel @short_kernel(
// CHECK-SAME:      split = 1>
func.func @short(%x: tensor<16x256xbf16>, %w: tensor<1024x256xbf16>) -> tensor<16x1024xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<16x256xbf16>, tensor<1024x256xbf16> -> tensor<16x1024xf32>
  return %0 : tensor<16x1024xf32>
}

// A schedule that somebody asks for is for any number of rows.
// CHECK-LABEL: tile.kernel @pinned_kernel(
// CHECK-NOT:       few_rows
// CHECK:         tile.dot
func.func @pinned(%x: tensor<?x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<?x4096xf32>
    attributes {tile.schedule = #tile.matmul<columns = 128>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x4096xbf16>, tensor<4096x4096xbf16> -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}

// Rows of 5776 and 8208 bytes do not all begin with a line of the cache, so that blocks
// wait for what they copy: two blocks that share columns copy less of them.
// CHECK-LABEL: tile.kernel @crossing_kernel(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 192, {{[^>]*}}, cluster = 2>
func.func @crossing(%dy: tensor<?x2888xbf16>, %x: tensor<?x4104xbf16>) -> tensor<2888x4104xf32> {
  %0 = tile.dot %dy, %x contract [0, 0] : tensor<?x2888xbf16>, tensor<?x4104xbf16> -> tensor<2888x4104xf32>
  return %0 : tensor<2888x4104xf32>
}
