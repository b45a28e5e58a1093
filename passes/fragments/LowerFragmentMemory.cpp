//===- LowerFragmentMemory.cpp - Tiles of products in memory --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Loads and stores of tiles in the layout of products, in programs over named
// dimensions. Each thread moves its own elements, one by one where they may lie
// beyond the operand.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/OperandTile.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"

using namespace mlir;
using namespace bastile;

namespace {

/// What a thread holds of one row of a tile, in an operand.
struct RowInMemory {
  /// The address of the thread's first element. Loads of any element have that
  /// of the operand's first one where it lies beyond the operand.
  Value address;
  /// How many elements the operand has from the thread's first one on.
  Value left;
};

/// The place of a tile's elements in an operand. Those of a thread are told
/// apart by constants, so that only the first one of a row is computed.
class FragmentMemory {
public:
  template <typename Op>
  FragmentMemory(OpBuilder &builder, Op op, RankedTensorType tile,
                 ValueRange parts, ArrayRef<ValueRange> indices)
      : builder(builder), loc(op.getLoc()), tile(tile),
        memory(builder, op, cast<MemRefType>(op.getMemref().getType()), parts,
               indices),
        position(builder, op, getFragmentLayout(tile)), first(memory.column) {
    if constexpr (std::is_same_v<Op, tile::LoadOp>)
      readsAny = op.getInvariant();
    if (tile.getDimSize(1) != 1)
      first = arith::AddIOp::create(builder, loc, first,
                                    position.getColumn(/*chunk=*/0));
    left = arith::SubIOp::create(
        builder, loc, memory.columns,
        arith::MinUIOp::create(builder, loc, first, memory.columns));
  }

  RowInMemory getRow(int64_t repeat, int64_t half) {
    Value row = memory.row, inRow = left, ofMatrix;
    if (row) {
      if (tile.getDimSize(0) != 1) {
        Value inTile = position.getRow(repeat, half);
        if (memory.matrixRows != 0)
          std::tie(ofMatrix, inTile) = findMatrix(inTile);
        if (!memory.repeatsRow)
          row = arith::AddIOp::create(builder, loc, row, inTile);
      }
      Value isRow = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ult, row, memory.rows);
      inRow = arith::SelectOp::create(builder, loc, isRow, left, constant(0));
    }
    return {memory.getAddress(builder, loc, row, first,
                              readsAny ? isMoreThan(inRow, 0) : Value(),
                              ofMatrix),
            inRow};
  }

  /// The number of element `element` of a chunk's pieces, from the thread's
  /// first one on.
  int64_t getColumn(int64_t chunk, int64_t element) const {
    return chunk * getFragmentLayout(tile).getChunkColumns() + element;
  }
  Value isInside(RowInMemory row, int64_t column) {
    return isMoreThan(row.left, column);
  }

  /// The address of an element that lies in the operand.
  Value getAddress(RowInMemory row, int64_t column) {
    return advanceBytes(builder, loc, row.address, column * getBytes());
  }
  /// The same, or any address in the operand for one that is not `inside`.
  Value getAddress(RowInMemory row, int64_t column, Value inside) {
    Value bytes = arith::SelectOp::create(
        builder, loc, inside, constant(column * getBytes()), constant(0));
    return advanceBytes(builder, loc, row.address, bytes);
  }

  /// The address of the row's last element, if the operand has one from the
  /// thread's first one on.
  Value getLastAddress(RowInMemory row) {
    Value before =
        arith::SubIOp::create(builder, loc, row.left, constant(/*value=*/1));
    return advanceBytes(
        builder, loc, row.address,
        arith::MulIOp::create(builder, loc, before, constant(getBytes())));
  }

private:
  /// How far the matrix of row `inTile` lies behind the first one, null where
  /// that is the same one, and the row's number in the matrix's part.
  std::pair<Value, Value> findMatrix(Value inTile) {
    Value rows = constant(memory.matrixRows), ofMatrix;
    if (memory.matrixStride)
      ofMatrix = arith::MulIOp::create(
          builder, loc, arith::DivUIOp::create(builder, loc, inTile, rows),
          memory.matrixStride);
    return {ofMatrix, arith::RemUIOp::create(builder, loc, inTile, rows)};
  }
  int64_t getBytes() const { return getElementBytes(tile); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value isMoreThan(Value count, int64_t limit) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, count,
                                 constant(limit));
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType tile;
  const OperandTile memory;
  FragmentPosition position;
  /// The thread's first column, and how many the operand has from there on.
  Value first, left;
  /// Whether any element may be read in place of one beyond the operand.
  bool readsAny = false;
};

/// Calls `visit` with each piece's number, row and chunk.
template <typename Visit>
void forEachPiece(RankedTensorType tile, FragmentMemory &memory, Visit visit) {
  tile::MmaAttr layout = getFragmentLayout(tile);
  ArrayRef<int64_t> shape = tile.getShape();
  for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
    for (int64_t half = 0; half < layout.getRowsPerRepeat(shape); ++half) {
      RowInMemory row = memory.getRow(repeat, half);
      for (int64_t chunk = 0; chunk < layout.getChunks(shape); ++chunk)
        visit(layout.getPiece(shape, repeat, chunk, half), row, chunk);
    }
}

/// Loads the pieces of a tile. Elements beyond the operand are zeros.
class PieceLoader {
public:
  PieceLoader(OpBuilder &builder, tile::LoadOp op, FragmentMemory &memory)
      : builder(builder), op(op), loc(op.getLoc()), memory(memory),
        type(cast<RankedTensorType>(op.getType())),
        width(getFragmentLayout(type).getPieceElements(type.getShape())),
        zero(createConstantPiece(builder, loc, type.getElementType(),
                                 builder.getZeroAttr(type.getElementType()))) {
    auto alignment = op->getAttrOfType<IntegerAttr>(kAlignment);
    takesPairs = op.getInvariant() &&
                 width * getElementBytes(type) == kPairBytes && width == 2 &&
                 alignment.getInt() % kPairBytes == 0;
  }

  Value load(RowInMemory row, int64_t chunk) {
    if (takesPairs)
      return loadPair(row, memory.getColumn(chunk, /*element=*/0));
    SmallVector<Value> elements;
    for (int64_t element = 0; element < width; ++element)
      elements.push_back(loadElement(row, memory.getColumn(chunk, element)));
    return width == 1 ? elements.front() : join(elements);
  }

private:
  /// Pairs of 16 bits are loaded as one number.
  static constexpr int64_t kPairBytes = 4;

  /// What the program does not write may be read anywhere, without a branch:
  /// some element of the operand where the tile's own lies beyond it.
  Value loadElement(RowInMemory row, int64_t column) {
    Value inside = memory.isInside(row, column);
    if (!op.getInvariant())
      return loadIf(builder, loc, inside, zero, memory.getAddress(row, column),
                    getElementBytes(type));
    Value loaded = loadPiece(builder, loc, type.getElementType(),
                             memory.getAddress(row, column, inside),
                             getElementBytes(type), /*isInvariant=*/true);
    return arith::SelectOp::create(builder, loc, inside, loaded, zero);
  }

  /// Of the pair of which only the first element lies in the operand, that
  /// element is the row's last one, which is loaded once for all pairs.
  Value loadPair(RowInMemory row, int64_t column) {
    if (row.left != left) {
      left = row.left;
      last = loadIf(builder, loc, memory.isInside(row, /*column=*/0), zero,
                    memory.getLastAddress(row), getElementBytes(type));
    }
    Value first = arith::SelectOp::create(
        builder, loc, memory.isInside(row, column), last, zero);
    Value loaded = loadIf(builder, loc, memory.isInside(row, column + 1),
                          toRegister(builder, loc, join({first, zero})),
                          memory.getAddress(row, column), kPairBytes);
    return fromRegister(builder, loc, getPieceType(type), loaded);
  }

  Value join(ArrayRef<Value> elements) {
    return vector::FromElementsOp::create(builder, loc, getPieceType(type),
                                          elements);
  }

  OpBuilder &builder;
  tile::LoadOp op;
  Location loc;
  FragmentMemory &memory;
  RankedTensorType type;
  int64_t width;
  Value zero, last, left;
  bool takesPairs;
};

struct LoadFragment : public OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getFragmentLayout(type) || !movesNamedRows(op))
      return failure();
    FragmentMemory memory(rewriter, op, type, adaptor.getMemref(),
                          adaptor.getIndices());
    PieceLoader loader(rewriter, op, memory);
    SmallVector<Value> pieces(
        getFragmentLayout(type).getNumPieces(type.getShape()));
    forEachPiece(type, memory,
                 [&](int64_t piece, RowInMemory row, int64_t chunk) {
                   pieces[piece] = loader.load(row, chunk);
                 });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct StoreFragment : public OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    if (!getFragmentLayout(type) || !movesNamedRows(op))
      return failure();
    tile::MmaAttr layout = getFragmentLayout(type);
    Location loc = op.getLoc();
    FragmentMemory memory(rewriter, op, type, adaptor.getMemref(),
                          adaptor.getIndices());
    FragmentPosition position(rewriter, op, layout);
    Value isOwner = isFirstHolder(rewriter, loc, type,
                                  position.getRow(/*repeat=*/0, /*half=*/0),
                                  position.getColumn(/*chunk=*/0));
    const int64_t width = layout.getPieceElements(type.getShape());
    forEachPiece(
        type, memory, [&](int64_t piece, RowInMemory row, int64_t chunk) {
          Value value = adaptor.getValue()[piece];
          for (int64_t element = 0; element < width; ++element) {
            const int64_t column = memory.getColumn(chunk, element);
            Value inside =
                combine(rewriter, loc, memory.isInside(row, column), isOwner);
            Value scalar =
                width == 1
                    ? value
                    : vector::ExtractOp::create(rewriter, loc, value, element)
                          .getResult();
            scalar = bitcastTo(rewriter, loc, getMemoryType(scalar.getType()),
                               scalar);
            storeIf(rewriter, loc, inside, scalar,
                    memory.getAddress(row, column), getElementBytes(type));
          }
        });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

/// Notes the dimensions of the operands that `dot` reads: of both, unless it
/// multiplies a tile.
static void nameFactors(tile::ProgramOp program, tile::LoadDotOp dot) {
  for (auto [name, factor] : {std::pair(kLeftDimensions, Value(dot.getA())),
                              std::pair(kRightDimensions, Value(dot.getB()))})
    if (auto operand = dyn_cast<BlockArgument>(factor);
        operand && isa<MemRefType>(operand.getType()))
      dot->setAttr(name, program.getArgDimensions(operand.getArgNumber()));
}

/// How many rows of each matrix the tiles of `program` have, whose rows are of
/// several matrices; 0 where they are of one.
static int64_t getMatrixRows(tile::ProgramOp program) {
  auto getPart = [&](StringRef name) {
    auto part = program.getPrograms()->getAs<IntegerAttr>(name);
    return part ? part.getInt() : 1;
  };
  return getPart("b0") > 1 ? getPart("m") : 0;
}

void bastile::nameDimensions(tile::ProgramOp program) {
  if (!program.getDimensions())
    return;
  Builder builder(program.getContext());
  const int64_t matrixRows = getMatrixRows(program);
  auto nameMatrices = [&](Operation *op) {
    if (matrixRows != 0)
      op->setAttr(kMatrixRows, builder.getI64IntegerAttr(matrixRows));
  };
  auto name = [&](Operation *op, Value memref) {
    if (auto argument = dyn_cast<BlockArgument>(memref))
      if (ArrayAttr names = program.getArgDimensions(argument.getArgNumber())) {
        op->setAttr(kDimensions, names);
        op->setAttr(kAlignment,
                    builder.getI64IntegerAttr(
                        program.getArgAlignment(argument.getArgNumber())));
      }
  };
  program.walk([&](Operation *op) {
    if (isa<tile::LoadOp, tile::StoreOp, tile::StoreBoxOp>(op))
      nameMatrices(op);
    if (auto load = dyn_cast<tile::LoadOp>(op))
      name(op, load.getMemref());
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      name(op, store.getMemref());
    else if (auto dot = dyn_cast<tile::LoadDotOp>(op))
      nameFactors(program, dot);
    else if (auto copy = dyn_cast<tile::CopyTileOp>(op))
      name(op, copy.getMemref());
    else if (auto copy = dyn_cast<tile::StoreTileOp>(op))
      name(op, copy.getMemref());
    else if (auto copy = dyn_cast<tile::CopyNumbersOp>(op))
      name(op, copy.getMemref());
  });
}

void bastile::populateFragmentMemoryPatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<LoadFragment, StoreFragment>(converter, patterns.getContext());
}
