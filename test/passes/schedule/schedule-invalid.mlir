// RUN: tile-opt %s --schedule -verify-diagnostics -split-input-file

// expected-error @below {{schedule #tile.rows<rows = 1, threads = 2048, vector = 8, columns = 16384> does not fit sm_90: 2048 threads are more than the 1024 of a block}}
tile.kernel @threads(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<threads = 2048>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// expected-error @below {{does not fit sm_90: 48 threads are not a multiple of the warp of 32}}
tile.kernel @part_of_a_warp(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<threads = 48>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// A row has to have a vector that is inside of it wherever it begins.
// expected-error @below {{a vector of 16 does not divide the row of 30}}
tile.kernel @vector(%x: tensor<?x30xbf16>) -> tensor<?x30xbf16>
    attributes {schedule = #tile.rows<vector = 16>} {
  %0 = arith.addf %x, %x : tensor<?x30xbf16>
  tile.return %0 : tensor<?x30xbf16>
}

// -----

// The misalignment of a row is known no sooner than its address.
// expected-error @below {{a row of 1001, which the vector of 8 does not divide, is loaded ahead in 2 stages at most, not 3; use fewer 'stages'}}
tile.kernel @stages(%x: tensor<?x1001xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<vector = 8, persistent = 1, stages = 3>} {
  %0 = arith.extf %x : tensor<?x1001xbf16> to tensor<?x1001xf32>
  %1 = tile.reduce add %0 : tensor<?x1001xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %1 partial : tensor<?x1xf32> -> tensor<?x1xf32>
  tile.return %2 : tensor<?x1xf32>
}

// -----

// Rows that are added up cannot be misaligned.
// expected-error @below {{a vector of 8 does not divide the row of 1001}}
tile.kernel @sums(%x: tensor<?x1001xbf16>) -> tensor<?x1001xf32>
    attributes {schedule = #tile.rows<vector = 8>} {
  %0 = arith.extf %x : tensor<?x1001xbf16> to tensor<?x1001xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x1001xf32> -> tensor<?x1001xf32>
  tile.return %1 : tensor<?x1001xf32>
}

// -----

// expected-error @below {{a vector of 8 does not divide the tile's 100 columns}}
tile.kernel @columns(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<columns = 100>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// expected-error @below {{1 rows of 129 vectors do not divide evenly among 128 threads}}
tile.kernel @uneven(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<threads = 128, vector = 8, columns = 1032>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// Four rows of threads cannot share two rows of a tile.
// expected-error @below {{2 rows of 32 vectors do not divide evenly among 128 threads}}
tile.kernel @idle_threads(%x: tensor<?x256xbf16>) -> tensor<?x256xbf16>
    attributes {schedule = #tile.rows<rows = 2, threads = 128, vector = 8, columns = 256>} {
  %0 = arith.addf %x, %x : tensor<?x256xbf16>
  tile.return %0 : tensor<?x256xbf16>
}

// -----

// A row held by 24 threads of a warp cannot be shuffled.
// expected-error @below {{4 rows of 24 vectors do not divide evenly among 96 threads}}
tile.kernel @part_of_a_warp_per_row(%x: tensor<?x192xbf16>) -> tensor<?x192xbf16>
    attributes {schedule = #tile.rows<rows = 4, threads = 96, vector = 8, columns = 192>} {
  %0 = arith.addf %x, %x : tensor<?x192xbf16>
  tile.return %0 : tensor<?x192xbf16>
}

// -----

// expected-error @below {{512 elements a thread are more than the 256 that registers hold}}
tile.kernel @registers(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<rows = 16, threads = 128, vector = 8, columns = 4096>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// expected-error @below {{float64 is computed on the host only, not on sm_90}}
tile.kernel @float64(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  %0 = arith.addf %x, %x : tensor<?x8xf64>
  tile.return %0 : tensor<?x8xf64>
}

// -----

// Neither may float64 stand between the operands.
// expected-error @below {{float64 is computed on the host only, not on sm_90}}
tile.kernel @float64_inside(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.extf %x : tensor<?x8xf32> to tensor<?x8xf64>
  %1 = arith.truncf %0 : tensor<?x8xf64> to tensor<?x8xf32>
  tile.return %1 : tensor<?x8xf32>
}

// -----

// Each of two reductions leaves 256 x 32 floats for the warps to combine.
// expected-error @below {{65536 bytes of shared memory are more than the 49152 that a block has without asking for more}}
tile.kernel @shared_memory(%x: tensor<?x1024xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<rows = 256, threads = 1024, vector = 1, columns = 1024>} {
  %0 = tile.reduce max %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  %1 = tile.reduce min %x : tensor<?x1024xf32> -> tensor<?x1xf32>
  tile.return %0, %1 : tensor<?x1xf32>, tensor<?x1xf32>
}

// -----

// expected-error @below {{the 2 blocks of a cluster would share rows that no reduction needs as a whole; leave out 'cluster'}}
tile.kernel @cluster_without_reduction(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<cluster = 2>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// expected-error @below {{does not fit sm_90: 32 blocks are more than the 16 of a cluster}}
tile.kernel @large_cluster(%x: tensor<?x65536xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<cluster = 32>} {
  %0 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce max %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// -----

// expected-error @below {{512 vectors do not divide evenly among the 3 blocks of a cluster}}
tile.kernel @uneven_cluster(%x: tensor<?x4096xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<columns = 4096, cluster = 3>} {
  %0 = arith.extf %x : tensor<?x4096xbf16> to tensor<?x4096xf32>
  %1 = tile.reduce max %0 : tensor<?x4096xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// -----

// Half of a warp to a row has too few lanes for what blocks exchange.
// expected-error @below {{2 rows of 16 vectors do not divide evenly among 32 threads in whole warps, as a cluster needs it}}
tile.kernel @cluster_of_short_rows(%x: tensor<?x256xbf16>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 2, threads = 32, columns = 256, cluster = 2>} {
  %0 = arith.extf %x : tensor<?x256xbf16> to tensor<?x256xf32>
  %1 = tile.reduce max %0 : tensor<?x256xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// -----

// expected-error @below {{stages = 2> does not fit sm_90: a program that is not persistent has no rows to load ahead; leave out 'stages'}}
tile.kernel @stages_of_one_group(%x: tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    attributes {schedule = #tile.rows<stages = 2>} {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  tile.return %0 : tensor<?x4096xbf16>
}

// -----

// The registers that programs leave each other are asked for ahead of this.
// expected-error @below {{stages = 2> does not fit sm_90: a program that is not persistent has no rows to load ahead; leave out 'stages'}}
tile.kernel @stages_of_a_reduction(%x: tensor<?x64xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<stages = 2>} {
  %0 = tile.reduce add %x : tensor<?x64xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// -----

// expected-error @below {{only programs that hold whole rows load the next ones ahead; leave out 'stages'}}
tile.kernel @stages_of_a_loop(%x: tensor<?x4096xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<threads = 64, columns = 1024, persistent = 1, stages = 2>} {
  %0 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}

// -----

// expected-error @below {{only programs that hold whole rows load the next ones ahead; leave out 'stages'}}
tile.kernel @stages_of_bands(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 16, persistent = 1, stages = 2>} {
  %0 = tile.reduce_bands max %x of 16 : tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}

// -----

// expected-error @below {{reread = shared> does not fit sm_90: no later sweep reads a row again; leave out 'reread'}}
tile.kernel @reread_of_a_whole_row(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32>
    attributes {schedule = #tile.rows<columns = 4096, reread = shared>} {
  %0 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x4096xf32> -> tensor<?x4096xf32>
  %2 = arith.subf %x, %1 : tensor<?x4096xf32>
  tile.return %2 : tensor<?x4096xf32>
}

// -----

// A single sweep is enough for the maximum, and so it is for a sum that follows it.
// expected-error @below {{no later sweep reads a row again; leave out 'reread'}}
tile.kernel @reread_of_a_single_sweep(%x: tensor<?x4096xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<threads = 64, columns = 1024, reread = shared>} {
  %0 = tile.reduce max %x : tensor<?x4096xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x4096xf32> -> tensor<?x4096xf32>
  %2 = arith.subf %x, %1 : tensor<?x4096xf32>
  %3 = math.exp %2 : tensor<?x4096xf32>
  %4 = tile.reduce add %3 : tensor<?x4096xf32> -> tensor<?x1xf32>
  tile.return %4 : tensor<?x1xf32>
}

// -----

// Statistics of groups are not kept.
// expected-error @below {{no later sweep reads a row again; leave out 'reread'}}
tile.kernel @reread_of_groups(%x: tensor<?x128xf32>, %y: tensor<?x4096xf32>) -> tensor<?x4096xf32>
    attributes {schedule = #tile.rows<threads = 64, columns = 1024, reread = shared>} {
  %0 = tile.broadcast %x like %y : tensor<?x128xf32>, tensor<?x4096xf32> -> tensor<?x4096xf32>
  %1 = tile.reduce max %0 : tensor<?x4096xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %y : tensor<?x1xf32>, tensor<?x4096xf32> -> tensor<?x4096xf32>
  %3 = arith.subf %0, %2 : tensor<?x4096xf32>
  tile.return %3 : tensor<?x4096xf32>
}

// -----

// The row is padded to whole tiles.
// expected-error @below {{262144 bytes of the row that each block would keep are more than the 232448 of its shared memory; use more blocks in 'cluster' or 'reread = memory'}}
tile.kernel @reread_of_too_much(%x: tensor<?x65000xf32>) -> tensor<?x65000xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 512, columns = 8192, reread = shared>} {
  %0 = tile.reduce max %x : tensor<?x65000xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x65000xf32> -> tensor<?x65000xf32>
  %2 = arith.subf %x, %1 : tensor<?x65000xf32>
  tile.return %2 : tensor<?x65000xf32>
}

// -----

// expected-error @below {{262144 bytes of the rows in 8 stages are more than the 232448 of a block's shared memory; use fewer 'stages'}}
tile.kernel @stages_of_long_rows(%x: tensor<?x16384xbf16>) -> (tensor<?x16384xf32>, tensor<?x1xf32>)
    attributes {schedule = #tile.rows<threads = 1024, columns = 16384, persistent = 1, cluster = 1, stages = 8>} {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce add %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  tile.return %2, %1 : tensor<?x16384xf32>, tensor<?x1xf32>
}

// -----

// Rows side by side have their sums combined there, one sum after the other.
// expected-error @below {{65536 bytes of shared memory are more than the 49152 that a block has without asking for more}}
tile.kernel @sums_side_by_side(%x: tensor<?x2048xbf16>) -> (tensor<?x2048xf32>, tensor<?x2048xf32>)
    attributes {schedule = #tile.rows<rows = 8, threads = 1024, vector = 16, columns = 2048, persistent = 1>} {
  %0 = arith.extf %x : tensor<?x2048xbf16> to tensor<?x2048xf32>
  %1 = arith.mulf %0, %0 : tensor<?x2048xf32>
  %2 = tile.reduce_rows add %0 partial : tensor<?x2048xf32> -> tensor<?x2048xf32>
  %3 = tile.reduce_rows add %1 partial : tensor<?x2048xf32> -> tensor<?x2048xf32>
  tile.return %2, %3 : tensor<?x2048xf32>, tensor<?x2048xf32>
}
