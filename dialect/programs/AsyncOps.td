//===- AsyncOps.td - Copies and waits of programs ---------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What a program begins and later waits for. Tiles in shared memory are used
// through the value of the wait that makes them readable, and sums of products
// through the value of the wait that ends them: a use cannot come before its
// wait.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_ASYNCOPS_TD
#define BASTILE_DIALECT_ASYNCOPS_TD

include "dialect/DotOps.td"

//===----------------------------------------------------------------------===//
// Roles of warps
//===----------------------------------------------------------------------===//

def Tile_RolesOp : Tile_Op<"roles", [
    RecursiveMemoryEffects, NoRegionArguments, SingleBlock, NoTerminator]> {
  let summary = "lets warps do different things";
  let description = [{
    The first `warps[0]` warps of the block run the first region, the next
    `warps[1]` the second one, and so on. Of these warps, only the first
    `threads[i]` threads run region i; the others have nothing to do. With
    `registers`, each thread of the warps has as many registers: regions whose
    warps are no whole warpgroups share one with the next ones, which have as
    many registers. The warpgroups of one region may take turns.

    Example:

    ```mlir
    tile.roles warps [4, 8] threads [1, 256] registers [40, 232] {
      // One thread begins copies.
    }, {
      // Two warpgroups multiply.
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$warps, DenseI64ArrayAttr:$threads,
                       OptionalAttr<DenseI64ArrayAttr>:$registers);
  let regions = (region VariadicRegion<SizedRegion<1>>:$roles);
  let assemblyFormat = [{
    `warps` $warps `threads` $threads (`registers` $registers^)?
    attr-dict-with-keyword custom<Roles>($roles)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_SynchronizeOp : Tile_Op<"synchronize"> {
  let summary = "makes threads wait for each other";
  let description = [{
    All threads of the role (of the block, outside of roles) go on once all have
    come; with `cluster`, all threads of the cluster.
  }];
  let arguments = (ins UnitAttr:$cluster);
  let assemblyFormat = "(`cluster` $cluster^)? attr-dict";
}

def Tile_AnnounceBlockOp : Tile_Op<"announce_block"> {
  let summary = "says that the block has made its barriers";
  let description = [{
    All threads of the block run this once, outside of roles, and go on. Other
    blocks of the cluster may arrive at its barriers, and send to its shared
    memory, once they have awaited it (`tile.await_blocks`). Unlike
    `tile.synchronize cluster`, it makes nothing else visible, and so waits for
    no memory.
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_AwaitBlocksOp : Tile_Op<"await_blocks"> {
  let summary = "waits until all blocks have made their barriers";
  let description = [{
    The threads of the role, whole warps, go on once all blocks of the cluster
    have come to their `tile.announce_block`. They run this once.
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_FenceSharedOp : Tile_Op<"fence_shared"> {
  let summary = "lets copies and products see what threads wrote";
  let description = [{
    What the thread has written to shared memory so far, copies and products
    that begin after the next synchronization read. They go another way to
    memory than the threads' own accesses.
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_TakeTurnOp : Tile_Op<"take_turn"> {
  let summary = "waits until it is the warpgroup's turn";
  let description = [{
    The warpgroups of a role take turns, the first one first. `tile.pass_turn`
    gives the turn to the next one.
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_PassTurnOp : Tile_Op<"pass_turn"> {
  let summary = "gives the turn to the next warpgroup";
  let assemblyFormat = "attr-dict";
}

def Tile_BlockRankOp : Tile_ProgramNumberOp<"block_rank"> {
  let summary = "the number of the block in its cluster, from 0";
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

def Tile_MakeBarriersOp : Tile_Op<"make_barriers", [
    MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "barriers that each wait for `arrivals`";
  let description = [{
    Threads may use them after the next `tile.synchronize`.

    Example:

    ```mlir
    %full = tile.make_barriers arrivals 1 : !tile.barriers<4>
    ```
  }];
  let arguments = (ins I64Attr:$arrivals);
  let results = (outs Tile_BarriersType:$result);
  let assemblyFormat = "`arrivals` $arrivals attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ExpectOp : Tile_Op<"expect"> {
  let summary = "arrives, and announces bytes that copies will bring";
  let description = [{
    One arrival, of the role's first thread. The phase does not end before
    `bytes` more bytes have come. Copies bring multiples of 16.

    Example:

    ```mlir
    tile.expect 49152 bytes at %full[%slot] : !tile.barriers<4>
    ```
  }];
  let arguments = (ins I64Attr:$bytes, Tile_BarriersType:$barriers,
                       Index:$index);
  let assemblyFormat = [{
    $bytes `bytes` `at` $barriers `[` $index `]` attr-dict `:` type($barriers)
  }];
  let hasVerifier = 1;
}

def Tile_ArriveOp : Tile_Op<"arrive"> {
  let summary = "arrives at a barrier";
  let description = [{
    One arrival for each warpgroup of the role, or one for a role that is no
    warpgroup. With `warps`, each warp arrives, once all of its threads have
    come. With `cluster`, the arrival is at the barrier of every block of
    the cluster. Who has awaited the barrier may overwrite what the role has
    read, and may read what it has written to shared memory, but not what it has
    stored to memory in another block: that is what `tile.release_count` is for.

    Example:

    ```mlir
    tile.arrive at %empty[%slot] : !tile.barriers<4>
    ```
  }];
  let arguments = (ins Tile_BarriersType:$barriers, Index:$index,
                       UnitAttr:$cluster, UnitAttr:$warps);
  let assemblyFormat = [{
    `at` $barriers `[` $index `]` (`cluster` $cluster^)? (`warps` $warps^)?
    attr-dict `:` type($barriers)
  }];
  let hasVerifier = 1;
}

def Tile_AwaitOp : Tile_Op<"await"> {
  let summary = "waits until a phase of a barrier has ended";
  let description = [{
    Phases are counted from 0; `parity` is the last bit of the number of the
    phase. Of each buffer, the result is the tile in slot `index`, which may be
    read from then on.

    Example:

    ```mlir
    %a = tile.await %full[%slot] parity %parity of %buffer
        : !tile.barriers<4>, memref<4x128x64xbf16, #tile.shared<swizzle = 128>>
        -> memref<128x64xbf16, #tile.shared<swizzle = 128>>
    ```
  }];
  let arguments = (ins Tile_BarriersType:$barriers, Index:$index,
                       Index:$parity, Variadic<AnyMemRef>:$buffers);
  let results = (outs Variadic<AnyMemRef>:$tiles);
  let assemblyFormat = [{
    $barriers `[` $index `]` `parity` $parity (`of` $buffers^)? attr-dict `:`
    type($barriers) (`,` type($buffers)^ `->` type($tiles))?
  }];
  let hasVerifier = 1;
}

def Tile_GetTilesOp : Tile_Op<"get_tiles", [Pure]> {
  let summary = "the tiles in a slot that the role has awaited";
  let description = [{
    Of each buffer, the result is the tile in slot `index`, as `tile.await` has
    it. The role has awaited the slot before, and has not arrived to have it
    filled again: what is known to be there needs no second wait.
  }];
  let arguments = (ins Variadic<AnyMemRef>:$buffers, Index:$index);
  let results = (outs Variadic<AnyMemRef>:$tiles);
  let assemblyFormat = [{
    $buffers `[` $index `]` attr-dict `:` type($buffers) `->` type($tiles)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles for another block
//===----------------------------------------------------------------------===//

def Tile_SendOp : Tile_Op<"send"> {
  let summary = "begins to write a tile to a buffer of another block";
  let description = [{
    The threads of the role begin to write the tile to slot `slot` of the buffer
    in block `block` of the cluster, and go on. The bytes arrive at the barrier
    of that block, which has to announce them (`tile.expect`). Once a thread
    there has awaited the barrier, it may read what the thread of the same
    number has sent (`tile.take`).

    The other block has made its barriers before, and read what was in the slot:
    the blocks have met (`tile.synchronize cluster`), or the other one has
    arrived here since (`tile.arrive ... cluster`). It ends only once it has
    awaited the bytes.

    Example:

    ```mlir
    tile.send %sums to %parts[%rank] block %other arrive %received[%zero]
        : tensor<64x32xf32, #tile.mma<warps = 4>>,
          memref<2x64x32xf32, #tile.held>, !tile.barriers<1>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value,
                       Arg<AnyMemRef, "", [MemWrite]>:$buffer, Index:$slot,
                       Index:$block, Tile_BarriersType:$barriers,
                       Index:$index);
  let assemblyFormat = [{
    $value `to` $buffer `[` $slot `]` `block` $block `arrive` $barriers
    `[` $index `]` attr-dict `:` type($value) `,` type($buffer) `,`
    type($barriers)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Numbers for another role
//===----------------------------------------------------------------------===//

def Tile_MakeNumbersOp : Tile_Op<"make_numbers", [
    MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "shared memory for numbers";
  let description = [{
    There are slots for as many numbers as the second size says.

    Example:

    ```mlir
    %numbers = tile.make_numbers : memref<2x4xi32, #gpu.address_space<workgroup>>
    ```
  }];
  let results = (outs MemRefRankOf<[I32, F32], [2]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_PutNumbersOp : Tile_Op<"put_numbers"> {
  let summary = "leaves numbers for another role";
  let description = [{
    The role's first thread writes `values`, of 32 bits with their sign, to a
    slot. Who has awaited a barrier at which the role arrives next may read them
    (`tile.get_numbers`).

    Example:

    ```mlir
    tile.put_numbers[%row, %column] to %numbers[%slot]
        : memref<2x4xi32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Variadic<Index>:$values,
                       Arg<MemRefRankOf<[I32], [2]>, "", [MemWrite]>:$numbers,
                       Index:$slot);
  let assemblyFormat = [{
    `[` $values `]` `to` $numbers `[` $slot `]` attr-dict `:` type($numbers)
  }];
  let hasVerifier = 1;
}

def Tile_GetNumbersOp : Tile_Op<"get_numbers"> {
  let summary = "reads numbers that another role has left";
  let description = [{
    All threads of the role read the first numbers of a slot.

    Example:

    ```mlir
    %row, %column = tile.get_numbers %numbers[%slot]
        : memref<2x4xi32, #gpu.address_space<workgroup>> -> index, index
    ```
  }];
  let arguments = (ins Arg<MemRefRankOf<[I32], [2]>, "", [MemRead]>:$numbers,
                       Index:$slot);
  let results = (outs Variadic<Index>:$values);
  let assemblyFormat = [{
    $numbers `[` $slot `]` attr-dict `:` type($numbers) `->` type($values)
  }];
  let hasVerifier = 1;
}

def Tile_CopyNumbersOp : Tile_Op<"copy_numbers"> {
  let summary = "copies numbers of rows of an operand for another role";
  let description = [{
    The threads of the role fill a slot with the numbers that an operand has of
    neighbouring rows, from the one at `indices` on; beyond the operand's rows
    they are zeros. The number of a row is its element in the column that
    `indices` name. Who has awaited a barrier at which the role's warps arrive
    next may read them (`tile.take_numbers`).

    Example:

    ```mlir
    tile.copy_numbers %statistic[%batch, %row, %zero] to %numbers[%slot]
        : memref<?x?x1xf32, strided<[?, ?, 1]>>,
          memref<3x64xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref,
                       Variadic<Index>:$indices,
                       Arg<MemRefRankOf<[F32], [2]>, "", [MemWrite]>:$numbers,
                       Index:$slot);
  let assemblyFormat = [{
    $memref `[` $indices `]` `to` $numbers `[` $slot `]` attr-dict `:`
    type($memref) `,` type($numbers)
  }];
  let hasVerifier = 1;
}

def Tile_TakeNumbersOp : Tile_Op<"take_numbers"> {
  let summary = "reads a slot of numbers as the only row of a tile";
  let description = [{
    Each thread of the role reads the numbers of the columns that it holds.

    Example:

    ```mlir
    %row = tile.take_numbers %numbers[%slot]
        : memref<3x64xf32, #gpu.address_space<workgroup>>
        -> tensor<1x64xf32, #tile.mma<warps = 8>>
    ```
  }];
  let arguments = (ins Arg<MemRefRankOf<[F32], [2]>, "", [MemRead]>:$numbers,
                       Index:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $numbers `[` $slot `]` attr-dict `:` type($numbers) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Counters in memory
//===----------------------------------------------------------------------===//

def Tile_AwaitCountOp : Tile_Op<"await_count"> {
  let summary = "waits until another program has raised a counter";
  let description = [{
    The threads of the role go on once the counter at `index` of an operand with
    `tile.counters` has reached `count`. From then on they, and copies that they
    begin, see all that the program which released this count had stored before,
    and all that it saw itself.

    Programs that add to the same tile take turns in this way, in the same order
    in every run, so that a sum of floats has the same bits every time. The
    program whose number is `%turn` adds to the tile whose number is `%tile`:

    ```mlir
    tile.await_count %turns[%tile] reaches %turn : memref<?xi32>
    %before = tile.load %y[%row, %column]
        : memref<?x?xf32, strided<[?, 1]>>
        -> tensor<128x64xf32, #tile.mma<warps = 8>>
    %after = arith.addf %before, %own : tensor<128x64xf32, #tile.mma<warps = 8>>
    tile.store %after, %y[%row, %column]
        : tensor<128x64xf32, #tile.mma<warps = 8>>,
          memref<?x?xf32, strided<[?, 1]>>
    tile.release_count %turns[%tile] to %next_turn : memref<?xi32>
    ```

    **A program may wait only for programs with smaller numbers.** GPUs start
    blocks in the order of their numbers (which CUDA does not promise; split
    and stream-K products of CUTLASS rely on it, too), so that these run or have
    ended. A block that waits for a later one may hold the place that the later
    one needs to start, and then both wait forever. Likewise a persistent
    program goes through its parts in ascending order and waits only for parts
    with smaller numbers: whoever has the smallest number of all unfinished
    parts then never waits.
  }];
  let arguments = (ins MemRefRankOf<[I32], [1]>:$counters, Index:$index,
                       Index:$count);
  let assemblyFormat = [{
    $counters `[` $index `]` `reaches` $count attr-dict `:` type($counters)
  }];
  let hasVerifier = 1;
}

def Tile_ReleaseCountOp : Tile_Op<"release_count"> {
  let summary = "raises a counter for which other programs wait";
  let description = [{
    Sets the counter at `index` to `count`, which is more than it was, once all
    threads of the role have come. Whoever waits for this count then sees what
    the threads of the role have stored before (`tile.store`,
    `tile.store_tile`), and what copies have written that the role began
    (`tile.store_box`): the op waits for these to end, where `tile.wait_stores`
    only waits until they have read their buffers. With `pending`, so many of the
    groups that the role began last may be under way still, and what they write
    is not seen: a count that one step of a program raises for the step before
    lets copies of both be under way. What other roles have stored counts if this
    role has met them since; what copies of other roles write does not.

    A counter is set by one program at a time, the one whose turn it is. The
    runtime sets all counters to 0 before the launch.

    Example:

    ```mlir
    tile.release_count %turns[%tile] to %next_turn : memref<?xi32>
    ```
  }];
  let arguments = (ins MemRefRankOf<[I32], [1]>:$counters, Index:$index,
                       Index:$count,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>,
                                         "0">:$pending);
  let assemblyFormat = [{
    $counters `[` $index `]` `to` $count (`pending` $pending^)? attr-dict `:`
    type($counters)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Copies of tensors
//===----------------------------------------------------------------------===//

def Tile_CopyBoxOp : Tile_Op<"copy_box", [AttrSizedOperandSegments]> {
  let summary = "begins to copy a box of an operand into a buffer";
  let description = [{
    The role's first thread begins the copy of the box at `indices` of the
    operand (of as many boxes as the tile has panels) into slot `slot` of
    `buffer`; elements beyond the operand are zeros. The bytes arrive at the
    barrier. With `blocks`, a mask, the copy goes to the same place in each of
    these blocks of the cluster, and its bytes arrive at the barrier of each.
    `row` is the first row of the slot that the box fills.

    Example:

    ```mlir
    tile.copy_box %a[%m, %k] to %buffer[%slot] arrive %full[%slot]
        : !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [128, 64],
                           swizzle = 128>,
          memref<4x128x64xbf16, #tile.shared<swizzle = 128>>, !tile.barriers<4>
    ```
  }];
  let arguments = (ins Tile_TensorMapType:$operand, Variadic<Index>:$indices,
                       Arg<AnyMemRef, "", [MemWrite]>:$buffer, Index:$slot,
                       Tile_BarriersType:$barriers, Index:$index,
                       Optional<Index>:$row, Optional<Index>:$blocks);
  let assemblyFormat = [{
    $operand `[` $indices `]` `to` $buffer `[` $slot `]` (`row` $row^)?
    `arrive` $barriers `[` $index `]` (`blocks` $blocks^)? attr-dict `:`
    type($operand) `,` type($buffer) `,` type($barriers)
  }];
  let hasVerifier = 1;
}

def Tile_CopyTileOp : Tile_Op<"copy_tile"> {
  let summary = "begins to copy a tile of an operand into a buffer";
  let description = [{
    The threads of the role begin to copy the tile at `indices` of the operand,
    which lies in its last two dimensions, into slot `slot` of `buffer`. Elements
    beyond the operand are zeros. What a thread has copied is in the buffer once
    its `tile.wait_copies` has waited for the group that its
    `tile.commit_copies` made, and other threads see it after the next
    synchronization.

    A thread copies 16 bytes of a row at a time, in parts as large as the
    operand's `tile.alignment` says; the last index times the bytes of an element
    must be a multiple of these. With less than 4 bytes, elements go through
    registers, and the thread waits for them.

    Example:

    ```mlir
    tile.copy_tile %x[%row, %k] to %buffer[%slot]
        : memref<?x?xbf16, strided<[?, 1]>>,
          memref<4x128x32xbf16, #tile.shared<swizzle = 64>>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref,
                       Variadic<Index>:$indices,
                       Arg<AnyMemRef, "", [MemWrite]>:$buffer, Index:$slot);
  let assemblyFormat = [{
    $memref `[` $indices `]` `to` $buffer `[` $slot `]` attr-dict `:`
    type($memref) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_StoreTileOp : Tile_Op<"store_tile"> {
  let summary = "writes a tile of a buffer to an operand";
  let description = [{
    The counterpart of `tile.copy_tile`: the threads of the role write slot
    `slot` of `buffer` to the tile at `indices` of the operand. Elements beyond
    the operand are not written. What other threads have kept in the buffer is
    written if a synchronization came in between.

    Example:

    ```mlir
    tile.store_tile %buffer[%slot] to %y[%row, %column]
        : memref<1x128x64xbf16, #tile.shared<swizzle = 128>>,
          memref<?x?xbf16, strided<[?, 1]>>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$buffer, Index:$slot,
                       Arg<AnyMemRef, "", [MemWrite]>:$memref,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $buffer `[` $slot `]` `to` $memref `[` $indices `]` attr-dict `:`
    type($buffer) `,` type($memref)
  }];
  let hasVerifier = 1;
}

def Tile_StoreBoxOp : Tile_Op<"store_box"> {
  let summary = "begins to copy a tile of a buffer to an operand";
  let description = [{
    The role's first thread begins the copy of slot `slot` of `buffer` to the
    box at `indices`; elements beyond the operand are not written. The copies
    that it has begun since its last `tile.store_box` form one group for
    `tile.wait_stores`.

    With `warp`, each warp does so for its share of the slot's rows, for which
    the box is made: the first warp of the role for the first ones. All that the
    warp's threads have written and fenced before is copied. A warp that has
    kept its own rows of a tile (`tile.keep`) does not have to wait for others.

    With `add`, the elements, of float32, are added to those of the operand, each
    at once, so that others may add to it meanwhile. The bits of a sum are the
    same in every run only where those that add take turns
    (`tile.await_count`).

    Example:

    ```mlir
    tile.store_box %buffer[%slot] to %c[%m, %n]
        : memref<2x128x64xbf16, #tile.shared<swizzle = 128>>,
          !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [128, 64],
                           swizzle = 128>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$buffer, Index:$slot,
                       Arg<Tile_TensorMapType, "", [MemWrite]>:$operand,
                       Variadic<Index>:$indices, UnitAttr:$warp,
                       UnitAttr:$add);
  let builders = [OpBuilder<(ins "::mlir::Value":$buffer, "::mlir::Value":$slot,
                                 "::mlir::Value":$operand,
                                 "::mlir::ValueRange":$indices,
                                 CArg<"bool", "false">:$warp), [{
    build($_builder, $_state, buffer, slot, operand, indices, warp,
          /*add=*/false);
  }]>];
  let assemblyFormat = [{
    $buffer `[` $slot `]` `to` $operand `[` $indices `]` (`warp` $warp^)?
    (`add` $add^)? attr-dict `:` type($buffer) `,` type($operand)
  }];
  let hasVerifier = 1;
}

def Tile_WaitStoresOp : Tile_Op<"wait_stores"> {
  let summary = "waits until copies from buffers have read them";
  let description = [{
    The role's first thread waits for all groups of its `tile.store_box` but the
    last `pending`. The buffers may be written after a synchronization. With
    `warp`, each warp waits for its own, and its threads may write the rows then.
  }];
  let arguments = (ins I64Attr:$pending, UnitAttr:$warp);
  let assemblyFormat = "$pending (`warp` $warp^)? attr-dict";
}

#endif // BASTILE_DIALECT_ASYNCOPS_TD
