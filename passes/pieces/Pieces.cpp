//===- Pieces.cpp - What a thread holds of a tile -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/pieces/Pieces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

tile::BlockedAttr bastile::getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<tile::BlockedAttr>(tensor.getEncoding())
                : tile::BlockedAttr();
}

tile::LayoutInterface bastile::getAnyLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<tile::LayoutInterface>(tensor.getEncoding())
                : tile::LayoutInterface();
}

Type bastile::getPieceType(RankedTensorType tile) {
  int64_t elements = getAnyLayout(tile).getPieceElements(tile.getShape());
  if (elements == 1)
    return tile.getElementType();
  return VectorType::get({elements}, tile.getElementType());
}

Value bastile::getThreadId(OpBuilder &builder, Location loc) {
  return gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
}

/// The number is computed by a shuffle from lane 0: the assembler then knows
/// that all lanes have the same number, and keeps it, and addresses that follow
/// from it, once for a warp. The shuffle is placed where the program starts,
/// the only place where all lanes are sure to take part.
Value bastile::getWarpId(OpBuilder &builder, Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  auto program = builder.getInsertionBlock()
                     ->getParent()
                     ->getParentOfType<tile::ProgramOp>();
  builder.setInsertionPointToStart(&program.getBody().front());
  Value warp = arith::DivUIOp::create(
      builder, loc, getThreadId(builder, loc),
      arith::ConstantIndexOp::create(builder, loc, kWarp));
  Value bits =
      arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), warp);
  auto shuffle = gpu::ShuffleOp::create(builder, loc, bits, /*offset=*/0, kWarp,
                                        gpu::ShuffleMode::IDX);
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                      shuffle.getShuffleResult());
}

Value bastile::createBlockRank(OpBuilder &builder, Location loc,
                               int64_t blocks) {
  if (blocks == 1)
    return arith::ConstantIndexOp::create(builder, loc, 0);
  // Without the upper bound, the dialect assumes at most 8 blocks.
  return gpu::ClusterBlockIdOp::create(
      builder, loc,
      gpu::DimensionAttr::get(builder.getContext(), gpu::Dimension::x),
      builder.getIndexAttr(blocks));
}

Value bastile::createConstantPiece(OpBuilder &builder, Location loc, Type type,
                                   TypedAttr scalar) {
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(builder, loc, scalar);
}

Value bastile::createCount(OpBuilder &builder, Location loc, Value first,
                           Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return first;
  auto offsets =
      llvm::to_vector(llvm::seq<int32_t>(0, vector.getNumElements()));
  Value steps = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(vector, ArrayRef(offsets)));
  Value start = vector::BroadcastOp::create(builder, loc, vector, first);
  return arith::AddIOp::create(builder, loc, start, steps);
}

Value bastile::createMask(OpBuilder &builder, Location loc, Value count,
                          int64_t width) {
  auto type = VectorType::get({width}, builder.getI32Type());
  Value most = arith::ConstantIndexOp::create(builder, loc, width);
  count = arith::MinUIOp::create(builder, loc, count, most);
  count =
      arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), count);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, /*width=*/32);
  return arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ult,
      createCount(builder, loc, zero, type),
      vector::BroadcastOp::create(builder, loc, type, count));
}

/// Numbers of elements. These and the ops that take them are of the LLVM
/// dialect: a program of products takes hundreds of pieces apart, and for each
/// op of the vector dialect there would be constants of its own.
static SmallVector<Value> createIndices(OpBuilder &builder, Location loc,
                                        int64_t count) {
  SmallVector<Value> indices;
  for (int64_t index = 0; index < count; ++index)
    indices.push_back(LLVM::ConstantOp::create(
        builder, loc, builder.getI64IntegerAttr(index)));
  return indices;
}

SmallVector<Value> bastile::unpackPieces(OpBuilder &builder, Location loc,
                                         ValueRange pieces) {
  auto vector = pieces.empty() ? VectorType()
                               : dyn_cast<VectorType>(pieces.front().getType());
  if (!vector)
    return pieces;
  SmallVector<Value> elements;
  const auto indices = createIndices(builder, loc, vector.getNumElements());
  for (Value piece : pieces)
    for (Value index : indices)
      elements.push_back(
          LLVM::ExtractElementOp::create(builder, loc, piece, index));
  return elements;
}

SmallVector<Value> bastile::packPieces(OpBuilder &builder, Location loc,
                                       Type type, ValueRange elements) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return elements;
  SmallVector<Value> pieces;
  const auto indices = createIndices(builder, loc, vector.getNumElements());
  Value empty = LLVM::PoisonOp::create(builder, loc, vector);
  for (; !elements.empty(); elements = elements.drop_front(indices.size())) {
    Value piece = empty;
    for (auto [element, index] : llvm::zip(elements, indices))
      piece =
          LLVM::InsertElementOp::create(builder, loc, piece, element, index);
    pieces.push_back(piece);
  }
  return pieces;
}

static vector::CombiningKind getCombiningKind(tile::ReduceKind kind) {
  switch (kind) {
  case tile::ReduceKind::Add:
    return vector::CombiningKind::ADD;
  case tile::ReduceKind::Max:
    return vector::CombiningKind::MAXIMUMF;
  case tile::ReduceKind::Min:
    return vector::CombiningKind::MINIMUMF;
  }
  llvm_unreachable("unknown reduce kind");
}

Value bastile::combinePieces(OpBuilder &builder, Location loc,
                             tile::ReduceKind kind, ValueRange pieces) {
  Value total = pieces.front();
  for (Value piece : pieces.drop_front())
    total = tile::ReduceOp::combine(builder, loc, kind, total, piece);
  if (!isa<VectorType>(total.getType()))
    return total;
  // A tree instead of a chain, since a reduction may take any order.
  return vector::ReductionOp::create(builder, loc, getCombiningKind(kind),
                                     total, arith::FastMathFlags::reassoc);
}

Type bastile::withIntegers(Type type) {
  Type element = getElementTypeOrSelf(type);
  Type bits =
      IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth());
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(bits) : bits;
}

Type bastile::getMemoryType(Type type) {
  Type element = getElementTypeOrSelf(type);
  bool isSmall =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  return isSmall ? withIntegers(type) : type;
}

Value bastile::bitcastTo(OpBuilder &builder, Location loc, Type type,
                         Value value) {
  if (value.getType() == type)
    return value;
  auto from = value.getDefiningOp<arith::BitcastOp>();
  if (from && from.getIn().getType() == type)
    return from.getIn();
  return arith::BitcastOp::create(builder, loc, type, value);
}

Value bastile::loadPiece(OpBuilder &builder, Location loc, Type type,
                         Value pointer, unsigned alignment, bool isInvariant) {
  auto load = LLVM::LoadOp::create(builder, loc, getMemoryType(type), pointer,
                                   alignment);
  load.setInvariant(isInvariant);
  return bitcastTo(builder, loc, type, load);
}

/// Loads integers, since LLVM's host code generation takes masked bfloat16
/// through float32.
Value bastile::loadMasked(OpBuilder &builder, Location loc, Type type,
                          Value pointer, Value mask, unsigned alignment) {
  Type bits = withIntegers(type);
  Value zero = createConstantPiece(
      builder, loc, bits, builder.getZeroAttr(getElementTypeOrSelf(bits)));
  Value loaded = LLVM::MaskedLoadOp::create(builder, loc, bits, pointer, mask,
                                            zero, alignment);
  return bitcastTo(builder, loc, type, loaded);
}

void bastile::storePiece(OpBuilder &builder, Location loc, Value piece,
                         Value pointer, unsigned alignment) {
  piece = bitcastTo(builder, loc, getMemoryType(piece.getType()), piece);
  LLVM::StoreOp::create(builder, loc, piece, pointer, alignment);
}

Value bastile::combine(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::AndIOp::create(builder, loc, lhs, rhs);
}

/// Stores without a branch: LLVM would move into a branch what only this store
/// needs, loads among it, and loads must start early.
void bastile::storeIf(OpBuilder &builder, Location loc, Value condition,
                      Value piece, Value pointer, unsigned alignment) {
  if (!condition) {
    LLVM::StoreOp::create(builder, loc, piece, pointer, alignment);
    return;
  }
  // bfloat16 is stored as integers, since LLVM's host code generation takes a
  // masked store of one bfloat16 through float32, rounding by a call.
  if (getElementTypeOrSelf(piece.getType()).isBF16())
    piece = bitcastTo(builder, loc, withIntegers(piece.getType()), piece);
  auto type = dyn_cast<VectorType>(piece.getType());
  if (!type) {
    type = VectorType::get({1}, piece.getType());
    piece = vector::BroadcastOp::create(builder, loc, type, piece);
  }
  Value mask = vector::BroadcastOp::create(
      builder, loc, type.clone(builder.getI1Type()), condition);
  LLVM::MaskedStoreOp::create(builder, loc, piece, pointer, mask, alignment);
}

Value bastile::loadIf(OpBuilder &builder, Location loc, Value condition,
                      Value other, Value pointer, unsigned alignment) {
  // As integers for the reason that `storeIf` has.
  Type type = other.getType();
  Value bits = type.isBF16()
                   ? bitcastTo(builder, loc, withIntegers(type), other)
                   : bitcastTo(builder, loc, getMemoryType(type), other);
  auto toVector = [&](Value scalar) -> Value {
    return vector::BroadcastOp::create(
        builder, loc, VectorType::get({1}, scalar.getType()), scalar);
  };
  Value ifNot = toVector(bits);
  Value loaded =
      LLVM::MaskedLoadOp::create(builder, loc, ifNot.getType(), pointer,
                                 toVector(condition), ifNot, alignment);
  return bitcastTo(builder, loc, type,
                   vector::ExtractOp::create(builder, loc, loaded, 0));
}

Type bastile::getBufferPointerType(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(
      context, static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
}

void bastile::keepRolled(Operation *loop) {
  MLIRContext *context = loop->getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
      {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {},
                                              {}, {}, {}, {}, {}, {}, {}, {},
                                              {}, {}));
}

void bastile::waitForPhase(OpBuilder &builder, Location loc, Value barrier,
                           Value parity) {
  scf::WhileOp::create(
      builder, loc, TypeRange(), ValueRange(),
      [&](OpBuilder &inner, Location where, ValueRange) {
        Value isDone = NVVM::MBarrierTryWaitOp::create(
            inner, where, inner.getI1Type(), barrier, parity,
            /*ticks=*/Value(), NVVM::MemScopeKind::CTA, /*relaxed=*/false);
        Value isLeft = arith::XOrIOp::create(
            inner, where, isDone,
            arith::ConstantIntOp::create(inner, where, 1, /*width=*/1)
                .getResult());
        scf::ConditionOp::create(inner, where, isLeft, ValueRange());
      },
      [&](OpBuilder &inner, Location where, ValueRange) {
        scf::YieldOp::create(inner, where);
      });
}
