// RUN: tile-opt %s --schedule='target=sm_90 schedule="linear: columns = 64; wide: #tile.matmul<rows = 32>"' | FileCheck %s
// RUN: tile-opt %s --schedule='target=sm_90 schedule="#tile.matmul<threads = 256>; threads = 64"' | FileCheck %s --check-prefix=KIND
// RUN: tile-opt %s --schedule='target=sm_90 schedule="linear: rows = 256"' | FileCheck %s --check-prefix=ROWS
// RUN: tile-opt %s --schedule='target=sm_90 schedule="linear: rows = 256, threads = 128"' | FileCheck %s --check-prefix=NARROW
// RUN: tile-opt %s --schedule='target=sm_90 schedule="linear: threads = 1024"' | FileCheck %s --check-prefix=THREADS
// RUN: tile-opt %s --schedule='target=sm_120 schedule="linear: depth = 128"' | FileCheck %s --check-prefix=STAGES
// RUN: tile-opt %s --schedule='target=host schedule="linear: rows = 2, stages = 3; wide: columns = 6"' | FileCheck %s --check-prefix=HOST

// Fields alone are of the kind that the kernel takes.
// CHECK-LABEL: @linear(
// CHECK-SAME:      schedule = #tile.matmul<rows = 128, columns = 64, depth = 32, threads = 128, vector = 2, stages = 4>
// A schedule for every kernel is for those of its kind.
// KIND-LABEL:  @linear(
// KIND-SAME:       schedule = #tile.matmul<rows = 128, columns = 128, depth = 32, threads = 256, vector = 2, stages = 4>
// A larger tile takes more threads,
// ROWS-LABEL:  @linear(
// ROWS-SAME:       schedule = #tile.matmul<rows = 256, columns = 128, depth = 32, threads = 256, vector = 2, stages = 4>
// and is narrower where these are pinned.
// NARROW-LABEL: @linear(
// NARROW-SAME:     schedule = #tile.matmul<rows = 256, columns = 64, depth = 32, threads = 128, vector = 2, stages = 4>
// 32 warps take 16 rows each.
// THREADS-LABEL: @linear(
// THREADS-SAME:    schedule = #tile.matmul<rows = 512, columns = 128, depth = 32, threads = 1024, vector = 2, stages = 4>
// As many stages as shared memory has room for.
// STAGES-LABEL: @linear(
// STAGES-SAME:     schedule = #tile.matmul<rows = 128, columns = 64, depth = 128, threads = 128, vector = 2, stages = 2>
// What is about a GPU does nothing on the host.
// HOST-LABEL:  @linear(
// HOST-SAME:       schedule = #tile.matmul<rows = 2, columns = 4, threads = 1, vector = 4>
tile.kernel @linear(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: @wide(
// CHECK-SAME:      schedule = #tile.matmul<rows = 32, columns = 64, threads = 256, vector = 1>
// Vectors divide the columns.
// HOST-LABEL:  @wide(
// HOST-SAME:       columns = 6, threads = 1, vector = 2>
tile.kernel @wide(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// KIND-LABEL:  @rows(
// KIND-SAME:       schedule = #tile.rows<rows = 1, threads = 64,
tile.kernel @rows(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16> {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}
