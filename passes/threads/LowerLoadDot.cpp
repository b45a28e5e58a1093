//===- LowerLoadDot.cpp - Products of operands in memory ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A thread computes the sums of its own elements, all of them in registers. It
// reads a row or column of the operands for each row and column of sums. Of
// rows and columns beyond an operand it reads the last one in their place, and
// nothing takes these sums.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/OperandTile.h"
#include "passes/pieces/Scratch.h"

using namespace mlir;
using namespace bastile;

namespace {

/// A matrix in memory, of which a product takes some rows or columns.
struct Factor {
  /// `parts` are the address and strides of the operand, `indices` those of the
  /// matrix and of the first row or column. Beside a tile
  /// they are those of a row and a column: sums begin at one of the two.
  Factor(OpBuilder &builder, tile::LoadDotOp op, MemRefType memory,
         StringRef dimensions, int64_t contract, ValueRange parts,
         ArrayRef<ValueRange> indices, bool isBesideTile)
      : address(parts.front()), isAlongRows(contract == 1),
        element(memory.getElementType()) {
    Location loc = op.getLoc();
    const int64_t rank = memory.getRank();
    auto names = op->getAttrOfType<ArrayAttr>(dimensions);
    auto program = op->getParentOfType<tile::ProgramOp>();
    auto getSize = [&](int64_t ofMatrix) {
      return getOperandSize(builder, loc, program, names, memory,
                            rank - 2 + ofMatrix);
    };
    size = getSize(1 - contract);
    depth = getSize(contract);
    stride = parts[rank - 1];
    for (auto [dimension, index] :
         llvm::enumerate(indices.take_front(rank - 2)))
      address = advance(builder, loc, address, element,
                        arith::MulIOp::create(builder, loc, index.front(),
                                              parts[1 + dimension]));
    if (!isBesideTile) {
      first = indices.back().front();
      return;
    }
    first = indices[rank - 1 - contract].front();
    Value begin = indices[rank - 2 + contract].front();
    depth = arith::SubIOp::create(builder, loc, depth, begin);
    address = advance(
        builder, loc, address, element,
        isAlongRows
            ? begin
            : arith::MulIOp::create(builder, loc, begin, stride).getResult());
  }

  /// A tile of `rows` rows that the block's threads have written to `scratch`,
  /// as far as its columns lie in the other factor, `depth` of them.
  Factor(OpBuilder &builder, Location loc, RankedTensorType tile, Value scratch,
         Value depth)
      : address(scratch), stride(arith::ConstantIndexOp::create(
                              builder, loc, tile.getDimSize(1))),
        first(arith::ConstantIndexOp::create(builder, loc, 0)),
        isAlongRows(true),
        size(arith::ConstantIndexOp::create(builder, loc, tile.getDimSize(0))),
        depth(arith::MinUIOp::create(builder, loc, depth, stride)),
        element(tile.getElementType()), isInvariant(false) {}

  /// The address of the first matrix's elements, the distance of its rows, and
  /// the first row or column that the tile has.
  Value address, stride, first;
  /// Whether the sums are over the columns, so that the product takes rows.
  bool isAlongRows;
  /// How many rows or columns there are, and the length of the sums.
  Value size, depth;
  Type element;
  /// Whether nobody writes the matrix while the program runs.
  bool isInvariant = true;
};

/// Builds the sums of one thread.
class SumBuilder {
public:
  SumBuilder(ConversionPatternRewriter &builder, tile::LoadDotOp op,
             const Factor &a, const Factor &b)
      : builder(builder), loc(op.getLoc()), tile(op.getType()),
        layout(getLayout(tile)), a(a), b(b),
        rows(layout.getRowRepeats(tile.getShape())),
        columns(layout.getColumnRepeats(tile.getShape())),
        width(isa<VectorType>(getPieceType(tile)) ? layout.getVector() : 1) {
    findPlaces();
  }

  /// Adds to `sums`, the thread's pieces, where `b` is contiguous along their
  /// columns.
  SmallVector<Value> addColumns(ValueRange sums);
  /// Adds to `sums` where it is not. With several `lanes`, both operands are
  /// contiguous along the dimension that is summed over.
  SmallVector<Value> addRows(ValueRange sums, int64_t lanes);

private:
  using Body = llvm::function_ref<void(Value k, SmallVectorImpl<Value> &sums)>;
  SmallVector<Value> buildLoop(Value begin, Value end, int64_t step,
                               ValueRange sums, Body body);
  SmallVector<Value> buildUnrolled(ValueRange sums, Body body);
  void findPlaces();
  Value getAddress(const Factor &factor, Value place, Value k);
  Value load(const Factor &factor, Value place, Value k, int64_t count,
             Value mask = Value());
  Value widen(Value value);
  Value multiplyAdd(Value lhs, Value rhs, Value sum) {
    return math::FmaOp::create(builder, loc, lhs, rhs, sum);
  }
  Value repeat(Value scalar) {
    if (width == 1)
      return scalar;
    return vector::BroadcastOp::create(
        builder, loc, VectorType::get({width}, scalar.getType()), scalar);
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  }
  Value multiply(Value lhs, Value rhs) {
    return arith::MulIOp::create(builder, loc, lhs, rhs);
  }

  ConversionPatternRewriter &builder;
  Location loc;
  RankedTensorType tile;
  tile::BlockedAttr layout;
  const Factor &a, &b;
  /// The thread's pieces in both directions, and the columns of each.
  const int64_t rows, columns, width;
  /// The place of each row in `a`, inside of it, and that of the first column
  /// of each piece in `b`.
  SmallVector<Value> rowPlaces, columnPlaces;
};

} // namespace

void SumBuilder::findPlaces() {
  const ThreadPosition thread = getThreadPosition(builder, loc, layout);
  Value last = arith::SubIOp::create(builder, loc, a.size, constant(1));
  for (int64_t i = 0; i < rows; ++i) {
    Value row = a.first;
    if (tile.getDimSize(0) != 1)
      row = add(add(row, thread.row), constant(i * layout.getThreadRows()));
    rowPlaces.push_back(arith::MinUIOp::create(builder, loc, row, last));
  }
  for (int64_t j = 0; j < columns; ++j) {
    Value column = b.first;
    if (tile.getDimSize(1) != 1)
      column = add(column, getPieceColumn(builder, loc, tile, j));
    columnPlaces.push_back(column);
  }
}

/// The address of element `k` of the row or column at `place`.
Value SumBuilder::getAddress(const Factor &factor, Value place, Value k) {
  Value row = factor.isAlongRows ? place : k;
  Value column = factor.isAlongRows ? k : place;
  return advance(builder, loc, factor.address, factor.element,
                 add(multiply(row, factor.stride), column));
}

/// `value` in the type of sums.
Value SumBuilder::widen(Value value) {
  Type element = tile.getElementType();
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  return arith::ExtFOp::create(builder, loc, type, value);
}

/// Loads `count` neighbouring elements in the type of sums; zeros where `mask`
/// says no.
Value SumBuilder::load(const Factor &factor, Value place, Value k,
                       int64_t count, Value mask) {
  Type type = factor.element;
  if (count != 1)
    type = VectorType::get({count}, type);
  const auto bytes = static_cast<unsigned>(getElementBytes(type));
  Value address = getAddress(factor, place, k);
  if (!mask)
    return widen(
        loadPiece(builder, loc, type, address, bytes, factor.isInvariant));
  return widen(loadMasked(builder, loc, type, address, mask, bytes));
}

SmallVector<Value> SumBuilder::buildLoop(Value begin, Value end, int64_t step,
                                         ValueRange sums, Body body) {
  auto loop =
      scf::ForOp::create(builder, loc, begin, end, constant(step), sums);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> inside(loop.getRegionIterArgs());
  body(loop.getInductionVar(), inside);
  scf::YieldOp::create(builder, loc, inside);
  return SmallVector<Value>(loop.getResults());
}

/// A loop over single elements. Loads of several of them are on their way at
/// once.
SmallVector<Value> SumBuilder::buildUnrolled(ValueRange sums, Body body) {
  constexpr int64_t unrolled = 4;
  Value rest =
      arith::RemUIOp::create(builder, loc, a.depth, constant(unrolled));
  Value end = arith::SubIOp::create(builder, loc, a.depth, rest);
  SmallVector<Value> inside =
      buildLoop(constant(0), end, unrolled, sums,
                [&](Value k, SmallVectorImpl<Value> &values) {
                  for (int64_t next = 0; next < unrolled; ++next)
                    body(add(k, constant(next)), values);
                });
  return buildLoop(end, a.depth, /*step=*/1, inside, body);
}

SmallVector<Value> SumBuilder::addColumns(ValueRange sums) {
  Value last = arith::SubIOp::create(builder, loc, b.size, constant(1));
  auto build = [&](ArrayRef<Value> places, ArrayRef<Value> masks) {
    return buildUnrolled(sums, [&](Value k, SmallVectorImpl<Value> &values) {
      SmallVector<Value> ofColumns;
      for (int64_t j = 0; j < columns; ++j)
        ofColumns.push_back(
            load(b, places[j], k, width, masks.empty() ? Value() : masks[j]));
      for (int64_t i = 0; i < rows; ++i) {
        Value ofRow = repeat(load(a, rowPlaces[i], k, /*count=*/1));
        for (int64_t j = 0; j < columns; ++j) {
          Value &sum = values[i * columns + j];
          sum = multiplyAdd(ofRow, ofColumns[j], sum);
        }
      }
    });
  };
  if (width == 1) {
    SmallVector<Value> places;
    for (Value place : columnPlaces)
      places.push_back(arith::MinUIOp::create(builder, loc, place, last));
    return build(places, {});
  }
  // Only where columns end within the tile are loads masked.
  Value end = add(columnPlaces.back(), constant(width));
  Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                        end, b.size);
  auto branch = scf::IfOp::create(builder, loc, sums.getTypes(), isWhole,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, build(columnPlaces, {}));
  builder.setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> masks;
  for (Value place : columnPlaces) {
    Value inside = arith::MinUIOp::create(builder, loc, place, b.size);
    masks.push_back(
        createMask(builder, loc,
                   arith::SubIOp::create(builder, loc, b.size, inside), width));
  }
  scf::YieldOp::create(builder, loc, build(columnPlaces, masks));
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> SumBuilder::addRows(ValueRange sums, int64_t lanes) {
  // The columns of all pieces, inside of `b`.
  Value last = arith::SubIOp::create(builder, loc, b.size, constant(1));
  SmallVector<Value> places;
  for (Value place : columnPlaces)
    for (int64_t element = 0; element < width; ++element)
      places.push_back(arith::MinUIOp::create(
          builder, loc, add(place, constant(element)), last));
  const auto count = static_cast<int64_t>(places.size());
  auto multiplyAll = [&](Value k, SmallVectorImpl<Value> &values, Value mask) {
    SmallVector<Value> ofColumns;
    for (Value place : places)
      ofColumns.push_back(load(b, place, k, lanes, mask));
    for (int64_t i = 0; i < rows; ++i) {
      Value ofRow = load(a, rowPlaces[i], k, lanes, mask);
      for (int64_t j = 0; j < count; ++j) {
        Value &sum = values[i * count + j];
        sum = multiplyAdd(ofRow, ofColumns[j], sum);
      }
    }
  };

  SmallVector<Value> elements;
  if (lanes == 1) {
    elements = buildUnrolled(unpackPieces(builder, loc, sums),
                             [&](Value k, SmallVectorImpl<Value> &values) {
                               multiplyAll(k, values, Value());
                             });
  } else {
    Type type = VectorType::get({lanes}, tile.getElementType());
    Value zero = createConstantPiece(
        builder, loc, type, builder.getZeroAttr(tile.getElementType()));
    SmallVector<Value> parts(rows * count, zero);
    Value rest = arith::RemUIOp::create(builder, loc, a.depth, constant(lanes));
    Value end = arith::SubIOp::create(builder, loc, a.depth, rest);
    parts = buildLoop(constant(0), end, lanes, parts,
                      [&](Value k, SmallVectorImpl<Value> &values) {
                        multiplyAll(k, values, Value());
                      });
    Value mask = createMask(builder, loc, rest, lanes);
    parts = buildLoop(end, a.depth, lanes, parts,
                      [&](Value k, SmallVectorImpl<Value> &values) {
                        multiplyAll(k, values, mask);
                      });
    for (auto [part, sum] :
         llvm::zip_equal(parts, unpackPieces(builder, loc, sums)))
      elements.push_back(arith::AddFOp::create(
          builder, loc,
          combinePieces(builder, loc, tile::ReduceKind::Add, part), sum));
  }
  return packPieces(builder, loc, getPieceType(tile), elements);
}

/// Writes `tile`, of which the thread holds `pieces`, to memory that the
/// threads of the block share, row by row, and returns the address: on the
/// host, that of a variable.
static Value writeTile(ConversionPatternRewriter &rewriter, tile::LoadDotOp op,
                       RankedTensorType tile, ValueRange pieces) {
  Location loc = op.getLoc();
  tile::BlockedAttr layout = getLayout(tile);
  const bool isOfOneThread =
      layout.getThreadRows() * layout.getThreadColumns() == 1;
  const int64_t elements = tile.getNumElements();
  Type memory = getMemoryType(tile.getElementType());
  Value address;
  if (isOfOneThread) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(
        &op->getParentOfType<tile::ProgramOp>().getBody().front());
    address = LLVM::AllocaOp::create(
        rewriter, loc, LLVM::LLVMPointerType::get(rewriter.getContext()),
        memory,
        arith::ConstantIntOp::create(rewriter, loc, elements, /*width=*/32)
            .getResult());
  } else {
    waitForReaders(rewriter, op);
    address = getCommonScratch(rewriter, op, elements * getElementBytes(tile),
                               "factor");
  }
  const ThreadPosition thread = getThreadPosition(rewriter, loc, layout);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  const int64_t columns = layout.getColumnRepeats(tile.getShape());
  for (auto [number, piece] : llvm::enumerate(pieces)) {
    const int64_t i = static_cast<int64_t>(number) / columns;
    Value row = constant(i * layout.getThreadRows());
    if (tile.getDimSize(0) != 1)
      row = arith::AddIOp::create(rewriter, loc, thread.row, row);
    Value column = getPieceColumn(rewriter, loc, tile,
                                  static_cast<int64_t>(number) % columns);
    Value place = arith::AddIOp::create(
        rewriter, loc,
        arith::MulIOp::create(rewriter, loc, row, constant(tile.getDimSize(1))),
        column);
    storePiece(rewriter, loc, piece,
               advance(rewriter, loc, address, tile.getElementType(), place),
               getElementBytes(tile));
  }
  if (!isOfOneThread)
    gpu::BarrierOp::create(rewriter, loc);
  return address;
}

namespace {

struct LowerLoadDot : public OpConversionPattern<tile::LoadDotOp> {
  LowerLoadDot(const TypeConverter &converter, MLIRContext *context,
               int64_t vectorBytes)
      : OpConversionPattern(converter, context), vectorBytes(vectorBytes) {}

  LogicalResult
  matchAndRewrite(tile::LoadDotOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    tile::BlockedAttr layout = getLayout(op.getType());
    if (!layout || layout.getGroup() != 1 || layout.getBlocks() != 1)
      return rewriter.notifyMatchFailure(op, "needs a blocked layout");
    ArrayRef<int64_t> contract = op.getContract();
    auto tile = dyn_cast<RankedTensorType>(op.getA().getType());
    Factor b(rewriter, op, cast<MemRefType>(op.getB().getType()),
             kRightDimensions, contract[1], adaptor.getB(),
             adaptor.getBIndices(), /*isBesideTile=*/bool(tile));
    Factor a =
        tile ? Factor(rewriter, op.getLoc(), tile,
                      writeTile(rewriter, op, tile, adaptor.getA()), b.depth)
             : Factor(rewriter, op, cast<MemRefType>(op.getA().getType()),
                      kLeftDimensions, contract[0], adaptor.getA(),
                      adaptor.getAIndices(), /*isBesideTile=*/false);
    SumBuilder sums(rewriter, op, a, b);
    const int64_t lanes =
        a.isAlongRows
            ? std::max<int64_t>(1, vectorBytes / getElementBytes(op.getType()))
            : 1;
    SmallVector<Value> result =
        b.isAlongRows ? sums.addRows(adaptor.getAccumulator(), lanes)
                      : sums.addColumns(adaptor.getAccumulator());
    rewriter.replaceOpWithMultiple(op, {ValueRange(result)});
    return success();
  }

private:
  const int64_t vectorBytes;
};

} // namespace

void bastile::populateLoadDotPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      int64_t vectorBytes) {
  patterns.add<LowerLoadDot>(converter, patterns.getContext(), vectorBytes);
}
