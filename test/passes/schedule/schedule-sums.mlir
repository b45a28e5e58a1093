// RUN: tile-opt %s --schedule | FileCheck %s
// RUN: tile-opt %s --schedule="schedule='stages=1'" | FileCheck %s --check-prefix=PINNED

// A program that adds up rows has registers for a row that it computes on, one
// that is being loaded and the sum: a thread holds a vector of each, and blocks
// fill the multiprocessor.
// CHECK-LABEL: @one_vector
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 4096, persistent = 2, stages = 2>,
// PINNED-LABEL: @one_vector
// PINNED-SAME: persistent = 2, stages = 1>
tile.kernel @one_vector(%x: tensor<?x4096xbf16>) -> tensor<?x4096xf32> {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %1 : tensor<?x4096xf32>
}

// Threads that hold two have half as many of them at once.
// CHECK-LABEL: @two_vectors
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 16384, persistent = 1, stages = 2>,
tile.kernel @two_vectors(%x: tensor<?x16384xbf16>) -> tensor<?x16384xf32> {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  tile.return %1 : tensor<?x16384xf32>
}

// With three tensors loaded, 768 threads hold one vector of each row, or 512 two.
// Each block leaves a row of sums: 768 threads hold three rows of 256.
// CHECK-LABEL: @three_tensors
// CHECK-SAME:  schedule = #tile.rows<rows = 3, threads = 768, vector = 8, columns = 2048, persistent = 1, stages = 2>,
tile.kernel @three_tensors(%x: tensor<?x2048xbf16>, %y: tensor<?x2048xbf16>, %z: tensor<?x2048xbf16>) -> tensor<?x2048xf32> {
  %0 = arith.addf %x, %y : tensor<?x2048xbf16>
  %1 = arith.mulf %0, %z : tensor<?x2048xbf16>
  %2 = arith.extf %1 : tensor<?x2048xbf16> to tensor<?x2048xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x2048xf32> -> tensor<?x2048xf32>
  tile.return %3 : tensor<?x2048xf32>
}
// CHECK-LABEL: @three_long
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, persistent = 2, stages = 2>,
tile.kernel @three_long(%x: tensor<?x4096xbf16>, %y: tensor<?x4096xbf16>, %z: tensor<?x4096xbf16>) -> tensor<?x4096xf32> {
  %0 = arith.addf %x, %y : tensor<?x4096xbf16>
  %1 = arith.mulf %0, %z : tensor<?x4096xbf16>
  %2 = arith.extf %1 : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %3 : tensor<?x4096xf32>
}

// Rows of 128 threads share blocks of 256; those of 320 have their own, since two
// would leave a third of the multiprocessor's threads without work.
// CHECK-LABEL: @rows_of_128
// CHECK-SAME:  schedule = #tile.rows<rows = 2, threads = 256, vector = 8, columns = 1024, persistent = 3, stages = 2>,
// PINNED-LABEL: @rows_of_128
// PINNED-SAME: rows = 2, threads = 256, {{.*}} stages = 1>
tile.kernel @rows_of_128(%x: tensor<?x1024xbf16>) -> tensor<?x1024xf32> {
  %0 = arith.extf %x : tensor<?x1024xbf16> to tensor<?x1024xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x1024xf32> -> tensor<?x1024xf32>
  tile.return %1 : tensor<?x1024xf32>
}
// CHECK-LABEL: @rows_of_320
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 320, vector = 8, columns = 2560, persistent = 3, stages = 2>,
tile.kernel @rows_of_320(%x: tensor<?x2560xbf16>) -> tensor<?x2560xf32> {
  %0 = arith.extf %x : tensor<?x2560xbf16> to tensor<?x2560xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x2560xf32> -> tensor<?x2560xf32>
  tile.return %1 : tensor<?x2560xf32>
}

// A row that no vector divides is held by elements, as many of them as of others.
// CHECK-LABEL: @odd_row
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 416, vector = 1, columns = 2912, persistent = 3, stages = 2>, space = #tile.space<{{[^>]*}}>}
tile.kernel @odd_row(%x: tensor<?x2881xbf16>) -> (tensor<?x2881xf32>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x2881xbf16> to tensor<?x2881xf32>
  %1 = tile.reduce add %0 : tensor<?x2881xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x2881xf32> -> tensor<?x2881xf32>
  tile.return %2, %1 : tensor<?x2881xf32>, tensor<?x1xf32>
}

// What is computed on both sides of a reduction waits for it in registers: where
// there is much of it, 512 threads run, of longer rows in clusters. They have
// registers to load the next row into.
// CHECK-LABEL: @much_is_kept
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 8192, persistent = 1, cluster = 2, stages = 2>,
tile.kernel @much_is_kept(%x: tensor<?x8192xbf16>, %y: tensor<?x8192xbf16>)
    -> (tensor<?x8192xbf16>, tensor<?x8192xf32>, tensor<?x8192xf32>) {
  %0 = arith.extf %x : tensor<?x8192xbf16> to tensor<?x8192xf32>
  %1 = arith.extf %y : tensor<?x8192xbf16> to tensor<?x8192xf32>
  %2 = math.exp %0 : tensor<?x8192xf32>
  %3 = math.exp %1 : tensor<?x8192xf32>
  %4 = math.sin %0 : tensor<?x8192xf32>
  %5 = math.sin %1 : tensor<?x8192xf32>
  %6 = tile.reduce add %0 : tensor<?x8192xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %6 like %x : tensor<?x1xf32>, tensor<?x8192xbf16> -> tensor<?x8192xf32>
  %8 = arith.mulf %2, %7 : tensor<?x8192xf32>
  %9 = arith.mulf %3, %8 : tensor<?x8192xf32>
  %10 = arith.mulf %4, %9 : tensor<?x8192xf32>
  %11 = arith.mulf %5, %10 : tensor<?x8192xf32>
  %12 = arith.mulf %1, %11 : tensor<?x8192xf32>
  %13 = arith.truncf %12 : tensor<?x8192xf32> to tensor<?x8192xbf16>
  %14 = tile.reduce_rows add %2 partial : tensor<?x8192xf32> -> tensor<?x8192xf32>
  %15 = tile.reduce_rows add %3 partial : tensor<?x8192xf32> -> tensor<?x8192xf32>
  tile.return %13, %14, %15 : tensor<?x8192xbf16>, tensor<?x8192xf32>, tensor<?x8192xf32>
}

// Three rows of 256 threads with vectors of 16 would leave no shared memory for the
// reduction.
// CHECK-LABEL: @no_room_side_by_side
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 16, columns = 4096, persistent = 4, stages = 2>,
tile.kernel @no_room_side_by_side(%x: tensor<?x4096xf8E4M3FN>) -> (tensor<?x4096xf32>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x4096xf8E4M3FN> to tensor<?x4096xf32>
  %1 = tile.reduce add %0 : tensor<?x4096xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %2, %1 : tensor<?x4096xf32>, tensor<?x1xf32>
}

// Of short rows, a block takes several.
// CHECK-LABEL: @short_rows
// CHECK-SAME:  schedule = #tile.rows<rows = 32, threads = 256, vector = 8, columns = 128, persistent = 2, stages = 2>,
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
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 4096, persistent = 2, stages = 3>,
tile.kernel @two_sums(%x: tensor<?x4096xbf16>, %y: tensor<?x4096xbf16>)
    -> (tensor<?x4096xf32>, tensor<?x4096xf32>)
    attributes {space = #tile.space<[reduction r = ?, c = 4096, r1 = ?],
        arguments = [(r, c), (r, c)], results = [(r1, c), (r1, c)],
        values = [(r, c), (r, c), (r1, c), (r1, c)]>} {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = arith.extf %y : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  %3 = tile.reduce_rows add %1 partial : tensor<?x4096xf32> -> tensor<?x4096xf32>
  tile.return %2, %3 : tensor<?x4096xf32>, tensor<?x4096xf32>
}
// CHECK-LABEL: @cluster_of_two
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 16384, persistent = 1, cluster = 2, stages = 2>,
tile.kernel @cluster_of_two(%x: tensor<?x16384xbf16>) -> (tensor<?x16384xf32>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce add %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  tile.return %2, %1 : tensor<?x16384xf32>, tensor<?x1xf32>
}

// A row that a loop sweeps for its reductions, beside the sum of all rows.
// CHECK-LABEL: @swept
// CHECK-SAME:  persistent = 1
tile.kernel @swept(%x: tensor<?x65536xbf16>) -> (tensor<?x1xf32>, tensor<?x65536xf32>) {
  %0 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce max %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %0 : tensor<?x1xf32>, tensor<?x65536xf32> -> tensor<?x65536xf32>
  %3 = arith.subf %0, %2 : tensor<?x65536xf32>
  %4 = math.exp %3 : tensor<?x65536xf32>
  %5 = tile.reduce add %4 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %6 = tile.broadcast %5 like %0 : tensor<?x1xf32>, tensor<?x65536xf32> -> tensor<?x65536xf32>
  %7 = arith.divf %4, %6 : tensor<?x65536xf32>
  %8 = arith.mulf %7, %7 : tensor<?x65536xf32>
  %9 = tile.reduce add %8 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %10 = tile.reduce_rows add %7 partial : tensor<?x65536xf32> -> tensor<?x65536xf32>
  tile.return %9, %10 : tensor<?x1xf32>, tensor<?x65536xf32>
}

// Few values are alive at once, but a thread with as many elements would have half of
// the registers that it takes: two blocks share the row.
// CHECK-LABEL: @many_bytes
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 4, columns = 8192, persistent = 1, cluster = 2, stages = 3>,
tile.kernel @many_bytes(%u: tensor<8192xf32>, %g: tensor<?x8192xf32>, %x: tensor<?x8192xf32>, %y: tensor<?x8192xf32>, %w: tensor<8192xf32>) -> (tensor<?x8192xf32>, tensor<?x8192xf32>, tensor<?x8192xf32>) {
  %0 = tile.broadcast %u like %g : tensor<8192xf32>, tensor<?x8192xf32> -> tensor<?x8192xf32>
  %1 = arith.addf %x, %0 : tensor<?x8192xf32>
  %2 = arith.addf %1, %y : tensor<?x8192xf32>
  %3 = tile.broadcast %w like %g : tensor<8192xf32>, tensor<?x8192xf32> -> tensor<?x8192xf32>
  %4 = arith.mulf %2, %3 : tensor<?x8192xf32>
  %5 = arith.mulf %g, %4 : tensor<?x8192xf32>
  %6 = tile.reduce add %5 : tensor<?x8192xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %6 like %g : tensor<?x1xf32>, tensor<?x8192xf32> -> tensor<?x8192xf32>
  %8 = arith.mulf %7, %4 : tensor<?x8192xf32>
  %9 = arith.subf %g, %8 : tensor<?x8192xf32>
  %10 = arith.mulf %9, %3 : tensor<?x8192xf32>
  %11 = arith.mulf %9, %2 : tensor<?x8192xf32>
  %12 = tile.reduce_rows add %11 partial : tensor<?x8192xf32> -> tensor<?x8192xf32>
  %13 = tile.reduce_rows add %10 partial : tensor<?x8192xf32> -> tensor<?x8192xf32>
  tile.return %10, %12, %13 : tensor<?x8192xf32>, tensor<?x8192xf32>, tensor<?x8192xf32>
}
