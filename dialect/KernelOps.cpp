//===- KernelOps.cpp - Kernels on tensors ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelSpace.h"
#include "dialect/LaunchedOps.h"
#include "dialect/space/SpaceBuilder.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace bastile::tile;

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type = TypeAttr::get(type);
  state.addRegion();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseLaunched<KernelOp>(parser, result);
}

void KernelOp::print(OpAsmPrinter &printer) { printLaunched(printer, *this); }

/// Checks the operands of `kernel` that give their place in memory to a result:
/// the result must have the same type.
static LogicalResult verifyInPlace(KernelOp kernel) {
  StringRef name = TileDialect::kInPlaceAttrName;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Attribute attribute = kernel.getArgAttr(index, name);
    auto result = dyn_cast_or_null<IntegerAttr>(attribute);
    auto isResult = [&, type = type] {
      return result && result.getValue().ult(kernel.getNumResults()) &&
             kernel.getResultTypes()[result.getInt()] == type;
    };
    if (attribute && !isResult())
      return kernel.emitOpError("argument ")
             << index << " has '" << name << "' " << attribute
             << ", which is the number of no result of type " << type;
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (getBody().empty())
    return emitOpError("has no body");
  if (!getBody().hasOneBlock())
    return emitOpError("has a body of ")
           << getBody().getBlocks().size()
           << " blocks; a kernel is one block of ops on whole tensors";
  if (failed(verifyElements(*this, getArgumentTypes(), "argument")) ||
      failed(verifyElements(*this, getResultTypes(), "result")))
    return failure();
  const KnownAttribute ofArguments[] = {
      {TileDialect::kInPlaceAttrName, /*least=*/0},
      {TileDialect::kFactorAttrName, std::nullopt},
      {TileDialect::kAboveAttrName, std::nullopt, /*isOther=*/true}};
  for (auto [index, type] : llvm::enumerate(getArgumentTypes())) {
    if (!isa<RankedTensorType>(type))
      return emitOpError("argument ")
             << index << " of type " << type
             << " is no tensor; a 'tile.program' has operands in memory";
    if (failed(verifyAttributes(*this, "argument", index, getArgAttrDict(index),
                                ofArguments)))
      return failure();
    Attribute above = getArgAttr(index, TileDialect::kAboveAttrName);
    if (above && !isa<FloatAttr>(above))
      return emitOpError("argument ")
             << index << " has '" << TileDialect::kAboveAttrName << "' "
             << above << ", which is no float";
  }
  const KnownAttribute ofResults[] = {
      {TileDialect::kApproximateAttrName, std::nullopt}};
  for (unsigned index = 0; index < getNumResults(); ++index)
    if (failed(verifyAttributes(*this, "result", index,
                                getResultAttrDict(index), ofResults)))
      return failure();
  for (auto reduce : getBody().front().getOps<ReduceRowsOp>())
    if (reduce.getPartial() &&
        (!reduce->hasOneUse() || !isa<ReturnOp>(*reduce->user_begin())))
      return reduce.emitOpError("is a partial result, which its kernel has to "
                                "return once and use for nothing else");
  if (failed(verifyInPlace(*this)))
    return failure();
  for (BlockArgument argument : getArguments()) {
    auto isOfBands = [](OpOperand &use) {
      return isa<RepeatBandsOp>(use.getOwner()) && use.getOperandNumber() == 0;
    };
    if (llvm::any_of(argument.getUses(), isOfBands) &&
        !llvm::all_of(argument.getUses(), isOfBands))
      return emitOpError("argument ")
             << argument.getArgNumber()
             << " has a row for each band, so it cannot be read for each row";
  }
  return success();
}

/// Each schedule for few rows is for more rows than the one before.
static LogicalResult verifyFewRows(KernelOp kernel) {
  const ArrayRef<int64_t> most =
      kernel.getFewRows().value_or(ArrayRef<int64_t>());
  const ArrayAttr schedules = kernel.getFewRowsSchedulesAttr();
  if (const size_t count = schedules ? schedules.size() : 0;
      most.size() != count)
    return kernel.emitOpError("has ")
           << most.size() << " numbers in 'few_rows', but " << count
           << " in 'few_rows_schedules'; give each schedule the rows that it "
              "serves at most";
  int64_t before = 0;
  for (int64_t rows : most) {
    if (rows <= before)
      return kernel.emitOpError("has ")
             << rows << " in 'few_rows' behind " << before
             << "; each number has to be larger than the one before";
    before = rows;
  }
  if (schedules && !llvm::all_of(schedules, llvm::IsaPred<MatmulAttr>))
    return kernel.emitOpError("has 'few_rows_schedules' ")
           << schedules << ", but only products have such; use '#tile.matmul'";
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyFewRows(*this)))
    return failure();
  for (auto reduce : getBody().front().getOps<ReduceRowsOp>())
    if (reduce.keepsRows() && reduce.getCombinedDimensions().empty())
      return reduce.emitOpError("combines rows over dimensions of size 1 "
                                "alone, which changes nothing; leave it out");
  // The rows that are combined to one come after each other.
  auto combinesSome = [](ReduceRowsOp reduce) { return reduce.keepsRows(); };
  for (auto iota : getBody().front().getOps<IotaOp>())
    if (iota.getOver() &&
        llvm::any_of(getBody().front().getOps<ReduceRowsOp>(), combinesSome))
      return iota.emitOpError("numbers rows in a kernel that combines some of "
                              "them, which goes through them in another order; "
                              "number them in a kernel of its own");
  return bastile::verifySpace(*this);
}
