//===- RowTypes.td - Constraints on operands of ops -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_ROWTYPES_TD
#define BASTILE_DIALECT_ROWTYPES_TD

include "dialect/TileDialect.td"

/// Element types of operands and results.
def Tile_Float : AnyTypeOf<[F16, BF16, F32, F64], "f16, bf16, f32 or f64">;

/// Tensors whose elements have one of some types. The list is a field, so that
/// readers of these records (python/generate_ops.py) need not read the text.
class Tile_TensorOf<list<Type> elements, list<Pred> conditions, string summary>
    : Type<And<!listconcat([RankedTensorOf<elements>.predicate], conditions)>,
           summary, "::mlir::RankedTensorType"> {
  list<Type> elementTypes = elements;
}

/// The length of a row is static and at least one; leading sizes are free.
def Tile_IsRowTensor : And<[
    CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() >= 2">,
    CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getShape().back() > 0">
  ]>;
def Tile_RowTensor : Tile_TensorOf<
    [Tile_Float], [Tile_IsRowTensor],
    "row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a "
    "static last dimension of at least 1)">;
def Tile_IsRowVector : And<[
    CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 1">,
    CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getShape().back() > 0">
  ]>;
def Tile_RowVector : Tile_TensorOf<
    [Tile_Float], [Tile_IsRowVector],
    "row vector of f16, bf16, f32 or f64 (one static dimension of at least 1)">;

/// A factor of rows: its own rows are as long as theirs, and their number is the
/// length of the result's.
def Tile_Matrix : Tile_TensorOf<
    [Tile_Float],
    [CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 2">,
     CPred<"::llvm::all_of(::llvm::cast<::mlir::RankedTensorType>($_self)"
           ".getShape(), [](int64_t size) { return size > 0; })">],
    "matrix of f16, bf16, f32 or f64 (two static dimensions of at least 1)">;

/// A row vector as long as the rows of a product.
def Tile_ResultVector : Tile_TensorOf<
    [Tile_Float], [Tile_IsRowVector],
    "row vector of f16, bf16, f32 or f64 (one static dimension, as long as the "
    "rows of the result)">;

/// One integer for each row, that counts or names something, such as the target
/// of a token.
def Tile_IntegerStatistic : Tile_TensorOf<
    [I32, I64],
    [Tile_IsRowTensor,
     CPred<"::llvm::cast<::mlir::RankedTensorType>($_self)"
           ".getShape().back() == 1">],
    "statistic of i32 or i64 (at least one leading dimension and a last "
    "dimension of 1)">;

/// Reductions compute in the precision of formulas. Rows that a product makes may
/// have a length that only a call knows.
def Tile_HasColumns : CPred<
    "::llvm::cast<::mlir::RankedTensorType>($_self).getShape().back() != 0">;
def Tile_ComputeTensor : Tile_TensorOf<
    [F32, F64],
    [CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() >= 2">,
     Tile_HasColumns],
    "row tensor of f32 or f64 (at least one leading dimension and a last "
    "dimension of at least 1)">;

/// A row tensor or row vector, in a precision that reductions compute in.
def Tile_ComputeRows : Tile_TensorOf<
    [F32, F64],
    [CPred<"::llvm::cast<::mlir::RankedTensorType>($_self)"
           ".getShape().back() > 0">],
    "row tensor or row vector of f32 or f64">;

/// Rows of 8-bit floats; of float64 in references, where it stands for them.
def Tile_SmallRows : Tile_TensorOf<
    [F8E4M3FN, F8E5M2, F64], [Tile_IsRowTensor],
    "row tensor of f8E4M3FN, f8E5M2 or f64 (at least one leading dimension and "
    "a static last dimension of at least 1)">;

#endif // BASTILE_DIALECT_ROWTYPES_TD
