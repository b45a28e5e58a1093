//===- FactorPipeline.cpp - Factors that are copied by boxes --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/FactorPipeline.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// As many columns of a step's products leave registers beside 128 sums of a
/// thread: 64 numbers of it.
static constexpr int64_t kMostPartialColumns = 128;

/// The factors of all products of the kernel.
static SmallVector<unsigned> getFactors(const ProgramFrame &frame) {
  SmallVector<unsigned> factors;
  for (tile::DotOp dot : frame.space.getDots())
    for (unsigned index : {0, 1})
      factors.push_back(frame.operands.findFactor(dot, index));
  return factors;
}

FactorPipeline::FactorPipeline(ProgramFrame &frame, Value rank)
    : frame(frame), builder(frame.builder),
      splitRank(frame.schedule.getSplitBlocks() > 1 ? rank : Value()),
      stages(frame, getFactors(frame), frame.schedule.getStages(),
             splitRank ? Value() : rank, /*offset=*/0) {}

/// Builds `body`, which carries values, for all steps of a tile that the block
/// has.
SmallVector<Value> FactorPipeline::buildOverSteps(ValueRange initial,
                                                  ProgramFrame::Body body) {
  return frame.buildOverBatch(
      frame.getSummedBatch(), initial, [&](ValueRange before) {
        Value steps =
            arith::CeilDivUIOp::create(builder, frame.emitter.getSize("k"),
                                       frame.constant(frame.extents.streamed));
        if (!splitRank)
          return frame.buildOverSteps(frame.constant(0), steps, before, body);
        auto getFirst = [&](Value rank) -> Value {
          return arith::DivUIOp::create(
              builder, arith::MulIOp::create(builder, rank, steps),
              frame.constant(frame.schedule.getSplitBlocks()));
        };
        Value next =
            arith::AddIOp::create(builder, splitRank, frame.constant(1));
        return frame.buildOverSteps(getFirst(splitRank), getFirst(next), before,
                                    body);
      });
}

/// Gives back the stage of the step ahead of `number`, if there is one behind
/// `at`, the tile's first.
void FactorPipeline::releaseBefore(Value number, Value at) {
  auto branch = scf::IfOp::create(
      builder,
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt, number, at));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  stages.release(arith::SubIOp::create(builder, number, frame.constant(1)));
}

Value FactorPipeline::copy(Value at, Value /*turn*/) {
  Value one = frame.constant(1);
  return buildOverSteps(
             at,
             [&](ValueRange before) -> SmallVector<Value> {
               stages.copy(before.front());
               return {arith::AddIOp::create(builder, before.front(), one)};
             })
      .front();
}

/// Begins the product of the tiles of a step, which it adds to `sum` unless
/// that is null: the columns of `type` from `column` on.
Value FactorPipeline::multiply(tile::DotOp dot, tile::PendingType type,
                               Value sum, int64_t column) {
  return tile::DotOp::create(builder, type,
                             stages.getTile(frame.operands.findFactor(dot, 0)),
                             stages.getTile(frame.operands.findFactor(dot, 1)),
                             sum, dot.getContract(), column);
}

Value FactorPipeline::compute(Value at, Value /*turn*/) {
  const bool isSmall = isSmallFloat(frame.space.getDot().getFactorType());
  return isSmall ? computeInSteps(at) : computeInPlace(at);
}

/// Lets tensor cores add all steps. A step's products begin before those of the
/// last one have ended.
Value FactorPipeline::computeInPlace(Value at) {
  Value one = frame.constant(1);
  ArrayRef<tile::DotOp> dots = frame.space.getDots();
  SmallVector<Value> initial;
  for (tile::DotOp dot : dots) {
    RankedTensorType type = frame.emitter.getTileType(
        tile::DotOp(dot).getSumType(), /*ofFactor=*/false);
    Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    initial.push_back(tile::BeginDotsOp::create(
        builder, tile::PendingType::get(builder.getContext(), type), zeros));
  }
  initial.push_back(at);
  SmallVector<Value> totals = buildOverSteps(initial, [&](ValueRange before) {
    SmallVector<Value> after(before);
    Value number = after.back();
    stages.await(number);
    for (auto [index, dot] : llvm::enumerate(dots))
      after[index] =
          multiply(dot, cast<tile::PendingType>(after[index].getType()),
                   after[index], /*column=*/0);
    // The products of the step before have ended, so its stage is free.
    tile::WaitDotsOp::create(builder, TypeRange(),
                             builder.getI64IntegerAttr(dots.size()),
                             ValueRange(), ValueRange());
    releaseBefore(number, at);
    after.back() = arith::AddIOp::create(builder, number, one);
    return after;
  });
  SmallVector<Type> types;
  for (Value pending : ArrayRef(totals).drop_back())
    types.push_back(cast<tile::PendingType>(pending.getType()).getTile());
  auto wait = tile::WaitDotsOp::create(
      builder, types, builder.getI64IntegerAttr(0),
      ValueRange(ArrayRef(totals).drop_back()), ValueRange());
  for (auto [dot, sum] : llvm::zip_equal(dots, wait.getResults()))
    frame.emitter.map(tile::DotOp(dot).getResult(), sum);
  Value next = totals.back();
  releaseBefore(next, at);
  return next;
}

/// Adds the products of each step to the sums, some columns after the others:
/// beside all sums, registers hold the products of one part. While a warpgroup
/// adds, the tensor cores multiply for another one.
Value FactorPipeline::computeInSteps(Value at) {
  ArrayRef<tile::DotOp> dots = frame.space.getDots();
  RankedTensorType whole = frame.emitter.getTileType(
      frame.space.getDot().getSumType(), /*ofFactor=*/false);
  const int64_t columns = whole.getDimSize(1);
  const auto parts =
      static_cast<int64_t>(llvm::divideCeil(columns, kMostPartialColumns));
  const int64_t partColumns = columns / parts;
  RankedTensorType type = whole.clone({whole.getDimSize(0), partColumns});
  auto pending = tile::PendingType::get(builder.getContext(), type);

  Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
  SmallVector<Value> initial(dots.size() * parts, zeros);
  initial.push_back(at);
  SmallVector<Value> totals = buildOverSteps(initial, [&](ValueRange before) {
    SmallVector<Value> after;
    Value number = before.back();
    for (tile::DotOp dot : dots)
      for (int64_t part = 0; part < parts; ++part) {
        stages.await(number);
        Value product =
            waitForSum(builder, multiply(dot, pending, /*sum=*/Value(),
                                         part * partColumns));
        const bool isLast = after.size() + 2 == before.size();
        if (isLast)
          stages.release(number);
        Value sum =
            arith::AddFOp::create(builder, before[after.size()], product);
        // The next wait at a barrier returns at once where its stage is full
        // already. Compilers move no additions behind both: behind the next
        // products, what is added would need registers of its own.
        after.push_back(isLast ? sum : keepInFront(builder, sum));
      }
    after.push_back(arith::AddIOp::create(builder, number, frame.constant(1)));
    return after;
  });
  for (auto [index, dot] : llvm::enumerate(dots)) {
    ValueRange sums = ArrayRef(totals).slice(index * parts, parts);
    frame.emitter.map(tile::DotOp(dot).getResult(),
                      parts == 1 ? sums.front()
                                 : tile::JoinOp::create(builder, whole,
                                                        /*strands=*/1, sums)
                                       .getResult());
  }
  return totals.back();
}
