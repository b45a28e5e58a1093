// RUN: tile-opt %s --schedule=target=sm_90a -split-input-file -verify-diagnostics

// expected-error@+1 {{schedule #tile.matmul<rows = 128, columns = 256, depth = 64, threads = 256, vector = 2, stages = 4, roles = 2, cluster = 2> does not fit sm_90a: 256 threads and 128 rows are not 1 to 2 warpgroups of 128 threads with 64 rows each, and 128 threads that copy; use 128 'rows' and leave out 'threads'}}
tile.kernel @threads(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<rows = 128, threads = 256>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{'columns' is 96, no multiple of 64 elements, a row in shared memory}}
tile.kernel @columns(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<columns = 96>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{256 numbers a thread are more than the 128 that registers hold; use fewer 'columns'}}
tile.kernel @sums(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<columns = 512, stages = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{'cluster' is 3, not 1, 2 or 4 blocks}}
tile.kernel @cluster(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<cluster = 3>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{'split' is 3, not 1, 2, 4 or 8 blocks}}
tile.kernel @split(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<cluster = 1, split = 3>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{blocks that sum parts of a tile complete as many of its columns each, but 'columns' is 192; use a power of 2}}
tile.kernel @split_columns(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<columns = 192, cluster = 1, split = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{263168 bytes of the factors in 2 stages, of sums and of results are more than the 232448 of a block's shared memory; use fewer 'stages' or 'columns'}}
tile.kernel @split_bytes(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<columns = 256, cluster = 1, split = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{2 blocks that sum parts of a tile share no factors; use a 'cluster' of 1}}
tile.kernel @split_cluster(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<cluster = 2, split = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{2 blocks share a multiprocessor only where left factors are computed, by one warpgroup a block; leave out 'resident'}}
tile.kernel @resident(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<resident = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{'steps' is 1, but no left factors are computed; leave it out}}
tile.kernel @steps(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<steps = 1>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{warps have roles, and blocks clusters, where products of 16-bit matrices, or of 8-bit floats along their rows, run on warpgroups and lie 16 bytes apart in memory; leave out 'roles' and 'cluster'}}
tile.kernel @floats(%x: tensor<?x64xf32>, %w: tensor<512x64xf32>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<roles = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xf32>, tensor<512x64xf32> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{bytes of the factors in 8 stages and of results are more than the}}
tile.kernel @stages(%x: tensor<?x64xbf16>, %w: tensor<512x64xbf16>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<columns = 256, stages = 8>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<512x64xbf16> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{'depth' is 256, but tensor cores add products of 8-bit floats with fewer bits than a float has, and so only 128 of them}}
tile.kernel @small_depth(%x: tensor<?x512xf8E4M3FN>, %w: tensor<512x512xf8E4M3FN>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<depth = 256, stages = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xf8E4M3FN>, tensor<512x512xf8E4M3FN> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// Nothing transposes elements of 8 bits.
// expected-error@+1 {{leave out 'roles' and 'cluster'}}
tile.kernel @small_columns(%x: tensor<?x512xf8E4M3FN>, %w: tensor<512x512xf8E4M3FN>) -> tensor<?x512xf32>
    attributes {schedule = #tile.matmul<roles = 2>} {
  %0 = tile.dot %x, %w contract [1, 0] : tensor<?x512xf8E4M3FN>, tensor<512x512xf8E4M3FN> -> tensor<?x512xf32>
  tile.return %0 : tensor<?x512xf32>
}

// -----

// expected-error@+1 {{bytes of the factors in 8 stages and of results in each of 2 blocks of a multiprocessor are more than the 232448 of a block's shared memory}}
tile.kernel @resident_stages(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32>
    attributes {schedule = #tile.matmul<rows = 64, depth = 128, stages = 8, steps = 1, resident = 2>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  tile.return %o : tensor<?x64xf32>
}

// -----

// expected-error@+1 {{tiles have rows of 2 matrices only where they share streamed factors, and 8 rows of each or a multiple of 16; leave out 'matrices'}}
tile.kernel @matrices(%q: tensor<2x?x64xbf16>, %k: tensor<2x?x64xbf16>, %v: tensor<2x?x64xbf16>) -> tensor<2x?x64xf32>
    attributes {schedule = #tile.matmul<rows = 64, matrices = 2>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<2x?x64xbf16>, tensor<2x?x64xbf16> -> tensor<2x?x?xf32>
  %p = math.exp %s : tensor<2x?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<2x?x?xf32>, tensor<2x?x64xbf16> -> tensor<2x?x64xf32>
  tile.return %o : tensor<2x?x64xf32>
}
