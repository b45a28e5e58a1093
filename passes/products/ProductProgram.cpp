//===- ProductProgram.cpp - The program of a kernel over dimensions -------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// There is a program for each tile of rows, m, and of columns, n, of each
// matrix of the batch, whose dimensions are b0, b1, ... from the last one on.
// It goes along k in a loop, or in several where a reduction waits for another
// one. A value is computed in the innermost loop along whose dimension it has
// elements.
//
//===----------------------------------------------------------------------===//

#include "passes/products/ProductProgram.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/Epilogue.h"
#include "passes/products/StreamLoop.h"
#include "passes/products/StreamSums.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Builds a program all of whose threads copy and compute.
class ProductBuilder {
public:
  ProductBuilder(tile::KernelOp kernel, tile::MatmulAttr schedule, bool onHost)
      : frame(kernel, schedule, onHost), space(frame.space),
        following(frame.getBody()), depths(following.getDepths()),
        builder(frame.builder), operands(frame.operands),
        emitter(frame.emitter) {}

  tile::ProgramOp build(StringRef name);

private:
  void emitLoadedProducts();
  int64_t getSweep(Operation *op);
  void buildSweep(int64_t sweep);
  llvm::SetVector<Operation *> findStreamed(ArrayRef<Value> values);
  void stage(StreamLoop &loop, ArrayRef<Operation *> sums,
             ArrayRef<Value> values);
  void emitStore(unsigned result, Value tile);
  /// Whether tensor cores multiply tiles in shared memory.
  bool isStaged() const { return frame.schedule.isStaged(); }

  ProgramFrame frame;
  const KernelSpace &space;
  const FollowingSums following;
  ReductionDepths depths;
  ImplicitLocOpBuilder &builder;
  const ProgramOperands &operands;
  SpaceEmitter &emitter;
  /// The first byte of shared memory that stores of results may use.
  int64_t freeShared = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Without shared memory, products of two operands take them whole.
void ProductBuilder::emitLoadedProducts() {
  for (tile::DotOp dot : space.getDots()) {
    if (isStaged() || KernelSpace::isLeftComputed(dot))
      continue;
    RankedTensorType type = emitter.getTileType(dot.getSumType(), false);
    Value zero = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    SmallVector<Value> sums = frame.buildOverBatch(
        frame.getSummedBatch(), zero,
        [&](ValueRange before) -> SmallVector<Value> {
          emitter.stream = frame.constant(0);
          return {emitter.emitLoadDot(dot, before.front())};
        });
    emitter.map(dot.getResult(), sums.front());
  }
}

/// The loop over k in which `op`, a reduction or a product, sums.
int64_t ProductBuilder::getSweep(Operation *op) {
  if (auto dot = dyn_cast<tile::DotOp>(op);
      dot && !KernelSpace::isLeftComputed(dot))
    return 0;
  return depths.getSweep(op);
}

/// The streamed ops that `values` are computed of in a loop.
llvm::SetVector<Operation *>
ProductBuilder::findStreamed(ArrayRef<Value> values) {
  llvm::SetVector<Operation *> ops;
  auto add = [&](Value value) {
    if (space.isStreamed(value))
      ops.insert(value.getDefiningOp());
  };
  llvm::for_each(values, add);
  for (size_t next = 0; next < ops.size(); ++next)
    if (!isa<tile::DotOp>(ops[next]))
      llvm::for_each(getValueOperands(ops[next]), add);
  return ops;
}

/// Lets `loop` copy the operands of `sums`, and those that `values` and terms
/// of the sums are computed of.
void ProductBuilder::stage(StreamLoop &loop, ArrayRef<Operation *> sums,
                           ArrayRef<Value> values) {
  SmallVector<Value> streamed(values);
  SmallVector<tile::DotOp> dots;
  for (Operation *op : sums)
    streamed.push_back(op->getOperand(0));
  const llvm::SetVector<Operation *> ops = findStreamed(streamed);
  for (Operation *op : ops)
    if (auto dot = dyn_cast<tile::DotOp>(op))
      dots.push_back(dot);
  for (Operation *op : sums)
    if (auto dot = dyn_cast<tile::DotOp>(op))
      dots.push_back(dot);
  llvm::SmallSetVector<unsigned, 4> elements;
  auto addElements = [&](Operation *op) {
    for (OpOperand &use : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(use.get().getType());
      if (!isa<BlockArgument>(use.get()) || getSizeOperand(op) == &use ||
          !space.readsStream(use) || space.isTransposed() ||
          type.getRank() < 2 || type.getDimSize(type.getRank() - 2) == 1 ||
          getElementBytes(type) != 2 || !isa<FloatType>(type.getElementType()))
        continue;
      elements.insert(operands.find(use.get(), /*ofFactor=*/true));
    }
  };
  llvm::for_each(ops, addElements);
  llvm::for_each(sums, addElements);
  loop.stage(dots, elements.getArrayRef());
}

/// Builds loop `sweep` over k, with all sums and results that wait for the
/// loops before it.
void ProductBuilder::buildSweep(int64_t sweep) {
  StreamSums sums(builder, emitter, following);
  SmallVector<std::pair<unsigned, Value>> stored;
  for (Operation &op : frame.getBody().without_terminator()) {
    auto dot = dyn_cast<tile::DotOp>(op);
    const bool isLoaded =
        dot && !isStaged() && !KernelSpace::isLeftComputed(dot);
    if (space.reducesStream(&op) && !isLoaded && getSweep(&op) == sweep)
      sums.add(&op);
  }
  for (auto [index, value] :
       llvm::enumerate(frame.getBody().getTerminator()->getOperands()))
    if (space.isStreamed(value) && depths.get(value) == sweep)
      stored.push_back({index, value});
  if (sums.getOps().empty() && stored.empty())
    return;

  SmallVector<Value> totals = frame.buildOverBatch(
      frame.getSummedBatch(), sums.createInitial(), [&](ValueRange initial) {
        StreamLoop loop(builder, emitter, space, operands, frame.layout,
                        frame.schedule.getStages());
        stage(loop, sums.getOps(),
              SmallVector<Value>(llvm::make_second_range(stored)));
        if (stored.empty())
          loop.bound(findVisited(sums.getOps(), following, space));
        emitter.emitInner = [&](tile::DotOp dot) {
          return loop.emitInner(dot);
        };
        emitter.emitStaged = [&](unsigned operand) {
          return space.isTransposed() ? Value() : loop.takeElements(operand);
        };
        return loop.build(initial, [&](ValueRange before) {
          SmallVector<Value> after =
              sums.combine(before, [&](const StepProduct &product) {
                return loop.addProducts(product.dot,
                                        sums.mask(product, product.left),
                                        sums.rescale(product, product.before));
              });
          for (auto [index, value] : stored)
            emitStore(index, emitter.emit(value, true));
          return after;
        });
      });
  emitter.emitInner = nullptr;
  emitter.emitStaged = nullptr;
  sums.finish(totals);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void ProductBuilder::emitStore(unsigned result, Value tile) {
  const unsigned operand = operands.getResult(result);
  // Inside of the loop, shared memory holds factors.
  if (!emitter.getLoop() && frame.isStoredStaged(operands.getAll()[operand]))
    return emitStagedStore(builder, tile, emitter.getMemory(operand),
                           emitter.getIndices(operand), freeShared);
  emitter.emitStore(operand, tile);
}

tile::ProgramOp ProductBuilder::build(StringRef name) {
  tile::ProgramOp program = frame.create(name);
  Value number = tile::ProgramIdOp::create(builder);
  frame.countTiles();
  frame.findPlace(number);
  emitLoadedProducts();
  int64_t last = 0;
  for (Operation &op : frame.getBody().without_terminator())
    if (space.reducesStream(&op))
      last = std::max(last, getSweep(&op));
  for (Value value : frame.getBody().getTerminator()->getOperands())
    if (space.isStreamed(value))
      last = std::max(last, depths.get(value));
  for (int64_t sweep = 0; sweep <= last; ++sweep)
    buildSweep(sweep);
  Epilogue(frame, freeShared, [&](unsigned result, Value tile) {
    emitStore(result, tile);
  }).emit();
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

tile::ProgramOp bastile::buildProductProgram(tile::KernelOp kernel,
                                             tile::MatmulAttr schedule,
                                             StringRef name, bool onHost) {
  return ProductBuilder(kernel, schedule, onHost).build(name);
}
