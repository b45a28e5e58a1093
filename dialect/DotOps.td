//===- DotOps.td - Products of matrices ---------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_DOTOPS_TD
#define BASTILE_DIALECT_DOTOPS_TD

include "dialect/programs/ProgramOps.td"
include "dialect/TileTypes.td"

def Tile_DotOp : Tile_Op<"dot", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "multiplies matrices, or tiles of them";
  let description = [{
    The product of `a` and `b`, summed over dimension `contract[0]` of the
    matrices of `a` and dimension `contract[1]` of those of `b`, each 0 or 1. The
    rows of the result are the other dimension of `a`, its columns the other one
    of `b`. Both have the same element type, or f8E4M3FN meets f8E5M2. Sums are in
    float32, those of float64 in float64. Of 8-bit floats, tensor cores may add
    the products of up to 128 neighbours with fewer bits (on Hopper about 14);
    what they give is added in float32.

    On tensors, matrices are the last two dimensions. Dimensions ahead of them
    are those of a batch: from the last one on, each of `a` belongs to one of
    `b`, and a matrix is repeated where its tensor lacks a dimension or has the
    static size 1 there. Where the result lacks a dimension or has the static
    size 1, and an operand does not, products are added up over it. It may have
    further dimensions of size 1 ahead of all that the operands have.

    Examples:

    ```mlir
    %y = tile.dot %x, %w contract [1, 1]
        : tensor<?x?x64xbf16>, tensor<96x64xbf16> -> tensor<?x?x96xf32>
    %dw = tile.dot %dy, %x contract [0, 0]
        : tensor<?x?x96xbf16>, tensor<?x?x64xbf16> -> tensor<96x64xf32>
    ```

    On tiles, it adds to `accumulator`; without one the sum begins at zero.

    Where `b` lies in shared memory, the op begins the product, and a group of
    products for `tile.wait_dots`. `a` lies there, too, or in registers, with the
    layout of the sum. The warps of the role's warpgroups share the rows. A sum
    may have fewer columns than `b` has: those from `column` on.

    Example:

    ```mlir
    %1 = tile.dot %a, %b, %0 contract [1, 1]
        : memref<128x64xbf16, #tile.shared<swizzle = 128>>,
          memref<256x64xbf16, #tile.shared<swizzle = 128>>,
          !tile.pending<tensor<128x256xf32, #tile.mma<warps = 8>>>
        -> !tile.pending<tensor<128x256xf32, #tile.mma<warps = 8>>>
    ```

    Where `b` lies in registers, so do `a` and the sum, which is there at once.
    Each warp multiplies its own rows of `a` with all of `b`, and `contract` is
    `[1, 1]`. The pieces of `a` and `b` have 4 bytes: the layouts say
    `vector = 4` of f8E4M3FN and f8E5M2, whose products GPUs have from sm_89 on.

    Example:

    ```mlir
    %1 = tile.dot %a, %b, %0 contract [1, 1]
        : tensor<128x32xbf16, #tile.mma<warps = 8>>,
          tensor<64x32xbf16, #tile.mma_rhs>,
          tensor<128x64xf32, #tile.mma<warps = 8>>
        -> tensor<128x64xf32, #tile.mma<warps = 8>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyMemRef, AnyRankedTensor]>:$a,
                       AnyTypeOf<[AnyMemRef, AnyRankedTensor]>:$b,
                       Optional<AnyTypeOf<[Tile_PendingType,
                                           AnyRankedTensor]>>:$accumulator,
                       DenseI64ArrayAttr:$contract,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$column);
  let results = (outs AnyTypeOf<[Tile_PendingType, AnyRankedTensor]>:$result);
  let assemblyFormat = [{
    $a `,` $b (`,` $accumulator^)? `contract` $contract (`column` $column^)?
    attr-dict `:` type($a) `,` type($b) (`,` type($accumulator)^)? `->`
    type($result)
  }];
  let extraClassDeclaration = [{
    /// Whether warpgroups multiply what lies in shared memory, and the program
    /// goes on meanwhile.
    bool isOfWarpgroups() {
      return ::llvm::isa<::mlir::MemRefType>(getB().getType());
    }
    /// Whether it multiplies whole tensors, which no thread holds.
    bool isOnTensors();
    /// The type in which elements are multiplied, of an op on tensors; where
    /// two types of 8 bits meet, that of the elements of `a`.
    ::mlir::Type getFactorType();
    /// The type in which the elements of operand `index` are multiplied.
    ::mlir::Type getFactorType(unsigned index);
    /// The type of the sum, once it is there.
    ::mlir::RankedTensorType getSumType();
    /// The dimension of operand `index` over which products are summed, and the
    /// other one of its matrices, which the result has, too.
    int64_t getContractedDimension(unsigned index);
    int64_t getFreeDimension(unsigned index);
  }];
  let hasVerifier = 1;
}

def Tile_LoadDotOp : Tile_Op<"load_dot", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead]>,
    TypesMatchWith<"the accumulator has the type of the result", "result",
                   "accumulator", "$_self">]> {
  let summary = "multiplies rows of two operands in memory";
  let description = [{
    Adds to `accumulator` the product of two matrices of operands of a program
    over named dimensions, summed over the whole of dimension `contract[0]` of
    the matrix of `a` and `contract[1]` of that of `b`, as in `tile.dot`. The
    indices of each operand are those of its matrix in its batch, and the first
    of its rows or columns that the tile has. Elements of the result that belong
    to no row of `a` or of `b` have any value. Sums are in the order of the
    contracted dimension, or of the lanes of a vector along it.

    Where `a` is a tile, which the program has computed, the sum is over the
    columns of the tile, as far as `b` has rows for them from the first place of
    its matrix on: `b` then has an index for each of its dimensions.

    Each thread reads the rows and columns that its own elements need, without
    shared memory: for targets and types that tensor cores do not serve.

    Example:

    ```mlir
    %1 = tile.load_dot %a[%batch, %row], %b[%column], %0 contract [1, 1]
        : memref<?x?x?xf32, strided<[?, ?, 1]>>, memref<?x?xf32, strided<[?, 1]>>
        -> tensor<64x64xf32, #tile.blocked<
               vector = 1, threadRows = 16, threadColumns = 16>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyMemRef, AnyRankedTensor]>:$a,
                       Variadic<Index>:$a_indices,
                       Arg<AnyMemRef, "", [MemRead]>:$b,
                       Variadic<Index>:$b_indices,
                       AnyRankedTensor:$accumulator,
                       DenseI64ArrayAttr:$contract);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a (`[` $a_indices^ `]`)? `,` $b `[` $b_indices `]` `,` $accumulator `contract`
    $contract attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_BeginDotsOp : Tile_Op<"begin_dots"> {
  let summary = "gives a tile to products that add to it";
  let description = [{
    Threads read and write the tile no more until `tile.wait_dots` returns it.
  }];
  let arguments = (ins AnyRankedTensor:$tile);
  let results = (outs Tile_PendingType:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_WaitDotsOp : Tile_Op<"wait_dots", [AttrSizedOperandSegments]> {
  let summary = "waits for all groups of products but the last `pending`";
  let description = [{
    The results are the sums, which threads may read from then on, and then the
    tiles of `after` as they are: these are computed before it waits, while
    products are on their way. (The assembler may still move parts of them
    behind the wait, unless a tile of float32 is among them that depends on
    these parts and has one column or one chunk of columns.) Without operands, it only waits: what the ended
    products have read may be overwritten.

    Example:

    ```mlir
    %1 = tile.wait_dots 0 of %0
        : (!tile.pending<tensor<128x256xf32, #tile.mma<warps = 8>>>)
        -> tensor<128x256xf32, #tile.mma<warps = 8>>
    ```
  }];
  let arguments = (ins I64Attr:$pending, Variadic<Tile_PendingType>:$sums,
                       Variadic<AnyRankedTensor>:$after);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $pending (`of` $sums^)? (`after` $after^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // BASTILE_DIALECT_DOTOPS_TD
