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
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/OperandTile.h"

using namespace mlir;
using namespace bastile;

namespace {

/// A matrix in memory, of which a product takes some rows or columns.
struct Factor {
  /// `parts` are the address and strides of the operand, `indices` those of the
  /// matrix and of the first row or column.
  Factor(OpBuilder &builder, tile::LoadDotOp op, MemRefType memory,
         StringRef dimensions, int64_t contract, ValueRange parts,
         ArrayRef<ValueRange> indices)
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
    for (auto [dimension, index] : llvm::enumerate(indices.drop_back()))
      address = advance(builder, loc, address, element,
                        arith::MulIOp::create(builder, loc, index.front(),
                                              parts[1 + dimension]));
    first = indices.back().front();
    stride = parts[rank - 1];
  }

  /// The address of the first matrix's elements, the distance of its rows, and
  /// the first row or column that the tile has.
  Value address, stride, first;
  /// Whether the sums are over the columns, so that the product takes rows.
  bool isAlongRows;
  /// How many rows or columns there are, and the length of the sums.
  Value size, depth;
  Type element;
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
        loadPiece(builder, loc, type, address, bytes, /*isInvariant=*/true));
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
    Factor a(rewriter, op, cast<MemRefType>(op.getA().getType()),
             kLeftDimensions, contract[0], adaptor.getA(),
             adaptor.getAIndices());
    Factor b(rewriter, op, cast<MemRefType>(op.getB().getType()),
             kRightDimensions, contract[1], adaptor.getB(),
             adaptor.getBIndices());
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
