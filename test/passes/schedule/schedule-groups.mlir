// RUN: tile-opt %s --schedule -split-input-file | FileCheck %s
// RUN: tile-opt %s --schedule=target=host -split-input-file | FileCheck %s --check-prefix=HOST

// A vector divides the group of 4, and a tile is whole groups; no reduction
// needs the row as a whole, so tiles have blocks of their own.
// CHECK: tile.kernel @groups_of_4({{.*}}#tile.rows<rows = 1, threads = 512, vector = 4, columns = 2048>
// HOST: tile.kernel @groups_of_4({{.*}}#tile.rows<rows = 1, threads = 1, vector = 4, columns = 64>
tile.kernel @groups_of_4(%x: tensor<?x4096xbf16>) -> tensor<?x1024xf32> {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = tile.reduce max %0 : tensor<?x4096xf32> -> tensor<?x1024xf32>
  tile.return %1 : tensor<?x1024xf32>
}

// -----

// A tile of a host is widened to a whole group.
// HOST: tile.kernel @groups_of_128({{.*}}#tile.rows<rows = 1, threads = 1, vector = {{[0-9]+}}, columns = 128>
tile.kernel @groups_of_128(%x: tensor<?x4224xf32>) -> tensor<?x33xf32> {
  %1 = tile.reduce max %x : tensor<?x4224xf32> -> tensor<?x33xf32>
  tile.return %1 : tensor<?x33xf32>
}

// -----

// 12 vectors of a group are no power of two: the tile is the whole row, and ends
// within a group behind it.
// CHECK: tile.kernel @groups_of_96({{.*}}#tile.rows<rows = 1, threads = 384, vector = 8, columns = 3072>
tile.kernel @groups_of_96(%x: tensor<?x2976xbf16>) -> tensor<?x31xf32> {
  %0 = arith.extf %x : tensor<?x2976xbf16> to tensor<?x2976xf32>
  %1 = tile.reduce max %0 : tensor<?x2976xf32> -> tensor<?x31xf32>
  tile.return %1 : tensor<?x31xf32>
}

// -----

// No tile of as many columns as the row would have is whole groups: one group,
// then.
// CHECK: tile.kernel @groups_of_1024({{.*}}#tile.rows<rows = 1, threads = 128, vector = 8, columns = 1024>
tile.kernel @groups_of_1024(%x: tensor<?x5120xbf16>) -> tensor<?x5xf32> {
  %0 = arith.extf %x : tensor<?x5120xbf16> to tensor<?x5120xf32>
  %1 = tile.reduce max %0 : tensor<?x5120xf32> -> tensor<?x5xf32>
  tile.return %1 : tensor<?x5xf32>
}

// -----

// Groups of two sizes: whole ones of both.
// HOST: tile.kernel @two_sizes({{.*}}#tile.rows<rows = 1, threads = 1, vector = {{[0-9]+}}, columns = 96>
tile.kernel @two_sizes(%x: tensor<?x192xf32>) -> (tensor<?x6xf32>, tensor<?x4xf32>) {
  %0 = tile.reduce max %x : tensor<?x192xf32> -> tensor<?x6xf32>
  %1 = tile.reduce max %x : tensor<?x192xf32> -> tensor<?x4xf32>
  tile.return %0, %1 : tensor<?x6xf32>, tensor<?x4xf32>
}
