//===- ProgramOps.cpp - The ops of programs on tiles ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/ElementBytes.h"
#include "dialect/OperandMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile::tile;

/// Checks the misalignment of the rows of `tile`, the type of the tile of `op`,
/// if there is one: it has a number for each row, and columns are elements.
template <typename Op>
static LogicalResult verifyMisaligned(Op op, RankedTensorType tile) {
  if (!op.getMisalignment())
    return success();
  auto misalignment = cast<RankedTensorType>(op.getMisalignment().getType());
  if (tile.getRank() != 2 || !misalignment.getElementType().isInteger(32) ||
      misalignment.getShape() != ArrayRef<int64_t>{tile.getDimSize(0), 1})
    return op.emitOpError("is misaligned by ")
           << misalignment << ", not by an i32 for each row of " << tile;
  auto layout = dyn_cast_or_null<BlockedAttr>(tile.getEncoding());
  if (layout && (layout.getGroup() > 1 || tile.getDimSize(1) == 1))
    return op.emitOpError("is misaligned, but ")
           << tile << " does not have an element for each column";
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Checks that the piece of a row that `op` moves lies in `memref`'s rows.
template <typename Op>
static LogicalResult verifyPiece(Op op, MemRefType memref) {
  if (!op.getLength()) {
    if (op.getOffset() != 0)
      return op.emitOpError("has the offset ")
             << op.getOffset() << ", but no 'length' of the piece there";
    return success();
  }
  int64_t offset = op.getOffset(), length = *op.getLength();
  int64_t row = memref.getShape().back();
  if (offset < 0 || length < 1 || offset > row || length > row - offset)
    return op.emitOpError("moves a piece of ")
           << length << " columns from column " << offset
           << " on, which is not within the rows of " << memref;
  return success();
}

/// Checks that the rows of `op` belong to a row space of its program.
template <typename Op>
static LogicalResult verifySpace(Op op) {
  int64_t space = op.getSpace();
  auto program = op->template getParentOfType<ProgramOp>();
  int64_t spaces = program ? program.getSpaces() : 1;
  if (space < 0 || space >= spaces)
    return op.emitOpError("is of row space ")
           << space << ", but the program has " << spaces;
  return success();
}

/// Checks `op`, which moves a tile of type `tile` to or from memory.
template <typename Op>
static LogicalResult verifyAccess(Op op, RankedTensorType tile) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  size_t numIndices = op.getIndices().size();
  if (tile.getRank() != 2)
    return op.emitOpError("moves a tile of two dimensions, not ") << tile;
  if (tile.getElementType() != memref.getElementType())
    return op.emitOpError("moves between ")
           << tile << " and " << memref << ", whose element types differ";
  size_t expected = memref.getRank() == 1 ? 1 : 2;
  auto program = op->template getParentOfType<ProgramOp>();
  if (program && program.getDimensions())
    expected = memref.getRank();
  if (numIndices != expected)
    return op.emitOpError("takes ") << expected << " indices into " << memref
                                    << ", but has " << numIndices;
  if (memref.getRank() == 1 && tile.getDimSize(0) != 1 && !op.getMisalignment())
    return op.emitOpError("moves one row of ") << memref << ", not " << tile;
  if (failed(verifyMisaligned(op, tile)))
    return failure();
  if (failed(verifySpace(op)))
    return failure();
  return verifyPiece(op, memref);
}

/// Checks that the buffer of `op` holds tiles like `tile`.
template <typename Op>
static LogicalResult verifySlot(Op op, RankedTensorType tile) {
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  if (buffer.getRank() == 3 &&
      buffer.getShape().drop_front() == tile.getShape() &&
      buffer.getElementType() == tile.getElementType())
    return success();
  return op.emitOpError("has ") << buffer << " for tiles of type " << tile;
}

LogicalResult MisalignmentOp::verify() {
  if (cast<MemRefType>(getMemref().getType()).getRank() < 2)
    return emitOpError("is of rows, which ")
           << getMemref().getType() << " does not have";
  if (getPhase() < 2 || !llvm::isPowerOf2_64(getPhase()))
    return emitOpError("is to a multiple of ")
           << getPhase() << " elements, which is no power of two above 1";
  if (auto program = (*this)->getParentOfType<ProgramOp>();
      program && !program.getDimensions() &&
      program.getRowsSchedule().getVector() != static_cast<int64_t>(getPhase()))
    return emitOpError("is to a multiple of ")
           << getPhase() << " elements, but the schedule's vectors have "
           << program.getRowsSchedule().getVector();
  return verifySpace(*this);
}

LogicalResult ExchangeOp::verify() {
  size_t operands = getInputs().size();
  if (operands == 0 || getResults().size() % operands != 0)
    return emitOpError("has ")
           << getResults().size() << " results for " << operands
           << " operands, not as many for each of them";
  size_t blocks = getResults().size() / operands;
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (program &&
      program.getSchedule().getBlocks() != static_cast<int64_t>(blocks))
    return emitOpError("has ") << blocks << " results for each operand, but "
                               << program.getSchedule().getBlocks()
                               << " blocks are in the schedule's cluster";
  for (auto [index, result] : llvm::enumerate(getResults()))
    if (Type type = getInputs()[index / blocks].getType();
        type != result.getType())
      return emitOpError("gives ")
             << type << " to other blocks as " << result.getType();
  return success();
}

LogicalResult ExtremesOp::verify() {
  const int64_t rank = getSource().getType().getRank();
  if (static_cast<int64_t>(getIndices().size()) != rank)
    return emitOpError("has ")
           << getIndices().size() << " indices of " << getSource().getType();
  if (getDimension() >= static_cast<uint64_t>(rank))
    return emitOpError("goes along dimension ")
           << getDimension() << ", which " << getSource().getType()
           << " does not have";
  if (static_cast<int64_t>(getCount()) < 1)
    return emitOpError("reads ") << static_cast<int64_t>(getCount())
                                 << " integers, but takes at least 1";
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getType()));
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getValue().getType()));
}

LogicalResult CopyAheadOp::verify() {
  auto tile = cast<RankedTensorType>(getTile());
  if (!tile.hasStaticShape())
    return emitOpError("copies tiles of static sizes, not ") << tile;
  if (failed(verifyAccess(*this, tile)))
    return failure();
  return verifySlot(*this, tile);
}

LogicalResult IsDoneOp::verify() {
  auto factor = cast<MemRefType>(getFactor().getType());
  if (!isa<FloatType>(factor.getElementType()))
    return emitOpError("compares a float with 1, not an element of ") << factor;
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

int64_t BufferOp::getEnd(int64_t blocks) {
  auto type = cast<MemRefType>(getType());
  // Each block has tiles of its own where threads may read what others wrote.
  if (isa_and_present<SharedAttr, HeldAttr>(type.getMemorySpace()))
    blocks = 1;
  return getOffset() + type.getNumElements() / blocks * getElementBytes(type);
}

LogicalResult BufferOp::verify() {
  auto type = cast<MemRefType>(getType());
  if (type.getRank() != 3 || !type.hasStaticShape() ||
      type.getNumElements() == 0 || !type.getElementType().isIntOrFloat())
    return emitOpError("of type ")
           << type << " is not a number of tiles of static sizes";
  if (int64_t offset = getOffset(); offset < 0)
    return emitOpError("begins at ") << offset << ", ahead of the memory";
  auto shared = dyn_cast_or_null<SharedAttr>(type.getMemorySpace());
  if (!shared)
    return success();
  int64_t swizzle = shared.getSwizzle();
  // A swizzle repeats after eight rows of a panel.
  if (int64_t period = 8 * swizzle; getOffset() % period != 0)
    return emitOpError("begins at ")
           << getOffset() << ", which is no multiple of the " << period
           << " bytes after which the swizzle repeats";
  if (type.getDimSize(1) % 8 != 0 ||
      type.getDimSize(2) * getElementBytes(type) % swizzle != 0)
    return emitOpError("of type ")
           << type << " does not consist of panels of " << swizzle
           << " bytes and a multiple of 8 rows";
  return success();
}

/// Checks that `tile`, which moves to or from the buffer of `op`, lies there as
/// threads hold it only if two pieces of it are 16 bytes.
template <typename Op>
static LogicalResult verifyHeld(Op op, RankedTensorType tile) {
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  if (!isa_and_present<HeldAttr>(buffer.getMemorySpace()))
    return success();
  auto layout = dyn_cast_or_null<MmaAttr>(tile.getEncoding());
  if (layout && layout.getVector() == 2 && tile.getElementType().isF32() &&
      tile.getDimSize(0) != 1 && tile.getDimSize(1) != 1)
    return success();
  return op.emitOpError("moves ")
         << tile << ", but only sums of products lie in '#tile.held' memory";
}

LogicalResult KeepOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (failed(verifyHeld(*this, tile)))
    return failure();
  if (!getTransposed())
    return verifySlot(*this, tile);
  auto buffer = cast<MemRefType>(getBuffer().getType());
  if (!isa_and_present<MmaAttr>(tile.getEncoding()) ||
      !tile.getElementType().isF32() ||
      !isa_and_present<SharedAttr>(buffer.getMemorySpace()) ||
      tile.getRank() != 2 || tile.getDimSize(0) == 1 || tile.getDimSize(1) == 1)
    return emitOpError("transposes ")
           << tile << " to " << buffer
           << ", but only tiles of sums are transposed, to '#tile.shared' "
              "memory";
  SmallVector<int64_t> shape(llvm::reverse(tile.getShape()));
  return verifySlot(*this, RankedTensorType::get(shape, tile.getElementType()));
}

LogicalResult SendOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  auto buffer = cast<MemRefType>(getBuffer().getType());
  if (!isa_and_present<HeldAttr>(buffer.getMemorySpace()))
    return emitOpError("sends a tile to ")
           << buffer << ", which is no buffer in '#tile.held' memory";
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (program && program.getSchedule().getBlocks() == 1)
    return emitOpError("sends a tile to another block, but the schedule has no "
                       "cluster");
  if (failed(verifyHeld(*this, tile)))
    return failure();
  return verifySlot(*this, tile);
}

LogicalResult TakeOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  if (failed(verifyHeld(*this, tile)))
    return failure();
  auto rhs = dyn_cast_or_null<MmaRhsAttr>(tile.getEncoding());
  auto buffer = cast<MemRefType>(getBuffer().getType());
  constexpr int64_t pieceBytes = 4;
  if (rhs && (!isa_and_present<SharedAttr>(buffer.getMemorySpace()) ||
              !buffer.getElementType().isIntOrFloat() ||
              rhs.getVector() * getElementBytes(buffer) != pieceBytes))
    return emitOpError("takes ")
           << tile << " from " << buffer
           << ", not pieces of 4 bytes from '#tile.shared' memory";
  if (!getTransposed())
    return verifySlot(*this, tile);
  auto lhs = dyn_cast_or_null<MmaAttr>(tile.getEncoding());
  if (!(rhs && rhs.getVector() == 2) && !(lhs && lhs.getVector() == 2))
    return emitOpError("transposes a tile for ")
           << tile << ", which is no operand of products of 16 bits";
  std::optional<int64_t> swizzle = getSwizzle(buffer);
  if (lhs && (!swizzle || getElementBytes(buffer) != 2 || tile.getRank() != 2 ||
              tile.getDimSize(0) == 1 || tile.getDimSize(1) == 1 ||
              lhs.getWarps() * MmaAttr::kWarpRows * 2 > *swizzle))
    return emitOpError("transposes ")
           << buffer << " to " << tile
           << ", but only elements of 16 bits are transposed, where the rows "
              "of "
              "all warps together fit in the swizzle";
  SmallVector<int64_t> shape(llvm::reverse(tile.getShape()));
  return verifySlot(*this, RankedTensorType::get(shape, tile.getElementType()));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Checks that the value that `op` gives elements beyond the limit has the
/// element type of its tile.
template <typename Op>
static LogicalResult verifyOther(Op op) {
  auto tile = cast<RankedTensorType>(op.getType());
  if (op.getOther().getType() == tile.getElementType())
    return success();
  return op.emitOpError("has ") << op.getOther() << " for elements of " << tile;
}

LogicalResult MaskOp::verify() {
  if (failed(verifyOther(*this)))
    return failure();
  return verifyMisaligned(*this, cast<RankedTensorType>(getType()));
}

LogicalResult MaskRowsOp::verify() { return verifyOther(*this); }

/// Checks that `own` has, for each row of `tile`, one element for each thread.
static LogicalResult verifyOwn(Operation *op, RankedTensorType tile,
                               RankedTensorType own) {
  auto layout = dyn_cast_or_null<BlockedAttr>(own.getEncoding());
  bool isOwn = layout && layout.getVector() == 1 && layout.getGroup() == 1 &&
               tile.getRank() == 2 && tile.getDimSize(0) == own.getDimSize(0) &&
               own.getDimSize(1) == layout.getColumnsPerDeal() &&
               tile.getElementType() == own.getElementType();
  // The threads that hold a tile are known once it is distributed.
  auto of = dyn_cast_or_null<BlockedAttr>(tile.getEncoding());
  if (isOwn && (!of || (of.getThreadRows() == layout.getThreadRows() &&
                        of.getThreadColumns() == layout.getThreadColumns() &&
                        of.getBlocks() == layout.getBlocks())))
    return success();
  return op->emitOpError("has ")
         << own << ", which does not have a number for each thread along the "
         << "rows of " << tile;
}

LogicalResult FoldOp::verify() {
  if (!isa<FloatType>(getElementTypeOrSelf(getType())))
    return emitOpError("combines floats, not elements of ") << getType();
  auto tile = cast<RankedTensorType>(getInput().getType());
  auto own = cast<RankedTensorType>(getType());
  auto layout = dyn_cast_or_null<MmaAttr>(own.getEncoding());
  if (!layout)
    return verifyOwn(*this, tile, own);
  RankedTensorType expected =
      tile.clone({tile.getDimSize(0), layout.getChunkColumns()});
  if (own == expected && tile.getDimSize(1) != 1)
    return success();
  return emitOpError("combines ")
         << tile << " to " << expected << ", not to " << own;
}

LogicalResult AnyOp::verify() {
  auto type = cast<RankedTensorType>(getInput().getType());
  if (!type.getElementType().isInteger(1))
    return emitOpError("asks for elements that are true, of which ")
           << type << " has none";
  if (!isa_and_nonnull<MmaAttr>(type.getEncoding()))
    return emitOpError("asks each warp for its own rows, but ")
           << type << " has no layout of products";
  return success();
}

LogicalResult SpreadOp::verify() {
  return verifyOwn(*this, cast<RankedTensorType>(getType()),
                   cast<RankedTensorType>(getInput().getType()));
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Checks that `type`, of `op`, says which thread of a block holds which
/// element.
static LogicalResult verifyLayout(ConvertLayoutOp op, Type type) {
  auto tile = cast<RankedTensorType>(type);
  auto layout = dyn_cast_or_null<LayoutInterface>(tile.getEncoding());
  if (!layout)
    return op.emitOpError("converts ") << type << ", which has no layout";
  auto blocked = dyn_cast<BlockedAttr>(tile.getEncoding());
  if (blocked && (blocked.getBlocks() != 1 || blocked.getGroup() != 1))
    return op.emitOpError("converts ")
           << type << ", whose layout is of several blocks or of groups";
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getType());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("converts ")
           << from << " to " << to << ", which is another tile";
  if (!from.getElementType().isIntOrFloat() ||
      from.getElementTypeBitWidth() % 8 != 0)
    return emitOpError("converts ")
           << from << ", whose elements have no whole bytes";
  if (failed(verifyLayout(*this, from)))
    return failure();
  return verifyLayout(*this, to);
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? getInput() : OpFoldResult();
}
