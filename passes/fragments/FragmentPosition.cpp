//===- FragmentPosition.cpp - Where a thread's part of a tile is ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/FragmentPosition.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/pieces/Pieces.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

static constexpr int64_t kHalf = tile::MmaAttr::kWarpRows / 2;
static constexpr int64_t kLanesPerRow = tile::MmaAttr::kLanesPerRow;
/// What the swizzle moves, and a row of a matrix, in bytes.
static constexpr int64_t kUnitBytes = 16;

tile::MmaAttr bastile::getFragmentLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<tile::MmaAttr>(tensor.getEncoding())
                : tile::MmaAttr();
}

bool bastile::isOfMatrices(RankedTensorType type) {
  tile::MmaAttr layout = getFragmentLayout(type);
  constexpr int64_t registerBytes = 4;
  return layout.getVector() * getElementBytes(type) == registerBytes &&
         layout.getChunks(type.getShape()) % 2 == 0;
}

Value bastile::toRegister(OpBuilder &builder, Location loc, Value piece) {
  piece = bitcastTo(builder, loc, getMemoryType(piece.getType()), piece);
  // Loaded matrices go on to products as they are.
  auto from = piece.getDefiningOp<LLVM::BitcastOp>();
  if (from && from.getArg().getType().isInteger(32))
    return from.getArg();
  return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), piece);
}

Value bastile::fromRegister(OpBuilder &builder, Location loc, Type piece,
                            Value value) {
  value = LLVM::BitcastOp::create(builder, loc, getMemoryType(piece), value);
  return bitcastTo(builder, loc, piece, value);
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
  firstColumn =
      at.multiply(at.remainder(lane, kLanesPerRow), layout.getVector());
}

Value FragmentPosition::getRow(int64_t repeat, int64_t half) {
  return Indices{builder, loc}.add(
      firstRow,
      repeat * layout.getWarps() * tile::MmaAttr::kWarpRows + half * kHalf);
}

Value FragmentPosition::getColumn(int64_t chunk) {
  return Indices{builder, loc}.add(firstColumn,
                                   chunk * layout.getChunkColumns());
}

/// `within`, a place in a panel, moved by the swizzle: bits 7 to 9 choose among
/// the pieces of 16 bytes of a row.
static Value applySwizzle(Indices at, const SharedTile &place, Value within) {
  constexpr int64_t distance = 8;
  Value bits =
      arith::AndIOp::create(at.builder, at.loc, at.divide(within, distance),
                            at.constant(place.swizzle - kUnitBytes));
  return arith::XOrIOp::create(at.builder, at.loc, within, bits);
}

SharedPlaces::SharedPlaces(OpBuilder &builder, Location loc, SharedTile place,
                           Value address, Value row, Value byte)
    : builder(builder), loc(loc), place(place), address(address) {
  Indices at{builder, loc};
  Value rowBytes = at.multiply(row, place.swizzle);
  offset = applySwizzle(at, place, at.add(rowBytes, byte));
}

Value SharedPlaces::getAddress(int64_t row, int64_t byte) {
  // Exclusive or takes its operands in any order, so that what is constant of
  // the byte comes after the swizzle. Eight rows on, the swizzle is the same.
  Value own = offset;
  if (int64_t within = byte % place.swizzle)
    own = arith::XOrIOp::create(builder, loc, own,
                                Indices{builder, loc}.constant(within));
  return advanceBytes(builder, loc, advanceBytes(builder, loc, address, own),
                      byte / place.swizzle * place.getPanelBytes() +
                          row * place.swizzle);
}

/// The matrices of a tile of products: lanes 0 to 15 address the rows of the
/// first chunk, the others the second's.
static SharedPlaces getMatrices(OpBuilder &builder, Operation *op,
                                SharedTile place, Value address) {
  Location loc = op->getLoc();
  Indices at{builder, loc};
  Role role(op);
  Value lane = at.remainder(role.getThread(builder, loc), kWarp);
  Value warpRow =
      at.multiply(role.getWarp(builder, loc), tile::MmaAttr::kWarpRows);
  Value row = at.add(warpRow, at.remainder(lane, tile::MmaAttr::kWarpRows));
  Value byte =
      at.multiply(at.divide(lane, tile::MmaAttr::kWarpRows), kUnitBytes);
  return SharedPlaces(builder, loc, place, address, row, byte);
}

/// The pieces of a tile of products that the calling thread holds.
static SharedPlaces getPieces(OpBuilder &builder, Operation *op,
                              tile::MmaAttr layout, SharedTile place,
                              Value address) {
  Location loc = op->getLoc();
  FragmentPosition position(builder, op, layout);
  Value row = position.getRow(/*repeat=*/0, /*half=*/0);
  Value byte = Indices{builder, loc}.multiply(position.getColumn(/*chunk=*/0),
                                              place.elementBytes);
  return SharedPlaces(builder, loc, place, address, row, byte);
}

SharedPlaces bastile::getTransposedMatrices(OpBuilder &builder, Operation *op,
                                            SharedTile place, Value address) {
  Location loc = op->getLoc();
  Indices at{builder, loc};
  Role role(op);
  Value lane = at.remainder(role.getThread(builder, loc), kWarp);
  constexpr int64_t matrixRows = 8, units = 2;
  // A warp's rows lie in two units of 16 bytes.
  Value unit = at.add(at.multiply(role.getWarp(builder, loc), units),
                      at.remainder(at.divide(lane, matrixRows), units));
  Value row =
      at.add(at.multiply(at.divide(lane, units * matrixRows), matrixRows),
             at.remainder(lane, matrixRows));
  Value byte = at.multiply(unit, kUnitBytes);
  // The rows of many warps lie in several panels.
  if (role.getThreads() / kWarp * units * kUnitBytes > place.swizzle) {
    address = advanceBytes(
        builder, loc, address,
        at.multiply(at.divide(byte, place.swizzle), place.getPanelBytes()));
    byte = at.remainder(byte, place.swizzle);
  }
  return SharedPlaces(builder, loc, place, address, row, byte);
}

SharedPlaces bastile::getRhsMatrices(OpBuilder &builder, Operation *op,
                                     SharedTile place, Value address,
                                     bool transposed) {
  Location loc = op->getLoc();
  Indices at{builder, loc};
  constexpr int64_t rows = tile::MmaRhsAttr::kChunk;
  Value lane = at.remainder(Role(op).getThread(builder, loc), kWarp);
  // The bits of the number of the matrix.
  Value low = at.remainder(at.divide(lane, rows), 2);
  Value high = at.divide(lane, 2 * rows);
  Value below = transposed ? low : high, beside = transposed ? high : low;
  Value row = at.add(at.multiply(below, rows), at.remainder(lane, rows));
  Value byte = at.multiply(beside, kUnitBytes);
  return SharedPlaces(builder, loc, place, address, row, byte);
}

SharedFragment::SharedFragment(OpBuilder &builder, Operation *op,
                               tile::MmaAttr layout, SharedTile place,
                               Value address)
    : layout(layout), place(place),
      matrices(getMatrices(builder, op, place, address)),
      pieces(getPieces(builder, op, layout, place, address)) {}

/// The bytes from the first chunk of a row of the tile to `chunk`.
int64_t SharedFragment::getBytes(int64_t chunk) const {
  return chunk * layout.getChunkColumns() * place.elementBytes;
}

Value SharedFragment::getMatrixAddress(int64_t repeat, int64_t chunk) {
  return matrices.getAddress(
      repeat * layout.getWarps() * tile::MmaAttr::kWarpRows, getBytes(chunk));
}

Value SharedFragment::getPieceAddress(int64_t repeat, int64_t chunk,
                                      int64_t half) {
  return pieces.getAddress(
      repeat * layout.getWarps() * tile::MmaAttr::kWarpRows + half * kHalf,
      getBytes(chunk));
}

Value bastile::getSharedAddress(OpBuilder &builder, Location loc,
                                const SharedTile &place, Value address,
                                Value row, Value byte) {
  Indices at{builder, loc};
  Value panel =
      at.multiply(at.divide(byte, place.swizzle), place.getPanelBytes());
  Value within = at.add(at.multiply(row, place.swizzle),
                        at.remainder(byte, place.swizzle));
  return advanceBytes(builder, loc, address,
                      at.add(panel, applySwizzle(at, place, within)));
}
