//===- Fuse.cpp - Gather ops into kernels ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each group of ops (Grouping.h) becomes a kernel, and the function becomes a
// list of launches.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "dialect/space/SpaceBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/TargetLookup.h"
#include "passes/analysis/HiddenErrors.h"
#include "passes/analysis/RowClass.h"
#include "passes/analysis/StreamedFactors.h"
#include "passes/tensors/Conditions.h"
#include "passes/tensors/FunctionVerifier.h"
#include "passes/tensors/Grouping.h"
#include "passes/tensors/InPlace.h"
#include "passes/tensors/Names.h"
#include "passes/tensors/RoundFactors.h"
#include "llvm/ADT/StringExtras.h"

namespace bastile {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

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

/// Turns the groups of one function into kernels and launches.
class FunctionFuser {
public:
  FunctionFuser(func::FuncOp func, SymbolTable &symbols, const Target &target)
      : func(func), symbols(symbols), target(target),
        builder(func.getContext()) {}

  LogicalResult run();

private:
  tile::KernelOp buildKernel(const Group &group, StringRef name);
  tile::KernelOp launch(const Group &group, StringRef name);
  bool isReady(const Group &group) const;
  bool isReady(Value value) const;
  Value getLaunched(Value value);
  void findOverwritten(func::ReturnOp returnOp);
  Group *chooseNext(ArrayRef<Group *> pending) const;
  std::optional<PlaceConflict> placeResult(unsigned index, OpResult value,
                                           BlockArgument argument);
  LogicalResult placeResults(func::ReturnOp returnOp);
  tile::KernelOp getKernel(tile::LaunchOp launchOp) const;
  bool hidesErrors(OpOperand &use);
  void markApproximate();
  void markFactors();

  func::FuncOp func;
  SymbolTable &symbols;
  const Target &target;
  OpBuilder builder;
  /// The results of the launches so far, by the value of the function that each
  /// stands for. Partial results of combinations of all rows are kept apart.
  DenseMap<Value, Value> launched, partials;
  /// By the values that the function returns, the arguments whose memory they
  /// are to take.
  DenseMap<Value, BlockArgument> overwritten;
};

/// The type of partial results of `reduce`: one row a program.
RankedTensorType getPartialRowsType(tile::ReduceRowsOp reduce) {
  RankedTensorType type = reduce.getInput().getType();
  return type.clone({ShapedType::kDynamic, type.getShape().back()});
}

tile::KernelOp FunctionFuser::buildKernel(const Group &group, StringRef name) {
  OpBuilder builder(func);
  SmallVector<Type> inputTypes(
      ValueRange(group.inputs.getArrayRef()).getTypes());
  for (tile::ReduceRowsOp reduce : group.combined)
    inputTypes.push_back(getPartialRowsType(reduce));
  SmallVector<Type> outputTypes(
      ValueRange(group.outputs.getArrayRef()).getTypes());
  for (tile::ReduceRowsOp reduce : group.partials)
    outputTypes.push_back(getPartialRowsType(reduce));
  auto kernel =
      tile::KernelOp::create(builder, func.getLoc(), name,
                             builder.getFunctionType(inputTypes, outputTypes));
  if (auto schedule = func->getAttrOfType<tile::ScheduleInterface>(
          tile::TileDialect::kScheduleAttrName);
      schedule && group.combined.empty())
    kernel.setScheduleAttr(schedule);

  Block *body = builder.createBlock(&kernel.getBody());
  for (auto [index, input] : llvm::enumerate(group.inputs))
    noteAbove(kernel, index, input);
  IRMapping mapping;
  for (Value input : group.inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
  for (auto [like, input] : group.sizeSources)
    mapping.map(like, mapping.lookup(input));
  for (tile::ReduceRowsOp reduce : group.combined) {
    Value rows = body->addArgument(getPartialRowsType(reduce), reduce.getLoc());
    mapping.map(reduce.getResult(),
                tile::ReduceRowsOp::create(builder, reduce.getLoc(),
                                           reduce.getType(), reduce.getKind(),
                                           rows, /*partial=*/false)
                    .getResult());
  }
  SmallVector<Operation *> ops(group.ops.getArrayRef());
  llvm::sort(ops, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  SmallVector<Value> results;
  for (Value output : group.outputs)
    results.push_back(mapping.lookup(output));
  for (tile::ReduceRowsOp reduce : group.partials)
    results.push_back(tile::ReduceRowsOp::create(
        builder, reduce.getLoc(), getPartialRowsType(reduce), reduce.getKind(),
        mapping.lookup(reduce.getInput()), /*partial=*/true));
  tile::ReturnOp::create(builder, func.getLoc(), results);
  return kernel;
}

/// Gives `kernel`, which is made of `group`, its space: the function has ops
/// that make dimensions one which the kernel's own do not.
static LogicalResult setSpace(tile::KernelOp kernel, const Group &group,
                              const ValueDimensions &dimensions) {
  KnownDimensions known;
  auto note = [&](std::optional<ValueDimensions::Dimension> dimension) {
    known.numbers.back().push_back(dimension);
    if (StringAttr name = dimension ? dimensions.getName(*dimension) : nullptr)
      known.names[*dimension] = name;
  };
  auto add = [&](Value value) {
    known.numbers.emplace_back();
    auto type = cast<RankedTensorType>(value.getType());
    for (unsigned place = 0; place < type.getRank(); ++place)
      note(dimensions.get(value, place));
  };
  // There is one row a program, for all partial results.
  auto addPartialRows = [&](tile::ReduceRowsOp reduce) {
    constexpr auto programs =
        std::numeric_limits<ValueDimensions::Dimension>::max() / 2;
    known.numbers.push_back({programs});
    note(dimensions.getColumns(reduce.getInput()));
  };
  llvm::for_each(group.inputs, add);
  llvm::for_each(group.combined, addPartialRows);
  llvm::for_each(group.outputs, add);
  llvm::for_each(group.partials, addPartialRows);
  FailureOr<tile::SpaceAttr> space = findSpace(kernel, known);
  if (failed(space))
    return failure();
  kernel.setSpaceAttr(*space);
  // A program along dimensions that cannot compute its ops would be wrong.
  return isOverDimensions(kernel) ? verifyComputes(kernel, *space) : success();
}

/// Whether `value` is in memory behind the launches so far.
bool FunctionFuser::isReady(Value value) const {
  if (isa<BlockArgument>(value) || launched.contains(value))
    return true;
  if (Value whole = getWholeInMemory(value))
    return isReady(whole);
  auto join = value.getDefiningOp<tile::JoinOp>();
  return join && llvm::all_of(join.getPieces(), [&](Value piece) {
           return launched.contains(piece);
         });
}

/// What stands for `value`, which is in memory, among the launches. Kernels
/// store pieces of rows that they do not join where the whole rows lie.
Value FunctionFuser::getLaunched(Value value) {
  if (isa<BlockArgument>(value))
    return value;
  if (Value found = launched.lookup(value))
    return found;
  Operation *op = value.getDefiningOp();
  Value built;
  if (auto piece = dyn_cast<tile::PieceOp>(op)) {
    built = tile::PieceOp::create(builder, op->getLoc(),
                                  getLaunched(piece.getSource()),
                                  piece.getDimension(), piece.getIndex(),
                                  piece.getCount(), piece.getInterleaved());
  } else if (auto split = dyn_cast<tile::SplitOp>(op)) {
    Value whole = getLaunched(split.getInput());
    built = tile::PieceOp::create(
        builder, op->getLoc(), whole,
        cast<RankedTensorType>(whole.getType()).getRank() - 1,
        cast<OpResult>(value).getResultNumber(), split.getPieces().size(),
        /*interleaved=*/false);
  } else {
    SmallVector<Value> pieces = llvm::map_to_vector(
        op->getOperands(), [&](Value piece) { return getLaunched(piece); });
    built = tile::JoinOp::create(builder, op->getLoc(), value.getType(),
                                 /*strands=*/1, pieces);
  }
  launched[value] = built;
  return built;
}

/// Whether the launches so far compute all that `group` reads.
bool FunctionFuser::isReady(const Group &group) const {
  return llvm::all_of(group.inputs,
                      [&](Value input) { return isReady(input); }) &&
         llvm::all_of(group.combined, [&](tile::ReduceRowsOp reduce) {
           return partials.contains(reduce.getResult());
         });
}

tile::KernelOp FunctionFuser::launch(const Group &group, StringRef name) {
  tile::KernelOp kernel = buildKernel(group, name);
  symbols.insert(kernel);
  SmallVector<Value> operands = llvm::map_to_vector(
      group.inputs, [&](Value input) { return getLaunched(input); });
  for (tile::ReduceRowsOp reduce : group.combined)
    operands.push_back(partials.lookup(reduce.getResult()));
  auto launchOp = tile::LaunchOp::create(
      builder, func.getLoc(), kernel.getResultTypes(),
      builder.getArrayAttr(FlatSymbolRefAttr::get(kernel.getSymNameAttr())),
      operands);
  ResultRange results = launchOp.getResults();
  for (auto [output, result] : llvm::zip(group.outputs, results))
    launched[output] = result;
  for (auto [index, partial] : llvm::enumerate(group.partials)) {
    tile::ReduceRowsOp reduce = partial;
    partials[reduce.getResult()] = results[group.outputs.size() + index];
  }
  return kernel;
}

void FunctionFuser::findOverwritten(func::ReturnOp returnOp) {
  for (auto [index, value] : llvm::enumerate(returnOp.getOperands()))
    if (auto argument = func.getResultAttrOfType<IntegerAttr>(
            index, tile::TileDialect::kInPlaceAttrName))
      overwritten[value] = func.getArgument(argument.getInt());
}

/// Whether `group` reads `argument` or a piece of it.
static bool reads(const Group &group, BlockArgument argument) {
  return llvm::any_of(group.inputs, [&](Value input) {
    return input == argument || getWholeInMemory(input) == argument;
  });
}

/// The uses of `value` by launches, and those of pieces of it.
static SmallVector<OpOperand *> getLaunchUses(Value value) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    if (isa<tile::LaunchOp>(use.getOwner()))
      uses.push_back(&use);
    if (auto piece = dyn_cast<tile::PieceOp>(use.getOwner()))
      llvm::append_range(uses, getLaunchUses(piece.getResult()));
  }
  return uses;
}

/// Chooses a group all of whose inputs are there, null if there is none. One
/// that overwrites an argument waits for those that read the argument, unless
/// they wait for it.
Group *FunctionFuser::chooseNext(ArrayRef<Group *> pending) const {
  Group *first = nullptr;
  for (Group *group : pending) {
    if (!isReady(*group))
      continue;
    bool isLastReader = llvm::none_of(group->outputs, [&](Value output) {
      BlockArgument argument = overwritten.lookup(output);
      return argument && llvm::any_of(pending, [&](Group *other) {
               return other != group && reads(*other, argument);
             });
    });
    if (isLastReader)
      return group;
    if (!first)
      first = group;
  }
  return first;
}

/// Marks the operand of a kernel whose memory result `index` of the function
/// takes, or says why it cannot.
std::optional<PlaceConflict> FunctionFuser::placeResult(unsigned index,
                                                        OpResult value,
                                                        BlockArgument source) {
  auto launchOp = cast<tile::LaunchOp>(value.getOwner());
  for (OpOperand *use : getLaunchUses(source)) {
    auto later = cast<tile::LaunchOp>(use->getOwner());
    const bool isPiece = use->get() != source;
    if (!launchOp->isBeforeInBlock(later) && !(later == launchOp && isPiece))
      continue;
    BlockArgument read = getKernel(later).getArgument(use->getOperandNumber());
    return PlaceConflict{read.use_empty() ? nullptr : *read.user_begin(),
                         "a kernel that needs the result, or another that "
                         "overwrites what it reads, reads it here"};
  }
  tile::KernelOp kernel = getKernel(launchOp);
  for (auto [position, input] : llvm::enumerate(launchOp.getInputs())) {
    if (input != source)
      continue;
    if (std::optional<PlaceConflict> conflict = findPlaceConflict(
            kernel, kernel.getArgument(position), value.getResultNumber()))
      return conflict;
    kernel.setArgAttr(position, tile::TileDialect::kInPlaceAttrName,
                      builder.getI64IntegerAttr(value.getResultNumber()));
  }
  return std::nullopt;
}

/// Marks the operands of kernels whose memory results take, and reports those
/// that cannot be taken, except where the function allows the result memory of
/// its own.
LogicalResult FunctionFuser::placeResults(func::ReturnOp returnOp) {
  StringAttr name = builder.getStringAttr(tile::TileDialect::kInPlaceAttrName);
  StringAttr condition =
      builder.getStringAttr(tile::TileDialect::kInPlaceIfPossibleAttrName);
  for (auto [index, value] : llvm::enumerate(returnOp.getOperands())) {
    auto number = func.getResultAttrOfType<IntegerAttr>(index, name);
    bool isConditional = bool(func.removeResultAttr(index, condition));
    if (!number)
      continue;
    std::optional<PlaceConflict> conflict = placeResult(
        index, cast<OpResult>(value), func.getArgument(number.getInt()));
    if (!conflict)
      continue;
    if (!isConditional) {
      InFlightDiagnostic error = func.emitOpError("result ")
                                 << index << " cannot take the memory of "
                                 << "argument " << number.getInt()
                                 << ", which would be overwritten while it is "
                                    "still read; leave out '"
                                 << name.getValue() << "'";
      if (conflict->op)
        error.attachNote(conflict->op->getLoc()) << conflict->reason;
      return error;
    }
    func.removeResultAttr(index, name);
  }
  return success();
}

tile::KernelOp FunctionFuser::getKernel(tile::LaunchOp launchOp) const {
  return symbols.lookup<tile::KernelOp>(launchOp.getFirstName());
}

/// Whether nobody sees the error of an approximation behind `use`: a return as
/// `tile.approximate`, or a launch whose kernel rounds what it makes of it.
bool FunctionFuser::hidesErrors(OpOperand &use) {
  if (isa<func::ReturnOp>(use.getOwner()))
    return bool(func.getResultAttr(use.getOperandNumber(),
                                   tile::TileDialect::kApproximateAttrName));
  auto launchOp = dyn_cast<tile::LaunchOp>(use.getOwner());
  return launchOp && hidesErrorsOf(getKernel(launchOp), use.getOperandNumber());
}

/// Marks the results of kernels that may be approximate: statistics that are
/// saved for a backward, and what later kernels read, partial sums above all.
void FunctionFuser::markApproximate() {
  const SmallVector<tile::LaunchOp> launches(
      func.front().getOps<tile::LaunchOp>());
  // Those that read a result come behind the launch that writes it.
  for (tile::LaunchOp launchOp : llvm::reverse(launches))
    for (OpResult result : launchOp->getResults())
      if (!result.use_empty() &&
          llvm::all_of(result.getUses(),
                       [&](OpOperand &use) { return hidesErrors(use); }))
        getKernel(launchOp).setResultAttr(
            result.getResultNumber(), tile::TileDialect::kApproximateAttrName,
            builder.getUnitAttr());
}

/// Marks the factors of kernels that may have nothing to do: kernels whose
/// results may all take the memory of an operand.
void FunctionFuser::markFactors() {
  for (BlockArgument argument : func.getArguments()) {
    if (!func.getArgAttr(argument.getArgNumber(),
                         tile::TileDialect::kFactorAttrName))
      continue;
    for (OpOperand &use : argument.getUses()) {
      auto launchOp = cast<tile::LaunchOp>(use.getOwner());
      tile::KernelOp kernel = getKernel(launchOp);
      size_t inPlace = llvm::count_if(
          llvm::seq(kernel.getNumArguments()), [&](unsigned position) {
            return bool(kernel.getArgAttr(position,
                                          tile::TileDialect::kInPlaceAttrName));
          });
      if (inPlace == launchOp.getNumResults())
        kernel.setArgAttr(use.getOperandNumber(),
                          tile::TileDialect::kFactorAttrName,
                          builder.getUnitAttr());
    }
  }
}

/// Copies arguments and values that are returned twice, so that every result is
/// a value of its own.
static void copyRepeatedResults(func::ReturnOp returnOp) {
  OpBuilder builder(returnOp);
  const bool hasProducts = !returnOp->getBlock()->getOps<tile::DotOp>().empty();
  DenseSet<Value> returned;
  for (OpOperand &operand : returnOp->getOpOperands()) {
    Value value = operand.get();
    const bool isComputed =
        !isa<BlockArgument>(value) && !(hasProducts && getWholeInMemory(value));
    if (returned.insert(value).second && isComputed)
      continue;
    // A joined value is joined once more, since a copy would need whole rows.
    if (auto join = value.getDefiningOp<tile::JoinOp>()) {
      operand.set(builder.clone(*join)->getResult(0));
      continue;
    }
    operand.set(tile::CopyOp::create(builder, returnOp.getLoc(),
                                     value.getType(), value));
  }
}

/// Repeats numbers and vectors for each op that reads them, in a function with
/// products: two readers may be along different dimensions of one size, or
/// belong to a kernel ahead of a product and one behind it. Those that a
/// product multiplies stay one value, which lies in memory for all.
static void repeatForEachReader(func::FuncOp func) {
  if (func.front().getOps<tile::DotOp>().empty())
    return;
  for (Operation &op : llvm::make_early_inc_range(func.front())) {
    auto broadcast = dyn_cast<tile::BroadcastOp>(op);
    if (!broadcast || op.use_empty() || isRowTensor(broadcast.getSource()) ||
        llvm::any_of(op.getUsers(), llvm::IsaPred<tile::DotOp>))
      continue;
    for (OpOperand &use :
         llvm::make_early_inc_range(llvm::drop_begin(op.getUses()))) {
      OpBuilder builder(&op);
      use.set(builder.clone(op)->getResult(0));
    }
  }
}

/// Lets a group that combines all rows of several leading dimensions, or has
/// groups of columns, take its sizes from inputs whose rows have a known
/// length. A kernel with a tensor whose columns have an unknown number, as the
/// scores of queries and keys do, is over these columns, and can do neither.
static void chooseSizeSources(Group &group, const ValueDimensions &dimensions) {
  const bool needsRows = llvm::any_of(group.ops, [](Operation *op) {
    return !mayFollowDot(op) && !isRowReduction(op) && !isa<tile::IotaOp>(op);
  });
  if ((group.partials.empty() && !needsRows) ||
      llvm::any_of(group.ops, llvm::IsaPred<tile::DotOp>))
    return;
  auto isOfAnyLength = [](RankedTensorType type) {
    return type && ShapedType::isDynamic(type.getShape().back());
  };
  for (Value like : SmallVector<Value>(group.inputs.getArrayRef())) {
    auto type = cast<RankedTensorType>(like.getType());
    const bool isRead = llvm::any_of(like.getUses(), [&](OpOperand &use) {
      return group.ops.contains(use.getOwner()) &&
             getSizeOperand(use.getOwner()) != &use;
    });
    if (isRead || (type.getRank() < 3 && !needsRows) || !isOfAnyLength(type))
      continue;
    const auto *source = llvm::find_if(group.inputs, [&](Value input) {
      auto own = cast<RankedTensorType>(input.getType());
      return own.getRank() == type.getRank() && !isOfAnyLength(own) &&
             llvm::all_of(llvm::seq<unsigned>(type.getRank() - 1),
                          [&](unsigned place) {
                            return dimensions.get(like, place) ==
                                   dimensions.get(input, place);
                          });
    });
    if (source == group.inputs.end())
      continue;
    group.sizeSources.push_back({like, *source});
    group.inputs.remove(like);
  }
}

LogicalResult FunctionFuser::run() {
  if (failed(verifyFunction(func)))
    return failure();
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  builder.setInsertionPoint(returnOp);
  copyRepeatedResults(returnOp);
  moveConditionsBehindRows(func);
  giveFactorsSizes(func);
  repeatForEachReader(func);
  roundFactors(func);
  separateFactors(func, target);
  chooseConditions(func);
  // Another source of an op's sizes may have other columns.
  const ValueDimensions dimensions(func.front());
  replaceSizeSources(func.front(), [](Value root, bool) { return root; });
  eraseDeadOps(func.front());
  FailureOr<SmallVector<Group>> groups = collectGroups(func, dimensions);
  if (failed(groups))
    return failure();
  for (Group &group : *groups)
    chooseSizeSources(group, dimensions);
  findOverwritten(returnOp);
  const auto fused = llvm::map_to_vector(func.front().without_terminator(),
                                         [](Operation &op) { return &op; });

  // A group is launched after the groups that it reads from.
  SmallVector<Group *> pending =
      llvm::map_to_vector(*groups, [](Group &group) { return &group; });
  unsigned index = 0;
  while (!pending.empty()) {
    Group *next = chooseNext(pending);
    if (!next)
      return func.emitOpError(
          "has kernels that need each other's values both ways; split the "
          "function");
    std::string name = getEntryName(func.getName()) + "_kernel";
    if (groups->size() > 1)
      name += std::to_string(index++);
    if (failed(setSpace(launch(*next, name), *next, dimensions)))
      return failure();
    llvm::erase(pending, next);
  }

  for (OpOperand &operand : returnOp->getOpOperands())
    operand.set(getLaunched(operand.get()));
  if (failed(placeResults(returnOp)))
    return failure();
  markApproximate();
  for (Operation *op : llvm::reverse(fused))
    op->erase();
  markFactors();
  return success();
}

struct FusePass : public bastile::impl::FuseBase<FusePass> {
  using FuseBase::FuseBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Target *target = lookupTarget(module, this->target);
    if (!target || failed(verifyOnlyFunctions(module)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (failed(FunctionFuser(func, symbols, *target).run()))
        return signalPassFailure();
  }
};

} // namespace
