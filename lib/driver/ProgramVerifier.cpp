//===- ProgramVerifier.cpp - Modules of programs given --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/ProgramVerifier.h"

#include "dialect/OperandMemory.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace bastile;

/// What the operand of `program` at `position` says of dimensions.
static Attribute getDimensions(tile::ProgramOp program, unsigned position) {
  if (DictionaryAttr counters = program.getArgCounters(position))
    return counters;
  return program.getArgDimensions(position);
}

/// Checks that nothing but `launch`, of `program`, uses its counters: they are
/// memory that the runtime sets to 0 ahead of it.
static LogicalResult verifyCounters(tile::LaunchOp launch,
                                    tile::ProgramOp program) {
  unsigned position = program.getNumSizes();
  for (size_t index = 0; index < launch.getInputs().size(); ++index)
    if (program.getArgCounters(position++))
      return launch.emitOpError("takes operand ")
             << index << " for counters, which have to be a result";
  for (OpResult result : launch.getResults())
    if (program.getArgCounters(position++) && !result.use_empty())
      return launch.emitOpError("has counters as result ")
             << result.getResultNumber()
             << ", which nothing else may use, nor return";
  return success();
}

/// Checks that each dimension of `program`, of `launch`, is that of an operand,
/// whose size it takes.
static LogicalResult verifySizes(tile::LaunchOp launch,
                                 tile::ProgramOp program) {
  const std::optional<ArrayAttr> dimensions = program.getDimensions();
  if (!dimensions)
    return success();
  for (Attribute name : *dimensions) {
    auto hasName = [&](unsigned position) {
      ArrayAttr names = program.getArgDimensions(position);
      return names && llvm::is_contained(names, name);
    };
    if (llvm::none_of(llvm::seq(program.getNumArguments()), hasName))
      return launch.emitOpError("is of @")
             << program.getSymName() << ", whose dimension " << name
             << " no operand has, so that its size is unknown";
  }
  return success();
}

/// Checks that each program of `launch` is over the dimensions of the first.
static LogicalResult verifyVariants(tile::LaunchOp launch,
                                    const SymbolTable &symbols) {
  tile::ProgramOp first;
  for (StringRef name : launch.getNames()) {
    auto program = symbols.lookup<tile::ProgramOp>(name);
    if (!first)
      first = program;
    if (program.getDimensions() != first.getDimensions())
      return launch.emitOpError("has variants with other dimensions: @")
             << first.getSymName() << " has " << *first.getDimensions() << ", @"
             << program.getSymName() << " has " << *program.getDimensions();
    for (unsigned position = first.getNumSizes();
         position < first.getNumArguments(); ++position)
      if (getDimensions(program, position) != getDimensions(first, position))
        return launch.emitOpError("has variants with other dimensions: "
                                  "argument ")
               << position << " of @" << first.getSymName() << " has "
               << getDimensions(first, position) << ", that of @"
               << program.getSymName() << " has "
               << getDimensions(program, position);
  }
  if (failed(verifySizes(launch, first)))
    return failure();
  return verifyCounters(launch, first);
}

static LogicalResult verifyFunction(func::FuncOp func,
                                    const SymbolTable &symbols) {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitOpError("beside programs must have a body of one block");
  for (Operation &op : func.front().without_terminator()) {
    auto launch = dyn_cast<tile::LaunchOp>(op);
    if (tile::isPlaceOfOperands(&op))
      continue;
    if (!launch)
      return op.emitOpError("cannot stand beside programs: their functions "
                            "hold launches of them and nothing else");
    if (failed(verifyVariants(launch, symbols)))
      return failure();
  }
  DenseSet<Value> returned;
  Operation *end = func.front().getTerminator();
  for (auto [index, value] : llvm::enumerate(end->getOperands())) {
    if (!value.getDefiningOp<tile::LaunchOp>() &&
        !value.getDefiningOp<tile::JoinOp>())
      return end->emitOpError("returns an argument of the function as result ")
             << index << "; results are those of launches";
    if (!returned.insert(value).second)
      return end->emitOpError("returns a value twice, again as result ")
             << index;
  }
  return success();
}

/// Checks that `program` can be launched: its sizes and operands are known by
/// the names of dimensions.
static LogicalResult verifyProgram(tile::ProgramOp program) {
  if (!program.getDimensions())
    return program.emitOpError("has no 'dimensions'; only the pass 'tile' "
                               "makes programs over rows, from functions");
  for (BlockArgument operand :
       program.getArguments().drop_front(program.getNumSizes()))
    if (!isa<MemRefType, tile::TensorMapType>(operand.getType()))
      return program.emitOpError("argument ")
             << operand.getArgNumber() << " is a " << operand.getType()
             << ", which is no operand in memory";
  return success();
}

LogicalResult bastile::verifyPrograms(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    auto program = dyn_cast<tile::ProgramOp>(op);
    if (!program && !isa<func::FuncOp>(op))
      return op.emitOpError("cannot be compiled beside programs; only "
                            "'func.func' and 'tile.program' can");
    if (program && failed(verifyProgram(program)))
      return failure();
  }
  const SymbolTable symbols(module);
  for (auto func : module.getOps<func::FuncOp>())
    if (failed(verifyFunction(func, symbols)))
      return failure();
  return success();
}
