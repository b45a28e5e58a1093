//===- LowerMemory.cpp - Loads and stores of a thread's pieces ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Sizes.h"

using namespace mlir;
using namespace bastile;

/// `type` with its elements as integers.
static Type withIntegers(Type type) {
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
  return arith::BitcastOp::create(builder, loc, type, value);
}

namespace {

/// Computes the addresses of the pieces of one tile in memory.
class TileAddress {
public:
  /// `parts` are the operand's address and strides; `indices` the tile's first
  /// row, unless the operand is a row vector, and column. `op` is the load or
  /// store.
  template <typename Op>
  TileAddress(OpBuilder &builder, Op op, RankedTensorType tile,
              ValueRange parts, ValueRange indices)
      : builder(builder), loc(op.getLoc()),
        kernel(op->template getParentOfType<tile::KernelOp>()),
        space(op.getSpace()), tile(tile), layout(getLayout(tile)), parts(parts),
        column(indices.back()), offset(op.getOffset()), band(op.getBand()) {
    auto memref = cast<MemRefType>(op.getMemref().getType());
    if (memref.getRank() > 1)
      row = indices.front();
    if (memref.getLayout().isIdentity())
      rowStride = memref.getShape().back();
    length = op.getLength().value_or(memref.getShape().back());
    if (haveThreadAddress())
      threadColumn =
          add(column, getPieceColumn(builder, loc, tile, /*repeat=*/0));
  }

  /// Columns that the op may touch, counted from the first of them.
  int64_t getLength() const { return length; }

  /// Whether rows or columns of the tile may lie beyond the operand.
  bool mayLeaveRows() const { return row && tile.getDimSize(0) > 1; }
  bool mayLeaveColumns(int64_t repeat) const {
    return length % tile.getDimSize(1) != 0 &&
           !isSurelyInside(layout, repeat, column, length);
  }

  /// Whether `elementRow` is the first of those that share a row of the
  /// operand.
  Value isFirstOfBand(Value elementRow) {
    Value number =
        arith::RemUIOp::create(builder, loc, elementRow, constant(*band));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, number,
                                 constant(0));
  }
  bool hasBands() const { return band.has_value(); }

  Value getRow(int64_t repeat) {
    if (tile.getDimSize(0) == 1)
      return row;
    if (!threadRow)
      threadRow = add(row, getThreadPosition(builder, loc, layout).row);
    if (repeat == 0)
      return threadRow;
    return add(threadRow, constant(repeat * layout.getThreadRows()));
  }
  Value getColumn(int64_t repeat) {
    if (tile.getDimSize(1) == 1)
      return column;
    if (repeat == 0 && threadColumn)
      return threadColumn;
    return add(column, getPieceColumn(builder, loc, tile, repeat));
  }
  Value getRowCount() { return buildRowCount(builder, loc, kernel, space); }

  /// The address of the operand's row `elementRow`, which lies inside.
  Value getRowAddress(Value elementRow) {
    Value address = parts.front();
    if (!row)
      return address;
    if (band)
      elementRow =
          arith::DivUIOp::create(builder, loc, elementRow, constant(*band));
    return advance(address, getRowOffset(elementRow));
  }

  /// The address of a column that lies inside, in the row at `rowAddress`.
  Value getAddress(Value rowAddress, Value elementColumn) {
    return advanceBy(advance(rowAddress, elementColumn), offset);
  }

  /// The address of the thread's pieces in the row at `rowAddress`, of which
  /// that in the given repetition is `getPieceAddress`: they share all but a
  /// constant.
  Value getThreadAddress(Value rowAddress) {
    return advance(rowAddress, threadColumn);
  }
  /// Not those of a group, which are divided, or of a block of a cluster: with
  /// the constant in its column, LLVM moves more out of the comparisons.
  bool haveThreadAddress() const {
    return tile.getDimSize(1) > 1 && layout.getGroup() == 1 &&
           layout.getBlocks() == 1;
  }
  Value getPieceAddress(Value threadAddress, int64_t repeat) {
    return advanceBy(threadAddress,
                     repeat * layout.getColumnsPerDeal() + offset);
  }

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

private:
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  }

  /// Splits a row's number into leading indices, the last of them fastest.
  Value getRowOffset(Value elementRow) {
    if (rowStride)
      return arith::MulIOp::create(builder, loc, elementRow,
                                   constant(*rowStride));
    ValueRange strides = parts.drop_front();
    Value offset, remaining = elementRow;
    for (int64_t dim = strides.size() - 1; dim >= 0; --dim) {
      Value index = remaining;
      if (dim > 0) {
        Value size = kernel.getSizes(space)[dim];
        index = arith::RemUIOp::create(builder, loc, remaining, size);
        remaining = arith::DivUIOp::create(builder, loc, remaining, size);
      }
      Value term = arith::MulIOp::create(builder, loc, index, strides[dim]);
      offset = offset ? add(offset, term) : term;
    }
    return offset;
  }

  Value advanceBy(Value address, int64_t elements) {
    if (elements == 0)
      return address;
    if (!llvm::isInt<LLVM::kGEPConstantBitWidth>(elements))
      return advance(address, constant(elements));
    return LLVM::GEPOp::create(builder, loc, address.getType(),
                               getMemoryType(tile.getElementType()), address,
                               LLVM::GEPArg(static_cast<int32_t>(elements)),
                               LLVM::GEPNoWrapFlags::none);
  }

  Value advance(Value address, Value elements) {
    Value count = arith::IndexCastUIOp::create(builder, loc,
                                               builder.getI64Type(), elements);
    return LLVM::GEPOp::create(builder, loc, address.getType(),
                               getMemoryType(tile.getElementType()), address,
                               ValueRange{count}, LLVM::GEPNoWrapFlags::none);
  }

  OpBuilder &builder;
  Location loc;
  tile::KernelOp kernel;
  /// The space whose rows the op counts.
  int64_t space;
  RankedTensorType tile;
  tile::BlockedAttr layout;
  ValueRange parts;
  Value row, column;
  /// Those of the first piece of the thread: the row once it has been asked
  /// for, the column where pieces are a constant apart.
  Value threadRow, threadColumn;
  /// Where rows lie without gaps.
  std::optional<int64_t> rowStride;
  /// The columns of the operand's rows that the op sees.
  int64_t offset, length;
  /// How many rows of the kernel share a row of the operand.
  std::optional<int64_t> band;
};

/// Calls `visit` with the address of each piece that a thread loads of a tile.
/// Elements beyond the operand are read from its last row or vector instead: an
/// access without a branch, which those of other pieces can overlap.
void forEachLoadedPiece(OpBuilder &builder, Location loc, TileAddress &address,
                        RankedTensorType type,
                        llvm::function_ref<void(Value)> visit) {
  tile::BlockedAttr layout = getLayout(type);
  const int64_t repeats = layout.getColumnRepeats(type.getShape());
  // The columns of all rows, where they are not the thread's plus a constant.
  SmallVector<Value> columns(repeats);
  for (auto [repeat, column] : llvm::enumerate(columns)) {
    bool mayLeave = address.mayLeaveColumns(repeat);
    if (!mayLeave && address.haveThreadAddress())
      continue;
    column = address.getColumn(repeat);
    if (!mayLeave)
      continue;
    int64_t width = layout.getGroup() > 1 ? 1 : layout.getVector();
    Value last = address.constant(address.getLength() - width);
    column = arith::MinUIOp::create(builder, loc, column, last);
  }
  Value lastRow;
  if (address.mayLeaveRows())
    lastRow = arith::SubIOp::create(builder, loc, address.getRowCount(),
                                    address.constant(1));
  for (int64_t rowRepeat = 0,
               rowRepeats = layout.getRowRepeats(type.getShape());
       rowRepeat < rowRepeats; ++rowRepeat) {
    Value row = address.getRow(rowRepeat);
    if (lastRow)
      row = arith::MinUIOp::create(builder, loc, row, lastRow);
    Value rowAddress = address.getRowAddress(row), threadAddress;
    for (auto [repeat, column] : llvm::enumerate(columns)) {
      if (column) {
        visit(address.getAddress(rowAddress, column));
        continue;
      }
      if (!threadAddress)
        threadAddress = address.getThreadAddress(rowAddress);
      visit(address.getPieceAddress(threadAddress, repeat));
    }
  }
}

struct LowerLoad : public OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getLayout(type))
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> indices;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index[0]);
    TileAddress address(rewriter, op, type, adaptor.getMemref(), indices);
    unsigned alignment =
        op.getAlignment().value_or(type.getElementTypeBitWidth() / 8);
    SmallVector<Value> pieces;
    forEachLoadedPiece(rewriter, loc, address, type, [&](Value pointer) {
      auto load = LLVM::LoadOp::create(
          rewriter, loc, getMemoryType(getPieceType(type)), pointer, alignment);
      load.setInvariant(op.getInvariant());
      pieces.push_back(bitcastTo(rewriter, loc, getPieceType(type), load));
    });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerCopyAhead : public OpConversionPattern<tile::CopyAheadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyAheadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getTile());
    if (!getLayout(type))
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> indices, sources;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index[0]);
    TileAddress address(rewriter, op, type, adaptor.getMemref(), indices);
    forEachLoadedPiece(rewriter, loc, address, type,
                       [&](Value pointer) { sources.push_back(pointer); });
    forEachKeptPiece(rewriter, loc, type, adaptor.getBuffer().front(),
                     adaptor.getSlot().front(),
                     [&](int64_t index, Value target, unsigned bytes) {
                       // The widest need not pass through the multiprocessor's
                       // own cache.
                       auto modifier = bytes == 16
                                           ? NVVM::LoadCacheModifierKind::CG
                                           : NVVM::LoadCacheModifierKind::CA;
                       NVVM::CpAsyncOp::create(rewriter, loc, target,
                                               sources[index], bytes, modifier,
                                               /*cpSize=*/Value());
                     });
    rewriter.eraseOp(op);
    return success();
  }
};

/// When a thread stores which of its pieces. What depends on the row, on the
/// column or on neither is computed once.
class StoreConditions {
public:
  StoreConditions(OpBuilder &builder, Location loc, TileAddress &address,
                  RankedTensorType type)
      : builder(builder), loc(loc), address(address), layout(getLayout(type)),
        ofRows(layout.getRowRepeats(type.getShape())),
        ofColumns(layout.getColumnRepeats(type.getShape())) {
    Value always = getForThread(type);
    for (auto [repeat, condition] : llvm::enumerate(ofRows))
      condition = combine(always, getForRow(repeat));
    for (auto [repeat, condition] : llvm::enumerate(ofColumns))
      if (address.mayLeaveColumns(repeat))
        condition = compare(arith::CmpIPredicate::ult,
                            address.getColumn(repeat), address.getLength());
  }

  /// Null for always.
  Value get(int64_t rowRepeat, int64_t repeat) {
    return combine(ofRows[rowRepeat], ofColumns[repeat]);
  }

private:
  Value combine(Value lhs, Value rhs) {
    if (!lhs || !rhs)
      return lhs ? lhs : rhs;
    return arith::AndIOp::create(builder, loc, lhs, rhs);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, int64_t rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs,
                                 address.constant(rhs));
  }
  Value isZero(Value value) {
    return compare(arith::CmpIPredicate::eq, value, 0);
  }

  Value getForRow(int64_t repeat) {
    Value row = address.getRow(repeat), condition;
    if (address.mayLeaveRows())
      condition = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                        row, address.getRowCount());
    if (address.hasBands())
      condition = combine(condition, address.isFirstOfBand(row));
    return condition;
  }

  Value getForThread(RankedTensorType type) {
    ThreadPosition thread = getThreadPosition(builder, loc, layout);
    Value condition;
    // Every thread along the row holds a statistic, every row of threads a tile
    // of one row; one of them stores it.
    if (type.getDimSize(1) == 1 && layout.getThreadColumns() > 1)
      condition = isZero(thread.column);
    // Of a group, the first thread does.
    if (layout.getGroup() > 1 && layout.getGroupThreads() > 1)
      condition =
          combine(condition, isZero(arith::RemUIOp::create(
                                 builder, loc, thread.column,
                                 address.constant(layout.getGroupThreads()))));
    if (type.getDimSize(1) == 1 && layout.getBlocks() > 1)
      condition =
          combine(condition, isZero(getBlockRank(builder, loc, layout)));
    if (type.getDimSize(0) == 1 && layout.getThreadRows() > 1)
      condition = combine(condition, isZero(thread.row));
    return condition;
  }

  OpBuilder &builder;
  Location loc;
  TileAddress &address;
  tile::BlockedAttr layout;
  SmallVector<Value> ofRows, ofColumns;
};

struct LowerStore : public OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    tile::BlockedAttr layout = getLayout(type);
    if (!layout)
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> indices;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index[0]);
    TileAddress address(rewriter, op, type, adaptor.getMemref(), indices);
    unsigned alignment =
        op.getAlignment().value_or(type.getElementTypeBitWidth() / 8);
    int64_t columns = layout.getColumnRepeats(type.getShape());
    bool hasGroups = layout.getGroup() > 1;
    StoreConditions conditions(rewriter, loc, address, type);
    Value row, rowAddress, threadAddress;
    for (auto [index, piece] : llvm::enumerate(adaptor.getValue())) {
      int64_t repeat = index % columns;
      if (repeat == 0) {
        row = address.getRow(index / columns);
        rowAddress = address.getRowAddress(row);
        if (address.haveThreadAddress())
          threadAddress = address.getThreadAddress(rowAddress);
      }
      // The first piece of a group has what all of them have.
      if (hasGroups && repeat % layout.getGroupPieces() != 0)
        continue;
      Value pointer =
          threadAddress
              ? address.getPieceAddress(threadAddress, repeat)
              : address.getAddress(rowAddress, address.getColumn(repeat));
      Value stored =
          bitcastTo(rewriter, loc, getMemoryType(piece.getType()), piece);
      if (Value inside = conditions.get(index / columns, repeat))
        storeIf(rewriter, loc, inside, stored, pointer, alignment);
      else
        LLVM::StoreOp::create(rewriter, loc, stored, pointer, alignment);
    }
    rewriter.eraseOp(op);
    return success();
  }

  /// Stores a piece as a whole or not at all. A branch would invite LLVM to
  /// move into it what only this store needs, the loads among it, and loads
  /// must start early.
  static void storeIf(OpBuilder &builder, Location loc, Value condition,
                      Value piece, Value pointer, unsigned alignment) {
    // As integers of 16 bits, since LLVM's host code generation takes a masked
    // store of one bfloat16 through float32, rounding by a call.
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
};

/// Compared as integers: the bits of 1 are those of nothing else.
struct LowerIsDone : public OpConversionPattern<tile::IsDoneOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IsDoneOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto isEqual = [&](Value lhs, Value rhs) -> Value {
      return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, lhs,
                                   rhs);
    };
    auto element = cast<FloatType>(
        cast<MemRefType>(op.getFactor().getType()).getElementType());
    Type bits = withIntegers(element);
    Value factor =
        LLVM::LoadOp::create(rewriter, loc, bits, adaptor.getFactor().front(),
                             element.getWidth() / 8);
    APInt one = APFloat::getOne(element.getFloatSemantics()).bitcastToAPInt();
    Value isDone =
        isEqual(factor, arith::ConstantOp::create(
                            rewriter, loc, rewriter.getIntegerAttr(bits, one)));
    for (auto [input, output] :
         llvm::zip_equal(adaptor.getInputs(), adaptor.getOutputs())) {
      auto getAddress = [&](ValueRange parts) -> Value {
        return LLVM::PtrToIntOp::create(rewriter, loc, rewriter.getI64Type(),
                                        parts.front());
      };
      isDone =
          arith::AndIOp::create(rewriter, loc, isDone,
                                isEqual(getAddress(input), getAddress(output)));
    }
    rewriter.replaceOp(op, isDone);
    return success();
  }
};

} // namespace

void bastile::populateMemoryPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerLoad, LowerCopyAhead, LowerStore, LowerIsDone>(
      converter, patterns.getContext());
}
