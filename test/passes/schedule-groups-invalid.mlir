// RUN: tile-opt %s --schedule -verify-diagnostics -split-input-file

// expected-error @below {{does not fit sm_90: a group of 96 columns has 12 vectors, which must be a power of two up to 32 for threads of one warp to hold them}}
tile.kernel @not_a_power_of_two(%x: tensor<?x3072xbf16>) -> tensor<?x32xf32> {
  %0 = arith.extf %x : tensor<?x3072xbf16> to tensor<?x3072xf32>
  %1 = tile.reduce max %0 : tensor<?x3072xf32> -> tensor<?x32xf32>
  tile.return %1 : tensor<?x32xf32>
}

// -----

// expected-error @below {{a group of 1024 columns has 128 vectors, which must be a power of two up to 32}}
tile.kernel @more_than_a_warp(%x: tensor<?x4096xbf16>) -> tensor<?x4xf32> {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = tile.reduce max %0 : tensor<?x4096xf32> -> tensor<?x4xf32>
  tile.return %1 : tensor<?x4xf32>
}

// -----

// expected-error @below {{a vector of 8 does not divide a group of 4 columns}}
tile.kernel @vector(%x: tensor<?x4096xf32>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.schedule<vector = 8>} {
  %1 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x1024xf32>
  tile.return %1 : tensor<?x1024xf32>
}

// -----

// expected-error @below {{a block's 320 columns do not divide into groups of 128}}
tile.kernel @columns(%x: tensor<?x4096xf32>) -> tensor<?x32xf32>
    attributes {schedule = #tile.schedule<threads = 32, vector = 2, columns = 320>} {
  %1 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x32xf32>
  tile.return %1 : tensor<?x32xf32>
}
