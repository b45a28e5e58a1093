// RUN: tile-opt %s --schedule=target=host -split-input-file -verify-diagnostics

// expected-error @below {{does not fit host: a tile of 96 vectors is more than the 64 that the host unrolls; use fewer 'rows' or 'columns'}}
tile.kernel @large_tile(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 96>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{does not fit host: a vector of 4 does not divide the tile's 6 columns}}
tile.kernel @vectors(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<columns = 6, vector = 4>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
