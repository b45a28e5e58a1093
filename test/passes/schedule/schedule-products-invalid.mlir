// RUN: tile-opt %s --schedule=target=sm_90 -split-input-file -verify-diagnostics

// expected-error @below {{96 rows do not divide into 16 for each of 8 warps; use other 'rows' or 'threads'}}
tile.kernel @rows_of_warps(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 96, threads = 256>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{'columns' is 40, no multiple of the 16 that tensor cores take at once}}
tile.kernel @columns_of_steps(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<columns = 40>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{'depth' is 24, no multiple of the 16 that tensor cores take at once}}
tile.kernel @depth_of_steps(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<depth = 24>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{'columns' is 96, but rows in shared memory have 16, 32 or a multiple of 64 elements}}
tile.kernel @columns_of_panels(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<columns = 96>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{262144 bytes of the factors in 4 stages are more than the 232448 of a block's shared memory; use fewer 'stages' or a smaller tile}}
tile.kernel @shared_memory(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<columns = 128, depth = 128, stages = 4>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{2048 threads are more than the 1024 of a block}}
tile.kernel @many_threads(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<threads = 2048>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{48 threads are not a multiple of the warp of 32}}
tile.kernel @whole_warps(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<threads = 48>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{256 sums a thread are more than the 128 that registers hold; use fewer 'rows' or 'columns', or more 'threads'}}
tile.kernel @sums(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 128, columns = 256, threads = 128>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{tensor cores multiply what was copied ahead; use 2 or more 'stages'}}
tile.kernel @one_stage(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<stages = 1>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{tensor cores give each thread 2 neighbouring sums; leave out 'vector'}}
tile.kernel @vector_of_tensor_cores(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<vector = 4>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// Of a factor that is summed over its rows, a row in shared memory has the rows
// of the product.
// expected-error @below {{'rows' is 96, but rows in shared memory have 16, 32 or a multiple of 64 elements}}
tile.kernel @rows_of_panels(%x: tensor<64x128xbf16>, %w: tensor<64x96xbf16>) -> tensor<128x96xf32>
    attributes {schedule = #tile.matmul<rows = 96, threads = 96>} {
  %0 = tile.dot %x, %w contract [0, 0] : tensor<64x128xbf16>, tensor<64x96xbf16> -> tensor<128x96xf32>
  tile.return %0 : tensor<128x96xf32>
}

// -----

// expected-error @below {{3 warps do not divide the rows of a factor that is summed over its rows; use 1, 2 or a multiple of 4 warps of 32 'threads'}}
tile.kernel @warps_of_panels(%x: tensor<64x128xbf16>, %w: tensor<64x96xbf16>) -> tensor<128x96xf32>
    attributes {schedule = #tile.matmul<rows = 192, threads = 96>} {
  %0 = tile.dot %x, %w contract [0, 0] : tensor<64x128xbf16>, tensor<64x96xbf16> -> tensor<128x96xf32>
  tile.return %0 : tensor<128x96xf32>
}

// -----

// expected-error @below {{only products of 16-bit matrices, and of 8-bit floats along their rows, run on tensor cores, which copy parts of them ahead; leave out 'stages' and 'depth'}}
tile.kernel @float32_stages(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<stages = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{24 rows of 64 vectors do not divide evenly among 16 rows of 16 threads}}
tile.kernel @threads_over_tile(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 24>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{128 sums a thread are more than the 64 that registers hold; use fewer 'rows' or 'columns', or more 'threads'}}
tile.kernel @float32_sums(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 512>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{a vector of 16 does not divide the tile's 24 columns}}
tile.kernel @vector_of_columns(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<vector = 16, columns = 24>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
