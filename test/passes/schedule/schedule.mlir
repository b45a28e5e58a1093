// RUN: tile-opt %s --schedule | FileCheck %s --check-prefixes=CHECK,GPU,CLUSTER
// RUN: tile-opt %s --schedule=target=sm_80 | FileCheck %s --check-prefixes=CHECK,GPU,SM80
// RUN: tile-opt %s --schedule=target=sm_120 | FileCheck %s --check-prefixes=CHECK,GPU,CLUSTER
// RUN: tile-opt %s --schedule=target=host | FileCheck %s --check-prefixes=CHECK,HOST

// Of short rows, a block takes several, each held by a power of two of threads.
// On the host, a program is one row, and a block one thread.
// CHECK-LABEL: @short_rows
// GPU-SAME:    #tile.rows<rows = {{([2-9]|[0-9][0-9]+)}}, threads = 128, vector = 8, columns = 128>
// HOST-SAME:   #tile.rows<rows = 1, threads = 1, vector = {{(4|8|16)}}, columns = {{(16|32|64)}}>
tile.kernel @short_rows(%x: tensor<?x128xbf16>) -> tensor<?x128xbf16> {
  %0 = arith.addf %x, %x : tensor<?x128xbf16>
  tile.return %0 : tensor<?x128xbf16>
}

// What a short row lacks to a power of two of threads is masked.
// CHECK-LABEL: @short_odd_rows
// GPU-SAME:    #tile.rows<rows = {{([2-9]|[0-9][0-9]+)}}, threads = 128, vector = 1, columns = 8>
tile.kernel @short_odd_rows(%x: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %0 = arith.addf %x, %x : tensor<?x7xf32>
  tile.return %0 : tensor<?x7xf32>
}

// CHECK-LABEL: @rows_of_one
// GPU-SAME:    #tile.rows<rows = {{[0-9][0-9]+}}, threads = 128, vector = 1, columns = 1>
// HOST-SAME:   #tile.rows<rows = 1, threads = 1, vector = 1, columns = 1>
tile.kernel @rows_of_one(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %0 = arith.addf %x, %x : tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// A row that is reduced stays in registers as long as it fits: 3072 columns are
// the least over 2880 that divide among the threads.
// CHECK-LABEL: @medium_reduction
// GPU-SAME:    #tile.rows<rows = 1, threads = 192, vector = 8, columns = 3072>
// HOST-SAME:   columns = {{(16|32|64)}}>
tile.kernel @medium_reduction(%x: tensor<?x2880xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x2880xbf16> to tensor<?x2880xf32>
  %1 = tile.reduce add %0 : tensor<?x2880xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// A row that is not reduced is split among blocks.
// CHECK-LABEL: @long_elementwise
// GPU-SAME:    #tile.rows<rows = 1, threads = 128, vector = 8, columns = 1024>
tile.kernel @long_elementwise(%x: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %0 = arith.addf %x, %x : tensor<?x16384xbf16>
  tile.return %0 : tensor<?x16384xbf16>
}

// A row that leaves a block's registers room to work stays with it, unless the
// threads would all wait for it, as it is needed again: then two blocks share it.
// CHECK-LABEL: @row_of_a_block
// GPU-SAME:    #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 32768>
tile.kernel @row_of_a_block(%x: tensor<?x32768xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// CHECK-LABEL: @row_of_two_blocks
// CLUSTER-SAME: #tile.rows<rows = 1, threads = 512, vector = 8, columns = 32768, cluster = 2>
// SM80-SAME:   #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 32768>
tile.kernel @row_of_two_blocks(%x: tensor<?x32768xbf16>) -> tensor<?x32768xf32> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %0, %2 : tensor<?x32768xf32>
  tile.return %3 : tensor<?x32768xf32>
}

// The first sum is of a row vector that all rows share: the row itself is needed
// once, and is swept in tiles.
// CHECK-LABEL: @sum_of_what_rows_share
// GPU-SAME:    #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 1>
tile.kernel @sum_of_what_rows_share(%x: tensor<?x65536xbf16>, %w: tensor<65536xf32>)
    -> tensor<?x65536xbf16> {
  %0 = tile.broadcast %w like %x : tensor<65536xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %1 = tile.reduce add %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %3 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %4 = arith.mulf %3, %2 : tensor<?x65536xf32>
  %5 = arith.truncf %4 : tensor<?x65536xf32> to tensor<?x65536xbf16>
  tile.return %5 : tensor<?x65536xbf16>
}

// A sum of rows of their own comes first: other rows are loaded meanwhile. The
// space says that both have the same columns.
// CHECK-LABEL: @sum_of_other_rows
// CLUSTER-SAME: #tile.rows<rows = 1, threads = 512, vector = 8, columns = 65536, cluster = 8>
tile.kernel @sum_of_other_rows(%x: tensor<?x65536xbf16>, %y: tensor<?x65536xbf16>)
    -> tensor<?x65536xbf16>
    attributes {space = #tile.space<[r = ?, reduction c = 65536],
        arguments = [(r, c), (r, c)], results = [(r, c)],
        values = [(r, c), (r, 1), (r, c), (r, c), (r, c), (r, c)]>} {
  %0 = arith.extf %y : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce add %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %3 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %4 = arith.mulf %3, %2 : tensor<?x65536xf32>
  %5 = arith.truncf %4 : tensor<?x65536xf32> to tensor<?x65536xbf16>
  tile.return %5 : tensor<?x65536xbf16>
}

// A longer one is shared by the blocks of a cluster, two to a multiprocessor,
// where there are clusters.
// CHECK-LABEL: @row_of_a_cluster
// CLUSTER-SAME: #tile.rows<rows = 1, threads = 512, vector = 8, columns = 65536, cluster = 4>
// SM80-SAME:   #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 65536>
tile.kernel @row_of_a_cluster(%x: tensor<?x65536xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce max %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// The largest such row, and one with little padding.
// CHECK-LABEL: @row_of_a_large_cluster
// CLUSTER-SAME: #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 262144, cluster = 8>
tile.kernel @row_of_a_large_cluster(%x: tensor<?x262144xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x262144xbf16> to tensor<?x262144xf32>
  %1 = tile.reduce max %0 : tensor<?x262144xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// CHECK-LABEL: @padded_row_of_a_cluster
// CLUSTER-SAME: #tile.rows<rows = 1, threads = 320, vector = 8, columns = 40960, cluster = 4>
tile.kernel @padded_row_of_a_cluster(%x: tensor<?x40000xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x40000xbf16> to tensor<?x40000xf32>
  %1 = tile.reduce max %0 : tensor<?x40000xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// A row too long for the registers of a cluster is swept in a loop, as is one
// too long for a block where there are no clusters.
// CHECK-LABEL: @long_reduction
// GPU-SAME:    #tile.rows<rows = 1, threads = 512, vector = 4, columns = 8192>
tile.kernel @long_reduction(%x: tensor<?x524288xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x524288xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// CHECK-LABEL: @no_clusters
// SM80-SAME:   #tile.rows<rows = 1, threads = 512, vector = 4, columns = 8192>
tile.kernel @no_clusters(%x: tensor<?x131072xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x131072xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// The narrowest type in memory decides the vector: 16 bytes of it.
// CHECK-LABEL: @mixed_types
// GPU-SAME:    vector = 8,
tile.kernel @mixed_types(%x: tensor<?x4096xf32>) -> tensor<?x4096xf16> {
  %0 = arith.truncf %x : tensor<?x4096xf32> to tensor<?x4096xf16>
  tile.return %0 : tensor<?x4096xf16>
}

// Sixteen bytes are four float32.
// CHECK-LABEL: @float32
// GPU-SAME:    vector = 4,
tile.kernel @float32(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %0 = arith.addf %x, %x : tensor<?x4096xf32>
  tile.return %0 : tensor<?x4096xf32>
}

// A vector divides the row: 4 is the largest power of two in 1020.
// CHECK-LABEL: @even_row
// CHECK-SAME:  {schedule = {{[^>]*}} vector = 4,
tile.kernel @even_row(%x: tensor<?x1020xbf16>) -> tensor<?x1020xbf16> {
  %0 = arith.addf %x, %x : tensor<?x1020xbf16>
  tile.return %0 : tensor<?x1020xbf16>
}

// CHECK-LABEL: @odd_row
// CHECK-SAME:  {schedule = {{[^>]*}} vector = 1,
tile.kernel @odd_row(%x: tensor<?x97xbf16>) -> tensor<?x97xbf16> {
  %0 = arith.addf %x, %x : tensor<?x97xbf16>
  tile.return %0 : tensor<?x97xbf16>
}

// The number of leading dimensions does not matter.
// CHECK-LABEL: @heads
// GPU-SAME:    #tile.rows<rows = {{([2-9]|[0-9][0-9]+)}}, threads = 128, vector = 8, columns = 128>
tile.kernel @heads(%x: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %0 = arith.addf %x, %x : tensor<?x?x?x128xbf16>
  tile.return %0 : tensor<?x?x?x128xbf16>
}
