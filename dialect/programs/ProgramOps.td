//===- ProgramOps.td - The ops of programs on tiles ---------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_PROGRAMOPS_TD
#define BASTILE_DIALECT_PROGRAMOPS_TD

include "dialect/Primitives.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

class Tile_ProgramNumberOp<string mnemonic> : Tile_Op<mnemonic, [Pure]> {
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, $_builder.getIndexType());
  }]>];
}
def Tile_ProgramIdOp : Tile_ProgramNumberOp<"program_id"> {
  let summary = "the number of this program in its launch, from 0";
}
def Tile_ProgramCountOp : Tile_ProgramNumberOp<"program_count"> {
  let summary = "how many programs the launch has";
}

def Tile_MisalignmentOp : Tile_Op<"misalignment", [Pure]> {
  let summary = "how far rows begin behind an address that vectors divide";
  let description = [{
    The misalignment of each row of a tile from `row` on: the number of elements
    between the row and the last address before it that `phase` elements divide.
    The columns of a misaligned tile count from that address, so that vectors
    are aligned wherever the row begins: the first vector and the last may stick
    out of the row.

    Example:

    ```mlir
    %s = tile.misalignment %x[%row] to 8
        : memref<?x50257xbf16, strided<[?, 1]>> -> tensor<1x1xi32>
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$row, I64Attr:$phase,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$space);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = [{
    $memref `[` $row `]` `to` $phase attr-dict `:` type($memref) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def Tile_IotaRowsOp : Tile_Op<"iota_rows", [Pure]> {
  let summary = "the number of each row of a tile";
  let description = [{
    Rows are counted from `row`, the number of the tile's first one.

    Example:

    ```mlir
    %0 = tile.iota_rows from %row : tensor<128x1xi32>
    ```
  }];
  let arguments = (ins Index:$row);
  let results = (outs RankedTensorOf<[I32, I64]>:$result);
  let assemblyFormat = "`from` $row attr-dict `:` type($result)";
}

def Tile_ExtremesOp : Tile_Op<"extremes", [MemoryEffects<[MemRead]>]> {
  let summary = "the least and the greatest of some integers in memory";
  let description = [{
    Reads `count` integers of an operand of a program over named dimensions: that
    at `indices` and those behind it along `dimension`, as far as they are ahead
    of `end` there. The first one has to be. Each thread of the role gets both
    results.

    Example:

    ```mlir
    %least, %greatest = tile.extremes %numbers[%batch, %row, %zero] along 1
        count 128 end %rows : memref<?x?x1xi32, strided<[?, ?, 1]>>
    ```
  }];
  let arguments = (ins Arg<MemRefOf<[I32]>, "", [MemRead]>:$source,
                       Variadic<Index>:$indices, I64Attr:$dimension,
                       I64Attr:$count, Index:$end);
  let results = (outs I32:$least, I32:$greatest);
  let assemblyFormat = [{
    $source `[` $indices `]` `along` $dimension `count` $count `end` $end
    attr-dict `:` type($source)
  }];
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "reads a tile";
  let description = [{
    Reads the tile that starts at `row` (counted over all leading dimensions,
    the last of them fastest) and `column`. A row vector has no `row`. An
    element beyond the operand holds some other element of it, and no memory
    outside the operand is read: `tile.mask` gives such elements a value where
    it matters. `row` itself must be in range.

    In a program over named dimensions there is an index for each dimension of
    the operand, and the tile lies in the last two. Elements beyond the operand
    are zeros then. An `invariant` load moves pairs of 16 bits that a thread holds
    together where the operand's `tile.alignment` is a multiple of 4: the last
    index must be even. The rows of a `transposed` tile are the operand's columns,
    and its columns the operand's rows.

    The address of every row is a multiple of `alignment` bytes. `invariant`
    says that the program does not write the operand. With `offset` and
    `length`, columns are those of a piece of the row: `length` columns from
    `offset` on.
    `row` counts the rows of the program's row space `space`.

    Example:

    ```mlir
    %t = tile.load %x[%row, %column]
        : memref<?x2880xbf16, strided<[?, 1]>> -> tensor<4x1024xbf16>
    %v = tile.load %w[%column] : memref<2880xbf16> -> tensor<1x1024xbf16>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref,
                       Variadic<Index>:$indices,
                       Optional<AnyStaticShapeTensor>:$misalignment,
                       OptionalAttr<I64Attr>:$alignment,
                       UnitAttr:$invariant,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$offset,
                       OptionalAttr<I64Attr>:$length,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$space,
                       OptionalAttr<I64Attr>:$band,
                       UnitAttr:$transposed);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $memref `[` $indices `]` (`misaligned` $misalignment^)? attr-dict `:`
    type($memref) (`,` type($misalignment)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [
    AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "writes a tile";
  let description = [{
    The counterpart of `tile.load`. Elements beyond the operand are not written.
    With `band`, the operand has one row for each `band` rows of the tile, and
    the first of these is written there.

    Example:

    ```mlir
    tile.store %t, %y[%row, %column]
        : tensor<4x1024xbf16>, memref<?x2880xbf16, strided<[?, 1]>>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value,
                       Arg<AnyMemRef, "", [MemWrite]>:$memref,
                       Variadic<Index>:$indices,
                       Optional<AnyStaticShapeTensor>:$misalignment,
                       OptionalAttr<I64Attr>:$alignment,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$offset,
                       OptionalAttr<I64Attr>:$length,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$space,
                       OptionalAttr<I64Attr>:$band);
  let assemblyFormat = [{
    $value `,` $memref `[` $indices `]` (`misaligned` $misalignment^)? attr-dict
    `:` type($value) `,` type($memref) (`,` type($misalignment)^)?
  }];
  let hasVerifier = 1;
}

def Tile_FoldOp : Tile_Op<"fold", [Pure]> {
  let summary = "combines the elements that each thread holds of a row";
  let description = [{
    The result has one column for each thread along the row, as its layout says:
    each thread combines its own elements and needs no other thread. In the
    layout of products it has one piece of each thread, the columns of the
    first chunk, which combine those of all chunks.

    Example:

    ```mlir
    %0 = tile.fold max %t
        : tensor<1x4096xf32> -> tensor<1x256xf32, #tile.blocked<
              vector = 1, threadRows = 1, threadColumns = 256>>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, AnyStaticShapeTensor:$input);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat =
      "$kind $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "tells each warp whether any element that it holds is true";
  let description = [{
    The tile has the layout of products, in which a warp holds whole rows. Each
    warp has a result of its own.

    Example:

    ```mlir
    %0 = tile.any %t : tensor<64x1xi1, #tile.mma<warps = 4>>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input);
  let results = (outs I1:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Tile_SpreadOp : Tile_Op<"spread", [Pure]> {
  let summary = "gives each thread's number to all its elements of the row";
  let description = [{
    The inverse of `tile.fold`: all elements that a thread holds of a row become
    that thread's number.

    Example:

    ```mlir
    %0 = tile.spread %t
        : tensor<1x256xf32, #tile.blocked<
              vector = 1, threadRows = 1, threadColumns = 256>>
        -> tensor<1x4096xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ConvertLayoutOp : Tile_Op<"convert_layout"> {
  let summary = "gives a tile to the threads that another layout says";
  let description = [{
    The same tile in another layout, of the same threads: those of the role or,
    outside of roles, of the block. All of them run the op. Where each of them
    keeps its own elements, only the registers' order changes; otherwise the
    tile goes through shared memory of the program's own.

    Example:

    ```mlir
    %0 = tile.convert_layout %t
        : tensor<128x64xf32, #tile.mma<warps = 8>>
        -> tensor<128x64xf32, #tile.blocked<
               vector = 4, threadRows = 16, threadColumns = 16>>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ExchangeOp : Tile_Op<"exchange"> {
  let summary = "sends numbers between the blocks of a cluster";
  let description = [{
    Each operand is a statistic that differs from block to block. It has one
    result for each block of the cluster, in the order of the blocks, and all
    blocks get the same results. The blocks wait for each other once, however
    many operands there are.

    Example, in a cluster of two blocks:

    ```mlir
    %first, %second = tile.exchange %sum
        : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
    ```
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat =
      "$inputs attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

def Tile_BufferOp : Tile_Op<"buffer", [
    MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "shared memory for tiles";
  let description = [{
    The first size is the number of tiles; `offset` is where the block's part of
    them begins in its shared memory, in bytes. Each thread reads only elements
    that it has written itself, so that no barrier is needed. In `#tile.shared`
    memory any thread may read them, and in `#tile.held` memory one of another
    block may have written them.

    Example:

    ```mlir
    %0 = tile.buffer {offset = 0 : i64}
        : memref<4x1x8192xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins I64Attr:$offset);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// Where a block's part ends in its shared memory, in bytes, if `blocks`
    /// share the tiles.
    int64_t getEnd(int64_t blocks);
  }];
  let hasVerifier = 1;
}

def Tile_KeepOp : Tile_Op<"keep"> {
  let summary = "writes a tile to a buffer";
  let description = [{
    With `transposed`, the columns of the tile become the rows of the buffer's: of
    a tile of products, whose elements are float32.

    Example:

    ```mlir
    tile.keep %t, %buffer[%slot] : tensor<1x8192xbf16>,
        memref<4x1x8192xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$value,
                       Arg<AnyMemRef, "", [MemWrite]>:$buffer, Index:$slot,
                       UnitAttr:$transposed);
  let builders = [OpBuilder<(ins "::mlir::Value":$value,
                                 "::mlir::Value":$buffer,
                                 "::mlir::Value":$slot), [{
    build($_builder, $_state, value, buffer, slot, /*transposed=*/false);
  }]>];
  let assemblyFormat = [{
    $value `,` $buffer `[` $slot `]` (`transposed` $transposed^)? attr-dict `:` type($value) `,`
    type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_TakeOp : Tile_Op<"take"> {
  let summary = "reads a tile from a buffer";
  let description = [{
    With `transposed`, the rows of the buffer's tile become the columns of the
    result, an operand of a product of single warps. Of a left operand, the rows
    of all warps together fit in the bytes that the buffer swizzles.

    Example:

    ```mlir
    %t = tile.take %buffer[%slot]
        : memref<4x1x8192xbf16, #gpu.address_space<workgroup>>
        -> tensor<1x8192xbf16>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$buffer, Index:$slot,
                       UnitAttr:$transposed);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $buffer `[` $slot `]` (`transposed` $transposed^)? attr-dict `:`
    type($buffer) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_CopyAheadOp : Tile_Op<"copy_ahead", [AttrSizedOperandSegments]> {
  let summary = "begins to copy a tile into a buffer";
  let description = [{
    Does the same as `tile.load` and `tile.keep`, but the program goes on at
    once: the tile is in the buffer after a `tile.wait_copies`. `tile` is the
    tile's type.

    Example:

    ```mlir
    tile.copy_ahead %x[%row, %column] to %buffer[%slot] {tile = tensor<1x8192xbf16>}
        : memref<?x65536xbf16, strided<[?, 1]>>,
          memref<8x1x8192xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memref,
                       Variadic<Index>:$indices,
                       Arg<AnyMemRef, "", [MemWrite]>:$buffer, Index:$slot,
                       Optional<AnyStaticShapeTensor>:$misalignment,
                       TypeAttrOf<AnyRankedTensor>:$tile,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$offset,
                       OptionalAttr<I64Attr>:$length,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$space,
                       OptionalAttr<I64Attr>:$band);
  let assemblyFormat = [{
    $memref `[` $indices `]` (`misaligned` $misalignment^)? `to` $buffer
    `[` $slot `]` attr-dict `:` type($memref) `,` type($buffer)
    (`,` type($misalignment)^)?
  }];
  let hasVerifier = 1;
}

def Tile_CommitCopiesOp : Tile_Op<"commit_copies"> {
  let summary = "makes a group of the copies begun since the last group";
  let assemblyFormat = "attr-dict";
}

def Tile_WaitCopiesOp : Tile_Op<"wait_copies"> {
  let summary = "waits for all groups of copies but the last `pending`";
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Tile_IsDoneOp : Tile_Op<"is_done", [
    MemoryEffects<[MemRead]>, SameVariadicOperandSize]> {
  let summary = "whether a scaling in place would change nothing";
  let description = [{
    True if the first number at `factor` is 1 and each of `outputs` begins at
    the address of its input. All threads of a launch get the same answer.

    Example:

    ```mlir
    %0 = tile.is_done %factor, %x to %y
        : memref<1xf32>, memref<?x8xf32, strided<[?, 1]>> to
          memref<?x8xf32, strided<[?, 1]>>
    ```
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$factor,
                       Variadic<AnyMemRef>:$inputs,
                       Variadic<AnyMemRef>:$outputs);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $factor `,` $inputs `to` $outputs attr-dict `:` type($factor) `,`
    type($inputs) `to` type($outputs)
  }];
  let hasVerifier = 1;
}

def Tile_MaskOp : Tile_Op<"mask", [
    Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "replaces the elements of a tile beyond the end of the row";
  let description = [{
    With the tile's first column at `column`, every element at or past `limit`
    becomes `other`. With `misaligned`, `column` counts from the address that a
    `tile.misalignment` is relative to, and every element ahead of the row
    becomes `other` as well.

    Example:

    ```mlir
    %0 = tile.mask %t from %column limit 2880 else 0.000000e+00 : f32
        : tensor<1x3072xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Index:$column,
                       Optional<AnyStaticShapeTensor>:$misalignment,
                       I64Attr:$limit,
                       TypedAttrInterface:$other);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $input `from` $column (`misaligned` $misalignment^)? `limit` $limit
    `else` $other attr-dict `:` type($input) (`,` type($misalignment)^)?
  }];
  let hasVerifier = 1;
}

def Tile_MaskRowsOp : Tile_Op<"mask_rows", [
    Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "replaces the rows of a tile beyond the last one";
  let description = [{
    With the tile's first row at `row`, every element of a row at or past
    `limit` becomes `other`.

    Example:

    ```mlir
    %0 = tile.mask_rows %t from %row limit %rows else 0.000000e+00 : f32
        : tensor<8x1024xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, Index:$row, Index:$limit,
                       TypedAttrInterface:$other);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $input `from` $row `limit` $limit `else` $other attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

#endif // BASTILE_DIALECT_PROGRAMOPS_TD
