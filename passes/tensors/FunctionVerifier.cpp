//===- FunctionVerifier.cpp - What a function may hold --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/FunctionVerifier.h"

#include "bastile/runtime/TensorView.h"
#include "dialect/Dimensions.h"
#include "dialect/RowLength.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/analysis/RowClass.h"

using namespace mlir;
using namespace bastile;

static bool isIntegerOf(Type elementType, ArrayRef<unsigned> widths) {
  auto integer = dyn_cast<IntegerType>(elementType);
  return integer && integer.isSignless() &&
         llvm::is_contained(widths, integer.getWidth());
}

static constexpr StringLiteral kOperandTypes =
    "f8E4M3FN, f8E5M2, f16, bf16, f32, f64, i8, i32 or i64";

bool bastile::isOperandType(Type elementType) {
  return isa<Float8E4M3FNType, Float8E5M2Type, Float16Type, BFloat16Type,
             Float32Type, Float64Type>(elementType) ||
         isIntegerOf(elementType, {8, 32, 64});
}

/// Comparisons and other integers may also stand between ops.
static bool isComputedType(Type elementType) {
  return isOperandType(elementType) || isIntegerOf(elementType, {1, 16});
}

/// Whether `type` is that of rows: a tensor whose last dimension is static.
static bool hasRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() >= 1 && !tensor.getEncoding() &&
         tensor.getShape().back() > 0 &&
         tensor.getShape().back() <= maxRowLength &&
         (tensor.getRank() > 1 || tensor.hasStaticShape());
}

/// Whether `value` is a product, or computed element by element from one.
static bool isBehindProduct(Value value) {
  llvm::SetVector<Operation *> ops;
  auto add = [&](Value computed) {
    if (Operation *op = computed.getDefiningOp())
      ops.insert(op);
  };
  add(value);
  for (size_t next = 0; next < ops.size(); ++next) {
    if (isa<tile::DotOp>(ops[next]))
      return true;
    if (OpTrait::hasElementwiseMappableTraits(ops[next]))
      llvm::for_each(ops[next]->getOperands(), add);
  }
  return false;
}

/// Whether whole rows of `value` are in memory before a kernel reads some:
/// those of arguments, of products, which no kernel takes apart that computes
/// them, and of what that kernel computes of them.
static bool isInMemory(Value value) {
  return isa<BlockArgument>(value) || isBehindProduct(value);
}

/// Whether `type` is that of rows whose length only a call knows, which
/// products make.
static bool hasDynamicRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 1 && !tensor.getEncoding() &&
         ShapedType::isDynamic(tensor.getShape().back());
}

static LogicalResult verifyArgument(BlockArgument argument) {
  Type type = argument.getType();
  // Op results have no higher rank than what they are computed from.
  if (auto tensor = dyn_cast<RankedTensorType>(type);
      tensor && tensor.getRank() > runtime::maxRank)
    return emitError(argument.getLoc())
           << "argument " << argument.getArgNumber() << " of type " << type
           << " has more than " << runtime::maxRank
           << " dimensions; pass a view with some of them merged";
  if ((hasRows(type) || hasDynamicRows(type)) &&
      isOperandType(getElementTypeOrSelf(type)))
    return success();
  InFlightDiagnostic error = emitError(argument.getLoc())
                             << "argument " << argument.getArgNumber()
                             << " of type " << type
                             << " must be a row tensor or row vector of "
                             << kOperandTypes << " with a row length from 1 to "
                             << maxRowLength << ", which is static in a vector";
  if (isOperandType(type))
    error << "; pass one number as " << RankedTensorType::get({1}, type);
  return error;
}

static LogicalResult verifyOp(Operation &op) {
  // These elementwise ops exist on no target.
  if (isa<math::FPowIOp>(op))
    return op.emitOpError(
        "cannot be part of a kernel; convert the exponent and use 'math.powf'");
  if (isa<math::IPowIOp>(op))
    return op.emitOpError("cannot be part of a kernel; multiply, or convert "
                          "both operands and use 'math.powf'");
  if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
    return op.emitOpError("cannot be part of a kernel; multiply by the scale "
                          "before or after a cast");
  // Scalars come from constants, and any op without effects may compute them.
  bool isTileOp =
      isa<tile::BroadcastOp, tile::ReduceOp, tile::ReduceRowsOp, tile::SplitOp,
          tile::JoinOp, tile::IotaOp, tile::ReduceBandsOp, tile::PackBandsOp,
          tile::RepeatBandsOp, tile::DotOp, tile::PieceOp>(op);
  // Pieces of rows are read from memory and written to memory.
  if (auto split = dyn_cast<tile::SplitOp>(op);
      split && !isInMemory(split.getInput()))
    return op.emitOpError("splits rows that are computed; run the pass "
                          "'split-rows' first");
  if (isa<tile::JoinOp>(op) && llvm::any_of(op.getUsers(), [](Operation *user) {
        return !isa<func::ReturnOp, tile::DotOp, tile::PieceOp>(user);
      }))
    return op.emitOpError("joins rows that are computed with; run the pass "
                          "'split-rows' first");
  if (isa<tile::PieceOp>(op) &&
      !llvm::all_of(op.getUsers(), llvm::IsaPred<tile::DotOp>))
    return op.emitOpError("is computed with; only factors of products are "
                          "pieces, and 'tile.split' takes rows apart");
  bool isElementwise = OpTrait::hasElementwiseMappableTraits(&op) &&
                       isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
                       op.getNumResults() == 1;
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!isTileOp && !isElementwise && !constant)
    return op.emitOpError("cannot be part of a kernel");
  Type type = op.getResult(0).getType();
  if (constant && isa<TensorType>(type) &&
      !isa<SplatElementsAttr>(constant.getValue()))
    return op.emitOpError("has elements that differ; pass such a tensor as an "
                          "argument");
  bool isScalar = type.isIntOrIndexOrFloat();
  if ((!isScalar && !hasRows(type) && !hasDynamicRows(type)) ||
      (!type.isIndex() && !isComputedType(getElementTypeOrSelf(type))))
    return op.emitOpError("result of type ") << type << " cannot be computed";
  return success();
}

LogicalResult bastile::verifyOnlyFunctions(ModuleOp module) {
  if (module.getOps<func::FuncOp>().empty())
    return module.emitError("there is no function to compile");
  for (Operation &op : *module.getBody())
    if (!isa<func::FuncOp>(op))
      return op.emitOpError("cannot be compiled; only 'func.func' can");
  return success();
}

static LogicalResult verifyResult(func::ReturnOp returnOp, unsigned index) {
  Value value = returnOp.getOperand(index);
  Type type = value.getType();
  auto error = [&] {
    return returnOp.emitOpError("result ")
           << index << " of type " << type << " ";
  };
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0)
    return error() << "is neither a row tensor nor a row vector";
  if (!isOperandType(tensor.getElementType()))
    return error() << "does not hold " << kOperandTypes;
  return success();
}

/// Checks that each result that may take an argument's memory has an argument
/// of its type to itself.
static LogicalResult verifyInPlace(func::FuncOp func) {
  DenseSet<uint64_t> taken;
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    StringRef name = tile::TileDialect::kInPlaceAttrName;
    Attribute attribute = func.getResultAttr(index, name);
    if (!attribute)
      continue;
    auto error = [&, index = index] {
      return func.emitOpError("result ")
             << index << " has '" << name << "' " << attribute << ", ";
    };
    auto number = dyn_cast<IntegerAttr>(attribute);
    // In a narrower integer, the highest bit of the number would be its sign.
    if (!number ||
        !(number.getType().isIndex() || number.getType().isInteger(64)) ||
        number.getValue().uge(func.getNumArguments()))
      return error() << "which is the number of no argument";
    uint64_t argument = number.getValue().getZExtValue();
    if (func.getArgumentTypes()[argument] != type)
      return error() << "but is a " << type << ", and that argument a "
                     << func.getArgumentTypes()[argument];
    if (!taken.insert(argument).second)
      return error() << "which another result has as well";
  }
  return success();
}

/// The attributes of this dialect that a function may have. Others are errors,
/// so that a misspelled one does not go unnoticed.
static LogicalResult verifyAttributes(func::FuncOp func) {
  for (NamedAttribute attribute : func->getDiscardableAttrs()) {
    if (!attribute.getName().getValue().starts_with("tile."))
      continue;
    if (attribute.getName() == tile::TileDialect::kBackwardAttrName)
      continue;
    if (attribute.getName() != tile::TileDialect::kScheduleAttrName)
      return func.emitOpError("has the unknown attribute '")
             << attribute.getName().getValue() << "'";
    // A launch of a program that is there has no fields to choose.
    if (!isa<tile::ScheduleInterface>(attribute.getValue()) ||
        isa<tile::LaunchAttr>(attribute.getValue()))
      return func.emitOpError("attribute '")
             << attribute.getName().getValue()
             << "' must be the schedule of a kernel, such as #tile.rows, but "
                "is "
             << attribute.getValue();
  }
  return success();
}

LogicalResult bastile::verifySignature(func::FuncOp func) {
  if (func.isExternal())
    return func.emitOpError("has no body to compile");
  if (failed(verifyAttributes(func)))
    return failure();
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("must be a single block of straight-line code");
  if (func.getNumResults() == 0)
    return func.emitOpError("returns nothing, so there is nothing to compute");
  for (BlockArgument argument : func.getArguments())
    if (failed(verifyArgument(argument)))
      return failure();
  if (failed(verifyDimensionNames(func)))
    return failure();
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  for (unsigned index = 0; index < returnOp.getNumOperands(); ++index)
    if (failed(verifyResult(returnOp, index)))
      return failure();
  return verifyInPlace(func);
}

LogicalResult bastile::verifyFunction(func::FuncOp func) {
  if (failed(verifySignature(func)))
    return failure();
  for (Operation &op : func.front().without_terminator())
    if (failed(verifyOp(op)))
      return failure();
  return success();
}
