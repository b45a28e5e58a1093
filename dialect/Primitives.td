//===- Primitives.td - Ops on rows that arith and math lack ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_PRIMITIVES_TD
#define BASTILE_DIALECT_PRIMITIVES_TD

include "dialect/RowTypes.td"
include "dialect/TileAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats a scalar, row vector or statistic over a row tensor";
  let description = [{
    The result has the leading sizes of `like`. A scalar is repeated everywhere,
    a row vector over all rows, a statistic (last dimension 1) along its row,
    and a row vector of length 1 both over all rows and along them. A row tensor
    with leading dimensions of the static size 1 is repeated over those of
    `like`. In a row tensor of shorter rows, such as `tile.reduce` makes for
    groups, each element is repeated over the neighbouring columns of its group.
    Tiles need no `like`: their shape is static.

    Example:

    ```mlir
    %0 = tile.broadcast %w like %x
        : tensor<2880xf32>, tensor<?x2880xbf16> -> tensor<?x2880xf32>
    %1 = tile.broadcast %cos like %q
        : tensor<1x?x1x64xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xf32>
    %2 = tile.broadcast %scale like %x
        : tensor<?x32xf32>, tensor<?x4096xbf16> -> tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger,
                                  AnyRankedTensor]>:$source,
                       Optional<AnyRankedTensor>:$like);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source (`like` $like^)? attr-dict `:` type($source) (`,` type($like)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether the source has fewer rows of its own than the result: some of
    /// its leading sizes are 1.
    bool repeatsRows();
  }];
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "combines the elements of each row, or of groups of them";
  let description = [{
    The result is a statistic: it has the same leading sizes, and rows of length
    one. A result with more columns combines groups of neighbouring columns, all
    of one size, and is called a group statistic. The order of the combination
    is not defined; it is the same in every run of the same schedule. `max` and
    `min` give NaN if an element is NaN.

    In a program, each block of a cluster combines only the part of the row that
    it holds; `tile.exchange` gives the results to the other blocks.

    Example:

    ```mlir
    %0 = tile.reduce add %x : tensor<?x2880xf32> -> tensor<?x1xf32>
    %1 = tile.reduce max %y : tensor<?x4096xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_ComputeTensor:$input);
  let results = (outs Tile_ComputeTensor:$result);
  let assemblyFormat =
      "$kind $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether each row has several results, one for each group of columns.
    bool isOfGroups() { return getType().getShape().back() != 1; }
    /// The value that leaves any other value unchanged when combined under
    /// `kind`.
    static ::mlir::TypedAttr getNeutral(ReduceKind kind, ::mlir::Type type);
    /// Combines two values of the same type under `kind`.
    static ::mlir::Value combine(::mlir::OpBuilder &builder,
                                 ::mlir::Location loc, ReduceKind kind,
                                 ::mlir::Value lhs, ::mlir::Value rhs);
  }];
}

def Tile_ReduceRowsOp : Tile_Op<"reduce_rows", [Pure]> {
  let summary = "combines all rows, or the rows over some dimensions";
  let description = [{
    The result is a row vector that combines the rows elementwise, such as the
    gradient of a weight that all rows share. The order of the combination is
    not defined; it is the same in every run of the same schedule on the same
    machine.

    A result with leading dimensions has the static size 1 in the dimensions
    over which it combines rows, and the sizes of the input in the others: it
    has rows of its own, each for several rows of the input, such as the
    gradient of angles that batches and heads share.

    The pass `fuse` makes two ops of it. The one marked `partial` stands in the
    kernel that computes the rows, and its result has one row for each program
    of that kernel; the other one combines these rows in a kernel of its own. On
    tiles, the result is a tile of one row.

    Example:

    ```mlir
    %0 = tile.reduce_rows add %x : tensor<?x2880xf32> -> tensor<2880xf32>
    %1 = tile.reduce_rows add %x partial
        : tensor<?x?x2880xf32> -> tensor<?x2880xf32>
    %2 = tile.reduce_rows add %y
        : tensor<?x?x?x64xf32> -> tensor<1x?x1x64xf32>
    %3 = tile.reduce_rows add %t : tensor<8x1024xf32> -> tensor<1x1024xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_ComputeTensor:$input,
                       UnitAttr:$partial);
  let results = (outs Tile_ComputeRows:$result);
  let assemblyFormat = [{
    $kind $input (`partial` $partial^)? attr-dict `:` type($input) `->`
    type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether the result, on tensors, has rows of its own, each of which
    /// combines some of the input's rows.
    bool keepsRows() { return !getPartial() && getType().getRank() > 1; }
    /// The leading dimensions over which rows are combined.
    ::llvm::SmallVector<int64_t> getCombinedDimensions();
  }];
}

class Tile_BandOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

def Tile_ReduceBandsOp : Tile_BandOp<"reduce_bands", [
    AllTypesMatch<["input", "result"]>]> {
  let summary = "combines the rows of each band";
  let description = [{
    A band is a fixed number of neighbouring rows; the last band may have fewer.
    Each row of the result holds the combination of all rows of its band,
    elementwise. The order of the combination is not defined; it is the same in
    every run of the same schedule.

    Example:

    ```mlir
    %0 = tile.reduce_bands max %x of 128 : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_ComputeTensor:$input,
                       I64Attr:$band);
  let results = (outs Tile_ComputeTensor:$result);
  let assemblyFormat = "$kind $input `of` $band attr-dict `:` type($input)";
}

def Tile_PackBandsOp : Tile_BandOp<"pack_bands"> {
  let summary = "keeps the first row of each band";
  let description = [{
    Where all rows of a band are equal, as those of `tile.reduce_bands` are, the
    result holds each of them once.

    Example:

    ```mlir
    %0 = tile.pack_bands %x of 128 : tensor<?x32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$band);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `of` $band attr-dict `:` type($input) `->` type($result)
  }];
}

def Tile_RepeatBandsOp : Tile_BandOp<"repeat_bands"> {
  let summary = "repeats each row for all rows of a band";
  let description = [{
    The inverse of `tile.pack_bands`: the source has one row for each band of
    the rows of `like`, and the result has the leading size of `like`.

    Example:

    ```mlir
    %0 = tile.repeat_bands %s of 128 like %x
        : tensor<?x32xf32>, tensor<?x4096xbf16> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$band,
                       AnyRankedTensor:$like);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `of` $band `like` $like attr-dict `:` type($source) `,` type($like)
    `->` type($result)
  }];
}

def Tile_SplitOp : Tile_Op<"split", [Pure]> {
  let summary = "takes rows apart into pieces of equal length";
  let description = [{
    The n results together hold the row: the first result holds the first n-th
    of it, and so on. With `interleaved`, the first result holds every n-th
    element from the first on, the second result every n-th from the second on.
    With `parts` = k as well, the row is cut into k parts, and each part is
    taken apart into n / k interleaved pieces, which are called its strands.

    Example:

    ```mlir
    %low, %high = tile.split %x
        : tensor<?x128xbf16> -> tensor<?x64xbf16>, tensor<?x64xbf16>
    %gate, %up = tile.split interleaved %x
        : tensor<?x5760xbf16> -> tensor<?x2880xbf16>, tensor<?x2880xbf16>
    %a, %b, %c, %d = tile.split interleaved parts(2) %x
        : tensor<?x128xbf16> -> tensor<?x32xbf16>, tensor<?x32xbf16>,
                                tensor<?x32xbf16>, tensor<?x32xbf16>
    ```
  }];
  let arguments = (ins UnitAttr:$interleaved,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$parts,
                       AnyRankedTensor:$input);
  let results = (outs Variadic<AnyRankedTensor>:$pieces);
  let assemblyFormat = [{
    (`interleaved` $interleaved^)? (`parts` `(` $parts^ `)`)? $input attr-dict
    `:` type($input) `->` type($pieces)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "int64_t":$strands,
                                 "::mlir::Value":$input)>];
  let extraClassDeclaration = [{
    /// How many neighbouring pieces share a part of the row, element by
    /// element.
    int64_t getStrands() {
      int64_t count = getPieces().size();
      return getInterleaved() ? count / getParts() : 1;
    }
  }];
}

def Tile_JoinOp : Tile_Op<"join", [Pure]> {
  let summary = "puts pieces of equal length together into rows";
  let description = [{
    The inverse of `tile.split`.

    Example:

    ```mlir
    %0 = tile.join %low, %high
        : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x128xbf16>
    ```
  }];
  let arguments = (ins UnitAttr:$interleaved,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$parts,
                       Variadic<AnyRankedTensor>:$pieces);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    (`interleaved` $interleaved^)? (`parts` `(` $parts^ `)`)? $pieces attr-dict
    `:` type($pieces) `->` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "int64_t":$strands,
                                 "::mlir::ValueRange":$pieces)>];
  let extraClassDeclaration = [{
    /// How many neighbouring pieces are interleaved in a part of the row.
    int64_t getStrands() {
      int64_t count = getPieces().size();
      return getInterleaved() ? count / getParts() : 1;
    }
  }];
}

def Tile_PieceOp : Tile_Op<"piece", [Pure]> {
  let summary = "a piece of a tensor in memory, along any dimension";
  let description = [{
    Dimension `dimension` of `source` is cut into `count` pieces of equal length,
    of which the result is the one with the number `index`. With `interleaved`,
    it holds every `count`-th element from `index` on. Nothing is computed: the
    launch that reads the piece gets its address and its strides, and so elements
    of the last dimension stay neighbours.

    The passes make it, of factors of products (`split-rows`) and of what kernels
    of products read (`fuse`).

    Example:

    ```mlir
    %up = tile.piece %w dimension 0[1 of 2]
        : tensor<6144x1024xbf16> -> tensor<3072x1024xbf16>
    %odd = tile.piece %w dimension 0[1 of 2] interleaved
        : tensor<6144x1024xbf16> -> tensor<3072x1024xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, I64Attr:$dimension,
                       I64Attr:$index, I64Attr:$count, UnitAttr:$interleaved);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `dimension` $dimension `[` $index `of` $count `]`
    (`interleaved` $interleaved^)? attr-dict `:` type($source) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "int64_t":$dimension,
                                 "int64_t":$index, "int64_t":$count,
                                 "bool":$interleaved)>];
  let hasVerifier = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure, AttrSizedOperandSegments]> {
  let summary = "the number of each element in its row, or of each row, from 0";
  let description = [{
    The result has the leading sizes of `like`. Numbers from 2^31 on wrap around.

    With `over`, rows are numbered: along one leading dimension, or along some
    that follow each other, counted together with the last of them fastest. A row
    has one number, so the result is a statistic, which `tile.broadcast` repeats.
    On tiles, `tile.iota_rows` numbers rows.

    On a tile, whose first column is `column` of the row, columns count from
    there; with `misaligned`, that column counts from the address that a
    `tile.misalignment` is relative to, and elements ahead of the row have
    numbers below 0.

    Example:

    ```mlir
    %0 = tile.iota like %x : tensor<?x128256xi32>, tensor<?x128256xbf16>
    %1 = tile.iota over [1] like %s
        : tensor<?x?x1xi32>, tensor<?x?x4096xbf16>
    ```
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$like,
                       Optional<Index>:$column,
                       Optional<RankedTensorOf<[I32]>>:$misalignment,
                       OptionalAttr<DenseI64ArrayAttr>:$over);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = [{
    (`over` $over^)? (`like` $like^)? (`from` $column^)?
    (`misaligned` $misalignment^ `of` type($misalignment))? attr-dict `:` type($result) (`,` type($like)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$like,
                                 CArg<"::llvm::ArrayRef<int64_t>",
                                      "{}">:$over)>];
  let hasVerifier = 1;
}

def Tile_CopyOp : Tile_Op<"copy", [
    Pure, SameOperandsAndResultType, Elementwise, Scalarizable, Vectorizable,
    Tensorizable]> {
  let summary = "repeats a value, so that it is stored once more";
  let description = [{
    The pass `fuse` inserts it where a function returns an argument, or returns
    a value twice.

    Example:

    ```mlir
    %0 = tile.copy %x : tensor<?x2880xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def Tile_StopGradientOp : Tile_Op<"stop_gradient", [
    Pure, SameOperandsAndResultType]> {
  let summary = "a value that derivatives take for a constant";
  let description = [{
    It is for values that are subtracted and added again for the sake of
    rounding alone, such as the maximum in a softmax. The true derivative with
    respect to such a value is zero, and a computed derivative would only come
    close to it.

    Example:

    ```mlir
    %0 = tile.stop_gradient %max : tensor<?x1xf32>
    ```
  }];
  let arguments = (ins AnyType:$input);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

#endif // BASTILE_DIALECT_PRIMITIVES_TD
