//===- Primitives.td - What arith and math lack on rows -----*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_PRIMITIVES_TD
#define BASTILE_DIALECT_PRIMITIVES_TD

include "dialect/TileAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Element types of operands and results.
def Tile_Float : AnyTypeOf<[F16, BF16, F32, F64], "f16, bf16, f32 or f64">;

/// The row length is static and at least one; leading sizes are free.
def Tile_IsRowTensor : And<[
    CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() >= 2">,
    CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getShape().back() > 0">
  ]>;
def Tile_RowTensor : Type<
    And<[RankedTensorOf<[Tile_Float]>.predicate, Tile_IsRowTensor]>,
    "row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a "
    "static last dimension of at least 1)",
    "::mlir::RankedTensorType">;
def Tile_RowVector : Type<
    And<[RankedTensorOf<[Tile_Float]>.predicate,
         CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 1">,
         CPred<"::llvm::cast<::mlir::RankedTensorType>($_self)"
               ".getShape().back() > 0">]>,
    "row vector of f16, bf16, f32 or f64 (one static dimension of at least 1)",
    "::mlir::RankedTensorType">;

/// Reductions run in the precision that formulas are computed in.
def Tile_ComputeTensor : Type<
    And<[RankedTensorOf<[F32, F64]>.predicate, Tile_IsRowTensor]>,
    "row tensor of f32 or f64 (at least one leading dimension and a static last "
    "dimension of at least 1)",
    "::mlir::RankedTensorType">;

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats a scalar, a row vector or a statistic over a row tensor";
  let description = [{
    The result has the leading sizes of `like`. A scalar is repeated everywhere,
    a row vector over all rows, a statistic (last dimension 1) along its row.
    Tiles need no `like`: their shape is static.

    Example:

    ```mlir
    %0 = tile.broadcast %w like %x
        : tensor<2880xf32>, tensor<?x2880xbf16> -> tensor<?x2880xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_Float, AnyRankedTensor]>:$source,
                       Optional<AnyRankedTensor>:$like);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source (`like` $like^)? attr-dict `:` type($source) (`,` type($like)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "combines the elements of each row";
  let description = [{
    The result is a statistic: the same leading sizes, a row length of one. The
    order of the combination is not defined; it is the same in every run of the
    same schedule. `max` and `min` pass a NaN on.

    Example:

    ```mlir
    %0 = tile.reduce add %x : tensor<?x2880xf32> -> tensor<?x1xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_ComputeTensor:$input);
  let results = (outs Tile_ComputeTensor:$result);
  let assemblyFormat =
      "$kind $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The value that leaves any other unchanged under `kind`.
    static ::mlir::TypedAttr getNeutral(ReduceKind kind, ::mlir::Type type);
    /// Combines two values of the same type under `kind`.
    static ::mlir::Value combine(::mlir::OpBuilder &builder,
                                 ::mlir::Location loc, ReduceKind kind,
                                 ::mlir::Value lhs, ::mlir::Value rhs);
  }];
}

#endif // BASTILE_DIALECT_PRIMITIVES_TD
