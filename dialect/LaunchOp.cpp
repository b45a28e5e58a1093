//===- LaunchOp.cpp - Launches of kernels and programs --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/OperandMemory.h"

using namespace mlir;
using namespace bastile::tile;

/// Checks that `launch` has the type of `kernel` and names no other.
static LogicalResult verifyKernel(LaunchOp launch, KernelOp kernel) {
  auto type = FunctionType::get(launch.getContext(), launch.getOperandTypes(),
                                launch.getResultTypes());
  if (kernel.getFunctionType() != type)
    return launch.emitOpError("of type ")
           << type << " does not fit kernel @" << kernel.getSymName()
           << " of type " << kernel.getFunctionType();
  if (launch.getKernels().size() > 1)
    return launch.emitOpError("names kernel @")
           << kernel.getSymName()
           << " and others; only programs are variants of each other";
  return success();
}

/// Checks the shapes of the operands and results of `launch`, which runs
/// `program` over named dimensions: the sizes of results are those of inputs.
static LogicalResult verifyNamedLaunch(LaunchOp launch, ProgramOp program) {
  SmallVector<Type> types(launch->getOperandTypes());
  const size_t inputs = types.size();
  llvm::append_range(types, launch->getResultTypes());
  DenseSet<Attribute> known;
  for (auto [index, type] : llvm::enumerate(types)) {
    auto position = static_cast<unsigned>(program.getNumSizes() + index);
    MemRefType memory = getMemoryType(program.getArgumentTypes()[position]);
    if (memory.getShape() != cast<RankedTensorType>(type).getShape())
      return launch.emitOpError("has a ")
             << type << " where program @" << program.getSymName()
             << " takes a " << memory;
    SmallVector<Attribute> dimensions;
    if (DictionaryAttr parts = program.getArgCounters(position))
      for (NamedAttribute part : parts)
        dimensions.push_back(part.getName());
    else
      llvm::append_range(dimensions, program.getArgDimensions(position));
    if (index < inputs) {
      known.insert(dimensions.begin(), dimensions.end());
      continue;
    }
    for (Attribute dimension : dimensions)
      if (isa<StringAttr>(dimension) && !known.contains(dimension))
        return launch.emitOpError("has a result with dimension ")
               << dimension << " of program @" << program.getSymName()
               << ", which no input has";
  }
  return success();
}

/// Checks that `program` takes the operands and results of `launch` in memory,
/// unless its operands have been lowered to addresses.
static LogicalResult verifyProgram(LaunchOp launch, ProgramOp program) {
  auto operands = program.getArgumentTypes().drop_front(program.getNumSizes());
  if (!llvm::all_of(operands, getMemoryType))
    return success();
  SmallVector<Type> types(launch->getOperandTypes());
  llvm::append_range(types, launch->getResultTypes());
  if (operands.size() != types.size())
    return launch.emitOpError("has ")
           << types.size() << " operands and results, but program @"
           << program.getSymName() << " takes " << operands.size()
           << " in memory";
  for (auto [operand, type] : llvm::zip_equal(operands, types)) {
    auto memory = getMemoryType(operand);
    auto tensor = cast<RankedTensorType>(type);
    bool fits = memory.getElementType() == tensor.getElementType() &&
                memory.getRank() > 0 && tensor.getRank() > 0 &&
                memory.getShape().back() == tensor.getShape().back();
    if (!fits)
      return launch.emitOpError("has a ")
             << type << " where program @" << program.getSymName()
             << " takes a " << operand;
  }
  return program.getDimensions() ? verifyNamedLaunch(launch, program)
                                 : success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getKernels().empty())
    return emitOpError("names no kernel");
  if ((*this)->getParentOfType<KernelOp>() ||
      (*this)->getParentOfType<ProgramOp>())
    return emitOpError("cannot be part of a kernel");
  for (auto symbol : getKernels().getAsRange<FlatSymbolRefAttr>()) {
    Operation *op = symbols.lookupNearestSymbolFrom(*this, symbol);
    if (!op)
      return emitOpError("refers to ") << symbol << ", which does not exist";
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      if (failed(verifyKernel(*this, kernel)))
        return failure();
    } else if (auto program = dyn_cast<ProgramOp>(op)) {
      if (failed(verifyProgram(*this, program)))
        return failure();
    } else {
      return emitOpError("refers to ")
             << symbol << ", which is neither a kernel nor a program";
    }
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  auto function = cast<FunctionOpInterface>((*this)->getParentOp());
  if (getOperandTypes() != function.getResultTypes())
    return emitOpError("returns ")
           << getOperandTypes() << " from a "
           << (isa<KernelOp>(function) ? "kernel" : "program") << " of type "
           << function.getFunctionType();
  return success();
}
