// Causal attention, forward, of heads of 64 elements on tensor cores, written as
// two programs. The first is for Hopper; the second, further down, for GPUs from
// sm_80 on.
//
// A block computes 192 rows of one head at a time. One thread copies boxes of
// q, k and v; three warpgroups have 64 rows each. Keys are taken 128 at a
// time, from the diagonal backward. While a warpgroup takes exponentials of one
// part of the scores, the tensor cores compute its next part and add the last
// part's products with v; the products of the others fall into the same time, as
// warpgroups take turns at beginning theirs. Parts are numbered so that those
// with most keys come first.
//
// Query i sees keys up to i + (keys - queries): the last query sees all keys. A
// query that sees none has the result 0 and the log-sum-exp -inf.

!queries = !tile.tensor_map<memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 1, 192, 64], swizzle = 128>
!keys = !tile.tensor_map<memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 1, 128, 64], swizzle = 128>
!q_slots = memref<2x192x64xbf16, #tile.shared<swizzle = 128>>
!o_slot = memref<1x192x64xbf16, #tile.shared<swizzle = 128>>
!k_slots = memref<2x128x64xbf16, #tile.shared<swizzle = 128>>
!q_tile = memref<192x64xbf16, #tile.shared<swizzle = 128>>
!k_tile = memref<128x64xbf16, #tile.shared<swizzle = 128>>
!scores = tensor<192x128xf32, #tile.mma<warps = 12>>
!scores_pending = !tile.pending<tensor<192x128xf32, #tile.mma<warps = 12>>>
!powers = tensor<192x128xbf16, #tile.mma<warps = 12>>
!sums = tensor<192x64xf32, #tile.mma<warps = 12>>
!sums_pending = !tile.pending<tensor<192x64xf32, #tile.mma<warps = 12>>>
!result = tensor<192x64xbf16, #tile.mma<warps = 12>>
!row = tensor<192x1xf32, #tile.mma<warps = 12>>
!numbers = tensor<192x128xi32, #tile.mma<warps = 12>>

func.func @flash(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?x1xf32>) {
  %o, %lse = tile.launch [@flash_wgmma, @flash_mma](%q, %k, %v)
      : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>)
      -> (tensor<?x?x?x64xbf16>, tensor<?x?x?x1xf32>)
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?x1xf32>
}

tile.program @flash_wgmma(%batches: index, %heads: index, %groups: index,
    %rows: index, %keys: index,
    %q: !queries {tile.dimensions = ["b", "h", "q", 64]},
    %k: !keys {tile.dimensions = ["b", "g", "kv", 64]},
    %v: !keys {tile.dimensions = ["b", "g", "kv", 64]},
    %o: !queries {tile.dimensions = ["b", "h", "q", 64]},
    %lse: memref<?x?x?x1xf32, strided<[?, ?, ?, 1]>> {tile.dimensions = ["b", "h", "q", 1]})
    attributes {dimensions = ["b", "h", "g", "q", "kv"],
                programs = {b = 1 : i64, h = 1 : i64, q = 192 : i64},
                schedule = #tile.launch<threads = 512, persistent = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %part_rows = arith.constant 192 : index
  %part_keys = arith.constant 128 : index

  %q_slots = tile.buffer {offset = 0 : i64} : !q_slots
  %o_slot = tile.buffer {offset = 49152 : i64} : !o_slot
  %k_slots = tile.buffer {offset = 73728 : i64} : !k_slots
  %v_slots = tile.buffer {offset = 106496 : i64} : !k_slots
  // A slot is full once the thread that copies has arrived and all bytes have
  // come; it is empty once all warpgroups have read it.
  %q_full = tile.make_barriers arrivals 1 : !tile.barriers<2>
  %q_empty = tile.make_barriers arrivals 3 : !tile.barriers<2>
  %k_full = tile.make_barriers arrivals 1 : !tile.barriers<2>
  %k_empty = tile.make_barriers arrivals 3 : !tile.barriers<2>
  %v_full = tile.make_barriers arrivals 1 : !tile.barriers<2>
  %v_empty = tile.make_barriers arrivals 3 : !tile.barriers<2>
  tile.synchronize

  %program = tile.program_id
  %programs = tile.program_count
  %parts_q = arith.ceildivui %rows, %part_rows : index
  %all_heads = arith.muli %batches, %heads : index
  %parts = arith.muli %parts_q, %all_heads : index
  %heads_per_group = arith.divui %heads, %groups : index
  %last_part = arith.subi %parts_q, %c1 : index
  // Each program takes a part in every round of them, the first program the longest
  // one. So every other round goes the other way, unless it is the last one and has
  // not a part for each program.
  %to_end = arith.subi %programs, %program : index
  %number = arith.addi %program, %c1 : index
  // The number of the last key that the query of the same number sees, less the
  // query's number.
  %shift = arith.subi %keys, %rows : index

  tile.roles warps [4, 12] threads [1, 384] registers [32, 160] {
    // Copies. `at` counts the parts of keys, `turn` the parts of queries.
    scf.for %place = %program to %parts step %programs iter_args(%at = %c0) -> (index) {
      %turn = arith.divui %place, %programs : index
      %round_parity = arith.remui %turn, %c2 : index
      %is_back = arith.cmpi eq, %round_parity, %c1 : index
      %round_end = arith.addi %place, %to_end : index
      %is_whole = arith.cmpi ule, %round_end, %parts : index
      %is_mirrored = arith.andi %is_back, %is_whole : i1
      %mirrored = arith.subi %round_end, %number : index
      %part = arith.select %is_mirrored, %mirrored, %place : index
      %behind = arith.divui %part, %all_heads : index
      %head_of_all = arith.remui %part, %all_heads : index
      %part_q = arith.subi %last_part, %behind : index
      %batch = arith.divui %head_of_all, %heads : index
      %head = arith.remui %head_of_all, %heads : index
      %group = arith.divui %head, %heads_per_group : index
      %row = arith.muli %part_q, %part_rows : index
      %row_end = arith.addi %row, %part_rows : index
      %seen = arith.addi %row_end, %shift : index
      %seen_end = arith.minsi %seen, %keys : index
      %steps_seen = arith.ceildivsi %seen_end, %part_keys : index
      %steps = arith.maxsi %steps_seen, %c1 : index
      %last_step = arith.subi %steps, %c1 : index

      %q_slot = arith.remui %turn, %c2 : index
      %turn_round = arith.divui %turn, %c2 : index
      %turn_before = arith.addi %turn_round, %c1 : index
      %turn_parity = arith.remui %turn_before, %c2 : index
      tile.await %q_empty[%q_slot] parity %turn_parity : !tile.barriers<2>
      tile.expect 24576 bytes at %q_full[%q_slot] : !tile.barriers<2>
      tile.copy_box %q[%batch, %head, %row, %c0] to %q_slots[%q_slot] arrive %q_full[%q_slot]
          : !queries, !q_slots, !tile.barriers<2>
      %next = scf.for %step = %c0 to %steps step %c1 iter_args(%slots = %at) -> (index) {
        %slot = arith.remui %slots, %c2 : index
        %round = arith.divui %slots, %c2 : index
        %before = arith.addi %round, %c1 : index
        %parity = arith.remui %before, %c2 : index
        %back = arith.subi %last_step, %step : index
        %key = arith.muli %back, %part_keys : index
        tile.await %k_empty[%slot] parity %parity : !tile.barriers<2>
        tile.expect 16384 bytes at %k_full[%slot] : !tile.barriers<2>
        tile.copy_box %k[%batch, %group, %key, %c0] to %k_slots[%slot] arrive %k_full[%slot]
            : !keys, !k_slots, !tile.barriers<2>
        tile.await %v_empty[%slot] parity %parity : !tile.barriers<2>
        tile.expect 16384 bytes at %v_full[%slot] : !tile.barriers<2>
        tile.copy_box %v[%batch, %group, %key, %c0] to %v_slots[%slot] arrive %v_full[%slot]
            : !keys, !k_slots, !tile.barriers<2>
        %filled = arith.addi %slots, %c1 : index
        scf.yield %filled : index
      }
      scf.yield %next : index
    }
  }, {
    // Scores are taken times this, the scale of 1 / sqrt(64) and log2 e, so that
    // powers are those of 2.
    %scale_log2 = arith.constant dense<1.803368801e-01> : !scores
    %scale_row = arith.constant dense<1.803368801e-01> : !row
    %log_2 = arith.constant dense<6.931471806e-01> : !row
    %lowest = arith.constant dense<0xFF800000> : !row
    %lowest_scores = arith.constant dense<0xFF800000> : !scores
    %zero_row = arith.constant dense<0.0> : !row
    %one_row = arith.constant dense<1.0> : !row
    %zeros = arith.constant dense<0.0> : !sums

    scf.for %place = %program to %parts step %programs iter_args(%at = %c0) -> (index) {
      %turn = arith.divui %place, %programs : index
      %round_parity = arith.remui %turn, %c2 : index
      %is_back = arith.cmpi eq, %round_parity, %c1 : index
      %round_end = arith.addi %place, %to_end : index
      %is_whole = arith.cmpi ule, %round_end, %parts : index
      %is_mirrored = arith.andi %is_back, %is_whole : i1
      %mirrored = arith.subi %round_end, %number : index
      %part = arith.select %is_mirrored, %mirrored, %place : index
      %behind = arith.divui %part, %all_heads : index
      %head_of_all = arith.remui %part, %all_heads : index
      %part_q = arith.subi %last_part, %behind : index
      %batch = arith.divui %head_of_all, %heads : index
      %head = arith.remui %head_of_all, %heads : index
      %row = arith.muli %part_q, %part_rows : index
      %row_end = arith.addi %row, %part_rows : index
      %seen = arith.addi %row_end, %shift : index
      %seen_end = arith.minsi %seen, %keys : index
      %steps_seen = arith.ceildivsi %seen_end, %part_keys : index
      %steps = arith.maxsi %steps_seen, %c1 : index
      %last_step = arith.subi %steps, %c1 : index
      %row_sees = arith.addi %row, %shift : index
      // Only the parts that the diagonal crosses have keys that a row does not see.
      %whole_steps = arith.floordivsi %row_sees, %part_keys : index
      %crossed_steps = arith.subi %steps, %whole_steps : index
      %last_seen = tile.iota_rows from %row_sees : tensor<192x1xi32, #tile.mma<warps = 12>>
      %last_seen_all = tile.broadcast %last_seen : tensor<192x1xi32, #tile.mma<warps = 12>> -> !numbers

      // The first part of the keys, which the diagonal crosses.
      %q_slot = arith.remui %turn, %c2 : index
      %turn_round = arith.divui %turn, %c2 : index
      %turn_parity = arith.remui %turn_round, %c2 : index
      %q_tile = tile.await %q_full[%q_slot] parity %turn_parity of %q_slots
          : !tile.barriers<2>, !q_slots -> !q_tile
      %slot0 = arith.remui %at, %c2 : index
      %round0 = arith.divui %at, %c2 : index
      %parity0 = arith.remui %round0, %c2 : index
      %k_tile0 = tile.await %k_full[%slot0] parity %parity0 of %k_slots
          : !tile.barriers<2>, !k_slots -> !k_tile
      %dots0 = tile.dot %q_tile, %k_tile0 contract [1, 1] : !q_tile, !k_tile -> !scores_pending
      %all0 = tile.wait_dots 0 of %dots0 : (!scores_pending) -> !scores
      tile.arrive at %k_empty[%slot0] : !tile.barriers<2>
      %key0 = arith.muli %last_step, %part_keys : index
      %columns0 = tile.iota from %key0 : tensor<1x128xi32, #tile.mma<warps = 12>>
      %column0 = tile.broadcast %columns0 : tensor<1x128xi32, #tile.mma<warps = 12>> -> !numbers
      %sees0 = arith.cmpi sle, %column0, %last_seen_all : !numbers
      %scores0 = arith.select %sees0, %all0, %lowest_scores
          : tensor<192x128xi1, #tile.mma<warps = 12>>, !scores
      %max0 = tile.reduce max %scores0 : !scores -> !row
      // A row that sees nothing has the maximum -inf, which is not subtracted.
      %none0 = arith.cmpf oeq, %max0, %lowest : !row
      %base0 = arith.select %none0, %zero_row, %max0 : tensor<192x1xi1, #tile.mma<warps = 12>>, !row
      %less0 = arith.mulf %base0, %scale_row : !row
      %minus0 = arith.negf %less0 : !row
      %minus0_all = tile.broadcast %minus0 : !row -> !scores
      %exponents0 = math.fma %scores0, %scale_log2, %minus0_all : !scores
      %powers0 = math.exp2 %exponents0 fastmath<afn> : !scores
      %total0 = tile.reduce add %powers0 : !scores -> !row
      %narrow0 = arith.truncf %powers0 : !scores to !powers
      %at0 = arith.addi %at, %c1 : index

      %powers, %sums, %max, %total, %next = scf.for %step = %c1 to %steps step %c1
          iter_args(%p = %narrow0, %o_before = %zeros, %m = %max0, %l = %total0, %slots = %at0)
          -> (!powers, !sums, !row, !row, index) {
        %slot = arith.remui %slots, %c2 : index
        %round = arith.divui %slots, %c2 : index
        %parity = arith.remui %round, %c2 : index
        %behind_slots = arith.subi %slots, %c1 : index
        %v_slot = arith.remui %behind_slots, %c2 : index
        %v_round = arith.divui %behind_slots, %c2 : index
        %v_parity = arith.remui %v_round, %c2 : index

        %k_tile = tile.await %k_full[%slot] parity %parity of %k_slots
            : !tile.barriers<2>, !k_slots -> !k_tile
        tile.take_turn
        %dots = tile.dot %q_tile, %k_tile contract [1, 1] : !q_tile, !k_tile -> !scores_pending
        %v_tile = tile.await %v_full[%v_slot] parity %v_parity of %v_slots
            : !tile.barriers<2>, !k_slots -> !k_tile
        %begin = tile.begin_dots %o_before : !sums -> !sums_pending
        %more = tile.dot %p, %v_tile, %begin contract [1, 0]
            : !powers, !k_tile, !sums_pending -> !sums_pending
        tile.pass_turn
        %all = tile.wait_dots 1 of %dots : (!scores_pending) -> !scores
        tile.arrive at %k_empty[%slot] : !tile.barriers<2>

        %is_crossed = arith.cmpi slt, %step, %crossed_steps : index
        %scores = scf.if %is_crossed -> (!scores) {
          %back = arith.subi %last_step, %step : index
          %key = arith.muli %back, %part_keys : index
          %columns = tile.iota from %key : tensor<1x128xi32, #tile.mma<warps = 12>>
          %column = tile.broadcast %columns : tensor<1x128xi32, #tile.mma<warps = 12>> -> !numbers
          %sees = arith.cmpi sle, %column, %last_seen_all : !numbers
          %some = arith.select %sees, %all, %lowest_scores
              : tensor<192x128xi1, #tile.mma<warps = 12>>, !scores
          scf.yield %some : !scores
        } else {
          scf.yield %all : !scores
        }
        %part_max = tile.reduce max %scores : !scores -> !row
        %new_m = arith.maximumf %m, %part_max : !row
        %none = arith.cmpf oeq, %new_m, %lowest : !row
        %base = arith.select %none, %zero_row, %new_m : tensor<192x1xi1, #tile.mma<warps = 12>>, !row
        %less = arith.mulf %base, %scale_row : !row
        %minus = arith.negf %less : !row
        %minus_all = tile.broadcast %minus : !row -> !scores
        %exponents = math.fma %scores, %scale_log2, %minus_all : !scores
        %new_powers = math.exp2 %exponents fastmath<afn> : !scores
        %lost = math.fma %m, %scale_row, %minus : !row
        %factor = math.exp2 %lost fastmath<afn> : !row
        %part_total = tile.reduce add %new_powers : !scores -> !row

        // The next powers are computed while the products with v are on their way.
        %o_sum, %ready, %part_sum = tile.wait_dots 0 of %more after %new_powers, %part_total
            : (!sums_pending, !scores, !row) -> (!sums, !scores, !row)
        tile.arrive at %v_empty[%v_slot] : !tile.barriers<2>
        // Until here the products may have read the last powers.
        %next_p = arith.truncf %ready : !scores to !powers
        %new_l = math.fma %l, %factor, %part_sum : !row
        %factors = tile.broadcast %factor : !row -> !sums
        %o_scaled = arith.mulf %o_sum, %factors : !sums
        %read = arith.addi %slots, %c1 : index
        scf.yield %next_p, %o_scaled, %new_m, %new_l, %read : !powers, !sums, !row, !row, index
      }
      // All scores are there, so that q of the next part may come.
      tile.arrive at %q_empty[%q_slot] : !tile.barriers<2>

      %last_slots = arith.subi %next, %c1 : index
      %last_slot = arith.remui %last_slots, %c2 : index
      %last_round = arith.divui %last_slots, %c2 : index
      %last_parity = arith.remui %last_round, %c2 : index
      %v_last = tile.await %v_full[%last_slot] parity %last_parity of %v_slots
          : !tile.barriers<2>, !k_slots -> !k_tile
      %begin_last = tile.begin_dots %sums : !sums -> !sums_pending
      %dots_last = tile.dot %powers, %v_last, %begin_last contract [1, 0]
          : !powers, !k_tile, !sums_pending -> !sums_pending
      %o_all = tile.wait_dots 0 of %dots_last : (!sums_pending) -> !sums
      tile.arrive at %v_empty[%last_slot] : !tile.barriers<2>

      // The result is divided by the sum of powers; where that is 0, so is the
      // result.
      %is_empty = arith.cmpf oeq, %total, %zero_row : !row
      %divisor = arith.select %is_empty, %one_row, %total : tensor<192x1xi1, #tile.mma<warps = 12>>, !row
      %inverse = arith.divf %one_row, %divisor : !row
      %inverses = tile.broadcast %inverse : !row -> !sums
      %o_normal = arith.mulf %o_all, %inverses : !sums
      %o_narrow = arith.truncf %o_normal : !sums to !result
      %log2_total = math.log2 %divisor fastmath<afn> : !row
      %log2_sum = math.fma %max, %scale_row, %log2_total : !row
      %log_sum = arith.mulf %log2_sum, %log_2 : !row
      tile.store %log_sum, %lse[%batch, %head, %row, %c0]
          : !row, memref<?x?x?x1xf32, strided<[?, ?, ?, 1]>>

      // The slot is written once the copy before has read it.
      tile.wait_stores 0
      tile.synchronize
      tile.keep %o_narrow, %o_slot[%c0] : !result, !o_slot
      tile.fence_shared
      tile.synchronize
      tile.store_box %o_slot[%c0] to %o[%batch, %head, %row, %c0] : !o_slot, !queries
      scf.yield %next : index
    }
    tile.wait_stores 0
  }
  tile.return
}

// The same on tensor cores from sm_80 on, whose products take registers.
//
// A block computes 128 rows of one head, each of its eight warps 16 of them. Keys
// are taken 64 at a time, from the diagonal backward. All threads copy the next
// keys and values ahead, into two slots each: the next keys come while the
// exponentials are taken, the next values during the products after that.

!queries_memory = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
!q_half = memref<1x128x64xbf16, #tile.shared<swizzle = 128>>
!k_half = memref<2x64x64xbf16, #tile.shared<swizzle = 128>>
!q_fragment = tensor<128x64xbf16, #tile.mma<warps = 8>>
!k_fragment = tensor<64x64xbf16, #tile.mma_rhs>
!part_scores = tensor<128x64xf32, #tile.mma<warps = 8>>
!part_numbers = tensor<128x64xi32, #tile.mma<warps = 8>>
!part_powers = tensor<128x64xbf16, #tile.mma<warps = 8>>
!part_row = tensor<128x1xf32, #tile.mma<warps = 8>>

tile.program @flash_mma(%batches: index, %heads: index, %groups: index,
    %rows: index, %keys: index,
    %q: !queries_memory {tile.dimensions = ["b", "h", "q", 64], tile.alignment = 16 : i64, tile.readonly},
    %k: !queries_memory {tile.dimensions = ["b", "g", "kv", 64], tile.alignment = 16 : i64, tile.readonly},
    %v: !queries_memory {tile.dimensions = ["b", "g", "kv", 64], tile.alignment = 16 : i64, tile.readonly},
    %o: !queries_memory {tile.dimensions = ["b", "h", "q", 64], tile.alignment = 16 : i64},
    %lse: memref<?x?x?x1xf32, strided<[?, ?, ?, 1]>> {tile.dimensions = ["b", "h", "q", 1]})
    attributes {dimensions = ["b", "h", "g", "q", "kv"],
                programs = {b = 1 : i64, h = 1 : i64, q = 128 : i64},
                alignments = array<i64: 4, 2>,
                schedule = #tile.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %part_rows = arith.constant 128 : index
  %part_keys = arith.constant 64 : index

  %q_slot = tile.buffer {offset = 0 : i64} : !q_half
  %k_slots = tile.buffer {offset = 16384 : i64} : !k_half
  %v_slots = tile.buffer {offset = 32768 : i64} : !k_half

  // The parts with most keys come first.
  %program = tile.program_id
  %parts_q = arith.ceildivui %rows, %part_rows : index
  %all_heads = arith.muli %batches, %heads : index
  %heads_per_group = arith.divui %heads, %groups : index
  %last_part = arith.subi %parts_q, %c1 : index
  %shift = arith.subi %keys, %rows : index
  %behind = arith.divui %program, %all_heads : index
  %head_of_all = arith.remui %program, %all_heads : index
  %part_q = arith.subi %last_part, %behind : index
  %batch = arith.divui %head_of_all, %heads : index
  %head = arith.remui %head_of_all, %heads : index
  %group = arith.divui %head, %heads_per_group : index
  %row = arith.muli %part_q, %part_rows : index
  %row_end = arith.addi %row, %part_rows : index
  %seen = arith.addi %row_end, %shift : index
  %seen_end = arith.minsi %seen, %keys : index
  %steps_seen = arith.ceildivsi %seen_end, %part_keys : index
  %steps = arith.maxsi %steps_seen, %c1 : index
  %last_step = arith.subi %steps, %c1 : index
  %row_sees = arith.addi %row, %shift : index
  %last_seen = tile.iota_rows from %row_sees : tensor<128x1xi32, #tile.mma<warps = 8>>
  %last_seen_all = tile.broadcast %last_seen
      : tensor<128x1xi32, #tile.mma<warps = 8>> -> !part_numbers

  %scale_log2 = arith.constant dense<1.803368801e-01> : !part_scores
  %scale_row = arith.constant dense<1.803368801e-01> : !part_row
  %log_2 = arith.constant dense<6.931471806e-01> : !part_row
  %lowest = arith.constant dense<0xFF800000> : !part_row
  %lowest_scores = arith.constant dense<0xFF800000> : !part_scores
  %zero_row = arith.constant dense<0.0> : !part_row
  %one_row = arith.constant dense<1.0> : !part_row
  %zeros = arith.constant dense<0.0> : !part_scores

  %first_key = arith.muli %last_step, %part_keys : index
  tile.copy_tile %q[%batch, %head, %row, %c0] to %q_slot[%c0] : !queries_memory, !q_half
  tile.copy_tile %k[%batch, %group, %first_key, %c0] to %k_slots[%c0] : !queries_memory, !k_half
  tile.commit_copies
  tile.copy_tile %v[%batch, %group, %first_key, %c0] to %v_slots[%c0] : !queries_memory, !k_half
  tile.commit_copies
  tile.wait_copies 1
  tile.synchronize
  %q_part = tile.take %q_slot[%c0] : !q_half -> !q_fragment

  %o_sum, %max, %total = scf.for %step = %c0 to %steps step %c1
      iter_args(%o_before = %zeros, %m = %lowest, %l = %zero_row)
      -> (!part_scores, !part_row, !part_row) {
    %slot = arith.remui %step, %c2 : index
    %next = arith.addi %step, %c1 : index
    %next_slot = arith.remui %next, %c2 : index
    %back = arith.subi %last_step, %step : index
    %key = arith.muli %back, %part_keys : index
    // Behind the first keys, this is beyond the operand: zeros, which nobody reads.
    %next_key = arith.subi %key, %part_keys : index

    // The keys are there, and all warps have read those of the step before.
    tile.wait_copies 1
    tile.synchronize
    tile.copy_tile %k[%batch, %group, %next_key, %c0] to %k_slots[%next_slot] : !queries_memory, !k_half
    tile.commit_copies
    %k_part0 = tile.take %k_slots[%slot] : !k_half -> !k_fragment
    %all = tile.dot %q_part, %k_part0 contract [1, 1]
        : !q_fragment, !k_fragment -> !part_scores

    // Only parts that the diagonal crosses have keys that a row does not see.
    %key_end = arith.addi %key, %part_keys : index
    %is_crossed = arith.cmpi sgt, %key_end, %row_sees : index
    %scores = scf.if %is_crossed -> (!part_scores) {
      %columns = tile.iota from %key : tensor<1x64xi32, #tile.mma<warps = 8>>
      %column = tile.broadcast %columns
          : tensor<1x64xi32, #tile.mma<warps = 8>> -> !part_numbers
      %sees = arith.cmpi sle, %column, %last_seen_all : !part_numbers
      %some = arith.select %sees, %all, %lowest_scores
          : tensor<128x64xi1, #tile.mma<warps = 8>>, !part_scores
      scf.yield %some : !part_scores
    } else {
      scf.yield %all : !part_scores
    }
    %part_max = tile.reduce max %scores : !part_scores -> !part_row
    %new_m = arith.maximumf %m, %part_max : !part_row
    // A row that sees nothing has the maximum -inf, which is not subtracted.
    %none = arith.cmpf oeq, %new_m, %lowest : !part_row
    %base = arith.select %none, %zero_row, %new_m : tensor<128x1xi1, #tile.mma<warps = 8>>, !part_row
    %less = arith.mulf %base, %scale_row : !part_row
    %minus = arith.negf %less : !part_row
    %minus_all = tile.broadcast %minus : !part_row -> !part_scores
    %exponents = math.fma %scores, %scale_log2, %minus_all : !part_scores
    %powers = math.exp2 %exponents fastmath<afn> : !part_scores
    %lost = math.fma %m, %scale_row, %minus : !part_row
    %factor = math.exp2 %lost fastmath<afn> : !part_row
    %part_total = tile.reduce add %powers : !part_scores -> !part_row
    %new_l = math.fma %l, %factor, %part_total : !part_row
    %narrow = arith.truncf %powers : !part_scores to !part_powers
    %factors = tile.broadcast %factor : !part_row -> !part_scores

    // The values are there, and all warps have read those of the step before.
    tile.wait_copies 1
    tile.synchronize
    tile.copy_tile %v[%batch, %group, %next_key, %c0] to %v_slots[%next_slot] : !queries_memory, !k_half
    tile.commit_copies
    %o_scaled = arith.mulf %o_before, %factors : !part_scores
    %v_part0 = tile.take %v_slots[%slot] transposed : !k_half -> !k_fragment
    %o_more = tile.dot %narrow, %v_part0, %o_scaled contract [1, 1]
        : !part_powers, !k_fragment, !part_scores -> !part_scores
    scf.yield %o_more, %new_m, %new_l : !part_scores, !part_row, !part_row
  }
  tile.wait_copies 0

  // The result is divided by the sum of powers; where that is 0, so is the result.
  %is_empty = arith.cmpf oeq, %total, %zero_row : !part_row
  %divisor = arith.select %is_empty, %one_row, %total : tensor<128x1xi1, #tile.mma<warps = 8>>, !part_row
  %inverse = arith.divf %one_row, %divisor : !part_row
  %inverses = tile.broadcast %inverse : !part_row -> !part_scores
  %log2_total = math.log2 %divisor fastmath<afn> : !part_row
  %log2_sum = math.fma %max, %scale_row, %log2_total : !part_row
  %log_sum = arith.mulf %log2_sum, %log_2 : !part_row
  tile.store %log_sum, %lse[%batch, %head, %row, %c0]
      : !part_row, memref<?x?x?x1xf32, strided<[?, ?, ?, 1]>>

  // The slots of q, which all warps have read, are free for the result.
  %o_normal = arith.mulf %o_sum, %inverses : !part_scores
  %o_narrow = arith.truncf %o_normal : !part_scores to !q_fragment
  tile.keep %o_narrow, %q_slot[%c0] : !q_fragment, !q_half
  tile.synchronize
  tile.store_tile %q_slot[%c0] to %o[%batch, %head, %row, %c0] : !q_half, !queries_memory
  tile.return
}
