//===- LowerTransposedLoad.cpp - Tiles across the rows of operands --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Loads of tiles whose rows are the columns of an operand, in programs over
// named dimensions. Neighbours in a row of the tile lie in different rows of
// the operand, so that each thread loads its elements one by one. Numbers of
// rows mostly lie behind each other in memory: then a tile of one row needs one
// address, which takes far fewer instructions than one for each element, and
// half as many loads where that address is aligned.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/OperandTile.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Loads the elements of one tile.
class TransposedLoader {
public:
  TransposedLoader(OpBuilder &builder, tile::LoadOp op, ValueRange parts,
                   ArrayRef<ValueRange> indices)
      : builder(builder), op(op), loc(op.getLoc()),
        tile(cast<RankedTensorType>(op.getType())),
        memory(builder, op, cast<MemRefType>(op.getMemref().getType()), parts,
               indices),
        zero(createConstantPiece(builder, loc, tile.getElementType(),
                                 builder.getZeroAttr(tile.getElementType()))) {}

  SmallVector<Value> loadFragments(tile::MmaAttr layout);
  SmallVector<Value> loadBlocks(tile::BlockedAttr layout);

private:
  SmallVector<Value> loadEach(tile::MmaAttr layout);
  SmallVector<Value> loadDense(tile::MmaAttr layout, bool aligned);
  SmallVector<Value> loadStrided(tile::MmaAttr layout);
  using Load = llvm::function_ref<SmallVector<Value>()>;
  SmallVector<Value> loadEither(Value condition, Load loadThen, Load loadElse);
  Value isDense();
  Value isAligned();
  Value loadPiece(Value row, Value column);
  Value loadElement(Value row, Value column);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  }
  int64_t getPieceBytes() const {
    return getElementBytes(tile) *
           cast<VectorType>(getPieceType(tile)).getNumElements();
  }
  bool hasRows() const { return tile.getDimSize(0) != 1; }
  bool hasColumns() const { return tile.getDimSize(1) != 1; }

  OpBuilder &builder;
  tile::LoadOp op;
  Location loc;
  RankedTensorType tile;
  const OperandTile memory;
  Value zero;
};

} // namespace

/// Of what the program does not write, threads of a GPU read some element in
/// place of one that lies beyond the operand, without a branch.
Value TransposedLoader::loadElement(Value row, Value column) {
  Value operandRow = memory.row ? add(memory.row, column) : Value();
  Value operandColumn = add(memory.column, row);
  Value inside = memory.isInside(builder, loc, operandRow, operandColumn);
  Value address =
      memory.getAddress(builder, loc, operandRow, operandColumn, inside);
  const auto bytes = static_cast<unsigned>(getElementBytes(tile));
  if (!op.getInvariant() || !getFragmentLayout(tile))
    return loadIf(builder, loc, inside, zero, address, bytes);
  Value loaded = bastile::loadPiece(builder, loc, tile.getElementType(),
                                    address, bytes, /*isInvariant=*/true);
  return arith::SelectOp::create(builder, loc, inside, loaded, zero);
}

/// The piece whose first element is at `row` and `column` of the tile.
Value TransposedLoader::loadPiece(Value row, Value column) {
  auto type = dyn_cast<VectorType>(getPieceType(tile));
  if (!type)
    return loadElement(row, column);
  SmallVector<Value> elements;
  for (int64_t element = 0; element < type.getNumElements(); ++element)
    elements.push_back(loadElement(row, add(column, constant(element))));
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

/// Whether all elements of a tile of one row lie in the operand, behind each
/// other.
Value TransposedLoader::isDense() {
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs,
                     Value rhs) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  };
  Value end = add(memory.row, constant(tile.getDimSize(1)));
  Value isWhole = arith::AndIOp::create(
      builder, loc, compare(arith::CmpIPredicate::ule, end, memory.rows),
      compare(arith::CmpIPredicate::ult, memory.column, memory.columns));
  return arith::AndIOp::create(
      builder, loc, isWhole,
      compare(arith::CmpIPredicate::eq, memory.rowStride, constant(1)));
}

/// Whether the first element of a tile of one row is as aligned as a piece, so
/// that all pieces of the tile are.
Value TransposedLoader::isAligned() {
  Value first = advance(builder, loc, memory.address, memory.element,
                        add(memory.column, memory.row));
  Type i64 = builder.getI64Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI64IntegerAttr(value));
  };
  Value bytes = arith::AndIOp::create(
      builder, loc, LLVM::PtrToIntOp::create(builder, loc, i64, first),
      number(getPieceBytes() - 1));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bytes,
                               number(0));
}

/// Loads the pieces of a tile of one row that is dense, as a whole if they are
/// `aligned`.
SmallVector<Value> TransposedLoader::loadDense(tile::MmaAttr layout,
                                               bool aligned) {
  FragmentPosition position(builder, op, layout);
  ArrayRef<int64_t> shape = tile.getShape();
  Value first =
      advance(builder, loc, memory.address, memory.element,
              add(memory.column, add(memory.row, position.getColumn(0))));
  auto type = cast<VectorType>(getPieceType(tile));
  auto load = [&](Type loaded, int64_t column) {
    return bastile::loadPiece(
        builder, loc, loaded,
        advance(builder, loc, first, memory.element, constant(column)),
        aligned ? getPieceBytes() : getElementBytes(tile),
        /*isInvariant=*/true);
  };
  SmallVector<Value> pieces(layout.getNumPieces(shape));
  for (int64_t chunk = 0; chunk < layout.getChunks(shape); ++chunk) {
    const int64_t column = chunk * layout.getChunkColumns();
    Value &piece =
        pieces[layout.getPiece(shape, /*repeat=*/0, chunk, /*half=*/0)];
    if (aligned) {
      piece = load(type, column);
      continue;
    }
    SmallVector<Value> elements;
    for (int64_t element = 0; element < type.getNumElements(); ++element)
      elements.push_back(load(tile.getElementType(), column + element));
    piece = vector::FromElementsOp::create(builder, loc, type, elements);
  }
  return pieces;
}

/// Loads the pieces of a tile of one row, each element from an address of its
/// own: that of the operand's first element where it lies beyond. Elements are
/// told apart by constants, so that nothing is left to compute for each of them
/// where the tile is dense.
SmallVector<Value> TransposedLoader::loadStrided(tile::MmaAttr layout) {
  FragmentPosition position(builder, op, layout);
  ArrayRef<int64_t> shape = tile.getShape();
  Value row = add(memory.row, position.getColumn(0));
  Value left = arith::SubIOp::create(
      builder, loc, memory.rows,
      arith::MinUIOp::create(builder, loc, row, memory.rows));
  left = arith::SelectOp::create(
      builder, loc,
      memory.isInside(builder, loc, /*elementRow=*/Value(), memory.column),
      left, constant(0));
  Value first = add(memory.column,
                    arith::MulIOp::create(builder, loc, row, memory.rowStride));
  auto type = cast<VectorType>(getPieceType(tile));
  SmallVector<Value> pieces(layout.getNumPieces(shape));
  for (int64_t chunk = 0; chunk < layout.getChunks(shape); ++chunk) {
    SmallVector<Value> elements;
    for (int64_t element = 0; element < type.getNumElements(); ++element) {
      Value number = constant(chunk * layout.getChunkColumns() + element);
      Value inside = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ugt, left, number);
      Value offset = arith::SelectOp::create(
          builder, loc, inside,
          add(first,
              arith::MulIOp::create(builder, loc, number, memory.rowStride)),
          constant(0));
      Value loaded = bastile::loadPiece(
          builder, loc, tile.getElementType(),
          advance(builder, loc, memory.address, memory.element, offset),
          getElementBytes(tile), /*isInvariant=*/true);
      elements.push_back(
          arith::SelectOp::create(builder, loc, inside, loaded, zero));
    }
    pieces[layout.getPiece(shape, /*repeat=*/0, chunk, /*half=*/0)] =
        vector::FromElementsOp::create(builder, loc, type, elements);
  }
  return pieces;
}

/// The pieces that `loadThen` loads if `condition` holds, and `loadElse`
/// otherwise.
SmallVector<Value> TransposedLoader::loadEither(Value condition, Load loadThen,
                                                Load loadElse) {
  auto branch = scf::IfOp::create(
      builder, loc,
      SmallVector<Type>(getFragmentLayout(tile).getNumPieces(tile.getShape()),
                        getPieceType(tile)),
      condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, loadThen());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, loadElse());
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> TransposedLoader::loadFragments(tile::MmaAttr layout) {
  if (hasRows() || !hasColumns() || !op.getInvariant() || !memory.row)
    return loadEach(layout);
  // The assembler makes branches of short code conditions of each instruction,
  // which take time all the same: the usual case has one branch, and is alone
  // on its side.
  Value dense = isDense();
  return loadEither(
      arith::AndIOp::create(builder, loc, dense, isAligned()),
      [&] { return loadDense(layout, /*aligned=*/true); },
      [&] {
        return loadEither(
            dense, [&] { return loadDense(layout, /*aligned=*/false); },
            [&] { return loadStrided(layout); });
      });
}

SmallVector<Value> TransposedLoader::loadEach(tile::MmaAttr layout) {
  FragmentPosition position(builder, op, layout);
  ArrayRef<int64_t> shape = tile.getShape();
  SmallVector<Value> pieces(layout.getNumPieces(shape));
  for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
    for (int64_t half = 0; half < layout.getRowsPerRepeat(shape); ++half)
      for (int64_t chunk = 0; chunk < layout.getChunks(shape); ++chunk)
        pieces[layout.getPiece(shape, repeat, chunk, half)] =
            loadPiece(hasRows() ? position.getRow(repeat, half) : constant(0),
                      hasColumns() ? position.getColumn(chunk) : constant(0));
  return pieces;
}

SmallVector<Value> TransposedLoader::loadBlocks(tile::BlockedAttr layout) {
  const ThreadPosition thread = getThreadPosition(builder, loc, layout);
  SmallVector<Value> pieces;
  for (int64_t i = 0; i < layout.getRowRepeats(tile.getShape()); ++i)
    for (int64_t j = 0; j < layout.getColumnRepeats(tile.getShape()); ++j)
      pieces.push_back(loadPiece(
          hasRows() ? add(thread.row, constant(i * layout.getThreadRows()))
                    : constant(0),
          hasColumns() ? getPieceColumn(builder, loc, tile, j) : constant(0)));
  return pieces;
}

namespace {

/// This pattern comes ahead of those for tiles along rows.
constexpr unsigned kBenefit = 3;

struct LoadTransposed : public OpConversionPattern<tile::LoadOp> {
  LoadTransposed(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, kBenefit) {}

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getTransposed())
      return failure();
    TransposedLoader loader(rewriter, op, adaptor.getMemref(),
                            adaptor.getIndices());
    tile::MmaAttr fragments = getFragmentLayout(op.getType());
    rewriter.replaceOpWithMultiple(
        op,
        {ValueRange(fragments ? loader.loadFragments(fragments)
                              : loader.loadBlocks(getLayout(op.getType())))});
    return success();
  }
};

} // namespace

void bastile::populateTransposedLoadPatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<LoadTransposed>(converter, patterns.getContext());
}
