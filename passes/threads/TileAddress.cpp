//===- TileAddress.cpp - Where a tile lies in memory ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/TileAddress.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace bastile;

TileAddress::TileAddress(OpBuilder &builder, Operation *op, MemRefType memref,
                         RankedTensorType tile, ValueRange parts,
                         ValueRange indices, int64_t space)
    : builder(builder), loc(op->getLoc()),
      program(op->getParentOfType<tile::ProgramOp>()), space(space), tile(tile),
      layout(getLayout(tile)), parts(parts), column(indices.back()),
      length(memref.getShape().back()) {
  if (memref.getRank() > 1)
    row = indices.front();
  if (memref.getLayout().isIdentity())
    rowStride = length;
}

Value TileAddress::getRowCount() {
  return buildRowCount(builder, loc, program, space);
}

/// Computes the column of the thread's first piece, unless the tile is of
/// groups, whose columns are divided, or is shared by a cluster and may stick
/// out of the row: there LLVM moves more out of the comparisons with the row's
/// end if the constant is part of the column.
void TileAddress::createThreadColumn() {
  if (tile.getDimSize(1) > 1 && layout.getGroup() == 1 &&
      (layout.getBlocks() == 1 || length % tile.getDimSize(1) == 0))
    threadColumn =
        add(column, getPieceColumn(builder, loc, tile, /*repeat=*/0));
}

Value TileAddress::getRow(int64_t repeat) {
  if (tile.getDimSize(0) == 1)
    return row;
  if (!threadRow)
    threadRow = add(row, getThreadPosition(builder, loc, layout).row);
  if (repeat == 0)
    return threadRow;
  return add(threadRow, constant(repeat * layout.getThreadRows()));
}

Value TileAddress::getLastRow() {
  if (!lastRow)
    lastRow = arith::SubIOp::create(builder, loc, getRowCount(), constant(1));
  return lastRow;
}

Value TileAddress::getInnerRow(int64_t repeat) {
  if (!mayLeaveRows())
    return row ? getRow(repeat) : Value();
  return arith::MinUIOp::create(builder, loc, getRow(repeat), getLastRow());
}

Value TileAddress::getStoredRow(int64_t repeat) {
  return isSplit() ? getInnerRow(repeat) : getRow(repeat);
}

Value TileAddress::getColumn(int64_t repeat) {
  if (tile.getDimSize(1) == 1)
    return column;
  if (repeat == 0 && threadColumn)
    return threadColumn;
  return add(column, getPieceColumn(builder, loc, tile, repeat));
}

/// The row of the operand that a row of the kernel has.
Value TileAddress::getOwnRow(Value elementRow) {
  return band
             ? arith::DivUIOp::create(builder, loc, elementRow, constant(*band))
             : elementRow;
}

Value TileAddress::getRowAddress(Value elementRow) {
  Value address = parts.front();
  return row ? advance(address, getRowOffset(getOwnRow(elementRow))) : address;
}

/// Splits a row's number into `sizes.size()` indices, the last of them fastest.
/// Where all leading dimensions but the last ones have a size of 1, as those
/// have that the runtime has merged into others, it skips their divisions, each
/// of which takes as long as several loads.
SmallVector<Value> TileAddress::splitRow(Value elementRow, ValueRange sizes) {
  if (sizes.size() == 1)
    return {elementRow};
  ValueRange outer = sizes.drop_back();
  Value rows = outer.front();
  for (Value size : outer.drop_front())
    rows = arith::MulIOp::create(builder, loc, rows, size);
  Value isOuter = compare(arith::CmpIPredicate::ne, rows, constant(1));
  // Within a branch, it is `builder` that builds there.
  auto branch = scf::IfOp::create(
      builder, loc, isOuter,
      [&](OpBuilder &, Location) {
        Value index =
            arith::RemUIOp::create(builder, loc, elementRow, sizes.back());
        Value rest =
            arith::DivUIOp::create(builder, loc, elementRow, sizes.back());
        SmallVector<Value> indices = splitRow(rest, outer);
        indices.push_back(index);
        scf::YieldOp::create(builder, loc, indices);
      },
      [&](OpBuilder &, Location) {
        SmallVector<Value> indices(outer.size(), constant(0));
        indices.push_back(elementRow);
        scf::YieldOp::create(builder, loc, indices);
      });
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// The indices of row `elementRow`, of the operand's own. Where a thread has
/// several rows, the indices of the tile's first row are computed, and as a
/// rule the others differ from them in the last index alone. Where that index
/// has fewer numbers than the tile has rows, it is not so.
SmallVector<Value> TileAddress::getIndices(Value elementRow, ValueRange sizes) {
  if (layout.getRowRepeats(tile.getShape()) == 1)
    return splitRow(elementRow, sizes);
  if (!firstRow) {
    firstRow = row;
    if (mayLeaveRows())
      firstRow = arith::MinUIOp::create(builder, loc, row, getLastRow());
    firstRow = getOwnRow(firstRow);
    Value size = sizes.back(), rows = constant(tile.getDimSize(0));
    auto first = scf::IfOp::create(
        builder, loc, compare(arith::CmpIPredicate::ule, rows, size),
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, loc, splitRow(firstRow, sizes));
        },
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, loc,
                               SmallVector<Value>(sizes.size(), size));
        });
    firstIndices = llvm::to_vector_of<Value>(first.getResults());
    areNeighbours = compare(arith::CmpIPredicate::ule,
                            add(firstIndices.back(), rows), size);
  }
  auto branch = scf::IfOp::create(
      builder, loc, areNeighbours,
      [&](OpBuilder &, Location) {
        SmallVector<Value> indices = firstIndices;
        indices.back() =
            add(indices.back(),
                arith::SubIOp::create(builder, loc, elementRow, firstRow));
        scf::YieldOp::create(builder, loc, indices);
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, splitRow(elementRow, sizes));
      });
  return llvm::to_vector_of<Value>(branch.getResults());
}

Value TileAddress::getRowOffset(Value elementRow) {
  if (rowStride)
    return arith::MulIOp::create(builder, loc, elementRow,
                                 constant(*rowStride));
  ValueRange strides = parts.drop_front();
  SmallVector<Value> indices =
      isSplit() ? getIndices(elementRow,
                             program.getSizes(space).take_front(strides.size()))
                : SmallVector<Value>{elementRow};
  Value offset;
  for (auto [index, stride] :
       llvm::reverse(llvm::zip_equal(indices, strides))) {
    Value term = arith::MulIOp::create(builder, loc, index, stride);
    offset = offset ? add(offset, term) : term;
  }
  return offset;
}

Value TileAddress::advance(Value address, Value elements) {
  Value count = arith::IndexCastUIOp::create(builder, loc, builder.getI64Type(),
                                             elements);
  return LLVM::GEPOp::create(builder, loc, address.getType(),
                             getMemoryType(tile.getElementType()), address,
                             ValueRange{count}, LLVM::GEPNoWrapFlags::none);
}

Value TileAddress::advanceBy(Value address, int64_t elements) {
  if (elements == 0)
    return address;
  if (!llvm::isInt<LLVM::kGEPConstantBitWidth>(elements))
    return advance(address, constant(elements));
  return LLVM::GEPOp::create(builder, loc, address.getType(),
                             getMemoryType(tile.getElementType()), address,
                             LLVM::GEPArg(static_cast<int32_t>(elements)),
                             LLVM::GEPNoWrapFlags::none);
}

SmallVector<Value> TileAddress::getRowConditions() {
  Value always = getThreadCondition();
  SmallVector<Value> conditions;
  for (int64_t repeat = 0, end = layout.getRowRepeats(tile.getShape());
       repeat < end; ++repeat)
    conditions.push_back(
        combine(builder, loc, always, getRowCondition(repeat)));
  return conditions;
}

Value TileAddress::getColumnCondition(int64_t repeat) {
  // The thread that has the first columns of a group stores.
  Value condition = layout.isGroupAligned()
                        ? Value()
                        : isGroupStart(builder, loc, layout, repeat);
  if (!mayLeaveColumns(repeat))
    return condition;
  Value elementColumn = getColumn(repeat);
  return combine(
      builder, loc, condition,
      compare(arith::CmpIPredicate::ult, elementColumn, constant(length)));
}

Value TileAddress::getRowCondition(int64_t repeat) {
  Value elementRow = getRow(repeat), condition;
  if (mayLeaveRows())
    condition = compare(arith::CmpIPredicate::ult, elementRow, getRowCount());
  // Where several rows share a row of the operand, the first one stores.
  if (band)
    condition = combine(builder, loc, condition,
                        isZero(arith::RemUIOp::create(builder, loc, elementRow,
                                                      constant(*band))));
  return condition;
}

Value TileAddress::getThreadCondition() {
  ThreadPosition thread = getThreadPosition(builder, loc, layout);
  Value condition;
  auto requireFirst = [&](Value position) {
    condition = combine(builder, loc, condition, isZero(position));
  };
  // A statistic is held by every thread along the row, and a tile of one row by
  // every row of threads; one of these threads stores it.
  if (tile.getDimSize(1) == 1 && layout.getThreadColumns() > 1)
    requireFirst(thread.column);
  // The first thread of a group stores.
  if (layout.getGroup() > 1 && layout.getGroupThreads() > 1 &&
      layout.isGroupAligned())
    requireFirst(arith::RemUIOp::create(builder, loc, thread.column,
                                        constant(layout.getGroupThreads())));
  if (tile.getDimSize(1) == 1 && layout.getBlocks() > 1)
    requireFirst(getBlockRank(builder, loc, layout));
  if (tile.getDimSize(0) == 1 && layout.getThreadRows() > 1)
    requireFirst(thread.row);
  return condition;
}

void bastile::createCopyAhead(OpBuilder &builder, Location loc, Value source,
                              Value target, unsigned bytes) {
  // The widest copies need not pass through the multiprocessor's own cache.
  auto modifier = bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                              : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(builder, loc, target, source, bytes, modifier,
                          /*cpSize=*/Value());
}
