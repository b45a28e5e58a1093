//===- DotOps.cpp - Products of matrices ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dimensions.h"
#include "dialect/ElementBytes.h"
#include "dialect/OperandMemory.h"
#include "dialect/Warps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bastile::tile;

/// Checks that products can add to `sum`, for `op`: those of warpgroups, or of
/// single warps.
static LogicalResult verifySum(Operation *op, RankedTensorType sum,
                               bool isOfWarpgroups = true) {
  auto layout = dyn_cast_or_null<MmaAttr>(sum.getEncoding());
  if (!layout || layout.getVector() != 2 || sum.getRank() != 2 ||
      !sum.getElementType().isF32())
    return op->emitOpError("sums to ")
           << sum << ", not to float32 with a '#tile.mma' layout";
  if (isOfWarpgroups && layout.getWarps() % bastile::kWarpsOfWarpgroup != 0)
    return op->emitOpError("is of ")
           << layout.getWarps() << " warps, which are no whole warpgroups";
  // Of a single row or column, threads hold other elements.
  if (sum.getDimSize(0) == 1 || sum.getDimSize(1) == 1)
    return op->emitOpError("sums to ")
           << sum << ", which has a single row or column";
  return success();
}

LogicalResult BeginDotsOp::verify() {
  if (getType().getTile() != getTile().getType())
    return emitOpError("gives ")
           << getTile().getType() << " to products as " << getType();
  return verifySum(*this, getType().getTile());
}

/// Whether products take elements of both types, as they are.
static bool mayMeet(Type a, Type b) {
  return a == b || (bastile::isSmallFloat(a) && bastile::isSmallFloat(b));
}

/// Whether products take elements of the type.
static bool isFactor(Type element) {
  return element.isBF16() || element.isF16() || bastile::isSmallFloat(element);
}

/// Checks what the operands of `op`, a product of warpgroups, are.
static LogicalResult verifyOfWarpgroups(DotOp op) {
  auto a = cast<ShapedType>(op.getA().getType());
  auto b = cast<MemRefType>(op.getB().getType());
  RankedTensorType sum = op.getSumType();
  auto layout = cast<MmaAttr>(sum.getEncoding());
  ArrayRef<int64_t> contract = op.getContract();
  if (!isa<PendingType>(op.getType()))
    return op.emitOpError("begins a product whose sum is ")
           << sum << ", which is there only after a 'tile.wait_dots'";
  if (a.getRank() != 2 || b.getRank() != 2 || !getSwizzle(b) ||
      (isa<MemRefType>(a) && !getSwizzle(a)))
    return op.emitOpError("multiplies ")
           << a << " and " << b << ", of which some is no tile in "
           << "'#tile.shared' memory";
  Type element = a.getElementType();
  const bool isWide = bastile::getElementBytes(b) == 2;
  // Registers hold pairs of 16 bits, and only these are transposed.
  if (!isWide &&
      (isa<RankedTensorType>(a) || contract[0] == 0 || contract[1] == 0))
    return op.emitOpError("of ")
           << element << " takes both operands from shared memory and sums "
           << "over their last dimensions";
  if (auto fragment = dyn_cast<RankedTensorType>(a);
      fragment && (fragment.getEncoding() != layout || contract[0] != 1))
    return op.emitOpError("takes ")
           << fragment << " from registers, whose layout is not that of "
           << sum;
  return success();
}

/// Checks what the operands of `op`, a product of each warp, are.
static LogicalResult verifyOfWarps(DotOp op) {
  auto a = dyn_cast<RankedTensorType>(op.getA().getType());
  auto b = cast<RankedTensorType>(op.getB().getType());
  RankedTensorType sum = op.getSumType();
  if (isa<PendingType>(op.getType()))
    return op.emitOpError("of operands in registers gives its sum at once, as ")
           << sum;
  auto sumLayout = cast<MmaAttr>(sum.getEncoding());
  constexpr int64_t pieceBytes = 4;
  const int64_t vector = pieceBytes / bastile::getElementBytes(b);
  auto layout = dyn_cast_or_null<MmaAttr>(a ? a.getEncoding() : Attribute());
  auto rhsLayout = dyn_cast_or_null<MmaRhsAttr>(b.getEncoding());
  if (!layout || layout.getWarps() != sumLayout.getWarps() ||
      layout.getVector() != vector || !rhsLayout ||
      rhsLayout.getVector() != vector)
    return op.emitOpError("multiplies ")
           << op.getA().getType() << " and " << b
           << " from registers; the layouts are '#tile.mma' of the sum's warps "
              "and '#tile.mma_rhs', with pieces of 4 bytes";
  if (op.getContract() != ArrayRef<int64_t>{1, 1})
    return op.emitOpError("contracts the dimensions [")
           << op.getContract() << "] of operands in registers, not [1, 1]";
  return success();
}

RankedTensorType DotOp::getSumType() {
  if (auto pending = dyn_cast<PendingType>(getType()))
    return pending.getTile();
  return cast<RankedTensorType>(getType());
}

void DotOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!isOfWarpgroups())
    return;
  // The product goes on while later ops run.
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

bool DotOp::isOnTensors() {
  return llvm::all_of(
      TypeRange({getA().getType(), getB().getType(), getType()}),
      [](Type type) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return tensor && !tensor.getEncoding();
      });
}

Type DotOp::getFactorType() {
  Type a = getElementTypeOrSelf(getA().getType());
  return a.isF32() ? getElementTypeOrSelf(getB().getType()) : a;
}

Type DotOp::getFactorType(unsigned index) {
  Type own = getElementTypeOrSelf(getOperand(index).getType());
  return own.isF32() ? getFactorType() : own;
}

int64_t DotOp::getContractedDimension(unsigned index) {
  auto type = cast<ShapedType>(getOperand(index).getType());
  return type.getRank() - 2 + getContract()[index];
}

int64_t DotOp::getFreeDimension(unsigned index) {
  auto type = cast<ShapedType>(getOperand(index).getType());
  return type.getRank() - 1 - getContract()[index];
}

static bool mayBeEqual(int64_t lhs, int64_t rhs) {
  return lhs == rhs || ShapedType::isDynamic(lhs) || ShapedType::isDynamic(rhs);
}

/// Checks the dimensions of the batch of `op`, a product of tensors.
static LogicalResult verifyBatch(DotOp op) {
  auto a = cast<RankedTensorType>(op.getA().getType());
  auto b = cast<RankedTensorType>(op.getB().getType());
  RankedTensorType sum = op.getSumType();
  const int64_t extra = sum.getRank() - std::max(a.getRank(), b.getRank());
  if (extra > 0 && llvm::any_of(sum.getShape().take_front(extra),
                                [](int64_t size) { return size != 1; }))
    return op.emitOpError("gives ")
           << sum << ", with dimensions that " << a << " and " << b
           << " do not have; they could be of size 1 alone";
  for (int64_t place = 0, end = std::max(a.getRank(), b.getRank()) - 2;
       place < end; ++place) {
    const int64_t left = bastile::getBatchSize(a, place),
                  right = bastile::getBatchSize(b, place),
                  size = bastile::getBatchSize(sum, place),
                  whole = bastile::getBatchSize(a, b, place);
    const bool fits = left == 1 || right == 1 || mayBeEqual(left, right);
    if (fits && (size == 1 || (whole != 1 && mayBeEqual(size, whole))))
      continue;
    return op.emitOpError("of ")
           << a << " and " << b << " is no " << sum << ": in the batch's "
           << "dimension " << place + 1 << " ahead of the matrices, sizes are "
           << "equal or 1, and the result has that size, or 1 for a sum";
  }
  return success();
}

/// Checks `op`, a product of tensors.
static LogicalResult verifyOnTensors(DotOp op) {
  auto a = cast<RankedTensorType>(op.getA().getType());
  auto b = cast<RankedTensorType>(op.getB().getType());
  RankedTensorType sum = op.getSumType();
  if (op.getAccumulator())
    return op.emitOpError("on tensors adds to nothing; use 'arith.addf'");
  if (op.getColumn() != 0)
    return op.emitOpError("on tensors has all columns of ")
           << b << ", not those from " << op.getColumn() << " on";
  if (a.getRank() < 2 || b.getRank() < 2 || sum.getRank() < 2)
    return op.emitOpError("multiplies ")
           << a << " and " << b << " to " << sum
           << ", of which some has no two dimensions";
  Type element = op.getFactorType();
  for (RankedTensorType factor : {a, b})
    if (!mayMeet(factor.getElementType(), element) &&
        !(factor.getElementType().isF32() &&
          (element.isBF16() || element.isF16())))
      return op.emitOpError("multiplies ")
             << a << " and " << b
             << ", whose element types differ; only float32 is rounded to the "
                "other type, where that is bf16 or f16, and only f8E4M3FN and "
                "f8E5M2 may meet";
  if (!isa<Float64Type, Float32Type>(element) && !isFactor(element))
    return op.emitOpError("multiplies bf16, f16, f32, f64, f8E4M3FN or f8E5M2, "
                          "not ")
           << element;
  Type sumElement =
      element.isF64() ? element : Float32Type::get(op.getContext());
  if (sum.getElementType() != sumElement)
    return op.emitOpError("of ") << element << " sums to " << sumElement
                                 << ", not to " << sum.getElementType();
  auto getSize = [&](unsigned index, int64_t dimension) {
    return cast<RankedTensorType>(op.getOperand(index).getType())
        .getDimSize(dimension);
  };
  if (!mayBeEqual(getSize(0, op.getContractedDimension(0)),
                  getSize(1, op.getContractedDimension(1))))
    return op.emitOpError("sums over dimension ")
           << op.getContractedDimension(0) << " of " << a << " and dimension "
           << op.getContractedDimension(1) << " of " << b
           << ", whose sizes differ";
  ArrayRef<int64_t> matrix = sum.getShape().take_back(2);
  if (!mayBeEqual(matrix[0], getSize(0, op.getFreeDimension(0))) ||
      !mayBeEqual(matrix[1], getSize(1, op.getFreeDimension(1))))
    return op.emitOpError("of ") << a << " and " << b << " over ["
                                 << op.getContract() << "] is no " << sum;
  return verifyBatch(op);
}

/// Checks that `contract`, of `op`, is a dimension of each operand's matrices.
static LogicalResult verifyContract(Operation *op, ArrayRef<int64_t> contract) {
  if (contract.size() == 2 && llvm::all_of(contract, [](int64_t dimension) {
        return dimension == 0 || dimension == 1;
      }))
    return success();
  return op->emitOpError("contracts the dimensions [")
         << contract << "], not one of each operand";
}

LogicalResult DotOp::verify() {
  if (isOnTensors())
    return failure(failed(verifyContract(*this, getContract())) ||
                   failed(verifyOnTensors(*this)));
  auto a = cast<ShapedType>(getA().getType());
  auto b = cast<ShapedType>(getB().getType());
  RankedTensorType sum = getSumType();
  if (failed(verifySum(*this, sum, isOfWarpgroups())))
    return failure();
  if (!isFactor(b.getElementType()))
    return emitOpError("multiplies bf16, f16, f8E4M3FN or f8E5M2, not ")
           << b.getElementType();
  ArrayRef<int64_t> contract = getContract();
  if (failed(verifyContract(*this, contract)))
    return failure();
  if (failed(isOfWarpgroups() ? verifyOfWarpgroups(*this)
                              : verifyOfWarps(*this)))
    return failure();
  const int64_t columns = b.getDimSize(1 - contract[1]);
  const auto column = static_cast<int64_t>(getColumn());
  const bool isWhole = column == 0 && columns == sum.getDimSize(1);
  // Groups of 8 rows of `b` begin where an address can say so.
  constexpr int64_t group = 8;
  const bool isPart = isOfWarpgroups() && contract[1] == 1 && column >= 0 &&
                      column % group == 0 &&
                      column + sum.getDimSize(1) <= columns;
  if (column != 0 && !isPart)
    return emitOpError("sums to ")
           << sum << " from column " << column << " of " << b
           << " on; products of warpgroups along the rows of 'b' may have a "
           << "part of the columns that it has, from a multiple of " << group
           << " on";
  if (!mayMeet(a.getElementType(), b.getElementType()) ||
      a.getDimSize(contract[0]) != b.getDimSize(contract[1]) ||
      a.getDimSize(1 - contract[0]) != sum.getDimSize(0) ||
      (!isWhole && !isPart))
    return emitOpError("of ")
           << a << " and " << b << " over [" << contract << "] is no " << sum;
  if (isOfWarpgroups() &&
      (a.getDimSize(contract[0]) * bastile::getElementBytes(a) % 32 != 0 ||
       sum.getDimSize(1) > 256))
    return emitOpError("sums ")
           << a.getDimSize(contract[0]) << " products for each of "
           << sum.getDimSize(1)
           << " columns; sums are of whole 32 bytes, in at most 256 columns";
  if (Value accumulator = getAccumulator())
    if (accumulator.getType() != getType())
      return emitOpError("adds to ")
             << accumulator.getType() << ", but gives " << getType();
  return success();
}

/// Checks that `indices` are those of a matrix of `memory` and of one of its
/// rows or columns, for `op`; of both, where the other factor is a tile.
static LogicalResult verifyIndices(LoadDotOp op, MemRefType type,
                                   OperandRange indices) {
  const bool isOfTile = isa<RankedTensorType>(op.getA().getType());
  if (type.getRank() >= 2 &&
      static_cast<int64_t>(indices.size()) == type.getRank() - !isOfTile)
    return success();
  return op.emitOpError("has ") << indices.size() << " indices of " << type
                                << ", not those of a matrix and of "
                                << (isOfTile ? "a row and a column of it"
                                             : "one of its rows or columns");
}

/// Checks the left factor of `op`, a tile.
static LogicalResult verifyTile(LoadDotOp op, RankedTensorType a) {
  if (op.getAIndices().empty() && op.getContract()[0] == 1 &&
      a.getRank() == 2 && a.getEncoding() == op.getType().getEncoding() &&
      a.getDimSize(0) == op.getType().getDimSize(0))
    return success();
  return op.emitOpError("multiplies the rows of ")
         << a << " to " << op.getType()
         << "; both have the same rows and layout, the tile has no indices, "
            "and "
            "its dimension 1 is contracted";
}

LogicalResult LoadDotOp::verify() {
  auto a = cast<ShapedType>(getA().getType());
  auto b = cast<MemRefType>(getB().getType());
  if (failed(verifyContract(*this, getContract())))
    return failure();
  if (getType().getRank() != 2)
    return emitOpError("gives ") << getType() << ", which is no tile";
  if (auto tile = dyn_cast<RankedTensorType>(a);
      tile ? failed(verifyTile(*this, tile))
           : failed(verifyIndices(*this, cast<MemRefType>(a), getAIndices())))
    return failure();
  if (failed(verifyIndices(*this, b, getBIndices())))
    return failure();
  Type element = a.getElementType(), sum = getType().getElementType();
  if (!mayMeet(element, b.getElementType()) ||
      (!isFactor(element) && !element.isF32() && !element.isF64()) ||
      !(element.isF64() ? sum.isF64() : sum.isF32()))
    return emitOpError("multiplies ")
           << a << " and " << b << " to " << getType()
           << ": operands are both of bf16, f16, f32, f8E4M3FN or f8E5M2, "
              "summed in f32, or of f64";
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (program && !program.getDimensions())
    return emitOpError("is part of a program without named dimensions");
  for (Value operand : {Value(getA()), Value(getB())})
    if (program && isa<MemRefType>(operand.getType()) &&
        !isa<BlockArgument>(operand))
      return emitOpError("reads ")
             << operand.getType() << ", which is no operand of the program";
  return success();
}

LogicalResult WaitDotsOp::verify() {
  if (getPending() < 0 || getPending() > 7)
    return emitOpError("leaves ")
           << getPending() << " groups, which is not from 0 to 7";
  SmallVector<Type> types;
  for (Value sum : getSums())
    types.push_back(cast<PendingType>(sum.getType()).getTile());
  llvm::append_range(types, getAfter().getTypes());
  if (TypeRange(types) != TypeRange(getResultTypes()))
    return emitOpError("does not return the tiles of its sums and those that "
                       "it comes after");
  return success();
}
