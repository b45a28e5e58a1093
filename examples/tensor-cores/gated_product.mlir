// y = silu(x gate^T + gate_bias) * (x up^T + up_bias): both products of a gated MLP
// and its activation on tensor cores, written as two programs. The first is for
// Hopper; the second, further down, for GPUs from sm_80 on.
//
// As product.mlir, but a part of y is 256 x 128: the 256 columns of a block's sums
// are 128 of each product, side by side. Of the slots of weights, the first block
// copies the rows of `gate`, the second one those of `up`, and both go to both
// blocks. So the sums that one element of y is made of lie in the same thread.

!operand = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [128, 64], swizzle = 128>
!y_rows = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [16, 64], swizzle = 128>
!x_slots = memref<4x128x64xbf16, #tile.shared<swizzle = 128>>
!w_slots = memref<4x256x64xbf16, #tile.shared<swizzle = 128>>
!y_slots = memref<2x128x64xbf16, #tile.shared<swizzle = 128>>
!x_tile = memref<128x64xbf16, #tile.shared<swizzle = 128>>
!w_tile = memref<256x64xbf16, #tile.shared<swizzle = 128>>
!half = tensor<128x128xf32, #tile.mma<warps = 8>>
!half_row = tensor<1x128xbf16, #tile.mma<warps = 8>>
!half_row32 = tensor<1x128xf32, #tile.mma<warps = 8>>
!sum = tensor<128x256xf32, #tile.mma<warps = 8>>
!sums = !tile.pending<tensor<128x256xf32, #tile.mma<warps = 8>>>

func.func @gated_product(%x: tensor<?x?xbf16>, %gate: tensor<?x?xbf16>, %up: tensor<?x?xbf16>,
                         %gate_bias: tensor<?xbf16>, %up_bias: tensor<?xbf16>) -> tensor<?x?xbf16> {
  %y = tile.launch [@gated_product_wgmma, @gated_product_mma](%x, %gate, %up, %gate_bias, %up_bias)
      : (tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xbf16>, tensor<?xbf16>)
      -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

tile.program @gated_product_wgmma(%m: index, %n: index, %k: index,
    %x: !operand {tile.dimensions = ["m", "k"]},
    %gate: !operand {tile.dimensions = ["n", "k"]},
    %up: !operand {tile.dimensions = ["n", "k"]},
    %gate_bias: memref<?xbf16> {tile.dimensions = ["n"], tile.alignment = 4 : i64, tile.readonly},
    %up_bias: memref<?xbf16> {tile.dimensions = ["n"], tile.alignment = 4 : i64, tile.readonly},
    %y: !y_rows {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n", "k"],
                programs = {m = 256 : i64, n = 128 : i64},
                schedule = #tile.launch<threads = 384, cluster = 2, persistent = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index

  %x_slots = tile.buffer {offset = 0 : i64} : !x_slots
  %w_slots = tile.buffer {offset = 65536 : i64} : !w_slots
  %y_slots = tile.buffer {offset = 196608 : i64} : !y_slots
  // A slot is full once the thread that copies has arrived and all bytes have
  // come; it is empty once both warpgroups of both blocks have read it.
  %full = tile.make_barriers arrivals 1 : !tile.barriers<4>
  %empty = tile.make_barriers arrivals 4 : !tile.barriers<4>
  tile.synchronize cluster

  %program = tile.program_id
  %programs = tile.program_count
  %rank = tile.block_rank
  %rank_row = arith.muli %rank, %c128 : index
  %is_first = arith.cmpi eq, %rank, %c0 : index
  %parts_m = arith.ceildivui %m, %c256 : index
  %parts_n = arith.ceildivui %n, %c128 : index
  %parts = arith.muli %parts_m, %parts_n : index
  %steps = arith.ceildivui %k, %c64 : index
  // Parts are numbered in bands of eight rows of parts: those that are computed
  // at the same time share what they read of x and w in the cache.
  %band = arith.muli %parts_n, %c8 : index

  tile.roles warps [4, 8] threads [1, 256] registers [40, 232] {
    // Copies. `at` counts the slots that have been filled.
    scf.for %part = %program to %parts step %programs iter_args(%at = %c0) -> (index) {
      %band_index = arith.divui %part, %band : index
      %in_band = arith.remui %part, %band : index
      %band_row = arith.muli %band_index, %c8 : index
      %rows_left = arith.subi %parts_m, %band_row : index
      %band_rows = arith.minui %rows_left, %c8 : index
      %part_row = arith.remui %in_band, %band_rows : index
      %part_column = arith.divui %in_band, %band_rows : index
      %part_m = arith.addi %band_row, %part_row : index
      %cluster_row = arith.muli %part_m, %c256 : index
      %row = arith.addi %cluster_row, %rank_row : index
      %column = arith.muli %part_column, %c128 : index
      %next = scf.for %step = %c0 to %steps step %c1 iter_args(%slots = %at) -> (index) {
        %slot = arith.remui %slots, %c4 : index
        %round = arith.divui %slots, %c4 : index
        %before = arith.addi %round, %c1 : index
        %parity = arith.remui %before, %c2 : index
        // Ahead of the first round this returns at once: the phase before a
        // barrier's first one counts as ended.
        tile.await %empty[%slot] parity %parity : !tile.barriers<4>
        tile.expect 49152 bytes at %full[%slot] : !tile.barriers<4>
        %depth = arith.muli %step, %c64 : index
        tile.copy_box %x[%row, %depth] to %x_slots[%slot] arrive %full[%slot]
            : !operand, !x_slots, !tile.barriers<4>
        scf.if %is_first {
          tile.copy_box %gate[%column, %depth] to %w_slots[%slot] row %c0
              arrive %full[%slot] blocks %c3 : !operand, !w_slots, !tile.barriers<4>
        } else {
          tile.copy_box %up[%column, %depth] to %w_slots[%slot] row %c128
              arrive %full[%slot] blocks %c3 : !operand, !w_slots, !tile.barriers<4>
        }
        %filled = arith.addi %slots, %c1 : index
        scf.yield %filled : index
      }
      scf.yield %next : index
    }
  }, {
    // Products. `at` counts the slots that have been read.
    scf.for %part = %program to %parts step %programs iter_args(%at = %c0) -> (index) {
      %band_index = arith.divui %part, %band : index
      %in_band = arith.remui %part, %band : index
      %band_row = arith.muli %band_index, %c8 : index
      %rows_left = arith.subi %parts_m, %band_row : index
      %band_rows = arith.minui %rows_left, %c8 : index
      %part_row = arith.remui %in_band, %band_rows : index
      %part_column = arith.divui %in_band, %band_rows : index
      %part_m = arith.addi %band_row, %part_row : index
      %cluster_row = arith.muli %part_m, %c256 : index
      %row = arith.addi %cluster_row, %rank_row : index
      %column = arith.muli %part_column, %c128 : index

      %zeros = arith.constant dense<0.0> : !sum
      %begin = tile.begin_dots %zeros : !sum -> !sums
      %pending, %next = scf.for %step = %c0 to %steps step %c1
          iter_args(%sums = %begin, %slots = %at) -> (!sums, index) {
        %slot = arith.remui %slots, %c4 : index
        %round = arith.divui %slots, %c4 : index
        %parity = arith.remui %round, %c2 : index
        %x_tile, %w_tile = tile.await %full[%slot] parity %parity of %x_slots, %w_slots
            : !tile.barriers<4>, !x_slots, !w_slots -> !x_tile, !w_tile
        %more = tile.dot %x_tile, %w_tile, %sums contract [1, 1]
            : !x_tile, !w_tile, !sums -> !sums
        // The products of the step before have ended, so its slot is free.
        tile.wait_dots 1 : () -> ()
        %is_later = arith.cmpi ugt, %step, %c0 : index
        scf.if %is_later {
          %last = arith.subi %slots, %c1 : index
          %last_slot = arith.remui %last, %c4 : index
          tile.arrive at %empty[%last_slot] cluster : !tile.barriers<4>
        }
        %read = arith.addi %slots, %c1 : index
        scf.yield %more, %read : !sums, index
      }
      %sum = tile.wait_dots 0 of %pending : (!sums) -> !sum
      %has_steps = arith.cmpi ugt, %steps, %c0 : index
      scf.if %has_steps {
        %last = arith.subi %next, %c1 : index
        %last_slot = arith.remui %last, %c4 : index
        tile.arrive at %empty[%last_slot] cluster : !tile.barriers<4>
      }

      %gates, %ups = tile.split %sum : !sum -> !half, !half
      %gate_row = tile.load %gate_bias[%column] {invariant} : memref<?xbf16> -> !half_row
      %up_row = tile.load %up_bias[%column] {invariant} : memref<?xbf16> -> !half_row
      %gate_row32 = arith.extf %gate_row : !half_row to !half_row32
      %up_row32 = arith.extf %up_row : !half_row to !half_row32
      %gate_biases = tile.broadcast %gate_row32 : !half_row32 -> !half
      %up_biases = tile.broadcast %up_row32 : !half_row32 -> !half
      %g = arith.addf %gates, %gate_biases : !half
      %u = arith.addf %ups, %up_biases : !half
      // silu(g) = g / (1 + e^-g).
      %minus_log2e = arith.constant dense<-1.442695041e+00> : !half
      %ones = arith.constant dense<1.0> : !half
      %exponent = arith.mulf %g, %minus_log2e : !half
      %power = math.exp2 %exponent fastmath<afn> : !half
      %divisor = arith.addf %power, %ones : !half
      %silu = arith.divf %g, %divisor fastmath<afn> : !half
      %product = arith.mulf %silu, %u : !half
      %result = arith.truncf %product : !half to tensor<128x128xbf16, #tile.mma<warps = 8>>
      %y0, %y1 = tile.split %result
          : tensor<128x128xbf16, #tile.mma<warps = 8>>
          -> tensor<128x64xbf16, #tile.mma<warps = 8>>, tensor<128x64xbf16, #tile.mma<warps = 8>>
      %column1 = arith.addi %column, %c64 : index

      // 64 columns at a time through two slots: a slot is written once the copy
      // before the last one has read it.
      tile.wait_stores 1 warp
      tile.keep %y0, %y_slots[%c0] : tensor<128x64xbf16, #tile.mma<warps = 8>>, !y_slots
      tile.fence_shared
      tile.store_box %y_slots[%c0] to %y[%row, %column] warp : !y_slots, !y_rows

      tile.wait_stores 1 warp
      tile.keep %y1, %y_slots[%c1] : tensor<128x64xbf16, #tile.mma<warps = 8>>, !y_slots
      tile.fence_shared
      tile.store_box %y_slots[%c1] to %y[%row, %column1] warp : !y_slots, !y_rows
      scf.yield %next : index
    }
    tile.wait_stores 0 warp
  }
  // A block must not end while another may still arrive at its barriers.
  tile.synchronize cluster
  tile.return
}

// The same on tensor cores from sm_80 on, whose products take registers.
//
// As the second program of product.mlir, but a part of y is 128 x 64: a warp holds
// the sums of 32 rows and 64 columns of each product.

!x_memory = memref<?x?xbf16, strided<[?, 1]>>
!x_parts = memref<4x128x32xbf16, #tile.shared<swizzle = 64>>
!w_parts = memref<4x64x32xbf16, #tile.shared<swizzle = 64>>
!y_parts = memref<1x128x64xbf16, #tile.shared<swizzle = 128>>
!x_fragment = tensor<128x32xbf16, #tile.mma<warps = 4>>
!w_fragment = tensor<64x32xbf16, #tile.mma_rhs>
!y_sum = tensor<128x64xf32, #tile.mma<warps = 4>>
!y_row = tensor<1x64xbf16, #tile.mma<warps = 4>>
!y_row32 = tensor<1x64xf32, #tile.mma<warps = 4>>

tile.program @gated_product_mma(%m: index, %n: index, %k: index,
    %x: !x_memory {tile.dimensions = ["m", "k"], tile.alignment = 16 : i64, tile.readonly},
    %gate: !x_memory {tile.dimensions = ["n", "k"], tile.alignment = 16 : i64, tile.readonly},
    %up: !x_memory {tile.dimensions = ["n", "k"], tile.alignment = 16 : i64, tile.readonly},
    %gate_bias: memref<?xbf16> {tile.dimensions = ["n"], tile.alignment = 4 : i64, tile.readonly},
    %up_bias: memref<?xbf16> {tile.dimensions = ["n"], tile.alignment = 4 : i64, tile.readonly},
    %y: !x_memory {tile.dimensions = ["m", "n"], tile.alignment = 16 : i64})
    attributes {dimensions = ["m", "n", "k"],
                programs = {m = 128 : i64, n = 64 : i64},
                alignments = array<i64: 4, 2>,
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index

  %x_slots = tile.buffer {offset = 0 : i64} : !x_parts
  %gate_slots = tile.buffer {offset = 32768 : i64} : !w_parts
  %up_slots = tile.buffer {offset = 49152 : i64} : !w_parts
  // Written once nothing of x is read any more.
  %y_slot = tile.buffer {offset = 0 : i64} : !y_parts

  // Parts are numbered in bands of eight rows of parts, as above.
  %part = tile.program_id
  %parts_m = arith.ceildivui %m, %c128 : index
  %parts_n = arith.ceildivui %n, %c64 : index
  %steps = arith.ceildivui %k, %c32 : index
  %band = arith.muli %parts_n, %c8 : index
  %band_index = arith.divui %part, %band : index
  %in_band = arith.remui %part, %band : index
  %band_row = arith.muli %band_index, %c8 : index
  %rows_left = arith.subi %parts_m, %band_row : index
  %band_rows = arith.minui %rows_left, %c8 : index
  %part_row = arith.remui %in_band, %band_rows : index
  %part_column = arith.divui %in_band, %band_rows : index
  %part_m = arith.addi %band_row, %part_row : index
  %row = arith.muli %part_m, %c128 : index
  %column = arith.muli %part_column, %c64 : index

  // What lies beyond the operands becomes zeros, so that a group of copies is
  // made for each step, even if there are fewer than three.
  scf.for %step = %c0 to %c3 step %c1 {
    %depth = arith.muli %step, %c32 : index
    tile.copy_tile %x[%row, %depth] to %x_slots[%step] : !x_memory, !x_parts
    tile.copy_tile %gate[%column, %depth] to %gate_slots[%step] : !x_memory, !w_parts
    tile.copy_tile %up[%column, %depth] to %up_slots[%step] : !x_memory, !w_parts
    tile.commit_copies
  }
  %zeros = arith.constant dense<0.0> : !y_sum
  %gates, %ups = scf.for %step = %c0 to %steps step %c1
      iter_args(%gates_before = %zeros, %ups_before = %zeros) -> (!y_sum, !y_sum) {
    // The slot of this step is full once all threads have waited; that of the
    // step before, which is copied to next, has been read by all of them.
    tile.wait_copies 2
    tile.synchronize
    %ahead = arith.addi %step, %c3 : index
    %slot_ahead = arith.remui %ahead, %c4 : index
    %depth = arith.muli %ahead, %c32 : index
    tile.copy_tile %x[%row, %depth] to %x_slots[%slot_ahead] : !x_memory, !x_parts
    tile.copy_tile %gate[%column, %depth] to %gate_slots[%slot_ahead] : !x_memory, !w_parts
    tile.copy_tile %up[%column, %depth] to %up_slots[%slot_ahead] : !x_memory, !w_parts
    tile.commit_copies
    %slot = arith.remui %step, %c4 : index
    %x_part = tile.take %x_slots[%slot] : !x_parts -> !x_fragment
    %gate_part = tile.take %gate_slots[%slot] : !w_parts -> !w_fragment
    %up_part = tile.take %up_slots[%slot] : !w_parts -> !w_fragment
    %gates_more = tile.dot %x_part, %gate_part, %gates_before contract [1, 1]
        : !x_fragment, !w_fragment, !y_sum -> !y_sum
    %ups_more = tile.dot %x_part, %up_part, %ups_before contract [1, 1]
        : !x_fragment, !w_fragment, !y_sum -> !y_sum
    scf.yield %gates_more, %ups_more : !y_sum, !y_sum
  }
  tile.wait_copies 0
  tile.synchronize

  %gate_row = tile.load %gate_bias[%column] {invariant} : memref<?xbf16> -> !y_row
  %up_row = tile.load %up_bias[%column] {invariant} : memref<?xbf16> -> !y_row
  %gate_row32 = arith.extf %gate_row : !y_row to !y_row32
  %up_row32 = arith.extf %up_row : !y_row to !y_row32
  %gate_biases = tile.broadcast %gate_row32 : !y_row32 -> !y_sum
  %up_biases = tile.broadcast %up_row32 : !y_row32 -> !y_sum
  %g = arith.addf %gates, %gate_biases : !y_sum
  %u = arith.addf %ups, %up_biases : !y_sum
  // silu(g) = g / (1 + e^-g).
  %minus_log2e = arith.constant dense<-1.442695041e+00> : !y_sum
  %ones = arith.constant dense<1.0> : !y_sum
  %exponent = arith.mulf %g, %minus_log2e : !y_sum
  %power = math.exp2 %exponent fastmath<afn> : !y_sum
  %divisor = arith.addf %power, %ones : !y_sum
  %silu = arith.divf %g, %divisor fastmath<afn> : !y_sum
  %product = arith.mulf %silu, %u : !y_sum
  %result = arith.truncf %product : !y_sum to tensor<128x64xbf16, #tile.mma<warps = 4>>
  tile.keep %result, %y_slot[%c0] : tensor<128x64xbf16, #tile.mma<warps = 4>>, !y_parts
  tile.synchronize
  tile.store_tile %y_slot[%c0] to %y[%row, %column] : !y_parts, !x_memory
  tile.return
}
