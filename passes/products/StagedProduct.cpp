//===- StagedProduct.cpp - A product of tiles in shared memory ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/StagedProduct.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace bastile;

/// The most bytes of a row that the order in shared memory mixes.
static constexpr int64_t kMostSwizzle = 128;

static MemRefType getBufferType(MLIRContext *context, int64_t slots,
                                int64_t rows, int64_t columns, Type element) {
  const int64_t swizzle =
      std::min(kMostSwizzle, columns * getElementBytes(element));
  return MemRefType::get({slots, rows, columns}, element,
                         MemRefLayoutAttrInterface(),
                         tile::SharedAttr::get(context, swizzle));
}

namespace {

/// The slots of one factor in shared memory.
class FactorSlots {
public:
  /// `size` are the rows or columns of the factor that the tile has, of which a
  /// slot has `depth` elements.
  FactorSlots(ImplicitLocOpBuilder &builder, const StagedFactor &factor,
              int64_t slots, int64_t size, int64_t depth, int64_t offset)
      : builder(builder), factor(factor), depth(depth) {
    Type element = cast<MemRefType>(factor.memory.getType()).getElementType();
    const bool isAlongRows = factor.contract == 1;
    MemRefType type =
        getBufferType(builder.getContext(), slots, isAlongRows ? size : depth,
                      isAlongRows ? depth : size, element);
    slotTiles = tile::BufferOp::create(builder, type,
                                       builder.getI64IntegerAttr(offset));
    bytes = type.getNumElements() * getElementBytes(element);
  }

  /// The bytes of all slots.
  int64_t getBytes() const { return bytes; }

  /// Begins to copy what is summed from element `begin` on.
  void copy(Value begin, Value slot) {
    SmallVector<Value> indices(factor.batch);
    if (factor.contract == 1)
      indices.append({factor.first, begin});
    else
      indices.append({begin, factor.first});
    tile::CopyTileOp::create(builder, factor.memory, indices, slotTiles, slot);
  }

  /// Reads a slot as an operand of a product, a tile of `size` rows in
  /// `layout`.
  Value take(Value slot, int64_t size, Attribute layout) {
    Type element = cast<MemRefType>(factor.memory.getType()).getElementType();
    return tile::TakeOp::create(
        builder, RankedTensorType::get({size, depth}, element, layout),
        slotTiles, slot, /*transposed=*/factor.contract == 0);
  }

private:
  ImplicitLocOpBuilder &builder;
  const StagedFactor &factor;
  const int64_t depth;
  Value slotTiles;
  int64_t bytes;
};

} // namespace

Value bastile::emitStagedProduct(ImplicitLocOpBuilder &builder,
                                 tile::MatmulAttr schedule,
                                 const StagedFactor &a, const StagedFactor &b,
                                 Value depth, Value sum) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, value);
  };
  const int64_t stages = schedule.getStages(), part = schedule.getDepth();
  FactorSlots left(builder, a, stages, schedule.getRows(), part, /*offset=*/0);
  FactorSlots right(builder, b, stages, schedule.getColumns(), part,
                    left.getBytes());
  auto copy = [&](Value step, Value slot) {
    Value first = arith::MulIOp::create(builder, step, constant(part));
    left.copy(first, slot);
    right.copy(first, slot);
    tile::CommitCopiesOp::create(builder);
  };
  Value zero = constant(0), one = constant(1), ahead = constant(stages - 1);
  Value steps = arith::CeilDivUIOp::create(builder, depth, constant(part));
  // The first steps copy only, the last ones multiply only: what lies beyond
  // the operands becomes zeros, so that each step makes a group of copies.
  auto loop = scf::ForOp::create(
      builder, zero, arith::AddIOp::create(builder, steps, ahead), one, sum);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    // The slot that is multiplied is full once all threads have waited; that
    // of the step before, which is copied to next, has been read by all of
    // them.
    tile::WaitCopiesOp::create(builder, static_cast<int32_t>(stages - 2));
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
    copy(step, arith::RemUIOp::create(builder, step, constant(stages)));
    Value isFull =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, step, ahead);
    auto multiply = scf::IfOp::create(builder, sum.getType(), isFull,
                                      /*withElseRegion=*/true);
    scf::YieldOp::create(builder, multiply.getResult(0));
    builder.setInsertionPointToStart(multiply.elseBlock());
    scf::YieldOp::create(builder, loop.getRegionIterArg(0));
    builder.setInsertionPointToStart(multiply.thenBlock());
    Value slot = arith::RemUIOp::create(
        builder, arith::SubIOp::create(builder, step, ahead), constant(stages));
    auto type = cast<RankedTensorType>(sum.getType());
    Attribute rhs = tile::MmaRhsAttr::get(builder.getContext(), /*vector=*/2);
    Value more = tile::DotOp::create(
        builder, type, left.take(slot, schedule.getRows(), type.getEncoding()),
        right.take(slot, schedule.getColumns(), rhs), loop.getRegionIterArg(0),
        ArrayRef<int64_t>{1, 1});
    scf::YieldOp::create(builder, more);
  }
  tile::WaitCopiesOp::create(builder, /*pending=*/0);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  return loop.getResult(0);
}

bool bastile::isStagedStore(Type element) {
  const int64_t bytes = getElementBytes(element);
  return isa<FloatType>(element) && (bytes == 2 || bytes == 4);
}

void bastile::emitStagedStore(ImplicitLocOpBuilder &builder, Value tile,
                              Value memory, ValueRange indices,
                              int64_t offset) {
  auto type = cast<RankedTensorType>(tile.getType());
  MemRefType slotType =
      getBufferType(builder.getContext(), /*slots=*/1, type.getDimSize(0),
                    type.getDimSize(1), type.getElementType());
  Value slots = tile::BufferOp::create(builder, slotType,
                                       builder.getI64IntegerAttr(offset));
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  tile::KeepOp::create(builder, tile, slots, zero);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  tile::StoreTileOp::create(builder, slots, zero, memory, indices);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
}

KeptParts::KeptParts(ImplicitLocOpBuilder &builder, Value tile, int64_t parts)
    : builder(builder) {
  auto type = cast<RankedTensorType>(tile.getType());
  const int64_t columns = type.getDimSize(1) / parts;
  MemRefType slotType =
      getBufferType(builder.getContext(), parts, type.getDimSize(0), columns,
                    type.getElementType());
  slots = tile::BufferOp::create(builder, slotType,
                                 builder.getI64IntegerAttr(/*value=*/0));
  bytes = slotType.getNumElements() * getElementBytes(type);
  partType = RankedTensorType::get({type.getDimSize(0), columns},
                                   type.getElementType(), type.getEncoding());
  SmallVector<Type> types(parts, partType);
  auto split = tile::SplitOp::create(builder, types, /*strands=*/1, tile);
  for (auto [index, piece] : llvm::enumerate(split.getPieces()))
    tile::KeepOp::create(
        builder, piece, slots,
        arith::ConstantIndexOp::create(builder, static_cast<int64_t>(index)));
}

Value KeptParts::take(Value part) const {
  return tile::TakeOp::create(builder, partType, slots, part,
                              /*transposed=*/false);
}
