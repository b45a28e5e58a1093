// RUN: tile-opt %s --schedule | FileCheck %s
// RUN: tile-opt %s --schedule="schedule='stages=1'" | FileCheck %s --check-prefix=PINNED

// A program that adds up rows has registers for a row that it computes on, one
// that is being loaded and the sum: a thread holds a vector of each, and blocks
// fill the multiprocessor.
// CHECK-LABEL: @one_vector
// CHECK-SAME:  schedule = #tile.schedule<rows = 1, threads = 512, vector = 8, columns = 4096, persistent = 2, stages = 2>,
// PINNED-LABEL: @one_vector
// PINNED-SAME: persistent = 2, stages = 1>
tile.kernel @one_vector(%x: tensor<?x4096xbf16>) -> tensor<?x4096xf32> {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %1 : tensor<?x4096xf32>
}

// Threads that hold two have half as many of them at once.
// CHECK-LABEL: @two_vectors
// CHECK-SAME:  schedule = #tile.schedule<rows = 1, threads = 1024, vector = 8, columns = 16384, persistent = 1, stages = 2>,
tile.kernel @two_vectors(%x: tensor<?x16384xbf16>) -> tensor<?x16384xf32> {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  tile.return %1 : tensor<?x16384xf32>
}

// With three tensors loaded, 768 threads hold one vector of each row, or 512 two.
// CHECK-LABEL: @three_tensors
// CHECK-SAME:  schedule = #tile.schedule<rows = 1, threads = 256, vector = 8, columns = 2048, persistent = 3, stages = 2>,
tile.kernel @three_tensors(%x: tensor<?x2048xbf16>, %y: tensor<?x2048xbf16>, %z: tensor<?x2048xbf16>) -> tensor<?x2048xf32> {
  %0 = arith.addf %x, %y : tensor<?x2048xbf16>
  %1 = arith.mulf %0, %z : tensor<?x2048xbf16>
  %2 = arith.extf %1 : tensor<?x2048xbf16> to tensor<?x2048xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x2048xf32> -> tensor<?x2048xf32>
  tile.return %3 : tensor<?x2048xf32>
}
// CHECK-LABEL: @three_long
// CHECK-SAME:  schedule = #tile.schedule<rows = 1, threads = 256, vector = 8, columns = 4096, persistent = 2, stages = 2>,
tile.kernel @three_long(%x: tensor<?x4096xbf16>, %y: tensor<?x4096xbf16>, %z: tensor<?x4096xbf16>) -> tensor<?x4096xf32> {
  %0 = arith.addf %x, %y : tensor<?x4096xbf16>
  %1 = arith.mulf %0, %z : tensor<?x4096xbf16>
  %2 = arith.extf %1 : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %3 : tensor<?x4096xf32>
}

// Of short rows, a block takes several.
// CHECK-LABEL: @short_rows
// CHECK-SAME:  schedule = #tile.schedule<rows = 32, threads = 256, vector = 8, columns = 128, persistent = 2, stages = 2>,
tile.kernel @short_rows(%x: tensor<?x128xbf16>) -> tensor<?x128xf32> {
  %0 = arith.extf %x : tensor<?x128xbf16> to tensor<?x128xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x128xf32> -> tensor<?x128xf32>
  tile.return %1 : tensor<?x128xf32>
}

// Nothing is loaded ahead of statistics that are added up, nor in a loop.
// CHECK-LABEL: @statistics
// CHECK-NOT:   stages
// CHECK:       tile.return
tile.kernel @statistics(%x: tensor<?x4096xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x4096xf32> -> tensor<?x1xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x1xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// Where registers hold two sums, three stages go through shared memory.
// CHECK-LABEL: @two_sums
// CHECK-SAME:  schedule = #tile.schedule<rows = 1, threads = 512, vector = 8, columns = 4096, persistent = 2, stages = 3>,
tile.kernel @two_sums(%x: tensor<?x4096xbf16>, %y: tensor<?x4096xbf16>) -> (tensor<?x4096xf32>, tensor<?x4096xf32>) {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = arith.extf %y : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  %3 = tile.reduce_rows add %1 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %2, %3 : tensor<?x4096xf32>, tensor<?x4096xf32>
}
// CHECK-LABEL: @cluster_of_two
// CHECK-SAME:  schedule = #tile.schedule<rows = 1, threads = 1024, vector = 8, columns = 16384, persistent = 1, cluster = 2, stages = 2>,
tile.kernel @cluster_of_two(%x: tensor<?x16384xbf16>) -> (tensor<?x16384xf32>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce add %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  tile.return %2, %1 : tensor<?x16384xf32>, tensor<?x1xf32>
}
