//===- SentSums.cpp - Sums that blocks send to each other -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/SentSums.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

static int64_t getTileBytes(RankedTensorType type) {
  return type.getNumElements() * getElementBytes(type);
}

SentSums::SentSums(ProgramFrame &frame, Value rank, int64_t warpgroups,
                   int64_t columns, int64_t offset)
    : frame(frame), builder(frame.builder), rank(rank),
      blocks(frame.schedule.getSplitBlocks()),
      parts(frame.extents.columns / columns) {
  // All blocks complete as many parts, or there are fewer parts than blocks.
  assert((parts % blocks == 0 || parts < blocks) && "parts are dealt evenly");
  auto whole = frame.emitter.getTileType(frame.space.getDot().getSumType(),
                                         /*ofFactor=*/false);
  partType = whole.clone({whole.getDimSize(0), columns});
  MemRefType type = MemRefType::get(
      {static_cast<int64_t>(llvm::divideCeil(parts, blocks)) * blocks,
       partType.getDimSize(0), columns},
      partType.getElementType(), MemRefLayoutAttrInterface(),
      tile::HeldAttr::get(builder.getContext()));
  for (size_t dot = 0; dot < frame.space.getDots().size(); ++dot) {
    slots.push_back(tile::BufferOp::create(
        builder, type, builder.getI64IntegerAttr(offset + bytes)));
    bytes += type.getNumElements() * getElementBytes(partType);
  }
  auto make = [&](int64_t arrivals) -> Value {
    return tile::MakeBarriersOp::create(
        builder, tile::BarriersType::get(builder.getContext(), 1), arrivals);
  };
  received = make(1);
  free = make(warpgroups * blocks);
}

/// The slot for what this block has of a part, in the block that completes it.
Value SentSums::getSlot(Value part) {
  Value first = arith::SubIOp::create(
      builder, part,
      arith::RemUIOp::create(builder, part, frame.constant(blocks)));
  return arith::AddIOp::create(builder, first, rank);
}

/// Announces the bytes of the others.
void SentSums::expect() {
  const int64_t ofPart = (blocks - 1) * getTileBytes(partType) *
                         static_cast<int64_t>(slots.size());
  auto announce = [&](int64_t count) {
    tile::ExpectOp::create(builder, builder.getI64IntegerAttr(count * ofPart),
                           received, frame.constant(0));
  };
  if (parts >= blocks)
    return announce(parts / blocks);
  auto branch = scf::IfOp::create(
      builder,
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, rank,
                            frame.constant(parts)),
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  announce(1);
  builder.setInsertionPointToStart(branch.elseBlock());
  announce(0);
}

/// Waits until all blocks have read the sums of the tile before. Ahead of the
/// first tile this returns at once.
void SentSums::awaitFree() {
  tile::AwaitOp::create(
      builder, TypeRange(), free, frame.constant(0),
      arith::RemUIOp::create(
          builder, arith::AddIOp::create(builder, turn, frame.constant(1)),
          frame.constant(2)),
      ValueRange());
}

void SentSums::share(ValueRange sums) {
  expect();
  awaitFree();
  SmallVector<SmallVector<Value>> pieces;
  for (Value sum : sums) {
    SmallVector<Type> types(parts, partType);
    auto split = tile::SplitOp::create(builder, types, /*strands=*/1, sum);
    pieces.emplace_back(split.getPieces());
  }
  for (int64_t block = 0; block < std::min(blocks, parts); ++block) {
    Value number = frame.constant(block);
    auto branch = scf::IfOp::create(
        builder,
        arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, rank, number),
        /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    for (const bool isOwn : {true, false}) {
      builder.setInsertionPointToStart(isOwn ? branch.thenBlock()
                                             : branch.elseBlock());
      for (auto [buffer, own] : llvm::zip_equal(slots, pieces))
        for (int64_t part = block; part < parts; part += blocks) {
          Value slot = getSlot(frame.constant(part));
          if (isOwn)
            tile::KeepOp::create(builder, own[part], buffer, slot);
          else
            tile::SendOp::create(builder, own[part], buffer, slot, number,
                                 received, frame.constant(0));
        }
    }
  }
}

void SentSums::await() {
  tile::AwaitOp::create(
      builder, TypeRange(), received, frame.constant(0),
      arith::RemUIOp::create(builder, turn, frame.constant(2)), ValueRange());
}

void SentSums::buildOverParts(llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(builder, rank, frame.constant(parts),
                                 frame.constant(blocks));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value SentSums::take(size_t dot, Value part) {
  // The block's own number is that of the first part that it completes.
  Value first = arith::SubIOp::create(builder, part, rank), sum;
  for (int64_t block = 0; block < blocks; ++block) {
    Value slot = arith::AddIOp::create(builder, first, frame.constant(block));
    Value own = tile::TakeOp::create(builder, partType, slots[dot], slot,
                                     /*transposed=*/false);
    sum = sum ? arith::AddFOp::create(builder, sum, own) : own;
  }
  return sum;
}

void SentSums::release(Value hasNext) {
  auto branch = scf::IfOp::create(builder, hasNext);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  tile::ArriveOp::create(builder, free, frame.constant(0), /*cluster=*/true,
                         /*warps=*/false);
}
