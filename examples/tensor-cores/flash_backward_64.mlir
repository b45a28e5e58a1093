// The gradients of causal attention of heads of 64 elements on Hopper, in one
// program with five products, as flash_backward_128.mlir has them. A step has 128
// queries here, which are the rows of its gradient of queries: nothing is
// transposed on the way to memory.
//
// A thread holds 64 sums, and 64 numbers each of the scores and of the gradients
// of powers. Powers are rounded once these have become gradients of scores: their
// products begin later than there, and take no registers beside both.

!queries = !tile.tensor_map<memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 1, 128, 64], swizzle = 128>
!keys = !tile.tensor_map<memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 1, 128, 64], swizzle = 128>
!key_rows = !tile.tensor_map<memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 1, 16, 64], swizzle = 128>
!added = !tile.tensor_map<memref<?x?x?x64xf32, strided<[?, ?, ?, 1]>>, box = [1, 1, 128, 32], swizzle = 128>
!statistic = memref<?x?x?x1xf32, strided<[?, ?, ?, 1]>>
!k_slots = memref<1x128x64xbf16, #tile.shared<swizzle = 128>>
!k_tile = memref<128x64xbf16, #tile.shared<swizzle = 128>>
!q_slots = memref<2x128x64xbf16, #tile.shared<swizzle = 128>>
!q_tile = memref<128x64xbf16, #tile.shared<swizzle = 128>>
!ds_slots = memref<2x128x128xbf16, #tile.shared<swizzle = 128>>
!ds_tile = memref<128x128xbf16, #tile.shared<swizzle = 128>>
!dq_slots = memref<1x128x64xf32, #tile.shared<swizzle = 128>>
!numbers = memref<2x128xf32, #gpu.address_space<workgroup>>
!scores = tensor<128x128xf32, #tile.mma<warps = 8>>
!scores_pending = !tile.pending<tensor<128x128xf32, #tile.mma<warps = 8>>>
!factor = tensor<128x128xbf16, #tile.mma<warps = 8>>
!sums = tensor<128x64xf32, #tile.mma<warps = 8>>
!sums_pending = !tile.pending<tensor<128x64xf32, #tile.mma<warps = 8>>>
!result = tensor<128x64xbf16, #tile.mma<warps = 8>>
!row = tensor<1x128xf32, #tile.mma<warps = 8>>
!places = tensor<128x128xi32, #tile.mma<warps = 8>>

func.func @flash_backward(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>,
    %do: tensor<?x?x?x64xbf16>, %lse: tensor<?x?x?x1xf32>, %delta: tensor<?x?x?x1xf32>)
    -> (tensor<?x?x?x64xf32>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) {
  %dq, %dk, %dv, %turns = tile.launch [@flash_backward_wgmma](%q, %k, %v, %do, %lse, %delta)
      : (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>,
         tensor<?x?x?x1xf32>, tensor<?x?x?x1xf32>)
      -> (tensor<?x?x?x64xf32>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?xi32>)
  return %dq, %dk, %dv : tensor<?x?x?x64xf32>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>
}

tile.program @flash_backward_wgmma(%batches: index, %heads: index, %groups: index,
    %rows: index, %keys: index,
    %q: !queries {tile.dimensions = ["b", "h", "q", 64]},
    %k: !keys {tile.dimensions = ["b", "g", "kv", 64]},
    %v: !keys {tile.dimensions = ["b", "g", "kv", 64]},
    %do: !queries {tile.dimensions = ["b", "h", "q", 64]},
    %lse: !statistic {tile.dimensions = ["b", "h", "q", 1], tile.readonly},
    %delta: !statistic {tile.dimensions = ["b", "h", "q", 1], tile.readonly},
    %dq: !added {tile.dimensions = ["b", "h", "q", 64]},
    %dk: !key_rows {tile.dimensions = ["b", "g", "kv", 64]},
    %dv: !key_rows {tile.dimensions = ["b", "g", "kv", 64]},
    %turns: memref<?xi32> {tile.counters = {b = 1 : i64, h = 1 : i64, q = 128 : i64}})
    attributes {dimensions = ["b", "h", "g", "q", "kv"],
                programs = {b = 1 : i64, g = 1 : i64, kv = 128 : i64},
                schedule = #tile.launch<threads = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c127 = arith.constant 127 : index
  %c128 = arith.constant 128 : index

  %k_slots = tile.buffer {offset = 0 : i64} : !k_slots
  %v_slots = tile.buffer {offset = 16384 : i64} : !k_slots
  %q_slots = tile.buffer {offset = 32768 : i64} : !q_slots
  %do_slots = tile.buffer {offset = 65536 : i64} : !q_slots
  %ds_slots = tile.buffer {offset = 98304 : i64} : !ds_slots
  %dq_slots = tile.buffer {offset = 163840 : i64} : !dq_slots
  %out_slots = tile.buffer {offset = 196608 : i64} : !k_slots
  %lse_slots = tile.make_numbers : !numbers
  %delta_slots = tile.make_numbers : !numbers
  %k_full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  // Boxes and numbers of a step: the first thread of the role that copies arrives
  // for the former, its warp for the latter.
  %q_full = tile.make_barriers arrivals 2 : !tile.barriers<2>
  %q_empty = tile.make_barriers arrivals 8 : !tile.barriers<2>
  %ds_full = tile.make_barriers arrivals 8 : !tile.barriers<2>
  %dq_full = tile.make_barriers arrivals 8 : !tile.barriers<1>
  %dq_empty = tile.make_barriers arrivals 1 : !tile.barriers<1>
  tile.synchronize

  // Programs of one head of keys have neighbouring numbers, the last keys first.
  %program = tile.program_id
  %parts = arith.ceildivui %keys, %c128 : index
  %steps = arith.ceildivui %rows, %c128 : index
  %last_part = arith.subi %parts, %c1 : index
  %behind = arith.remui %program, %parts : index
  %part = arith.subi %last_part, %behind : index
  %matrix = arith.divui %program, %parts : index
  %batch = arith.divui %matrix, %groups : index
  %group = arith.remui %matrix, %groups : index
  %shared = arith.divui %heads, %groups : index
  %first_head = arith.muli %group, %shared : index
  %end_head = arith.addi %first_head, %shared : index
  %key = arith.muli %part, %c128 : index
  // The number of the last key that the query of the same number sees, less the
  // query's number.
  %shift = arith.subi %keys, %rows : index
  %first_seen = arith.subi %key, %shift : index
  %first_query = arith.maxsi %first_seen, %c0 : index
  %first = arith.divui %first_query, %c128 : index

  tile.roles warps [4, 8, 4] threads [32, 256, 1] registers [24, 232, 24] {
    tile.expect 32768 bytes at %k_full[%c0] : !tile.barriers<1>
    tile.copy_box %k[%batch, %group, %key, %c0] to %k_slots[%c0] arrive %k_full[%c0]
        : !keys, !k_slots, !tile.barriers<1>
    tile.copy_box %v[%batch, %group, %key, %c0] to %v_slots[%c0] arrive %k_full[%c0]
        : !keys, !k_slots, !tile.barriers<1>
    scf.for %head = %first_head to %end_head step %c1 iter_args(%at = %c0) -> (index) {
      %next = scf.for %step = %first to %steps step %c1 iter_args(%number = %at) -> (index) {
        %slot = arith.remui %number, %c2 : index
        %round = arith.divui %number, %c2 : index
        %before = arith.addi %round, %c1 : index
        %parity = arith.remui %before, %c2 : index
        %row = arith.muli %step, %c128 : index
        tile.await %q_empty[%slot] parity %parity : !tile.barriers<2>
        tile.expect 32768 bytes at %q_full[%slot] : !tile.barriers<2>
        tile.copy_box %q[%batch, %head, %row, %c0] to %q_slots[%slot] arrive %q_full[%slot]
            : !queries, !q_slots, !tile.barriers<2>
        tile.copy_box %do[%batch, %head, %row, %c0] to %do_slots[%slot] arrive %q_full[%slot]
            : !queries, !q_slots, !tile.barriers<2>
        tile.copy_numbers %lse[%batch, %head, %row, %c0] to %lse_slots[%slot] : !statistic, !numbers
        tile.copy_numbers %delta[%batch, %head, %row, %c0] to %delta_slots[%slot] : !statistic, !numbers
        tile.arrive at %q_full[%slot] warps : !tile.barriers<2>
        %more = arith.addi %number, %c1 : index
        scf.yield %more : index
      }
      scf.yield %next : index
    }
  }, {
    // 1 / sqrt(64), and that times log2 e.
    %scale = arith.constant dense<1.250000000e-01> : !scores
    %scale_row = arith.constant dense<1.250000000e-01> : !row
    %scale_log2 = arith.constant dense<1.803368801e-01> : !scores
    %lowest = arith.constant dense<0xFF800000> : !scores
    %zeros = arith.constant dense<0.0> : !sums
    %k_tile, %v_tile = tile.await %k_full[%c0] parity %c0 of %k_slots, %v_slots
        : !tile.barriers<1>, !k_slots, !k_slots -> !k_tile, !k_tile
    // From which query on all keys of the block are seen.
    %last_key = arith.addi %first_seen, %c128 : index
    %all_seen = arith.subi %last_key, %c1 : index
    // Of each key, the first query that sees it.
    %seen_from = tile.iota_rows from %first_seen : tensor<128x1xi32, #tile.mma<warps = 8>>
    %seen_from_all = tile.broadcast %seen_from : tensor<128x1xi32, #tile.mma<warps = 8>> -> !places

    %dk_sums, %dv_sums, %end = scf.for %head = %first_head to %end_head step %c1
        iter_args(%dk_head = %zeros, %dv_head = %zeros, %at = %c0) -> (!sums, !sums, index) {
      %dk_next, %dv_next, %next = scf.for %step = %first to %steps step %c1
          iter_args(%dk_before = %dk_head, %dv_before = %dv_head, %number = %at) -> (!sums, !sums, index) {
        %slot = arith.remui %number, %c2 : index
        %round = arith.divui %number, %c2 : index
        %parity = arith.remui %round, %c2 : index
        %row = arith.muli %step, %c128 : index
        %q_tile, %do_tile = tile.await %q_full[%slot] parity %parity of %q_slots, %do_slots
            : !tile.barriers<2>, !q_slots, !q_slots -> !q_tile, !q_tile
        %s_begun = tile.dot %k_tile, %q_tile contract [1, 1] : !k_tile, !q_tile -> !scores_pending
        %dp_begun = tile.dot %v_tile, %do_tile contract [1, 1] : !k_tile, !q_tile -> !scores_pending
        %lse_row = tile.take_numbers %lse_slots[%slot] : !numbers -> !row
        %minus_lse = arith.negf %lse_row : !row
        %less_lse = tile.broadcast %minus_lse : !row -> !scores
        %s_all = tile.wait_dots 1 of %s_begun : (!scores_pending) -> !scores
        // Only the steps that the diagonal crosses have keys that a query does not
        // see.
        %is_crossed = arith.cmpi slt, %row, %all_seen : index
        %s = scf.if %is_crossed -> (!scores) {
          %columns = tile.iota from %row : tensor<1x128xi32, #tile.mma<warps = 8>>
          %column = tile.broadcast %columns : tensor<1x128xi32, #tile.mma<warps = 8>> -> !places
          %sees = arith.cmpi sge, %column, %seen_from_all : !places
          %seen = arith.select %sees, %s_all, %lowest : tensor<128x128xi1, #tile.mma<warps = 8>>, !scores
          scf.yield %seen : !scores
        } else {
          scf.yield %s_all : !scores
        }
        %exponents = math.fma %s, %scale_log2, %less_lse : !scores
        %p = math.exp2 %exponents fastmath<afn> {tile.flushed} : !scores
        // dS = P (dP - delta), times the scale.
        %delta_row = tile.take_numbers %delta_slots[%slot] : !numbers -> !row
        %delta_scaled = arith.mulf %delta_row, %scale_row : !row
        %minus_delta = arith.negf %delta_scaled : !row
        %less_delta = tile.broadcast %minus_delta : !row -> !scores
        %dp = tile.wait_dots 0 of %dp_begun : (!scores_pending) -> !scores
        %difference = math.fma %dp, %scale, %less_delta : !scores
        %ds = arith.mulf %p, %difference : !scores
        %ds_narrow = arith.truncf %ds : !scores to !factor
        %p_narrow = arith.truncf %p : !scores to !factor
        // Each warpgroup multiplies what both have of dS. The slot that it takes
        // was multiplied two steps ago, and nobody has come to the last step's
        // product before that had ended.
        tile.keep %ds_narrow, %ds_slots[%slot] : !factor, !ds_slots
        tile.fence_shared
        tile.arrive at %ds_full[%slot] warps : !tile.barriers<2>
        %dv_begin = tile.begin_dots %dv_before : !sums -> !sums_pending
        %dv_begun = tile.dot %p_narrow, %do_tile, %dv_begin contract [1, 0]
            : !factor, !q_tile, !sums_pending -> !sums_pending
        %ds_tile = tile.await %ds_full[%slot] parity %parity of %ds_slots
            : !tile.barriers<2>, !ds_slots -> !ds_tile
        %dq_begun = tile.dot %ds_tile, %k_tile contract [0, 0] : !ds_tile, !k_tile -> !sums_pending
        %dk_begin = tile.begin_dots %dk_before : !sums -> !sums_pending
        %dk_begun = tile.dot %ds_narrow, %q_tile, %dk_begin contract [1, 0]
            : !factor, !q_tile, !sums_pending -> !sums_pending
        %dq_part = tile.wait_dots 1 of %dq_begun : (!sums_pending) -> !sums
        %added_before = arith.addi %number, %c1 : index
        %added_parity = arith.remui %added_before, %c2 : index
        tile.await %dq_empty[%c0] parity %added_parity : !tile.barriers<1>
        tile.keep %dq_part, %dq_slots[%c0] : !sums, !dq_slots
        tile.fence_shared
        tile.arrive at %dq_full[%c0] warps : !tile.barriers<1>
        %dv_after, %dk_after = tile.wait_dots 0 of %dv_begun, %dk_begun
            : (!sums_pending, !sums_pending) -> (!sums, !sums)
        tile.arrive at %q_empty[%slot] warps : !tile.barriers<2>
        %more = arith.addi %number, %c1 : index
        scf.yield %dk_after, %dv_after, %more : !sums, !sums, index
      }
      scf.yield %dk_next, %dv_next, %next : !sums, !sums, index
    }
    %dk_narrow = arith.truncf %dk_sums : !sums to !result
    tile.keep %dk_narrow, %out_slots[%c0] : !result, !k_slots
    tile.fence_shared
    tile.store_box %out_slots[%c0] to %dk[%batch, %group, %key, %c0] warp : !k_slots, !key_rows
    tile.wait_stores 0 warp
    %dv_narrow = arith.truncf %dv_sums : !sums to !result
    tile.keep %dv_narrow, %out_slots[%c0] : !result, !k_slots
    tile.fence_shared
    tile.store_box %out_slots[%c0] to %dv[%batch, %group, %key, %c0] warp : !k_slots, !key_rows
    tile.wait_stores 0 warp
  }, {
    scf.for %head = %first_head to %end_head step %c1 iter_args(%at = %c0) -> (index) {
      %head_of_all0 = arith.muli %batch, %heads : index
      %head_of_all = arith.addi %head_of_all0, %head : index
      %first_counter = arith.muli %head_of_all, %steps : index
      %next = scf.for %step = %first to %steps step %c1 iter_args(%number = %at) -> (index) {
        %row = arith.muli %step, %c128 : index
        // The last part of the keys that these queries see adds first.
        %row_end = arith.addi %row, %c127 : index
        %key_end = arith.addi %row_end, %shift : index
        %part_end = arith.divui %key_end, %c128 : index
        %first_part = arith.minui %part_end, %last_part : index
        %turn = arith.subi %first_part, %part : index
        %counter = arith.addi %first_counter, %step : index
        %parity = arith.remui %number, %c2 : index
        tile.await %dq_full[%c0] parity %parity : !tile.barriers<1>
        %is_first = arith.cmpi eq, %turn, %c0 : index
        scf.if %is_first {
          tile.store_box %dq_slots[%c0] to %dq[%batch, %head, %row, %c0] : !dq_slots, !added
        } else {
          tile.await_count %turns[%counter] reaches %turn : memref<?xi32>
          tile.store_box %dq_slots[%c0] to %dq[%batch, %head, %row, %c0] add : !dq_slots, !added
        }
        tile.wait_stores 0
        tile.arrive at %dq_empty[%c0] : !tile.barriers<1>
        %next_turn = arith.addi %turn, %c1 : index
        tile.release_count %turns[%counter] to %next_turn : memref<?xi32>
        %more = arith.addi %number, %c1 : index
        scf.yield %more : index
      }
      scf.yield %next : index
    }
  }
  tile.return
}
