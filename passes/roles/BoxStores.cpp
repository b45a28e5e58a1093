//===- BoxStores.cpp - Stores of results by copies of boxes ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/BoxStores.h"

#include "passes/products/StagedTiles.h"

using namespace mlir;
using namespace bastile;

BoxStores::BoxStores(ProgramFrame &frame, int64_t columns, int64_t offset)
    : frame(frame), builder(frame.builder), columns(columns) {
  for (const Operand &operand : frame.operands.getAll())
    if (frame.isStoredStaged(operand))
      slots[getRowBytes(operand.type.getElementType())];
  // All of the slots take at most as much memory as two with the longest rows.
  constexpr int64_t longest = 128;
  for (auto &[rowBytes, own] : slots) {
    const bool hasTwo =
        slots.size() == 1 || (slots.size() == 2 && rowBytes < longest);
    for (int64_t number = 0; number < (hasTwo ? 2 : 1); ++number) {
      own.push_back({offset, std::nullopt});
      offset += rowBytes * frame.extents.rows;
    }
  }
}

void BoxStores::store(unsigned result, Value tile) {
  const unsigned operand = frame.operands.getResult(result);
  if (!frame.isStoredStaged(frame.operands.getAll()[operand]))
    return frame.emitter.emitStore(operand, tile);
  auto type = cast<RankedTensorType>(tile.getType());
  // The slot of which the last copy is longest ago.
  Slot &slot = *llvm::min_element(
      slots.at(getRowBytes(type.getElementType())),
      [](const Slot &lhs, const Slot &rhs) { return lhs.last < rhs.last; });
  // The slots of the last tile, or of the last turn of a loop, were copied
  // before all stores of this one.
  wait(builder, slot.last ? count - 1 - *slot.last : count);
  slot.last = count++;
  Value memory = tile::BufferOp::create(
      builder,
      getSlotsType(builder.getContext(), /*slots=*/1, type.getDimSize(0),
                   type.getDimSize(1), type.getElementType()),
      builder.getI64IntegerAttr(slot.offset));
  Value zero = frame.constant(0);
  tile::KeepOp::create(builder, tile, memory, zero);
  tile::FenceSharedOp::create(builder);
  tile::StoreBoxOp::create(builder, memory, zero,
                           frame.emitter.getMemory(operand),
                           frame.emitter.getIndices(operand), /*warp=*/true);
}
