// RUN: tile-opt %s --schedule -verify-diagnostics -split-input-file

// expected-error @below {{a vector of 8 does not divide a group of 4 columns}}
tile.kernel @vector(%x: tensor<?x4096xf32>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.rows<vector = 8>} {
  %1 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x1024xf32>
  tile.return %1 : tensor<?x1024xf32>
}

// -----

// expected-error @below {{a tile's 320 columns do not divide into groups of 128}}
tile.kernel @columns(%x: tensor<?x4096xf32>) -> tensor<?x32xf32>
    attributes {schedule = #tile.rows<threads = 32, vector = 2, columns = 320>} {
  %1 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x32xf32>
  tile.return %1 : tensor<?x32xf32>
}

// -----

// Blocks of a cluster share rows, not groups.
// expected-error @below {{the 256 columns that the threads of a block have at a time do not divide into groups of 2048, which blocks of a cluster do not share}}
tile.kernel @cluster(%x: tensor<?x4096xf32>) -> (tensor<?x2xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 4096, cluster = 2>} {
  %0 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x2xf32>
  %1 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x1xf32>
  tile.return %0, %1 : tensor<?x2xf32>, tensor<?x1xf32>
}

// -----

// Nobody wrote a schedule, so none is blamed.
// expected-error @below {{groups of 500000 columns in rows of 1000000 are more than a program of sm_90 holds of a row at a time; give the tensor as rows of 500000 columns, and reduce these whole}}
tile.kernel @too_long(%x: tensor<?x1000000xf32>) -> tensor<?x2xf32> {
  %0 = tile.reduce max %x : tensor<?x1000000xf32> -> tensor<?x2xf32>
  tile.return %0 : tensor<?x2xf32>
}
