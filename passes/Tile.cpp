//===- Tile.cpp - Apply a kernel's schedule -------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/KernelShape.h"
#include "passes/TargetLookup.h"
#include "llvm/Support/MathExtras.h"

namespace bastile {
#define GEN_PASS_DEF_TILE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// The widest access that any target has.
constexpr int64_t kMaxAlignment = 16;

/// One way in which a kernel's operands may lie in memory.
struct Variant {
  std::string name;
  /// Leading dimensions that the program walks.
  int64_t leading;
  /// Whether addresses are aligned to the vector width.
  bool aligned;
};

/// Builds the program of one variant of a kernel on tensors.
class Tiler {
public:
  Tiler(tile::KernelOp kernel, const Variant &variant)
      : kernel(kernel), variant(variant), shape(KernelShape::get(kernel)),
        schedule(*kernel.getSchedule()), builder(kernel.getLoc(), kernel) {}

  tile::KernelOp run();

private:
  void createProgram();
  int64_t getAlignment(RankedTensorType type) const;
  RankedTensorType getTileType(RankedTensorType type) const;
  bool isRow(Value value) const;

  /// Builds the computation of the tile with number `block`.
  void buildRows(Value block);
  void buildWholeRow();
  void buildPasses();
  void buildPass(int64_t depth);

  /// Loads the arguments that the kernel reads.
  void emitArguments();
  /// Returns the tile of `value`, building what it needs.
  Value emit(Value value);
  Value emitOp(Operation *op, OpResult result);
  Value emitMasked(tile::ReduceOp reduce);
  void emitStore(unsigned resultIndex);

  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }

  tile::KernelOp kernel;
  const Variant &variant;
  KernelShape shape;
  tile::ScheduleAttr schedule;
  ImplicitLocOpBuilder builder;

  tile::KernelOp program;
  int64_t columnBlocks = 1;
  Value row, column;
  /// Tiles of the values that are the same in every column of the row, and
  /// where to build more of them while a loop over columns is being built.
  IRMapping rowScope;
  Operation *columnLoop = nullptr;
  /// Tiles of the values of the current columns.
  IRMapping columnScope;
  DenseMap<Value, int64_t> depths;
};

int64_t Tiler::getAlignment(RankedTensorType type) const {
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  bool vectorized = type.getShape().back() == shape.rowLength;
  if (!variant.aligned || !vectorized)
    return bytes;
  return std::min(kMaxAlignment, schedule.getVector() * bytes);
}

/// Whether `value` differs between the columns of a row.
bool Tiler::isRow(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getShape().back() == shape.rowLength;
}

RankedTensorType Tiler::getTileType(RankedTensorType type) const {
  int64_t rows = type.getRank() >= 2 ? schedule.getRows() : 1;
  int64_t columns =
      type.getShape().back() == shape.rowLength ? schedule.getColumns() : 1;
  return RankedTensorType::get({rows, columns}, type.getElementType());
}

void Tiler::createProgram() {
  SmallVector<Type> arguments(variant.leading, builder.getIndexType());
  SmallVector<Attribute> attributes(variant.leading,
                                    builder.getDictionaryAttr({}));
  auto addOperand = [&](RankedTensorType type, bool readOnly) {
    MemRefLayoutAttrInterface layout;
    SmallVector<int64_t> sizes{type.getShape().back()};
    if (type.getRank() >= 2) {
      sizes.insert(sizes.begin(), variant.leading, ShapedType::kDynamic);
      SmallVector<int64_t> strides(variant.leading, ShapedType::kDynamic);
      strides.push_back(1);
      layout = StridedLayoutAttr::get(builder.getContext(), 0, strides);
    }
    arguments.push_back(MemRefType::get(sizes, type.getElementType(), layout));
    NamedAttrList list;
    list.set(tile::TileDialect::kAlignmentAttrName,
             builder.getI64IntegerAttr(getAlignment(type)));
    if (readOnly)
      list.set(tile::TileDialect::kReadOnlyAttrName, builder.getUnitAttr());
    attributes.push_back(list.getDictionary(builder.getContext()));
  };
  for (Type type : kernel.getArgumentTypes())
    addOperand(cast<RankedTensorType>(type), /*readOnly=*/true);
  for (Type type : kernel.getResultTypes())
    addOperand(cast<RankedTensorType>(type), /*readOnly=*/false);

  program = tile::KernelOp::create(builder, variant.name,
                                   builder.getFunctionType(arguments, {}));
  program.setScheduleAttr(schedule);
  program.setLeadingAttr(builder.getI64IntegerAttr(variant.leading));
  program.setArgAttrsAttr(builder.getArrayAttr(attributes));
  if (columnBlocks > 1)
    program.setColumnBlocksAttr(builder.getI64IntegerAttr(columnBlocks));
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : arguments)
    body->addArgument(type, kernel.getLoc());
}

tile::KernelOp Tiler::run() {
  // Without reductions, tiles are independent along the row too.
  if (shape.numReductions == 0)
    columnBlocks = llvm::divideCeil(shape.rowLength, schedule.getColumns());
  createProgram();

  Value id = tile::ProgramIdOp::create(builder);
  if (schedule.getPersistent() == 0) {
    buildRows(id);
    tile::ReturnOp::create(builder, ValueRange());
    return program;
  }
  Value rows = program.getSizes().front();
  for (Value size : program.getSizes().drop_front())
    rows = arith::MulIOp::create(builder, rows, size);
  Value blocks = arith::CeilDivUIOp::create(builder, rows,
                                            constantIndex(schedule.getRows()));
  blocks = arith::MulIOp::create(builder, blocks, constantIndex(columnBlocks));
  Value count = tile::ProgramCountOp::create(builder);
  auto loop = scf::ForOp::create(builder, id, blocks, count);
  builder.setInsertionPointToStart(loop.getBody());
  buildRows(loop.getInductionVar());
  builder.setInsertionPointAfter(loop);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

void Tiler::buildRows(Value block) {
  Value columnBlock = constantIndex(0);
  if (columnBlocks > 1) {
    Value count = constantIndex(columnBlocks);
    columnBlock = arith::RemUIOp::create(builder, block, count);
    block = arith::DivUIOp::create(builder, block, count);
  }
  row =
      arith::MulIOp::create(builder, block, constantIndex(schedule.getRows()));
  column = arith::MulIOp::create(builder, columnBlock,
                                 constantIndex(schedule.getColumns()));
  if (shape.numReductions == 0 || schedule.getColumns() >= shape.rowLength)
    buildWholeRow();
  else
    buildPasses();
}

void Tiler::buildWholeRow() {
  Operation *returnOp = kernel.getBody().front().getTerminator();
  // Loads first, so that all of them are under way before the first value is
  // needed, and none waits behind a reduction's barrier.
  emitArguments();
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (OpResult result : op.getResults())
      emit(result);
  for (unsigned index = 0; index < returnOp->getNumOperands(); ++index)
    emitStore(index);
}

/// Walks the row once for each depth of reductions: pass d computes what waits
/// for d reductions, recomputing from memory what it shares with earlier ones.
void Tiler::buildPasses() {
  for (int64_t depth = 0; depth <= shape.reductionDepth; ++depth)
    buildPass(depth);
}

void Tiler::buildPass(int64_t depth) {
  Operation *returnOp = kernel.getBody().front().getTerminator();
  SmallVector<tile::ReduceOp> reductions;
  for (auto reduce : kernel.getBody().front().getOps<tile::ReduceOp>())
    if (getReductionDepth(reduce.getInput(), depths) == depth)
      reductions.push_back(reduce);
  SmallVector<unsigned> rowResults, statistics;
  for (auto [index, value] : llvm::enumerate(returnOp->getOperands()))
    if (getReductionDepth(value, depths) == depth)
      (isRow(value) ? rowResults : statistics).push_back(index);
  for (unsigned index : statistics)
    emitStore(index);
  if (reductions.empty() && rowResults.empty())
    return;

  // Each thread combines what it meets; the threads meet once, after the loop.
  SmallVector<Value> initial;
  for (tile::ReduceOp reduce : reductions) {
    RankedTensorType type = getTileType(reduce.getInput().getType());
    initial.push_back(arith::ConstantOp::create(
        builder, DenseElementsAttr::get(
                     type, Attribute(tile::ReduceOp::getNeutral(
                               reduce.getKind(), type.getElementType())))));
  }
  auto loop = scf::ForOp::create(builder, constantIndex(0),
                                 constantIndex(shape.rowLength),
                                 constantIndex(schedule.getColumns()), initial);
  columnLoop = loop;
  columnScope.clear();
  column = loop.getInductionVar();
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> combined;
  for (auto [reduce, partial] :
       llvm::zip_equal(reductions, loop.getRegionIterArgs()))
    combined.push_back(tile::ReduceOp::combine(builder, reduce.getLoc(),
                                               reduce.getKind(), partial,
                                               emitMasked(reduce)));
  for (unsigned index : rowResults)
    emitStore(index);
  if (!combined.empty())
    scf::YieldOp::create(builder, combined);

  builder.setInsertionPointAfter(loop);
  columnLoop = nullptr;
  for (auto [reduce, partial] : llvm::zip_equal(reductions, loop.getResults()))
    rowScope.map(reduce.getResult(),
                 tile::ReduceOp::create(builder, reduce.getLoc(),
                                        getTileType(reduce.getType()),
                                        reduce.getKind(), partial)
                     .getResult());
}

Value Tiler::emitMasked(tile::ReduceOp reduce) {
  Value input = emit(reduce.getInput());
  if (shape.rowLength % schedule.getColumns() == 0)
    return input;
  return tile::MaskOp::create(
      builder, reduce.getLoc(), input, column,
      builder.getI64IntegerAttr(shape.rowLength),
      tile::ReduceOp::getNeutral(reduce.getKind(),
                                 reduce.getType().getElementType()));
}

void Tiler::emitStore(unsigned resultIndex) {
  Operation *returnOp = kernel.getBody().front().getTerminator();
  Value value = returnOp->getOperand(resultIndex);
  Value memory = program.getArgument(variant.leading +
                                     kernel.getNumArguments() + resultIndex);
  Value tile = emit(value);
  Value start = isRow(value) ? column : constantIndex(0);
  int64_t alignment = getAlignment(cast<RankedTensorType>(value.getType()));
  tile::StoreOp::create(builder, value.getLoc(), tile, memory,
                        ValueRange{row, start},
                        builder.getI64IntegerAttr(alignment),
                        /*offset=*/nullptr, /*length=*/nullptr);
}

void Tiler::emitArguments() {
  for (BlockArgument argument : kernel.getArguments()) {
    // A broadcast takes only the sizes of the tensor it is like.
    bool isRead = llvm::any_of(argument.getUses(), [](OpOperand &use) {
      return !isa<tile::BroadcastOp>(use.getOwner()) ||
             use.getOperandNumber() == 0;
    });
    if (isRead)
      emit(argument);
  }
}

Value Tiler::emit(Value value) {
  IRMapping &scope = isRow(value) ? columnScope : rowScope;
  if (Value tile = scope.lookupOrNull(value))
    return tile;
  OpBuilder::InsertionGuard guard(builder);
  if (columnLoop && !isRow(value))
    builder.setInsertionPoint(columnLoop);

  Value tile;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto type = cast<RankedTensorType>(value.getType());
    Value memory =
        program.getArgument(variant.leading + argument.getArgNumber());
    Value start = isRow(value) ? column : constantIndex(0);
    SmallVector<Value> indices{start};
    if (type.getRank() >= 2)
      indices.insert(indices.begin(), row);
    tile = tile::LoadOp::create(
        builder, value.getLoc(), getTileType(type), memory, indices,
        builder.getI64IntegerAttr(getAlignment(type)), builder.getUnitAttr(),
        /*offset=*/nullptr, /*length=*/nullptr);
  } else {
    tile = emitOp(value.getDefiningOp(), cast<OpResult>(value));
  }
  scope.map(value, tile);
  return tile;
}

Value Tiler::emitOp(Operation *op, OpResult result) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return tile::ReduceOp::create(builder, op->getLoc(), getTileType(type),
                                  reduce.getKind(), emitMasked(reduce));
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return tile::BroadcastOp::create(builder, op->getLoc(), getTileType(type),
                                     emit(broadcast.getSource()), Value());
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && type) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(builder, op->getLoc(),
                                     splat.resizeSplat(getTileType(type)));
  }
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, emit(operand));
  Operation *clone = builder.clone(*op, operands);
  for (Value cloned : clone->getResults())
    if (auto tensor = dyn_cast<RankedTensorType>(cloned.getType()))
      cloned.setType(getTileType(tensor));
  return clone->getResult(result.getResultNumber());
}

struct TilePass : public bastile::impl::TileBase<TilePass> {
  using TileBase::TileBase;

  void runOnOperation() override {
    const Target *target = lookupTarget(getOperation(), this->target);
    if (!target)
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    auto result = getOperation().walk([&](tile::LaunchOp launch) {
      auto kernel = symbols.lookup<tile::KernelOp>(
          cast<FlatSymbolRefAttr>(launch.getKernels()[0]).getValue());
      if (!kernel || kernel.isTiled())
        return WalkResult::advance();
      if (!kernel.getSchedule()) {
        kernel.emitError("has no schedule; run the 'schedule' pass first");
        return WalkResult::interrupt();
      }
      SmallVector<Attribute> names;
      SmallVector<tile::KernelOp> programs;
      for (const Variant &variant : getVariants(kernel, target->isHost()))
        programs.push_back(Tiler(kernel, variant).run());
      symbols.erase(kernel);
      for (tile::KernelOp program : programs) {
        symbols.insert(program);
        names.push_back(FlatSymbolRefAttr::get(program.getSymNameAttr()));
      }
      launch.setKernelsAttr(ArrayAttr::get(&getContext(), names));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  /// Fastest first. The host's accesses cost the same whatever their alignment.
  static SmallVector<Variant> getVariants(tile::KernelOp kernel, bool onHost) {
    std::string name = kernel.getSymName().str();
    int64_t leading = KernelShape::get(kernel).leading;
    bool vectorized = !onHost && kernel.getSchedule()->getVector() > 1;
    SmallVector<Variant> variants;
    variants.push_back({name, 1, vectorized});
    if (leading > 1)
      variants.push_back({name + "_strided", leading, vectorized});
    if (vectorized)
      variants.push_back({name + (leading > 1 ? "_strided" : "") + "_unaligned",
                          leading, false});
    return variants;
  }
};

} // namespace
