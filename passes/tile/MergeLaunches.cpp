//===- MergeLaunches.cpp - Several kernels in one launch ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A launch costs as much as some hundred rows. Kernels that read the same
// operand at about the same time, such as the angles of query and key, share
// one launch, and the second read of the operand comes from the cache.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bastile {
#define GEN_PASS_DEF_MERGELAUNCHES
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// A launch and the programs of its kernel's variants.
struct Candidate {
  tile::LaunchOp launch;
  SmallVector<tile::ProgramOp> variants;
};

/// Builds the program of one variant of a merged kernel.
class ProgramMerger {
public:
  /// Merges the `variant`-th programs of `members`; the body of each gets a row
  /// space of its own.
  ProgramMerger(ArrayRef<Candidate> members, size_t variant)
      : members(members), variant(variant),
        builder(getMember(0).getLoc(), getMember(0)),
        positions(members.size()) {}

  tile::ProgramOp run();

private:
  tile::ProgramOp getMember(size_t space) const {
    return members[space].variants[variant];
  }
  void addArguments(size_t space, unsigned count);
  void createProgram();
  Value getProgramCount(size_t space);
  void cloneBody(size_t space, Value program);

  ArrayRef<Candidate> members;
  size_t variant;
  ImplicitLocOpBuilder builder;
  tile::ProgramOp merged;
  SmallVector<Type> types;
  SmallVector<Attribute> marks;
  /// Where the arguments of each program are among those of the merged one.
  SmallVector<SmallVector<unsigned>> positions;
};

/// Takes over the next `count` arguments of the program of row space `space`.
void ProgramMerger::addArguments(size_t space, unsigned count) {
  tile::ProgramOp member = getMember(space);
  while (count-- > 0) {
    unsigned position = positions[space].size();
    positions[space].push_back(types.size());
    types.push_back(member.getArgumentTypes()[position]);
    NamedAttrList mark(member.getArgAttrDict(position));
    auto memref = dyn_cast<MemRefType>(types.back());
    if (space > 0 && memref && memref.getRank() > 1)
      mark.set(tile::ProgramOp::kSpaceAttrName,
               builder.getI64IntegerAttr(space));
    marks.push_back(mark.getDictionary(builder.getContext()));
  }
}

void ProgramMerger::createProgram() {
  for (size_t space = 0; space < members.size(); ++space)
    addArguments(space, getMember(space).getLeading());
  for (auto [space, member] : llvm::enumerate(members))
    addArguments(space, tile::LaunchOp(member.launch).getInputs().size());
  for (auto [space, member] : llvm::enumerate(members))
    addArguments(space, tile::LaunchOp(member.launch)->getNumResults());

  tile::ProgramOp first = getMember(0);
  merged = tile::ProgramOp::create(builder, first.getSymName(),
                                   builder.getFunctionType(types, {}),
                                   first.getLeading(), first.getSchedule());
  merged.setColumnBlocksAttr(first.getColumnBlocksAttr());
  merged.setSpaces(members.size());
  merged.setArgAttrsAttr(builder.getArrayAttr(marks));
  SmallVector<StringRef> names;
  for (size_t space = 1; space < members.size(); ++space)
    names.push_back(getMember(space).getSymName());
  merged.setMergedAttr(builder.getStrArrayAttr(names));
  Block *body = builder.createBlock(&merged.getBody());
  for (Type type : types)
    body->addArgument(type, builder.getLoc());
}

/// Computes how many programs the rows of row space `space` take.
Value ProgramMerger::getProgramCount(size_t space) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  };
  Value count = buildRowCount(builder, builder.getLoc(), merged, space);
  const int64_t rows = merged.getRowsPerProgram();
  if (rows > 1)
    count = arith::CeilDivUIOp::create(builder, count, constant(rows));
  int64_t columnBlocks = merged.getColumnBlocks();
  if (columnBlocks > 1)
    count = arith::MulIOp::create(builder, count, constant(columnBlocks));
  return count;
}

void ProgramMerger::cloneBody(size_t space, Value program) {
  Block &source = getMember(space).getBody().front();
  IRMapping mapping;
  for (auto [argument, position] :
       llvm::zip_equal(source.getArguments(), positions[space]))
    mapping.map(argument, merged.getArgument(position));
  auto adapt = [&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      load.setSpace(space);
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      store.setSpace(space);
    else if (auto misalignment = dyn_cast<tile::MisalignmentOp>(op))
      misalignment.setSpace(space);
    else if (auto copy = dyn_cast<tile::CopyAheadOp>(op))
      copy.setSpace(space);
    else if (isa<tile::ProgramIdOp>(op))
      op->replaceAllUsesWith(ValueRange(program));
  };
  for (Operation &op : source.without_terminator()) {
    if (isa<tile::ProgramIdOp>(op))
      mapping.map(op.getResult(0), program);
    else
      builder.clone(op, mapping)->walk(adapt);
  }
}

tile::ProgramOp ProgramMerger::run() {
  createProgram();
  Value program = tile::ProgramIdOp::create(builder);
  tile::ReturnOp end = tile::ReturnOp::create(builder, ValueRange());
  builder.setInsertionPoint(end);
  size_t last = members.size() - 1;
  for (size_t space = 0; space < last; ++space) {
    Value count = getProgramCount(space);
    // All threads of a block take the same branch, so that they meet at its
    // barriers.
    Value isInSpace = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                            program, count);
    auto branch =
        scf::IfOp::create(builder, isInSpace, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    cloneBody(space, program);
    builder.setInsertionPointToStart(branch.elseBlock());
    program = arith::SubIOp::create(builder, program, count);
  }
  cloneBody(last, program);
  return merged;
}

/// How many launches name a kernel.
using LaunchCounts = DenseMap<Attribute, unsigned>;

/// Merges the launches of one function.
class LaunchMerger {
public:
  LaunchMerger(func::FuncOp func, SymbolTable &symbols,
               const LaunchCounts &counts)
      : func(func), symbols(symbols), counts(counts) {}

  void run();

private:
  bool overwritesArguments(tile::LaunchOp launch);
  std::optional<Candidate> getCandidate(tile::LaunchOp launch);
  bool moveNeeds(tile::LaunchOp launch, ArrayRef<Candidate> group);
  void merge(ArrayRef<Candidate> group);

  func::FuncOp func;
  SymbolTable &symbols;
  const LaunchCounts &counts;
};

/// Whether `program` can run in one launch with that of another kernel: it has
/// one group of rows, takes no sizes but theirs and writes nothing but those
/// rows.
bool isMergeable(tile::ProgramOp program) {
  tile::ScheduleInterface schedule = program.getSchedule();
  if (schedule.getPersistent() != 0 || schedule.getBlocks() > 1 ||
      program.getRowPrograms() || program.getSpaces() > 1 ||
      program.getUnmergedSizes() || program.getBand())
    return false;
  for (unsigned position = 0; position < program.getNumArguments(); ++position)
    if (program.isArgPartial(position) || program.getArgBand(position))
      return false;
  return true;
}

bool haveSameShape(tile::ProgramOp lhs, tile::ProgramOp rhs) {
  return lhs.getSchedule() == rhs.getSchedule() &&
         lhs.getLeading() == rhs.getLeading() &&
         lhs.getColumnBlocks() == rhs.getColumnBlocks();
}

bool haveSameShapes(const Candidate &lhs, const Candidate &rhs) {
  return lhs.variants.size() == rhs.variants.size() &&
         llvm::all_of(llvm::zip(lhs.variants, rhs.variants), [](auto pair) {
           return haveSameShape(std::get<0>(pair), std::get<1>(pair));
         });
}

/// Whether results of `launch` take the memory of arguments of the function,
/// which launches before it may read.
bool LaunchMerger::overwritesArguments(tile::LaunchOp launch) {
  return llvm::any_of(launch->getUses(), [&](OpOperand &use) {
    return isa<func::ReturnOp>(use.getOwner()) &&
           func.getResultAttr(use.getOperandNumber(),
                              tile::TileDialect::kInPlaceAttrName);
  });
}

std::optional<Candidate> LaunchMerger::getCandidate(tile::LaunchOp launch) {
  if (overwritesArguments(launch))
    return std::nullopt;
  // A row vector is written even where a launch has no rows; a row space
  // without rows would not write it.
  if (!llvm::all_of(launch.getResultTypes(), [](Type type) {
        return cast<RankedTensorType>(type).getRank() > 1;
      }))
    return std::nullopt;
  Candidate candidate{launch, {}};
  for (auto name : launch.getKernels().getAsRange<FlatSymbolRefAttr>()) {
    auto program = symbols.lookup<tile::ProgramOp>(name.getValue());
    if (!program || program.getDimensions() || !isMergeable(program) ||
        counts.lookup(name) > 1)
      return std::nullopt;
    candidate.variants.push_back(program);
  }
  return candidate;
}

/// Moves all ops that `launch` waits for ahead of the first launch of `group`,
/// if none of them waits for `group`.
bool LaunchMerger::moveNeeds(tile::LaunchOp launch, ArrayRef<Candidate> group) {
  tile::LaunchOp first = group.front().launch;
  SetVector<Operation *> needs;
  SmallVector<Operation *> pending{launch};
  while (!pending.empty()) {
    for (Value operand : pending.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (!op || op->isBeforeInBlock(first))
        continue;
      auto needed = dyn_cast<tile::LaunchOp>(op);
      if (!needed || llvm::any_of(group, [&](const Candidate &member) {
            return member.launch == needed;
          }))
        return false;
      // It would overwrite what an earlier launch reads.
      if (overwritesArguments(needed))
        return false;
      if (needs.insert(op))
        pending.push_back(op);
    }
  }
  SmallVector<Operation *> ordered = needs.takeVector();
  llvm::sort(ordered, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  for (Operation *op : ordered)
    op->moveBefore(first);
  return true;
}

void LaunchMerger::merge(ArrayRef<Candidate> group) {
  tile::LaunchOp first = group.front().launch;
  SmallVector<Value> inputs;
  SmallVector<Type> resultTypes;
  for (const Candidate &member : group) {
    tile::LaunchOp launch = member.launch;
    llvm::append_range(inputs, launch.getInputs());
    llvm::append_range(resultTypes, launch.getResultTypes());
  }
  SmallVector<Attribute> names;
  for (size_t variant = 0; variant < group.front().variants.size(); ++variant) {
    tile::ProgramOp program = ProgramMerger(group, variant).run();
    for (const Candidate &member : group)
      symbols.erase(member.variants[variant]);
    symbols.insert(program);
    names.push_back(FlatSymbolRefAttr::get(program.getSymNameAttr()));
  }
  OpBuilder builder(first);
  auto merged = tile::LaunchOp::create(builder, first.getLoc(), resultTypes,
                                       builder.getArrayAttr(names), inputs);
  ResultRange results = merged.getResults();
  for (const Candidate &member : group) {
    tile::LaunchOp launch = member.launch;
    launch->replaceAllUsesWith(results.take_front(launch->getNumResults()));
    results = results.drop_front(launch->getNumResults());
    launch.erase();
  }
}

void LaunchMerger::run() {
  SmallVector<Candidate> candidates;
  for (auto launch : func.getOps<tile::LaunchOp>())
    if (std::optional<Candidate> candidate = getCandidate(launch))
      candidates.push_back(std::move(*candidate));
  while (!candidates.empty()) {
    SmallVector<Candidate> group{candidates.front()}, others;
    // The operands that all launches of the group read.
    tile::LaunchOp first = group.front().launch;
    auto inputs = first.getInputs();
    DenseSet<Value> common(inputs.begin(), inputs.end());
    for (Candidate &candidate : llvm::drop_begin(candidates)) {
      DenseSet<Value> both;
      for (Value input : candidate.launch.getInputs())
        if (common.contains(input))
          both.insert(input);
      if (both.empty() || !haveSameShapes(group.front(), candidate) ||
          !moveNeeds(candidate.launch, group)) {
        others.push_back(candidate);
        continue;
      }
      common = std::move(both);
      group.push_back(candidate);
    }
    if (group.size() > 1)
      merge(group);
    candidates = std::move(others);
    llvm::sort(candidates, [](Candidate &lhs, Candidate &rhs) {
      return lhs.launch->isBeforeInBlock(rhs.launch);
    });
  }
}

struct MergeLaunchesPass
    : public bastile::impl::MergeLaunchesBase<MergeLaunchesPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    LaunchCounts counts;
    getOperation().walk([&](tile::LaunchOp launch) {
      for (Attribute name : launch.getKernels())
        ++counts[name];
    });
    for (auto func : getOperation().getOps<func::FuncOp>())
      LaunchMerger(func, symbols, counts).run();
  }
};

} // namespace
