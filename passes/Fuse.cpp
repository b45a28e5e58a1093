//===- Fuse.cpp - Gather ops into kernels ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every op on row tensors belongs to one group; two ops are of one group when
// one uses the other's result and both walk the same rows, or when both read
// the same row tensor. A group becomes a kernel.
//
// Dynamic sizes of separate tensors are not known to agree, so ops that do not
// meet in a common tensor stay apart even if their types are equal.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/KernelSource.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace bastile {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Row tensors are what kernels walk; row vectors and scalars are recomputed.
bool isRowTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 2;
}

/// The length of the rows that `op` walks: that of its longest row tensor.
int64_t getRowLength(Operation *op) {
  int64_t length = 0;
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                                         llvm::to_vector(op->getResults())))
    if (isRowTensor(value))
      length = std::max(
          length, cast<RankedTensorType>(value.getType()).getShape().back());
  return length;
}

/// `name` as an identifier of PTX: letters, digits, _ and $.
std::string getEntryName(StringRef name) {
  std::string entry = name.str();
  for (char &character : entry)
    if (!llvm::isAlnum(character) && character != '$')
      character = '_';
  if (llvm::isDigit(entry.front()))
    entry.insert(entry.begin(), '_');
  return entry;
}

/// One kernel in the making.
struct Group {
  SetVector<Operation *> ops;
  SetVector<Value> inputs;
  SetVector<Value> outputs;
};

class FunctionFuser {
public:
  FunctionFuser(func::FuncOp func, SymbolTable &symbols)
      : func(func), symbols(symbols) {}

  LogicalResult run();

private:
  LogicalResult collectGroups();
  void addInputs(Group &group, Operation *op);
  tile::KernelOp buildKernel(const Group &group, StringRef name);

  func::FuncOp func;
  SymbolTable &symbols;
  SmallVector<Group> groups;
};

LogicalResult FunctionFuser::collectGroups() {
  // A kernel walks rows of one length, statistics aside: a class of ops knows
  // that length, 1 as long as it has met nothing but statistics.
  llvm::EquivalenceClasses<Operation *> classes;
  DenseMap<Operation *, int64_t> lengths;
  auto join = [&](Operation *lhs, Operation *rhs) {
    int64_t left = lengths.lookup(classes.getLeaderValue(lhs));
    int64_t right = lengths.lookup(classes.getLeaderValue(rhs));
    if (left != right && left != 1 && right != 1)
      return;
    classes.unionSets(lhs, rhs);
    lengths[classes.getLeaderValue(lhs)] = std::max(left, right);
  };
  DenseMap<Value, SmallVector<Operation *>> readers;
  for (Operation &op : func.front().without_terminator()) {
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()) && !isRowTensor(result) &&
          llvm::any_of(op.getOperands(), isRowTensor))
        return op.emitOpError("turns a row tensor into ")
               << result.getType() << ", which kernels cannot do";
    if (llvm::none_of(op.getResults(), isRowTensor))
      continue;
    classes.insert(&op);
    lengths[&op] = getRowLength(&op);
    for (Value operand : op.getOperands()) {
      if (!isRowTensor(operand))
        continue;
      if (Operation *producer = operand.getDefiningOp())
        join(&op, producer);
      SmallVector<Operation *> &others = readers[operand];
      for (Operation *other : others)
        join(&op, other);
      others.push_back(&op);
    }
  }

  llvm::MapVector<Operation *, Group> byLeader;
  for (Operation &op : func.front().without_terminator())
    if (classes.contains(&op))
      byLeader[classes.getLeaderValue(&op)].ops.insert(&op);
  for (auto &entry : byLeader) {
    Operation *leader = entry.first;
    Group &group = entry.second;
    // Adding inputs adds the ops on row vectors that they come from.
    for (Operation *op : llvm::to_vector(group.ops)) {
      addInputs(group, op);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !group.ops.contains(user) &&
                     (classes.contains(user) ||
                      user->hasTrait<OpTrait::IsTerminator>());
            }))
          group.outputs.insert(result);
    }
    if (group.outputs.empty())
      continue;
    if (llvm::none_of(group.inputs, isRowTensor))
      return leader->emitOpError("depends on no row tensor among the "
                                 "arguments, so its rows are unknown");
    groups.push_back(std::move(group));
  }
  return success();
}

/// Adds what `op` reads from outside the group. Ops on row vectors and scalars
/// join the group that needs them.
void FunctionFuser::addInputs(Group &group, Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && group.ops.contains(producer))
      continue;
    if (!producer || isRowTensor(operand)) {
      group.inputs.insert(operand);
      continue;
    }
    addInputs(group, producer);
    group.ops.insert(producer);
  }
}

tile::KernelOp FunctionFuser::buildKernel(const Group &group, StringRef name) {
  OpBuilder builder(func);
  SmallVector<Type> inputTypes(
      ValueRange(group.inputs.getArrayRef()).getTypes());
  SmallVector<Type> outputTypes(
      ValueRange(group.outputs.getArrayRef()).getTypes());
  auto kernel =
      tile::KernelOp::create(builder, func.getLoc(), name,
                             builder.getFunctionType(inputTypes, outputTypes));
  if (auto schedule = func->getAttrOfType<tile::ScheduleAttr>(
          tile::TileDialect::kScheduleAttrName))
    kernel.setScheduleAttr(schedule);

  Block *body = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value input : group.inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
  for (Operation &op : func.front().without_terminator())
    if (group.ops.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> results;
  for (Value output : group.outputs)
    results.push_back(mapping.lookup(output));
  tile::ReturnOp::create(builder, func.getLoc(), results);
  return kernel;
}

LogicalResult FunctionFuser::run() {
  if (failed(verifyKernelSource(func)))
    return failure();
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  if (failed(collectGroups()))
    return failure();

  // A group may only be launched after those it reads from.
  OpBuilder builder(returnOp);
  DenseMap<Value, Value> launched;
  SmallVector<Group *> pending =
      llvm::map_to_vector(groups, [](Group &group) { return &group; });
  unsigned index = 0;
  while (!pending.empty()) {
    auto *ready = llvm::find_if(pending, [&](Group *group) {
      return llvm::all_of(group->inputs, [&](Value input) {
        return isa<BlockArgument>(input) || launched.contains(input);
      });
    });
    if (ready == pending.end())
      return func.emitOpError(
          "has chains of different row lengths that need each other's values "
          "both ways; split the function");
    Group &group = **ready;
    std::string name = getEntryName(func.getName()) + "_kernel";
    if (groups.size() > 1)
      name += std::to_string(index++);
    tile::KernelOp kernel = buildKernel(group, name);
    symbols.insert(kernel);
    SmallVector<Value> operands =
        llvm::map_to_vector(group.inputs, [&](Value input) {
          auto it = launched.find(input);
          return it == launched.end() ? input : it->second;
        });
    auto launch = tile::LaunchOp::create(
        builder, func.getLoc(), kernel.getResultTypes(),
        builder.getArrayAttr(FlatSymbolRefAttr::get(kernel.getSymNameAttr())),
        operands);
    for (auto [output, result] :
         llvm::zip_equal(group.outputs, launch.getResults()))
      launched[output] = result;
    pending.erase(ready);
  }

  for (OpOperand &operand : returnOp->getOpOperands())
    operand.set(launched.lookup(operand.get()));
  SmallVector<Operation *> fused;
  for (Operation &op : func.front().without_terminator())
    if (!isa<tile::LaunchOp>(op))
      fused.push_back(&op);
  for (Operation *op : llvm::reverse(fused))
    op->erase();
  return success();
}

struct FusePass : public bastile::impl::FuseBase<FusePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module.getOps<func::FuncOp>().empty()) {
      module.emitError("there is no function to compile");
      return signalPassFailure();
    }
    for (Operation &op : *module.getBody())
      if (!isa<func::FuncOp>(op)) {
        op.emitOpError("cannot be compiled; only 'func.func' can");
        return signalPassFailure();
      }
    SymbolTable symbols(module);
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (failed(FunctionFuser(func, symbols).run()))
        return signalPassFailure();
  }
};

} // namespace
