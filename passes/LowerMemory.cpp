//===- LowerMemory.cpp - Loads and stores of a thread's pieces ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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
    Value position = getThreadPosition(builder, loc, layout).row;
    position = add(position, constant(repeat * layout.getThreadRows()));
    return add(row, position);
  }
  Value getColumn(int64_t repeat) {
    if (tile.getDimSize(1) == 1)
      return column;
    return add(column, getPieceColumn(builder, loc, tile, repeat));
  }
  Value getRowCount() { return buildRowCount(builder, loc, kernel, space); }

  /// The address of an element that lies inside the operand.
  Value getAddress(Value elementRow, Value elementColumn) {
    Value address = parts.front();
    if (band)
      elementRow =
          arith::DivUIOp::create(builder, loc, elementRow, constant(*band));
    if (row)
      address = advance(address, getRowOffset(elementRow));
    if (offset)
      elementColumn = add(elementColumn, constant(offset));
    return advance(address, elementColumn);
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
  /// Where rows lie without gaps.
  std::optional<int64_t> rowStride;
  /// The columns of the operand's rows that the op sees.
  int64_t offset, length;
  /// How many rows of the kernel share a row of the operand.
  std::optional<int64_t> band;
};

/// Elements beyond the operand are read from its last row or vector instead: an
/// access without a branch, which the loads of other pieces can overlap.
struct LowerLoad : public OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
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
    SmallVector<Value> pieces;
    for (int64_t rowRepeat = 0,
                 rowRepeats = layout.getRowRepeats(type.getShape());
         rowRepeat < rowRepeats; ++rowRepeat) {
      Value row = address.getRow(rowRepeat);
      if (address.mayLeaveRows()) {
        Value last = arith::SubIOp::create(rewriter, loc, address.getRowCount(),
                                           address.constant(1));
        row = arith::MinUIOp::create(rewriter, loc, row, last);
      }
      for (int64_t repeat = 0,
                   repeats = layout.getColumnRepeats(type.getShape());
           repeat < repeats; ++repeat) {
        Value column = address.getColumn(repeat);
        if (address.mayLeaveColumns(repeat)) {
          int64_t width = layout.getGroup() > 1 ? 1 : layout.getVector();
          Value last = address.constant(address.getLength() - width);
          column = arith::MinUIOp::create(rewriter, loc, column, last);
        }
        auto load = LLVM::LoadOp::create(
            rewriter, loc, getMemoryType(getPieceType(type)),
            address.getAddress(row, column), alignment);
        load.setInvariant(op.getInvariant());
        pieces.push_back(bitcastTo(rewriter, loc, getPieceType(type), load));
      }
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
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
    for (auto [index, piece] : llvm::enumerate(adaptor.getValue())) {
      // The first piece of a group has what all of them have.
      if (hasGroups && index % columns % layout.getGroupPieces() != 0)
        continue;
      Value row = address.getRow(index / columns);
      Value column = address.getColumn(index % columns);
      Value pointer = address.getAddress(row, column);
      Value stored =
          bitcastTo(rewriter, loc, getMemoryType(piece.getType()), piece);
      if (Value inside = getCondition(rewriter, loc, address, type, row, column,
                                      index % columns))
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

  /// When this thread stores the piece at `row` and `column`; null for always.
  static Value getCondition(OpBuilder &builder, Location loc,
                            TileAddress &address, RankedTensorType type,
                            Value row, Value column, int64_t repeat) {
    SmallVector<Value> conditions;
    auto require = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
      conditions.push_back(
          arith::CmpIOp::create(builder, loc, predicate, lhs, rhs));
    };
    if (address.mayLeaveRows())
      require(arith::CmpIPredicate::ult, row, address.getRowCount());
    if (address.hasBands())
      conditions.push_back(address.isFirstOfBand(row));
    if (address.mayLeaveColumns(repeat))
      require(arith::CmpIPredicate::ult, column,
              address.constant(address.getLength()));
    // Every thread along the row holds a statistic, every row of threads a tile
    // of one row; one of them stores it.
    tile::BlockedAttr layout = getLayout(type);
    if (type.getDimSize(1) == 1 && layout.getThreadColumns() > 1)
      require(arith::CmpIPredicate::eq,
              getThreadPosition(builder, loc, layout).column,
              address.constant(0));
    // Of a group, the first thread does.
    if (layout.getGroup() > 1 && layout.getGroupThreads() > 1)
      require(arith::CmpIPredicate::eq,
              arith::RemUIOp::create(
                  builder, loc, getThreadPosition(builder, loc, layout).column,
                  address.constant(layout.getGroupThreads())),
              address.constant(0));
    if (type.getDimSize(1) == 1 && layout.getBlocks() > 1)
      require(arith::CmpIPredicate::eq, getBlockRank(builder, loc, layout),
              address.constant(0));
    if (type.getDimSize(0) == 1 && layout.getThreadRows() > 1)
      require(arith::CmpIPredicate::eq,
              getThreadPosition(builder, loc, layout).row, address.constant(0));
    Value all;
    for (Value condition : conditions)
      all =
          all ? arith::AndIOp::create(builder, loc, all, condition) : condition;
    return all;
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
  patterns.add<LowerLoad, LowerStore, LowerIsDone>(converter,
                                                   patterns.getContext());
}
