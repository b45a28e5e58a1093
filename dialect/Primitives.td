//===- Primitives.td - What arith and math lack on rows -----*- tablegen -*-===//
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
  let summary = "repeats a scalar, a row vector or a statistic over a row tensor";
  let description = [{
    The result has the leading sizes of `like`. A scalar is repeated everywhere,
    a row vector over all rows, a statistic (last dimension 1) along its row, a
    row vector of length 1 over all rows and along them. A row tensor with
    leading dimensions of the static size 1 is repeated over those of `like`. One
    of shorter rows, such as `tile.reduce` makes of groups, has each element
    repeated over as many neighbouring columns.
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
    /// Whether the source has rows of its own that are fewer than the result's:
    /// some of its leading sizes are 1.
    bool repeatsRows();
  }];
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "combines the elements of each row, or of groups of them";
  let description = [{
    The result is a statistic: the same leading sizes, a row length of one. A
    result of more columns combines groups of neighbouring columns, all of one
    size, and is called a group statistic. The
    order of the combination is not defined; it is the same in every run of the
    same schedule. `max` and `min` pass a NaN on.

    In a program, each block of a cluster combines only what it holds of the row;
    `tile.exchange` gives the results to the others.

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
    /// Whether there are several results a row, one for each group of columns.
    bool isOfGroups() { return getType().getShape().back() != 1; }
    /// The value that leaves any other unchanged under `kind`.
    static ::mlir::TypedAttr getNeutral(ReduceKind kind, ::mlir::Type type);
    /// Combines two values of the same type under `kind`.
    static ::mlir::Value combine(::mlir::OpBuilder &builder,
                                 ::mlir::Location loc, ReduceKind kind,
                                 ::mlir::Value lhs, ::mlir::Value rhs);
  }];
}

def Tile_ReduceRowsOp : Tile_Op<"reduce_rows", [Pure]> {
  let summary = "combines all rows into one, or those over some dimensions";
  let description = [{
    The result is a row vector that combines the rows elementwise, such as the
    gradient of a weight that all rows share. The order is not defined; it is
    the same in every run of the same schedule on the same machine.

    A result with leading dimensions has the static size 1 in those over which it
    combines rows, and in the others the sizes of the input: it is what repeats
    for the input's rows, such as angles that batches and heads share. It keeps
    rows of its own.

    `fuse` makes two of it: one in the kernel that computes the rows, `partial`,
    whose result has one row for each program of the kernel, and one in a kernel
    that combines those. On tiles, the result is a tile of one row.

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
  let extraClassDeclaration = [{
    /// Whether the result, on tensors, has rows of its own, each of which
    /// combines some of the input's.
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
    A band is a number of neighbouring rows; the last one may have fewer. Each
    row of the result has what the rows of its band combine to, elementwise. The
    order is not defined; it is the same in every run of the same schedule.

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
  let summary = "the first row of each band";
  let description = [{
    What all rows of a band have in common, without the repetition.

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
    The inverse of `tile.pack_bands`: the result has the leading size of `like`,
    the source one row for each band of that.

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
    The n results together hold the row: the first holds its first n-th, and so
    on. With `interleaved`, the first holds every n-th element from the first
    on, the second every n-th from the second on. With `parts` = k as well, the
    row is cut into k parts, and each of these is taken apart into n / k
    interleaved pieces, which are called its strands.

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
    /// How many neighbouring pieces share a part of the row, element by element.
    int64_t getStrands() {
      int64_t count = getPieces().size();
      return getInterleaved() ? count / getParts() : 1;
    }
  }];
}

def Tile_JoinOp : Tile_Op<"join", [Pure]> {
  let summary = "puts pieces of equal length together to rows";
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
    /// How many neighbouring pieces share a part of the row, element by element.
    int64_t getStrands() {
      int64_t count = getPieces().size();
      return getInterleaved() ? count / getParts() : 1;
    }
  }];
}

def Tile_IotaOp : Tile_Op<"iota", [Pure, AttrSizedOperandSegments]> {
  let summary = "the number of each element in its row, from 0";
  let description = [{
    The result has the leading sizes of `like`. On a tile, whose first column is
    `column` of the row, columns count from there; with `misaligned`, that column
    counts from the address that a `tile.misalignment` is relative to, and
    elements ahead of the row have numbers below 0.

    Example:

    ```mlir
    %0 = tile.iota like %x : tensor<?x128256xi32>, tensor<?x128256xbf16>
    ```
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$like,
                       Optional<Index>:$column,
                       Optional<RankedTensorOf<[I32]>>:$misalignment);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = [{
    (`like` $like^)? (`from` $column^)?
    (`misaligned` $misalignment^ `of` type($misalignment))? attr-dict `:` type($result) (`,` type($like)^)?
  }];
  let hasVerifier = 1;
}

def Tile_CopyOp : Tile_Op<"copy", [
    Pure, SameOperandsAndResultType, Elementwise, Scalarizable, Vectorizable,
    Tensorizable]> {
  let summary = "a value again, to be stored once more";
  let description = [{
    `fuse` puts it where a function returns an argument, or a value twice.

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
    Stands where a value is subtracted and added again for the sake of rounding
    alone, as the maximum in a softmax is: the true derivative with respect to
    it is zero, which a computed one would only approach.

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
