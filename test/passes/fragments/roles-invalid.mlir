// RUN: tile-opt %s --lower-tiles=target=sm_90a -verify-diagnostics -split-input-file

tile.program @other_warps(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  tile.roles warps [4, 4] threads [1, 128] {
  }, {
    // expected-error @below {{'tile.iota' op deals 'tensor<128x8xi32, #tile.mma<warps = 8>>' to 8 warps, but is run by 128 threads}}
    %0 = tile.iota from %n : tensor<128x8xi32, #tile.mma<warps = 8>>
  }
  tile.return
}

// -----

tile.program @one_thread(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  tile.roles warps [4, 4] threads [1, 128] {
    // expected-error @below {{'arith.constant' op deals 'tensor<64x8xf32, #tile.mma<warps = 4>>' to 4 warps, but is run by 1 threads}}
    %0 = arith.constant dense<0.0> : tensor<64x8xf32, #tile.mma<warps = 4>>
  }, {
  }
  tile.return
}

// -----

tile.program @outside_of_roles(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.iota' op deals 'tensor<64x8xi32, #tile.mma<warps = 4>>' to 4 warps, but is run by 256 threads}}
  %0 = tile.iota from %n : tensor<64x8xi32, #tile.mma<warps = 4>>
  tile.return
}

// -----

tile.program @announce_in_role(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256, cluster = 2>} {
  tile.roles warps [4, 4] threads [1, 128] {
  }, {
    // expected-error @below {{'tile.announce_block' op is run by all threads of the block, but stands in a role}}
    tile.announce_block
  }
  tile.return
}

// -----

tile.program @one_thread_awaits_blocks(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256, cluster = 2>} {
  tile.announce_block
  tile.roles warps [4, 4] threads [1, 128] {
    // expected-error @below {{'tile.await_blocks' op is run by 1 threads, which are no whole warps}}
    tile.await_blocks
  }, {
  }
  tile.return
}

// -----

tile.program @turns_of_one(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  tile.roles warps [4, 4] threads [1, 128] {
  }, {
    // expected-error @below {{'tile.take_turn' op is for roles of 2 to 4 warpgroups that take turns}}
    tile.take_turn
  }
  tile.return
}

// -----

tile.program @turns_of_many(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 640>} {
  tile.roles warps [20] threads [640] {
    // expected-error @below {{'tile.pass_turn' op is for roles of 2 to 4 warpgroups that take turns}}
    tile.pass_turn
  }
  tile.return
}

// -----

tile.program @turns_outside_of_roles(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.take_turn' op is for roles of 2 to 4 warpgroups that take turns}}
  tile.take_turn
  tile.return
}

// -----

tile.program @cluster_in_a_role(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256, cluster = 2>} {
  tile.roles warps [4, 4] threads [1, 128] {
    // expected-error @below {{'tile.synchronize' op lets all threads of the cluster meet, but stands in a role, where not all of them come}}
    tile.synchronize cluster
  }, {
  }
  tile.return
}

// -----

!rows = !tile.tensor_map<memref<?x?xf32, strided<[?, 1]>>, box = [16, 32], swizzle = 128>
tile.program @rows_of_warps(%m: index, %k: index, %x: !rows {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %0 = tile.buffer {offset = 0 : i64} : memref<1x32x32xf32, #tile.shared<swizzle = 128>>
  // expected-error @below {{'tile.store_box' op copies boxes of 16 rows for the warps of 128 threads, of which no slot of 32 rows is made; each warp takes as many rows, a multiple of 8}}
  tile.store_box %0[%c0] to %x[%m, %k] warp : memref<1x32x32xf32, #tile.shared<swizzle = 128>>, !rows
  tile.return
}

// -----

// A single column would have to go to lanes that do not hold it.
tile.program @split_to_columns(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 32>} {
  %0 = tile.iota from %n : tensor<16x8xi32, #tile.mma<warps = 1>>
  // expected-error @below {{failed to legalize operation 'tile.split'}}
  %1:8 = tile.split %0 : tensor<16x8xi32, #tile.mma<warps = 1>>
      -> tensor<16x1xi32, #tile.mma<warps = 1>>, tensor<16x1xi32, #tile.mma<warps = 1>>,
         tensor<16x1xi32, #tile.mma<warps = 1>>, tensor<16x1xi32, #tile.mma<warps = 1>>,
         tensor<16x1xi32, #tile.mma<warps = 1>>, tensor<16x1xi32, #tile.mma<warps = 1>>,
         tensor<16x1xi32, #tile.mma<warps = 1>>, tensor<16x1xi32, #tile.mma<warps = 1>>
  tile.return
}

// -----

// Columns are counted within the operand, not within a piece of its rows.
tile.program @piece_of_rows(%n: index, %x: memref<?x64xf32, strided<[?, 1]>> {tile.dimensions = ["n", 64]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  // expected-error @below {{failed to legalize operation 'tile.load'}}
  %0 = tile.load %x[%n, %n] {offset = 16 : i64, length = 16 : i64}
      : memref<?x64xf32, strided<[?, 1]>> -> tensor<16x8xf32, #tile.mma<warps = 1>>
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has 2048 threads, but a block of sm_90a has at most 1024}}
tile.program @threads(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 2048>} {
  tile.return
}

// -----

tile.program @shared_memory(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 128>} {
  %0 = tile.buffer {offset = 131072 : i64} : memref<4x128x64xbf16, #tile.shared<swizzle = 128>>
  // expected-error @below {{'tile.buffer' op ends at 262144 bytes, but a block of sm_90a has at most 232448 of shared memory}}
  %1 = tile.buffer {offset = 196608 : i64} : memref<4x128x64xbf16, #tile.shared<swizzle = 128>>
  tile.return
}

// -----

// expected-error @below {{'tile.program' op asks for clusters of 32 blocks, which are more than the 16 of a cluster}}
tile.program @cluster(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 128, cluster = 32>} {
  tile.return
}

// -----

tile.program @conversion_of_other_warps(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 64>} {
  %0 = arith.constant dense<0.0> : tensor<32x8xf32, #tile.mma<warps = 2>>
  // expected-error @below {{'tile.convert_layout' op deals 'tensor<32x8xf32, #tile.blocked<vector = 1, threadRows = 4, threadColumns = 8>>' to 32 threads, but is run by 64}}
  %1 = tile.convert_layout %0 : tensor<32x8xf32, #tile.mma<warps = 2>>
      -> tensor<32x8xf32, #tile.blocked<vector = 1, threadRows = 4, threadColumns = 8>>
  tile.return
}

// -----

tile.program @large_conversion(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 128>} {
  %0 = arith.constant dense<0.0> : tensor<128x128xf32, #tile.mma<warps = 4>>
  // expected-error @below {{bytes of shared memory, which are more than 49152; convert parts of it ('tile.split')}}
  %1 = tile.convert_layout %0 : tensor<128x128xf32, #tile.mma<warps = 4>>
      -> tensor<128x128xf32, #tile.blocked<vector = 4, threadRows = 4, threadColumns = 32>>
  tile.return
}

// -----

// The buffer has room for itself, and begins behind the numbers.
// expected-error @below {{'tile.program' op takes 233472 bytes of shared memory with its barriers and numbers, but a block of sm_90a has at most 232448}}
tile.program @behind_numbers(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 128>} {
  %0 = tile.make_numbers : memref<2x4xi32, #gpu.address_space<workgroup>>
  %1 = tile.buffer {offset = 0 : i64} : memref<227x8x64xbf16, #tile.shared<swizzle = 128>>
  tile.return
}
