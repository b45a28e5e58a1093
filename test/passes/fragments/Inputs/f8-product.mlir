// y = x w^T of 8 bits, by products of warps: 64 x 32 elements a block.

!memory = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!x_slots = memref<1x64x64xf8E4M3FN, #tile.shared<swizzle = 64>>
!w_slots = memref<1x32x64xf8E4M3FN, #tile.shared<swizzle = 64>>
!x_fragment = tensor<64x64xf8E4M3FN, #tile.mma<warps = 4, vector = 4>>
!w_fragment = tensor<32x64xf8E4M3FN, #tile.mma_rhs<vector = 4>>
!sum = tensor<64x32xf32, #tile.mma<warps = 4>>

func.func @f8_product(%x: tensor<?x?xf8E4M3FN>, %w: tensor<?x?xf8E4M3FN>) -> tensor<?x?xf32> {
  %y = tile.launch [@f8_product_mma](%x, %w)
      : (tensor<?x?xf8E4M3FN>, tensor<?x?xf8E4M3FN>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

tile.program @f8_product_mma(%m: index, %n: index, %k: index,
    %x: !memory {tile.dimensions = ["m", "k"], tile.alignment = 16 : i64, tile.readonly},
    %w: !memory {tile.dimensions = ["n", "k"], tile.alignment = 16 : i64, tile.readonly},
    %y: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n", "k"], programs = {m = 64 : i64, n = 32 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %x_slot = tile.buffer {offset = 0 : i64} : !x_slots
  %w_slot = tile.buffer {offset = 4096 : i64} : !w_slots
  %program = tile.program_id
  %parts_n = arith.ceildivui %n, %c32 : index
  %part_m = arith.divui %program, %parts_n : index
  %part_n = arith.remui %program, %parts_n : index
  %row = arith.muli %part_m, %c64 : index
  %column = arith.muli %part_n, %c32 : index
  %zeros = arith.constant dense<0.0> : !sum
  %sum = scf.for %depth = %c0 to %k step %c64 iter_args(%before = %zeros) -> (!sum) {
    // All warps have read the slots.
    tile.synchronize
    tile.copy_tile %x[%row, %depth] to %x_slot[%c0] : !memory, !x_slots
    tile.copy_tile %w[%column, %depth] to %w_slot[%c0] : !memory, !w_slots
    tile.commit_copies
    tile.wait_copies 0
    tile.synchronize
    %x_part = tile.take %x_slot[%c0] : !x_slots -> !x_fragment
    %w_part = tile.take %w_slot[%c0] : !w_slots -> !w_fragment
    %more = tile.dot %x_part, %w_part, %before contract [1, 1]
        : !x_fragment, !w_fragment, !sum -> !sum
    scf.yield %more : !sum
  }
  tile.store %sum, %y[%row, %column] : !sum, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}
