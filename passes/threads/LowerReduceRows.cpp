//===- LowerReduceRows.cpp - Combine the rows of a tile -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Combinations of a tile's rows. A thread first combines the rows that it
// holds; then the lanes of a warp that hold the same columns exchange their
// results, and then warps do, through shared memory. Every thread ends with the
// result for its columns, so each row of threads holds the tile of the one row
// that is left.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/pieces/Scratch.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Builds one combination of a tile's rows.
class RowsReducer {
public:
  RowsReducer(ConversionPatternRewriter &rewriter, tile::ReduceRowsOp op,
              bool takesTurns)
      : rewriter(rewriter), loc(op.getLoc()), op(op), takesTurns(takesTurns),
        input(op.getInput().getType()), layout(getLayout(input)),
        grid{layout.getThreadRows(), layout.getThreadColumns(), /*blocks=*/1} {}

  /// Returns one piece for each repeat of the layout along the columns.
  SmallVector<Value> run(ValueRange pieces);

private:
  Value reduceInWarp(Value piece);
  void reduceAcrossWarps(SmallVectorImpl<Value> &pieces);
  Value isWriter();
  Value getScratch(int64_t elements);
  Value getSlot(Value scratch, Value group, int64_t repeat);

  Value combine(Value lhs, Value rhs) {
    return tile::ReduceOp::combine(rewriter, loc, op.getKind(), lhs, rhs);
  }
  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  /// The alignment of a piece in shared memory, in bytes.
  unsigned getAlignment(Value piece) const {
    int64_t bytes = getElementBytes(input);
    auto vector = dyn_cast<VectorType>(piece.getType());
    return std::min<int64_t>(16, bytes * (vector ? vector.getDimSize(0) : 1));
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  tile::ReduceRowsOp op;
  bool takesTurns;
  RankedTensorType input;
  tile::BlockedAttr layout;
  ThreadGrid grid;
};

/// A butterfly of shuffles over the lanes that hold the same columns.
Value RowsReducer::reduceInWarp(Value piece) {
  auto shuffle = [&](Value value, int64_t distance) -> Value {
    return gpu::ShuffleOp::create(rewriter, loc, value, distance, kWarp,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  int64_t columns = layout.getThreadColumns();
  int64_t lanes =
      columns * std::min(grid.getRowsPerWarp(), layout.getThreadRows());
  for (int64_t distance = lanes / 2; distance >= columns; distance /= 2) {
    auto vector = dyn_cast<VectorType>(piece.getType());
    if (!vector) {
      piece = combine(piece, shuffle(piece, distance));
      continue;
    }
    SmallVector<Value> elements;
    for (int64_t index = 0; index < vector.getDimSize(0); ++index)
      elements.push_back(shuffle(
          vector::ExtractOp::create(rewriter, loc, piece, index), distance));
    piece = combine(
        piece, vector::FromElementsOp::create(rewriter, loc, vector, elements));
  }
  return piece;
}

/// Whether this thread stores its partial result, of which several threads may
/// hold copies. Null where every thread stores.
Value RowsReducer::isWriter() {
  Value isWriter;
  auto require = [&](arith::CmpIPredicate predicate, Value lhs, int64_t rhs) {
    Value condition = arith::CmpIOp::create(rewriter, loc, predicate, lhs,
                                            constantIndex(rhs));
    isWriter = isWriter
                   ? arith::AndIOp::create(rewriter, loc, isWriter, condition)
                         .getResult()
                   : condition;
  };
  auto getColumn = [&] {
    return getThreadPosition(rewriter, loc, layout).column;
  };
  int64_t columns = layout.getThreadColumns();
  bool isColumn = input.getDimSize(1) == 1;
  if (columns < kWarp) {
    // The lanes of the warp's first row store or, of a single column, the first
    // of these lanes.
    Value lane = arith::RemUIOp::create(
        rewriter, loc, getThreadId(rewriter, loc), constantIndex(kWarp));
    require(arith::CmpIPredicate::ult, lane, isColumn ? 1 : columns);
  } else if (isColumn) {
    require(arith::CmpIPredicate::eq, getColumn(), 0);
  }
  // The first thread of a group stores.
  if (layout.getGroup() > 1 && layout.getGroupThreads() > 1 &&
      layout.isGroupAligned())
    require(arith::CmpIPredicate::eq,
            arith::RemUIOp::create(rewriter, loc, getColumn(),
                                   constantIndex(layout.getGroupThreads())),
            0);
  return isWriter;
}

/// The address of partial result `group` of this thread's columns.
Value RowsReducer::getSlot(Value scratch, Value group, int64_t repeat) {
  Value slot = arith::MulIOp::create(rewriter, loc, group,
                                     constantIndex(input.getDimSize(1)));
  if (input.getDimSize(1) > 1)
    slot = arith::AddIOp::create(rewriter, loc, slot,
                                 getPieceColumn(rewriter, loc, input, repeat));
  return getScratchAddress(rewriter, loc, scratch, input.getElementType(),
                           slot);
}

/// Returns memory that no thread reads any more. Where a kernel has several
/// sums, they use the same memory in turn: together they may need more than a
/// block has.
Value RowsReducer::getScratch(int64_t elements) {
  Type type = input.getElementType();
  if (!takesTurns) {
    Value scratch = createScratch(rewriter, op, type, elements);
    waitForReaders(rewriter, op);
    return scratch;
  }
  Value scratch =
      getCommonScratch(rewriter, op, elements * getElementBytes(type));
  gpu::BarrierOp::create(rewriter, loc);
  return scratch;
}

/// Combines the results of warps: after one barrier, every thread reads the
/// partial results of its columns, all in the same order.
void RowsReducer::reduceAcrossWarps(SmallVectorImpl<Value> &pieces) {
  Value scratch = getScratch(grid.getRowPartials() * input.getDimSize(1));
  auto write = [&] {
    Value group = getThreadPosition(rewriter, loc, layout).row;
    if (grid.getRowsPerWarp() > 1)
      group = arith::DivUIOp::create(rewriter, loc, group,
                                     constantIndex(grid.getRowsPerWarp()));
    for (auto [repeat, piece] : llvm::enumerate(pieces)) {
      OpBuilder::InsertionGuard guard(rewriter);
      if (!layout.isGroupAligned()) {
        auto branch = scf::IfOp::create(
            rewriter, loc, isGroupStart(rewriter, loc, layout, repeat));
        rewriter.setInsertionPointToStart(branch.thenBlock());
      }
      LLVM::StoreOp::create(rewriter, loc, piece,
                            getSlot(scratch, group, repeat),
                            getAlignment(piece));
    }
  };
  if (Value condition = isWriter()) {
    auto branch = scf::IfOp::create(rewriter, loc, condition);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    write();
    rewriter.setInsertionPointAfter(branch);
  } else {
    write();
  }
  gpu::BarrierOp::create(rewriter, loc);

  for (auto [repeat, piece] : llvm::enumerate(pieces)) {
    Value total;
    for (int64_t group = 0; group < grid.getRowPartials(); ++group) {
      Value partial = LLVM::LoadOp::create(
          rewriter, loc, piece.getType(),
          getSlot(scratch, constantIndex(group), repeat), getAlignment(piece));
      total = total ? combine(total, partial) : partial;
    }
    piece = total;
  }
}

SmallVector<Value> RowsReducer::run(ValueRange pieces) {
  // Every row of threads holds the one row that is left.
  if (input.getDimSize(0) == 1)
    return llvm::to_vector(pieces);
  int64_t columns = layout.getColumnRepeats(input.getShape());
  SmallVector<Value> combined(pieces.take_front(columns));
  for (auto [index, piece] : llvm::enumerate(pieces.drop_front(columns)))
    combined[index % columns] = combine(combined[index % columns], piece);
  for (Value &piece : combined)
    piece = reduceInWarp(piece);
  if (grid.getRowPartials() > 1)
    reduceAcrossWarps(combined);
  return combined;
}

struct LowerReduceRowsOp : public OpConversionPattern<tile::ReduceRowsOp> {
  LowerReduceRowsOp(const TypeConverter &converter, MLIRContext *context,
                    const DenseSet<Operation *> &takingTurns)
      : OpConversionPattern(converter, context), takingTurns(takingTurns) {}

  LogicalResult
  matchAndRewrite(tile::ReduceRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!getLayout(op.getInput().getType()))
      return failure();
    SmallVector<Value> pieces =
        RowsReducer(rewriter, op, takingTurns.contains(op))
            .run(adaptor.getInput());
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }

private:
  const DenseSet<Operation *> &takingTurns;
};

} // namespace

DenseSet<Operation *> bastile::findSumsTakingTurns(ModuleOp module) {
  DenseSet<Operation *> found;
  module.walk([&](tile::ProgramOp program) {
    SmallVector<Operation *> sums;
    program.walk([&](tile::ReduceRowsOp op) { sums.push_back(op); });
    if (sums.size() > 1)
      found.insert(sums.begin(), sums.end());
  });
  return found;
}

void bastile::populateReduceRowsPatterns(
    const TypeConverter &converter, RewritePatternSet &patterns,
    const DenseSet<Operation *> &takingTurns) {
  patterns.add<LowerReduceRowsOp>(converter, patterns.getContext(),
                                  takingTurns);
}
