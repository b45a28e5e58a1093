//===- StreamSteps.cpp - When the products of streamed steps begin --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The products of a step either end with it, or run during the step behind it.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/roles/StreamPipeline.h"

using namespace mlir;
using namespace bastile;

/// Computes the steps of a tile of one matrix. `initial` and the result are the
/// accumulators and a number of steps.
SmallVector<Value> StreamPipeline::computeSteps(StreamSums &streamSums,
                                                ValueRange initial) {
  const StepRange range = emitRange();
  if (!endsSteps()) {
    auto computeAhead = [&] {
      return computeStepsAhead(streamSums, range, initial);
    };
    return added ? buildUnlessEmpty(range, initial, computeAhead)
                 : computeAhead();
  }
  return buildOverSteps(range, initial, [&](ValueRange before) {
    loadNumbersOfRows();
    awaitStep(before.back());
    if (takesTurns())
      tile::TakeTurnOp::create(builder);
    beginStep();
    if (takesTurns())
      tile::PassTurnOp::create(builder);
    SmallVector<Value> after = computeStep(streamSums, before.drop_back());
    after.push_back(arith::AddIOp::create(builder, number, frame.constant(1)));
    return after;
  });
}

/// The accumulators behind a step whose inner products have begun, with its own
/// products. Each of these begins once its left factor is there, and runs while
/// the next one is computed.
SmallVector<Value> StreamPipeline::computeStep(StreamSums &streamSums,
                                               ValueRange before) {
  if (outer)
    outer->await(number);
  findRights();
  SmallVector<Value> products;
  Value addedSum;
  // How many products have begun ahead of it.
  size_t ahead = 0;
  SmallVector<Value> after =
      streamSums.combine(before, [&](const StepProduct &product) {
        const bool isAdded = added && added->takes(product.dot);
        Value left = streamSums.mask(
            product, frame.emitter.roundLeft(product.dot, product.left),
            /*masksRows=*/isAdded);
        if (isAdded) {
          added->give(left, number);
          addedSum = added->multiply(whole.getTile(added->getWhole()), number);
          ahead = products.size();
        }
        products.push_back(beginProduct(
            product.dot, left, streamSums.rescale(product, product.before)));
        ++running;
        return product.before;
      });
  releaseNumbers();
  if (addedSum)
    added->leave(waitForSum(builder, addedSum,
                            static_cast<int64_t>(products.size() - ahead)),
                 number);
  waitForProducts(products, after);
  releaseProducts(number);
  return after;
}

/// Computes the steps of `range`, of which there is one at least, with the
/// products of a step in the step behind it, or behind the loop, which carries
/// their left factors.
SmallVector<Value> StreamPipeline::computeStepsAhead(StreamSums &streamSums,
                                                     const StepRange &range,
                                                     ValueRange initial) {
  const size_t numSums = initial.size() - 1;
  SmallVector<Value> carried = frame.buildStep(
      frame.mirror(range.first, range.first, range.end),
      [&]() {
        loadNumbersOfRows();
        awaitStep(initial.back());
        beginStep();
        return computeFactors(streamSums, initial.drop_back(), {});
      },
      range.origin);
  Value one = frame.constant(1);
  carried.push_back(arith::AddIOp::create(builder, number, one));
  carried = frame.buildOverSteps(
      range.first, range.end, carried,
      [&](ValueRange before) {
        loadNumbersOfRows();
        Value last = arith::SubIOp::create(builder, before.back(), one);
        // A shared stage has been there since the last step. Any other one is
        // waited for once the tensor cores have something to do.
        if (sharesInner())
          awaitProducts(last);
        awaitStep(before.back());
        if (takesTurns())
          tile::TakeTurnOp::create(builder);
        beginStep();
        if (!sharesInner())
          awaitProducts(last);
        SmallVector<Value> products =
            beginProducts(last, before.take_front(numSums),
                          before.drop_front(numSums).drop_back());
        if (takesTurns())
          tile::PassTurnOp::create(builder);
        SmallVector<Value> after =
            computeFactors(streamSums, before.take_front(numSums), products);
        releaseProducts(last);
        after.push_back(arith::AddIOp::create(builder, number, one));
        return after;
      },
      range.origin, /*ahead=*/1);
  Value next = carried.pop_back_val();
  Value last = arith::SubIOp::create(builder, next, one);
  awaitProducts(last);
  SmallVector<Value> products =
      beginProducts(last, ArrayRef(carried).take_front(numSums),
                    ArrayRef(carried).drop_front(numSums));
  carried.truncate(numSums);
  waitForProducts(products, carried);
  releaseProducts(last);
  carried.push_back(next);
  return carried;
}

/// The accumulators behind a step whose inner products have begun, without its
/// own products, and the left factors of these. `products` are those of the
/// step before, of which `before` has only what was added up ahead of them.
/// They read the registers of the factors before: so no factor is rounded ahead
/// of the wait for them. They run until the maxima of the step are there, and
/// no longer: the assembler mixes powers, roundings and what makes sums
/// relative to a new maximum only where no wait lies in between.
SmallVector<Value> StreamPipeline::computeFactors(StreamSums &streamSums,
                                                  ValueRange before,
                                                  ArrayRef<Value> products) {
  SmallVector<Value> factors;
  SmallVector<Value> after =
      streamSums.combine(before, [&](const StepProduct &product) {
        Value sum = product.before;
        if (!products.empty())
          sum = waitForProduct(products[factors.size()], product.done);
        Value factor = streamSums.mask(
            product, frame.emitter.roundLeft(product.dot, product.left),
            /*masksRows=*/added && added->takes(product.dot));
        if (!products.empty()) {
          // Behind a branch, nothing could be computed with the powers.
          if (product.isScaled)
            factor =
                keepInFront(builder, factor, static_cast<int64_t>(running));
          sum = streamSums.rescale(product, sum);
        }
        factors.push_back(factor);
        return sum;
      });
  releaseNumbers();
  llvm::append_range(after, factors);
  return after;
}

/// What the step before has added up of the product `pending`, once that and
/// the maxima among `done`, accumulators of this step, are there, or all of
/// them if there is no maximum.
Value StreamPipeline::waitForProduct(Value pending, ValueRange done) {
  SmallVector<Value> maxima, all;
  for (auto [op, tile] : llvm::zip(sums, done))
    if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      all.push_back(tile);
      if (reduce.getKind() == tile::ReduceKind::Max)
        maxima.push_back(tile);
    }
  return waitForSum(builder, pending, static_cast<int64_t>(--running),
                    maxima.empty() ? all : maxima);
}
