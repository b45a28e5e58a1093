//===- StagedTiles.cpp - Tiles that go through shared memory --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/StagedTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace bastile;

int64_t bastile::getSwizzleBytes(int64_t rowBytes) {
  int64_t swizzle = 128;
  while (rowBytes % swizzle != 0)
    swizzle /= 2;
  return swizzle;
}

MemRefType bastile::getSlotsType(MLIRContext *context, int64_t slots,
                                 int64_t rows, int64_t columns, Type element) {
  const int64_t swizzle = getSwizzleBytes(columns * getElementBytes(element));
  return MemRefType::get({slots, rows, columns}, element,
                         MemRefLayoutAttrInterface(),
                         tile::SharedAttr::get(context, swizzle));
}

StagedTiles::StagedTiles(ImplicitLocOpBuilder &builder, Value memory,
                         const StagedShape &shape, int64_t stages,
                         int64_t offset)
    : builder(&builder), memory(memory), shape(shape),
      element(cast<MemRefType>(memory.getType()).getElementType()) {
  const bool isAlongRows = shape.isAlongRows;
  MemRefType type =
      getSlotsType(builder.getContext(), stages * shape.chunks,
                   isAlongRows ? shape.free : shape.depth,
                   isAlongRows ? shape.depth : shape.free, element);
  slots =
      tile::BufferOp::create(builder, type, builder.getI64IntegerAttr(offset));
  bytes = type.getNumElements() * getElementBytes(element);
}

Value StagedTiles::getSlot(Value stage, int64_t chunk) {
  if (shape.chunks == 1)
    return stage;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(*builder, value);
  };
  Value first = arith::MulIOp::create(*builder, stage, constant(shape.chunks));
  return arith::AddIOp::create(*builder, first, constant(chunk));
}

void StagedTiles::copy(ValueRange indices, Value stage) {
  SmallVector<Value> place(indices);
  Value &summed = place[place.size() - (shape.isAlongRows ? 1 : 2)];
  const Value first = summed;
  for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    if (chunk != 0)
      summed = arith::AddIOp::create(
          *builder, first,
          arith::ConstantIndexOp::create(*builder, chunk * shape.depth)
              .getResult());
    tile::CopyTileOp::create(*builder, memory, place, slots,
                             getSlot(stage, chunk));
  }
}

Value StagedTiles::take(Value stage, int64_t chunk, Attribute layout) {
  return tile::TakeOp::create(
      *builder,
      RankedTensorType::get({shape.free, shape.depth}, element, layout), slots,
      getSlot(stage, chunk), /*transposed=*/!shape.isAlongRows);
}

bool bastile::isStagedStore(RankedTensorType type) {
  const int64_t bytes = getElementBytes(type);
  // The least that is a row in shared memory.
  constexpr int64_t rowBytes = 32;
  return isa<FloatType>(type.getElementType()) && bytes <= 4 &&
         type.getDimSize(0) != 1 && type.getDimSize(1) != 1 &&
         type.getDimSize(1) * bytes % rowBytes == 0;
}

void bastile::emitStagedStore(ImplicitLocOpBuilder &builder, Value tile,
                              Value memory, ValueRange indices,
                              int64_t offset) {
  auto type = cast<RankedTensorType>(tile.getType());
  MemRefType slotType =
      getSlotsType(builder.getContext(), /*slots=*/1, type.getDimSize(0),
                   type.getDimSize(1), type.getElementType());
  Value slots = tile::BufferOp::create(builder, slotType,
                                       builder.getI64IntegerAttr(offset));
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  tile::KeepOp::create(builder, tile, slots, zero);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  tile::StoreTileOp::create(builder, slots, zero, memory, indices);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
}

KeptParts::KeptParts(ImplicitLocOpBuilder &builder, Value tile, int64_t parts,
                     int64_t offset)
    : builder(builder) {
  auto type = cast<RankedTensorType>(tile.getType());
  const int64_t columns = type.getDimSize(1) / parts;
  MemRefType slotType =
      getSlotsType(builder.getContext(), parts, type.getDimSize(0), columns,
                   type.getElementType());
  slots = tile::BufferOp::create(builder, slotType,
                                 builder.getI64IntegerAttr(offset));
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
