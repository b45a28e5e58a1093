// RUN: tile-opt %s --schedule | FileCheck %s
// RUN: tile-opt %s --schedule="schedule='threads = 64, persistent = 2'" | FileCheck %s --check-prefix=OPTION

// Every field can be pinned.
// CHECK-LABEL: @all_fields
// CHECK-SAME:  #tile.rows<rows = 2, threads = 64, vector = 4, columns = 1024, persistent = 3>
tile.kernel @all_fields(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 1024, persistent = 3>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// The fields left out follow from those that are pinned.
// CHECK-LABEL: @threads_only
// CHECK-SAME:  #tile.rows<rows = 1, threads = 64, vector = 8, columns = 512>
// The option takes the place of the attribute.
// OPTION-LABEL: @threads_only
// OPTION-SAME:  #tile.rows<rows = 1, threads = 64, vector = 8, columns = 512, persistent = 2>
tile.kernel @threads_only(%x: tensor<?x1024xbf16>) -> tensor<?x1024xbf16>
    attributes {schedule = #tile.rows<threads = 64>} {
  %0 = arith.addf %x, %x : tensor<?x1024xbf16>
  tile.return %0 : tensor<?x1024xbf16>
}

// CHECK-LABEL: @vector_only
// CHECK-SAME:  vector = 2, columns = {{(256|512|1024)}}>
// OPTION-LABEL: @vector_only
// OPTION-SAME:  threads = 64, vector = 8,
tile.kernel @vector_only(%x: tensor<?x1024xbf16>) -> tensor<?x1024xbf16>
    attributes {schedule = #tile.rows<vector = 2>} {
  %0 = arith.addf %x, %x : tensor<?x1024xbf16>
  tile.return %0 : tensor<?x1024xbf16>
}

// A reduction sweeps a row in tiles of the columns that are given.
// CHECK-LABEL: @columns_only
// CHECK-SAME:  rows = 1, threads = {{(64|128)}}, vector = 8, columns = 1024>
tile.kernel @columns_only(%x: tensor<?x4096xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<columns = 1024>} {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = tile.reduce add %0 : tensor<?x4096xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// CHECK-LABEL: @rows_only
// CHECK-SAME:  rows = 8, threads = 128, vector = 8, columns = 128>
tile.kernel @rows_only(%x: tensor<?x128xbf16>) -> tensor<?x128xbf16>
    attributes {schedule = #tile.rows<rows = 8>} {
  %0 = arith.addf %x, %x : tensor<?x128xbf16>
  tile.return %0 : tensor<?x128xbf16>
}

// CHECK-LABEL: @persistent_only
// CHECK-SAME:  rows = 1, threads = 192, vector = 8, columns = 3072, persistent = 1>
tile.kernel @persistent_only(%x: tensor<?x2880xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<persistent = 1>} {
  %0 = arith.extf %x : tensor<?x2880xbf16> to tensor<?x2880xf32>
  %1 = tile.reduce add %0 : tensor<?x2880xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// OPTION-LABEL: @unpinned
// OPTION-SAME:  rows = 1, threads = 64, vector = 8, columns = 512, persistent = 2>
tile.kernel @unpinned(%x: tensor<?x1024xbf16>) -> tensor<?x1024xbf16> {
  %0 = arith.addf %x, %x : tensor<?x1024xbf16>
  tile.return %0 : tensor<?x1024xbf16>
}

// A cluster can be pinned where the heuristic has none, and left out where it
// has one.
// CHECK-LABEL: @cluster_only
// CHECK-SAME:  rows = 1, threads = 96, vector = 8, columns = 3072, cluster = 2>
tile.kernel @cluster_only(%x: tensor<?x2880xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<cluster = 2>} {
  %0 = arith.extf %x : tensor<?x2880xbf16> to tensor<?x2880xf32>
  %1 = tile.reduce max %0 : tensor<?x2880xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// CHECK-LABEL: @no_cluster
// CHECK-SAME:  rows = 1, threads = 1024, vector = 8, columns = 65536, cluster = 1>
tile.kernel @no_cluster(%x: tensor<?x65536xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<cluster = 1>} {
  %0 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce max %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// A cluster sweeps a row that is longer than what it holds.
// CHECK-LABEL: @cluster_in_loop
// CHECK-SAME:  rows = 1, threads = 512, vector = 8, columns = 65536, cluster = 4>
tile.kernel @cluster_in_loop(%x: tensor<?x1048576xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<cluster = 4>} {
  %0 = arith.extf %x : tensor<?x1048576xbf16> to tensor<?x1048576xf32>
  %1 = tile.reduce max %0 : tensor<?x1048576xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// Vectors that do not divide the row misalign it, and its program does not take
// rows of any phase, so that another schedule is chosen for those.
// CHECK-LABEL: @pinned
// CHECK-SAME:  schedule = #tile.rows<rows = 2, threads = 32, vector = 8, columns = 256>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 64, vector = 1, columns = 256>
tile.kernel @pinned(%x: tensor<?x249xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<threads = 32, vector = 8>} {
  %0 = arith.extf %x : tensor<?x249xbf16> to tensor<?x249xf32>
  %1 = tile.reduce add %0 : tensor<?x249xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}
