// y = x w^T in float32, for few rows and columns and a long k: a product on
// tensor cores whose k is cut into parts of 2048, each computed by a program of
// its own. The first program is for Hopper; the second, further down, for GPUs
// from sm_80 on.
//
// The programs of the same 128 x 128 elements of y take turns at adding what they
// have, in the order of their parts of k. So each sum has the same bits in every
// run, although it is a sum of floats. The first part is stored, not added, so
// that nobody has to fill y with zeros.

!operand = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [128, 64], swizzle = 128>
!slots = memref<4x128x64xbf16, #tile.shared<swizzle = 128>>
!slot_tile = memref<128x64xbf16, #tile.shared<swizzle = 128>>
!y_memory = memref<?x?xf32, strided<[?, 1]>>
!sum = tensor<128x128xf32, #tile.mma<warps = 8>>
!half = tensor<128x64xf32, #tile.mma<warps = 8>>
!sums = !tile.pending<tensor<128x128xf32, #tile.mma<warps = 8>>>

func.func @split_product(%x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>) -> tensor<?x?xf32> {
  %y, %turns = tile.launch [@split_product_wgmma, @split_product_mma](%x, %w)
      : (tensor<?x?xbf16>, tensor<?x?xbf16>) -> (tensor<?x?xf32>, tensor<?xi32>)
  return %y : tensor<?x?xf32>
}

tile.program @split_product_wgmma(%m: index, %n: index, %k: index,
    %x: !operand {tile.dimensions = ["m", "k"]},
    %w: !operand {tile.dimensions = ["n", "k"]},
    %y: !y_memory {tile.dimensions = ["m", "n"]},
    %turns: memref<?xi32> {tile.counters = {m = 128 : i64, n = 128 : i64}})
    attributes {dimensions = ["m", "n", "k"],
                programs = {m = 128 : i64, n = 128 : i64, k = 2048 : i64},
                schedule = #tile.launch<threads = 384>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %part_k = arith.constant 2048 : index

  %x_slots = tile.buffer {offset = 0 : i64} : !slots
  %w_slots = tile.buffer {offset = 65536 : i64} : !slots
  // As in product.mlir, but within one block.
  %full = tile.make_barriers arrivals 1 : !tile.barriers<4>
  %empty = tile.make_barriers arrivals 2 : !tile.barriers<4>
  tile.synchronize

  // All tiles of y come before the next part of k: a program waits for one with
  // a smaller number, whose turn is before its own.
  %program = tile.program_id
  %parts_m = arith.ceildivui %m, %c128 : index
  %parts_n = arith.ceildivui %n, %c128 : index
  %tiles = arith.muli %parts_m, %parts_n : index
  %turn = arith.divui %program, %tiles : index
  %tile = arith.remui %program, %tiles : index
  %tile_m = arith.remui %tile, %parts_m : index
  %tile_n = arith.divui %tile, %parts_m : index
  %row = arith.muli %tile_m, %c128 : index
  %column = arith.muli %tile_n, %c128 : index
  %begin = arith.muli %turn, %part_k : index
  %whole_end = arith.addi %begin, %part_k : index
  %end = arith.minui %whole_end, %k : index
  %depths = arith.subi %end, %begin : index
  %steps = arith.ceildivui %depths, %c64 : index

  tile.roles warps [4, 8] threads [1, 256] registers [40, 232] {
    scf.for %step = %c0 to %steps step %c1 {
      %slot = arith.remui %step, %c4 : index
      %round = arith.divui %step, %c4 : index
      %before = arith.addi %round, %c1 : index
      %parity = arith.remui %before, %c2 : index
      tile.await %empty[%slot] parity %parity : !tile.barriers<4>
      tile.expect 32768 bytes at %full[%slot] : !tile.barriers<4>
      %within = arith.muli %step, %c64 : index
      %depth = arith.addi %begin, %within : index
      tile.copy_box %x[%row, %depth] to %x_slots[%slot] arrive %full[%slot]
          : !operand, !slots, !tile.barriers<4>
      tile.copy_box %w[%column, %depth] to %w_slots[%slot] arrive %full[%slot]
          : !operand, !slots, !tile.barriers<4>
    }
  }, {
    %zeros = arith.constant dense<0.0> : !sum
    %first = tile.begin_dots %zeros : !sum -> !sums
    %pending = scf.for %step = %c0 to %steps step %c1 iter_args(%sums = %first) -> (!sums) {
      %slot = arith.remui %step, %c4 : index
      %round = arith.divui %step, %c4 : index
      %parity = arith.remui %round, %c2 : index
      %x_tile, %w_tile = tile.await %full[%slot] parity %parity of %x_slots, %w_slots
          : !tile.barriers<4>, !slots, !slots -> !slot_tile, !slot_tile
      %more = tile.dot %x_tile, %w_tile, %sums contract [1, 1]
          : !slot_tile, !slot_tile, !sums -> !sums
      tile.wait_dots 1 : () -> ()
      %is_later = arith.cmpi ugt, %step, %c0 : index
      scf.if %is_later {
        %last = arith.subi %step, %c1 : index
        %last_slot = arith.remui %last, %c4 : index
        tile.arrive at %empty[%last_slot] : !tile.barriers<4>
      }
      scf.yield %more : !sums
    }
    %own = tile.wait_dots 0 of %pending : (!sums) -> !sum

    // The sum of the parts before is there once their last program has released
    // the count that is this program's turn. It is added and stored by halves,
    // which leaves more registers for the other half's addresses.
    %adds = arith.cmpi ugt, %turn, %c0 : index
    scf.if %adds {
      tile.await_count %turns[%tile] reaches %turn : memref<?xi32>
    }
    %own0, %own1 = tile.split %own : !sum -> !half, !half
    %column1 = arith.addi %column, %c64 : index
    %sum0 = scf.if %adds -> (!half) {
      %others = tile.load %y[%row, %column] : !y_memory -> !half
      %both = arith.addf %others, %own0 : !half
      scf.yield %both : !half
    } else {
      scf.yield %own0 : !half
    }
    tile.store %sum0, %y[%row, %column] : !half, !y_memory
    %sum1 = scf.if %adds -> (!half) {
      %others = tile.load %y[%row, %column1] : !y_memory -> !half
      %both = arith.addf %others, %own1 : !half
      scf.yield %both : !half
    } else {
      scf.yield %own1 : !half
    }
    tile.store %sum1, %y[%row, %column1] : !half, !y_memory
    %next_turn = arith.addi %turn, %c1 : index
    tile.release_count %turns[%tile] to %next_turn : memref<?xi32>
  }
  tile.return
}

// The same on tensor cores from sm_80 on, whose products take registers. All
// threads copy 32 columns of x and of w at a time into one of four slots, as in
// product.mlir. There is one program for each tile of y where k is 0, too.

!memory = memref<?x?xbf16, strided<[?, 1]>>
!parts = memref<4x128x32xbf16, #tile.shared<swizzle = 64>>
!x_fragment = tensor<128x32xbf16, #tile.mma<warps = 8>>
!w_fragment = tensor<128x32xbf16, #tile.mma_rhs>

tile.program @split_product_mma(%m: index, %n: index, %k: index,
    %x: !memory {tile.dimensions = ["m", "k"], tile.alignment = 16 : i64, tile.readonly},
    %w: !memory {tile.dimensions = ["n", "k"], tile.alignment = 16 : i64, tile.readonly},
    %y: !y_memory {tile.dimensions = ["m", "n"]},
    %turns: memref<?xi32> {tile.counters = {m = 128 : i64, n = 128 : i64}})
    attributes {dimensions = ["m", "n", "k"],
                programs = {m = 128 : i64, n = 128 : i64, k = 2048 : i64},
                alignments = array<i64: 4, 2>,
                schedule = #tile.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %part_k = arith.constant 2048 : index

  %x_slots = tile.buffer {offset = 0 : i64} : !parts
  %w_slots = tile.buffer {offset = 32768 : i64} : !parts

  %program = tile.program_id
  %parts_m = arith.ceildivui %m, %c128 : index
  %parts_n = arith.ceildivui %n, %c128 : index
  %tiles = arith.muli %parts_m, %parts_n : index
  %turn = arith.divui %program, %tiles : index
  %tile = arith.remui %program, %tiles : index
  %tile_m = arith.remui %tile, %parts_m : index
  %tile_n = arith.divui %tile, %parts_m : index
  %row = arith.muli %tile_m, %c128 : index
  %column = arith.muli %tile_n, %c128 : index
  %begin = arith.muli %turn, %part_k : index
  %whole_end = arith.addi %begin, %part_k : index
  %end = arith.minui %whole_end, %k : index
  %depths = arith.subi %end, %begin : index
  %steps = arith.ceildivui %depths, %c32 : index

  // Copies of the next part of k, if any, are waited for and not multiplied.
  scf.for %step = %c0 to %c3 step %c1 {
    %within = arith.muli %step, %c32 : index
    %depth = arith.addi %begin, %within : index
    tile.copy_tile %x[%row, %depth] to %x_slots[%step] : !memory, !parts
    tile.copy_tile %w[%column, %depth] to %w_slots[%step] : !memory, !parts
    tile.commit_copies
  }
  %zeros = arith.constant dense<0.0> : !sum
  %own = scf.for %step = %c0 to %steps step %c1 iter_args(%before = %zeros) -> (!sum) {
    tile.wait_copies 2
    tile.synchronize
    %slot = arith.remui %step, %c4 : index
    %x_part = tile.take %x_slots[%slot] : !parts -> !x_fragment
    %w_part = tile.take %w_slots[%slot] : !parts -> !w_fragment
    %ahead = arith.addi %step, %c3 : index
    %slot_ahead = arith.remui %ahead, %c4 : index
    %within = arith.muli %ahead, %c32 : index
    %depth = arith.addi %begin, %within : index
    tile.copy_tile %x[%row, %depth] to %x_slots[%slot_ahead] : !memory, !parts
    tile.copy_tile %w[%column, %depth] to %w_slots[%slot_ahead] : !memory, !parts
    tile.commit_copies
    %more = tile.dot %x_part, %w_part, %before contract [1, 1]
        : !x_fragment, !w_fragment, !sum -> !sum
    scf.yield %more : !sum
  }
  tile.wait_copies 0

  %adds = arith.cmpi ugt, %turn, %c0 : index
  scf.if %adds {
    tile.await_count %turns[%tile] reaches %turn : memref<?xi32>
  }
  %own0, %own1 = tile.split %own : !sum -> !half, !half
  %column1 = arith.addi %column, %c64 : index
  %sum0 = scf.if %adds -> (!half) {
    %others = tile.load %y[%row, %column] : !y_memory -> !half
    %both = arith.addf %others, %own0 : !half
    scf.yield %both : !half
  } else {
    scf.yield %own0 : !half
  }
  tile.store %sum0, %y[%row, %column] : !half, !y_memory
  %sum1 = scf.if %adds -> (!half) {
    %others = tile.load %y[%row, %column1] : !y_memory -> !half
    %both = arith.addf %others, %own1 : !half
    scf.yield %both : !half
  } else {
    scf.yield %own1 : !half
  }
  tile.store %sum1, %y[%row, %column1] : !half, !y_memory
  %next_turn = arith.addi %turn, %c1 : index
  tile.release_count %turns[%tile] to %next_turn : memref<?xi32>
  tile.return
}
