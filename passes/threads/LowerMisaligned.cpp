//===- LowerMisaligned.cpp - Tiles that begin ahead of their rows ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Loads, stores and masks of misaligned tiles. The vectors of such a tile lie
// at aligned addresses, wherever its rows begin. The first vector of a row and
// the last may stick out of the row: the one thread that has such an edge moves
// it element by element, and nothing outside of the row is touched.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/TileAddress.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The columns of a misaligned tile, as numbers of 32 bits. Columns ahead of
/// the row are below 0: compared without a sign, they lie beyond the row's end
/// as well.
class MisalignedColumns {
public:
  /// `column` is the tile's first column, `misalignment` that of each of its
  /// rows, and `length` the columns of a row.
  MisalignedColumns(OpBuilder &builder, Location loc, RankedTensorType tile,
                    Value column, ValueRange misalignment, int64_t length)
      : builder(builder), loc(loc), tile(tile), layout(getLayout(tile)),
        column(column), misalignment(misalignment), length(length) {}

  int64_t getWidth() const { return layout.getVector(); }

  /// The first column of a piece as an index for addresses. It has as many bits
  /// as these, so that the addresses of a thread's pieces differ by constants.
  Value getIndex(int64_t rowRepeat, int64_t repeat) {
    Value first = arith::AddIOp::create(
        builder, loc, column, getPieceColumn(builder, loc, tile, repeat));
    return arith::SubIOp::create(builder, loc, first,
                                 getIndex(misalignment[rowRepeat]));
  }

  /// The first column of a piece.
  Value getFirst(int64_t rowRepeat, int64_t repeat) {
    Value first = arith::AddIOp::create(
        builder, loc, column, getPieceColumn(builder, loc, tile, repeat));
    first =
        arith::IndexCastOp::create(builder, loc, builder.getI32Type(), first);
    return arith::SubIOp::create(builder, loc, first, misalignment[rowRepeat]);
  }

  /// Whether the pieces of a repetition are inside the row for every thread.
  bool areSurelyInside(int64_t repeat) {
    std::optional<int64_t> first = getConstantIntValue(column);
    return first &&
           *first + repeat * layout.getColumnsPerDeal() >= getWidth() - 1 &&
           isSurelyInside(layout, repeat, column, length);
  }

  /// Whether all of a piece is inside the row, or some of it.
  Value isInside(Value first) {
    return isBelow(first, length - getWidth() + 1);
  }
  Value isEdge(Value first) {
    Value last = add(first, getWidth() - 1);
    return arith::AndIOp::create(builder, loc,
                                 isBelow(last, length + getWidth() - 1),
                                 invert(isInside(first)));
  }
  Value invert(Value condition) {
    return arith::XOrIOp::create(
        builder, loc, condition,
        arith::ConstantIntOp::create(builder, loc, 1, /*width=*/1));
  }

  /// The first column of a piece that is an edge: of the row's first vector or
  /// of its last. It is computed from the row rather than from the tile, so
  /// that LLVM finds no way to count up addresses of elements from tile to
  /// tile.
  Value getEdge(Value first, int64_t rowRepeat) {
    Value behind = misalignment[rowRepeat];
    Value head = arith::SubIOp::create(builder, loc, constant(0), behind);
    Value last = arith::AndIOp::create(builder, loc, add(behind, length - 1),
                                       constant(-getWidth()));
    Value isHead = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::slt, first, constant(0));
    return arith::SelectOp::create(
        builder, loc, isHead, head,
        arith::SubIOp::create(builder, loc, last, behind));
  }

  /// The column of one element of a piece, and whether it is inside the row.
  Value getColumn(Value first, int64_t element) { return add(first, element); }
  Value isColumn(Value elementColumn) { return isBelow(elementColumn, length); }

  /// The columns of all elements of a piece, as a vector.
  Value getColumns(Value first) {
    return createCount(builder, loc, first,
                       VectorType::get({getWidth()}, builder.getI32Type()));
  }
  /// Whether each element of a piece is inside the row.
  Value areColumns(Value first) {
    // Columns behind the row's end stay outside when they are cut to it, and
    // leave LLVM no number to count up for each element from tile to tile.
    Value columns = getColumns(
        arith::MinSIOp::create(builder, loc, first, constant(length)));
    auto limit = DenseElementsAttr::get(cast<VectorType>(columns.getType()),
                                        static_cast<int32_t>(length));
    return arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, columns,
        arith::ConstantOp::create(builder, loc, limit));
  }

  /// The first column of the row's first whole vector.
  Value getFirstInside(int64_t rowRepeat) {
    Value first = arith::SubIOp::create(builder, loc, constant(getWidth()),
                                        misalignment[rowRepeat]);
    return arith::AndIOp::create(builder, loc, first, constant(getWidth() - 1));
  }

  /// `elementColumn`, which is not below 0, as an index for addresses.
  Value getIndex(Value elementColumn) {
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                        elementColumn);
  }

  Value getSignedIndex(Value elementColumn) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                      elementColumn);
  }

  Value constant(int32_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI32IntegerAttr(value));
  }

private:
  Value add(Value value, int64_t count) {
    return arith::AddIOp::create(builder, loc, value, constant(count));
  }
  Value isBelow(Value value, int64_t limit) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, value,
                                 constant(limit));
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType tile;
  tile::BlockedAttr layout;
  Value column;
  ValueRange misalignment;
  int64_t length;
};

/// Moves the pieces of a misaligned tile between a thread and memory.
class MisalignedAccess {
public:
  /// `parts`, `indices` and `misalignment` are the converted operands of `op`.
  template <typename Op>
  MisalignedAccess(OpBuilder &builder, Op op, RankedTensorType tile,
                   ValueRange parts, ValueRange indices,
                   ValueRange misalignment)
      : builder(builder), loc(op.getLoc()), tile(tile),
        address(builder, op, tile, parts, indices),
        columns(builder, loc, tile, indices.back(), misalignment,
                address.getLength()) {}

  /// Loads all vectors first, so that they are under way, and then replaces
  /// those that are edges.
  SmallVector<Value> load(unsigned alignment, bool isInvariant);
  void store(ValueRange values, unsigned alignment);
  void copyAhead(Value buffer, Value slot);

private:
  /// The place of a piece: the repetitions of the layout, the address of its
  /// row and its first column, as a number and as an index for addresses.
  struct Piece {
    int64_t rowRepeat, repeat;
    Value rowAddress, first, index;
  };
  /// The pieces of this thread. For loads, rows beyond the operand's last one
  /// are replaced by that.
  SmallVector<Piece> getPieces(bool isLoad);

  /// The address of a piece, which may be outside of the row.
  Value getPointer(const Piece &piece) {
    return address.getAddress(piece.rowAddress, piece.index);
  }
  /// The address of the piece or, where the piece is not inside of the row, of
  /// some vector that is.
  Value getInnerPointer(const Piece &piece) {
    if (columns.areSurelyInside(piece.repeat))
      return getPointer(piece);
    // Neither column is below 0, so that numbers of 32 bits do.
    Value inner = arith::SelectOp::create(
        builder, loc, columns.isInside(piece.first), piece.first,
        columns.getFirstInside(piece.rowRepeat));
    return address.getAddress(piece.rowAddress, columns.getIndex(inner));
  }
  unsigned getElementBytes() const { return bastile::getElementBytes(tile); }
  /// Builds a branch and leaves the builder inside of it.
  void enterIf(Value condition);
  Value loadElements(const Piece &piece, bool isInvariant);
  void storeElements(const Piece &piece, Value value, Value condition);

  OpBuilder &builder;
  Location loc;
  RankedTensorType tile;
  TileAddress address;
  MisalignedColumns columns;
};

SmallVector<MisalignedAccess::Piece> MisalignedAccess::getPieces(bool isLoad) {
  tile::BlockedAttr layout = getLayout(tile);
  SmallVector<Piece> pieces;
  for (int64_t rowRepeat = 0,
               rowRepeats = layout.getRowRepeats(tile.getShape());
       rowRepeat < rowRepeats; ++rowRepeat) {
    Value row = isLoad ? address.getInnerRow(rowRepeat)
                       : address.getStoredRow(rowRepeat);
    Value rowAddress = address.getRowAddress(row);
    for (int64_t repeat = 0, repeats = layout.getColumnRepeats(tile.getShape());
         repeat < repeats; ++repeat)
      pieces.push_back({rowRepeat, repeat, rowAddress,
                        columns.getFirst(rowRepeat, repeat),
                        columns.getIndex(rowRepeat, repeat)});
  }
  return pieces;
}

void MisalignedAccess::enterIf(Value condition) {
  auto branch =
      scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
}

/// Loads the elements of `piece`, an edge, one by one. Elements outside of the
/// row get the row's first element.
Value MisalignedAccess::loadElements(const Piece &piece, bool isInvariant) {
  auto type = cast<VectorType>(getPieceType(tile));
  auto bits = cast<VectorType>(withIntegers(type));
  SmallVector<Value> elements;
  Value first = columns.getEdge(piece.first, piece.rowRepeat);
  for (int64_t element = 0; element < columns.getWidth(); ++element) {
    Value column = columns.getColumn(first, element);
    column = arith::SelectOp::create(builder, loc, columns.isColumn(column),
                                     column, columns.constant(0));
    Value pointer =
        address.getAddress(piece.rowAddress, columns.getIndex(column));
    auto load = LLVM::LoadOp::create(builder, loc, bits.getElementType(),
                                     pointer, getElementBytes());
    load.setInvariant(isInvariant);
    elements.push_back(load);
  }
  Value vector = vector::FromElementsOp::create(builder, loc, bits, elements);
  return bitcastTo(builder, loc, type, vector);
}

SmallVector<Value> MisalignedAccess::load(unsigned alignment,
                                          bool isInvariant) {
  SmallVector<Piece> pieces = getPieces(/*isLoad=*/true);
  Type type = getPieceType(tile);
  SmallVector<Value> values;
  for (const Piece &piece : pieces)
    values.push_back(loadPiece(builder, loc, type, getInnerPointer(piece),
                               alignment, isInvariant));
  for (auto [piece, value] : llvm::zip_equal(pieces, values)) {
    if (columns.areSurelyInside(piece.repeat))
      continue;
    auto branch =
        scf::IfOp::create(builder, loc, type, columns.isEdge(piece.first),
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, loadElements(piece, isInvariant));
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, value);
    value = branch.getResult(0);
  }
  return values;
}

/// Stores the elements of `piece`, an edge, that are inside of the row, one by
/// one.
void MisalignedAccess::storeElements(const Piece &piece, Value value,
                                     Value condition) {
  OpBuilder::InsertionGuard guard(builder);
  enterIf(condition);
  Value first = columns.getEdge(piece.first, piece.rowRepeat);
  Value index = columns.getSignedIndex(first);
  for (int64_t element = 0; element < columns.getWidth(); ++element) {
    Value column = columns.getColumn(first, element);
    Value pointer = address.getAddress(
        piece.rowAddress,
        arith::AddIOp::create(builder, loc, index, address.constant(element)));
    storeIf(builder, loc, columns.isColumn(column),
            vector::ExtractOp::create(builder, loc, value, element), pointer,
            getElementBytes());
  }
}

void MisalignedAccess::store(ValueRange values, unsigned alignment) {
  SmallVector<Piece> pieces = getPieces(/*isLoad=*/false);
  SmallVector<Value> ofRows = address.getRowConditions();
  SmallVector<Value> stored = llvm::map_to_vector(values, [&](Value value) {
    return bitcastTo(builder, loc, withIntegers(value.getType()), value);
  });
  for (auto [piece, value] : llvm::zip_equal(pieces, stored)) {
    Value isMine = ofRows[piece.rowRepeat];
    Value pointer = getPointer(piece);
    if (!columns.areSurelyInside(piece.repeat))
      isMine = combine(builder, loc, isMine, columns.isInside(piece.first));
    storeIf(builder, loc, isMine, value, pointer, alignment);
  }
  for (auto [piece, value] : llvm::zip_equal(pieces, stored)) {
    if (columns.areSurelyInside(piece.repeat))
      continue;
    storeElements(piece, value,
                  combine(builder, loc, ofRows[piece.rowRepeat],
                          columns.isEdge(piece.first)));
  }
}

/// Pieces outside of the row copy some vector of the row, as they do where rows
/// are aligned. The elements of an edge are in the buffer when the thread goes
/// on.
void MisalignedAccess::copyAhead(Value buffer, Value slot) {
  SmallVector<Piece> pieces = getPieces(/*isLoad=*/true);
  SmallVector<std::pair<Value, unsigned>> targets;
  forEachKeptPiece(builder, loc, tile, buffer, slot,
                   [&](int64_t, Value target, unsigned bytes) {
                     targets.push_back({target, bytes});
                   });
  for (auto [piece, kept] : llvm::zip_equal(pieces, targets)) {
    auto [target, bytes] = kept;
    OpBuilder::InsertionGuard guard(builder);
    if (!columns.areSurelyInside(piece.repeat))
      enterIf(columns.invert(columns.isEdge(piece.first)));
    createCopyAhead(builder, loc, getInnerPointer(piece), target, bytes);
  }
  for (auto [piece, kept] : llvm::zip_equal(pieces, targets)) {
    auto [target, bytes] = kept;
    if (columns.areSurelyInside(piece.repeat))
      continue;
    OpBuilder::InsertionGuard guard(builder);
    enterIf(columns.isEdge(piece.first));
    storePiece(builder, loc, loadElements(piece, /*isInvariant=*/false), target,
               bytes);
  }
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

struct LowerMisalignment : public OpConversionPattern<tile::MisalignmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MisalignmentOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    if (!getLayout(type))
      return failure();
    Location loc = op.getLoc();
    auto memref = cast<MemRefType>(op.getMemref().getType());
    auto tile = RankedTensorType::get(type.getShape(), memref.getElementType(),
                                      type.getEncoding());
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    TileAddress address(rewriter, op, memref, tile, adaptor.getMemref(),
                        {adaptor.getRow().front(), zero}, op.getSpace());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(rewriter, loc,
                                       rewriter.getI32IntegerAttr(value));
    };
    SmallVector<Value> misalignments;
    for (int64_t repeat = 0,
                 end = getLayout(type).getRowRepeats(type.getShape());
         repeat < end; ++repeat) {
      Value begin = address.getAddress(
          address.getRowAddress(address.getInnerRow(repeat)), zero);
      // The low half of the address has the bits that the misalignment needs.
      begin =
          LLVM::PtrToIntOp::create(rewriter, loc, rewriter.getI32Type(), begin);
      begin = arith::ShRUIOp::create(
          rewriter, loc, begin,
          constant(llvm::Log2_64(getElementBytes(memref))));
      misalignments.push_back(arith::AndIOp::create(
          rewriter, loc, begin, constant(op.getPhase() - 1)));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(misalignments)});
    return success();
  }
};

struct LowerMisalignedLoad : public OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getLayout(type) || !op.getMisalignment())
      return failure();
    MisalignedAccess access(rewriter, op, type, adaptor.getMemref(),
                            getFronts(adaptor.getIndices()),
                            adaptor.getMisalignment());
    SmallVector<Value> pieces =
        access.load(op.getAlignment().value_or(1), op.getInvariant());
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerMisalignedStore : public OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    if (!getLayout(type) || !op.getMisalignment())
      return failure();
    MisalignedAccess access(rewriter, op, type, adaptor.getMemref(),
                            getFronts(adaptor.getIndices()),
                            adaptor.getMisalignment());
    access.store(adaptor.getValue(), op.getAlignment().value_or(1));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerMisalignedCopyAhead
    : public OpConversionPattern<tile::CopyAheadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyAheadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getTile());
    if (!getLayout(type) || !op.getMisalignment())
      return failure();
    MisalignedAccess access(rewriter, op, type, adaptor.getMemref(),
                            getFronts(adaptor.getIndices()),
                            adaptor.getMisalignment());
    access.copyAhead(adaptor.getBuffer().front(), adaptor.getSlot().front());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerMisalignedMask : public OpConversionPattern<tile::MaskOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MaskOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getLayout(type) || !op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    MisalignedColumns columns(rewriter, loc, type, adaptor.getColumn().front(),
                              adaptor.getMisalignment(), op.getLimit());
    Value outside = createConstantPiece(rewriter, loc, getPieceType(type),
                                        cast<TypedAttr>(op.getOther()));
    int64_t repeats = getLayout(type).getColumnRepeats(type.getShape());
    SmallVector<Value> pieces;
    for (auto [index, piece] : llvm::enumerate(adaptor.getInput())) {
      if (columns.areSurelyInside(index % repeats)) {
        pieces.push_back(piece);
        continue;
      }
      Value first = columns.getFirst(index / repeats, index % repeats);
      Value isInside = columns.areColumns(first);
      pieces.push_back(
          arith::SelectOp::create(rewriter, loc, isInside, piece, outside));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerMisalignedIota : public OpConversionPattern<tile::IotaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IotaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    tile::BlockedAttr layout = getLayout(type);
    if (!layout || !op.getMisalignment())
      return failure();
    // The numbers go on beyond the row's end.
    MisalignedColumns columns(rewriter, op.getLoc(), type,
                              adaptor.getColumn().front(),
                              adaptor.getMisalignment(),
                              /*length=*/0);
    SmallVector<Value> pieces;
    for (int64_t row = 0; row < layout.getRowRepeats(type.getShape()); ++row)
      for (int64_t repeat = 0;
           repeat < layout.getColumnRepeats(type.getShape()); ++repeat)
        pieces.push_back(columns.getColumns(columns.getFirst(row, repeat)));
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

} // namespace

void bastile::populateMisalignedPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns
      .add<LowerMisalignment, LowerMisalignedLoad, LowerMisalignedStore,
           LowerMisalignedCopyAhead, LowerMisalignedMask, LowerMisalignedIota>(
          converter, patterns.getContext());
}
