//===- KernelOps.cpp - Kernels, launches and tiles ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/ElementBytes.h"
#include "dialect/RowLength.h"
#include "dialect/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile::tile;

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addRegion();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

/// Checks that operands in memory have elements of whole bytes, and rows of a
/// known length.
static LogicalResult verifyElements(KernelOp kernel, TypeRange types,
                                    StringRef what) {
  for (auto [index, type] : llvm::enumerate(types)) {
    Type element = getElementTypeOrSelf(type);
    if (isa<ShapedType>(type) && !element.isIntOrFloat())
      return kernel.emitOpError(what)
             << " " << index << " of type " << type
             << " has neither integers nor floats as elements";
    auto tensor = dyn_cast<TensorType>(type);
    if (tensor && (!tensor.hasRank() || tensor.getRank() == 0 ||
                   tensor.getShape().back() < 1 ||
                   tensor.getShape().back() > bastile::maxRowLength))
      return kernel.emitOpError(what)
             << " " << index << " of type " << type
             << " has no static row length from 1 to " << bastile::maxRowLength;
    if (isa<ShapedType>(type) && element.getIntOrFloatBitWidth() % 8 != 0)
      return kernel.emitOpError(what)
             << " " << index << " of type " << type
             << " cannot lie in memory, where elements have whole bytes; "
                "compute it in the kernels that need it";
  }
  return success();
}

/// Checks the operands of `kernel`, which is on whole tensors, that give their
/// place in memory to a result: the result must have the same type.
static LogicalResult verifyInPlace(KernelOp kernel) {
  StringRef name = TileDialect::kInPlaceAttrName;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Attribute attribute = kernel.getArgAttr(index, name);
    auto result = dyn_cast_or_null<IntegerAttr>(attribute);
    // In a narrower type, a large number's first digit would be taken for its
    // sign.
    auto isResult = [&, type = type] {
      return result &&
             (result.getType().isIndex() || result.getType().isInteger(64)) &&
             result.getValue().ult(kernel.getNumResults()) &&
             kernel.getResultTypes()[result.getInt()] == type;
    };
    if (attribute && !isResult())
      return kernel.emitOpError("argument ")
             << index << " has '" << name << "' " << attribute
             << ", which is the number of no result of type " << type;
  }
  return success();
}

/// Checks `kernel`, which is on whole tensors and not tiled.
static LogicalResult verifyOnTensors(KernelOp kernel) {
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (!isa<RankedTensorType>(type))
      return kernel.emitOpError("is not tiled, as it has no 'leading', and "
                                "argument ")
             << index << " of type " << type << " is no tensor";
  for (auto reduce : kernel.getBody().front().getOps<ReduceRowsOp>())
    if (reduce.getPartial() &&
        (!reduce->hasOneUse() || !isa<ReturnOp>(*reduce->user_begin())))
      return reduce.emitOpError("is a partial result, which its kernel has to "
                                "return once and use for nothing else");
  if (failed(verifyInPlace(kernel)))
    return failure();
  for (BlockArgument argument : kernel.getArguments()) {
    auto isOfBands = [](OpOperand &use) {
      return isa<RepeatBandsOp>(use.getOwner()) && use.getOperandNumber() == 0;
    };
    if (llvm::any_of(argument.getUses(), isOfBands) &&
        !llvm::all_of(argument.getUses(), isOfBands))
      return kernel.emitOpError("argument ")
             << argument.getArgNumber()
             << " has a row for each band, so it cannot be read for each row";
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (getBody().empty())
    return emitOpError("has no body");
  if (failed(verifyElements(*this, getArgumentTypes(), "argument")) ||
      failed(verifyElements(*this, getResultTypes(), "result")))
    return failure();
  if (!isTiled())
    return verifyOnTensors(*this);
  if (getNumResults() != 0)
    return emitOpError("is tiled and must return nothing: results are operands "
                       "in memory");
  if (getNumSpaces() < 1)
    return emitOpError("has ")
           << getNumSpaces() << " row spaces; a kernel has one or more";
  int64_t leading = *getLeading(), spaces = getNumSpaces();
  if (leading < 0 || leading > getNumArguments() / spaces) {
    InFlightDiagnostic error = emitOpError("has ")
                               << leading << " leading dimensions";
    if (spaces > 1)
      error << " in each of " << spaces << " row spaces";
    return error << " but only " << getNumArguments() << " arguments";
  }
  for (BlockArgument size : getArguments().take_front(getNumSizes()))
    if (!size.getType().isIndex())
      return emitOpError("argument ")
             << size.getArgNumber()
             << " is the size of a leading dimension and must be an index, not "
             << size.getType();
  for (unsigned position = 0; position < getNumArguments(); ++position)
    if (int64_t space = getSpace(position); space < 0 || space >= spaces)
      return emitOpError("argument ") << position << " is of row space "
                                      << space << ", but there are " << spaces;
  if (std::optional<ArrayRef<int64_t>> combines = getCombines()) {
    if (spaces != 2)
      return emitOpError("combines rows, which takes two row spaces, but has ")
             << spaces;
    for (auto [index, dimension] : llvm::enumerate(*combines))
      if (dimension < (index ? (*combines)[index - 1] + 1 : 0) ||
          dimension >= leading)
        return emitOpError("combines rows over dimension ")
               << dimension << ", which does not ascend below the " << leading
               << " leading ones";
  }
  return success();
}

int64_t KernelOp::getSpace(unsigned position) {
  auto space =
      getArgAttrOfType<IntegerAttr>(position, TileDialect::kSpaceAttrName);
  return space ? space.getInt() : 0;
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getKernels().empty())
    return emitOpError("names no kernel");
  if ((*this)->getParentOfType<KernelOp>())
    return emitOpError("cannot be part of a kernel");
  for (Attribute symbol : getKernels()) {
    auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(
        *this, cast<FlatSymbolRefAttr>(symbol));
    // A kernel that has been lowered is a function of the target's dialect.
    if (!kernel) {
      if (symbols.lookupNearestSymbolFrom(*this,
                                          cast<FlatSymbolRefAttr>(symbol)))
        continue;
      return emitOpError("refers to ") << symbol << ", which does not exist";
    }
    if (kernel.isTiled())
      continue;
    auto type =
        FunctionType::get(getContext(), getOperandTypes(), getResultTypes());
    if (kernel.getFunctionType() != type)
      return emitOpError("of type ")
             << type << " does not fit kernel " << symbol << " of type "
             << kernel.getFunctionType();
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  if (getOperandTypes() != kernel.getResultTypes())
    return emitOpError("returns ")
           << getOperandTypes() << " from a kernel of type "
           << kernel.getFunctionType();
  return success();
}
