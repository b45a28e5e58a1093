//===- FragmentPosition.cpp - Where a thread's part of a tile is ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/FragmentPosition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

static constexpr int64_t kWarp = ThreadGrid::kWarp;
static constexpr int64_t kHalf = tile::MmaAttr::kWarpRows / 2;
static constexpr int64_t kLanesPerRow = 4;

tile::MmaAttr bastile::getFragmentLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<tile::MmaAttr>(tensor.getEncoding())
                : tile::MmaAttr();
}

namespace {

/// Index arithmetic with constants.
struct Indices {
  OpBuilder &builder;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  }
  Value add(Value lhs, int64_t rhs) {
    return rhs == 0 ? lhs : add(lhs, constant(rhs));
  }
  Value multiply(Value lhs, int64_t rhs) {
    return arith::MulIOp::create(builder, loc, lhs, constant(rhs));
  }
  Value divide(Value lhs, int64_t rhs) {
    return arith::DivUIOp::create(builder, loc, lhs, constant(rhs));
  }
  Value remainder(Value lhs, int64_t rhs) {
    return arith::RemUIOp::create(builder, loc, lhs, constant(rhs));
  }
};

} // namespace

FragmentPosition::FragmentPosition(OpBuilder &builder, Operation *op,
                                   tile::MmaAttr layout)
    : builder(builder), loc(op->getLoc()), layout(layout) {
  Indices at{builder, loc};
  Role role(op);
  Value lane = at.remainder(role.getThread(builder, loc), kWarp);
  Value warpRow =
      at.multiply(role.getWarp(builder, loc), tile::MmaAttr::kWarpRows);
  firstRow = at.add(warpRow, at.divide(lane, kLanesPerRow));
  firstColumn = at.multiply(at.remainder(lane, kLanesPerRow), 2);
}

Value FragmentPosition::getRow(int64_t repeat, int64_t half) {
  return Indices{builder, loc}.add(
      firstRow,
      repeat * layout.getWarps() * tile::MmaAttr::kWarpRows + half * kHalf);
}

Value FragmentPosition::getColumn(int64_t chunk) {
  return Indices{builder, loc}.add(firstColumn, chunk * tile::MmaAttr::kChunk);
}

SharedFragment::SharedFragment(OpBuilder &builder, Operation *op,
                               tile::MmaAttr layout, SharedTile place,
                               Value address)
    : builder(builder), loc(op->getLoc()), layout(layout), place(place),
      address(address), position(builder, op, layout) {
  Indices at{builder, loc};
  Role role(op);
  Value lane = at.remainder(role.getThread(builder, loc), kWarp);
  Value warpRow =
      at.multiply(role.getWarp(builder, loc), tile::MmaAttr::kWarpRows);
  // Lanes 0 to 15 address the rows of the first chunk, the others the second's.
  matrixRow = at.add(warpRow, at.remainder(lane, tile::MmaAttr::kWarpRows));
  matrixByte = at.multiply(at.divide(lane, tile::MmaAttr::kWarpRows),
                           tile::MmaAttr::kChunk * place.elementBytes);
}

Value SharedFragment::getMatrixAddress(int64_t repeat, int64_t chunk) {
  Indices at{builder, loc};
  Value row =
      at.add(matrixRow, repeat * layout.getWarps() * tile::MmaAttr::kWarpRows);
  return getAddress(row, at.add(matrixByte, chunk * tile::MmaAttr::kChunk *
                                                place.elementBytes));
}

Value SharedFragment::getPieceAddress(int64_t repeat, int64_t chunk,
                                      int64_t half) {
  Indices at{builder, loc};
  return getAddress(position.getRow(repeat, half),
                    at.multiply(position.getColumn(chunk), place.elementBytes));
}

Value SharedFragment::getAddress(Value row, Value byte) {
  Indices at{builder, loc};
  Value panel =
      at.multiply(at.divide(byte, place.swizzle), place.getPanelBytes());
  Value within = at.add(at.multiply(row, place.swizzle),
                        at.remainder(byte, place.swizzle));
  // Bits 7 to 9 choose among the pieces of 16 bytes of a row.
  constexpr int64_t distance = 8, unit = 16;
  Value bits = arith::AndIOp::create(builder, loc, at.divide(within, distance),
                                     at.constant(place.swizzle - unit));
  Value swizzled = arith::XOrIOp::create(builder, loc, within, bits);
  return advanceBytes(builder, loc, address, at.add(panel, swizzled));
}
