//===- LowerTileCopies.cpp - Copies of tiles by threads -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Copies between operands and buffers that all threads of a role make together,
// 16 bytes of a row at a time. Where operands have less alignment, a thread
// accesses these bytes one part after the other: their places are constants
// apart, so that only one of them takes registers.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/OperandTile.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// What a thread moves at a time, and the least that it can have copied while
/// it goes on, in bytes.
static constexpr int64_t kPieceBytes = 16, kLeastAsync = 4;
/// Rows after which the swizzle repeats.
static constexpr int64_t kPeriod = 8;

namespace {

/// The pieces of a tile that the calling thread moves between an operand and a
/// buffer.
class TilePieces {
public:
  /// `op`, a copy of either kind whose converted operands are in `adaptor`,
  /// moves the tile.
  template <typename Op, typename Adaptor>
  TilePieces(OpBuilder &builder, Op op, Adaptor adaptor)
      : builder(builder), loc(op.getLoc()),
        operand(builder, op, cast<MemRefType>(op.getMemref().getType()),
                adaptor.getMemref(), adaptor.getIndices()),
        place(cast<MemRefType>(op.getBuffer().getType())),
        slot(getSlot(builder, loc, cast<MemRefType>(op.getBuffer().getType()),
                     adaptor.getBuffer().front(), adaptor.getSlot().front())) {
    auto alignment = op->template getAttrOfType<IntegerAttr>(kAlignment);
    accessBytes = std::max<int64_t>(
        place.elementBytes,
        static_cast<int64_t>(llvm::MinAlign(alignment.getInt(), kPieceBytes)));
    perRow = place.rowBytes / kPieceBytes;
    Role role(op);
    threads = role.getThreads();
    thread = role.getThread(builder, loc);
  }

  /// How much of a piece the operand's alignment lets a thread access at once.
  int64_t getAccessBytes() const { return accessBytes; }
  int64_t getElements() const { return kPieceBytes / place.elementBytes; }

  /// Calls `visit` for each piece with its address in the buffer, and with the
  /// row and column of its first element in the operand.
  void forEach(llvm::function_ref<void(Value, Value, Value)> visit) {
    const int64_t pieces = place.rows * perRow;
    // Where the threads take whole rows, a thread's pieces lie below each
    // other.
    const bool isRegular = threads % perRow == 0;
    Value first, row, unit, address;
    // The addresses of a thread's first pieces in rows of different swizzle;
    // those of others lie a number of periods below one of them.
    std::array<Value, kPeriod> firstAddresses;
    for (int64_t begin = 0; begin < pieces; begin += threads) {
      if (begin == 0 || !isRegular) {
        Value number = add(thread, begin);
        first = row = divide(number, perRow);
        unit = arith::RemUIOp::create(builder, loc, number, constant(perRow));
        firstAddresses[0] = address = getShared(row, unit);
      } else {
        const int64_t below = begin / perRow, phase = below % kPeriod;
        row = add(first, below);
        if (Value &same = firstAddresses[phase])
          address =
              advanceBytes(builder, loc, same, (below - phase) * place.swizzle);
        else
          same = address = getShared(row, unit);
      }
      auto move = [&] {
        visit(address, add(operand.row, row),
              add(operand.column, multiply(unit, getElements())));
      };
      if (begin + threads <= pieces) {
        move();
        continue;
      }
      Value isPiece =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, thread,
                                constant(pieces - begin));
      auto branch = scf::IfOp::create(builder, loc, isPiece);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.thenBlock());
      move();
    }
  }

  /// Like `forEach`, in a loop of the program where a thread has many pieces:
  /// it moves a few of them at a time, so that none waits for the one before.
  void forEachInLoop(llvm::function_ref<void(Value, Value, Value)> visit) {
    constexpr int64_t atOnce = 4, leastTimes = 4;
    // Rows between a thread's pieces, and those that are passed at a time:
    // whole periods, after which places are constants apart.
    const int64_t between = threads / perRow, rows = atOnce * between;
    if (threads % perRow != 0 || rows % kPeriod != 0 ||
        place.rows % rows != 0 || place.rows < leastTimes * rows)
      return forEach(visit);
    Value first = divide(thread, perRow);
    Value unit = arith::RemUIOp::create(builder, loc, thread, constant(perRow));
    std::array<Value, kPeriod> firstAddresses;
    SmallVector<Value> addresses;
    for (int64_t below = 0; below < rows; below += between) {
      Value &same = firstAddresses[below % kPeriod];
      if (!same)
        same = getShared(add(first, below % kPeriod), unit);
      addresses.push_back(advanceBytes(
          builder, loc, same, (below - below % kPeriod) * place.swizzle));
    }
    auto loop = scf::ForOp::create(builder, loc, constant(0),
                                   constant(place.rows), constant(rows));
    keepRolled(loop);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value begin = loop.getInductionVar();
    Value row = add(first, begin), bytes = multiply(begin, place.swizzle);
    Value column = add(operand.column, multiply(unit, getElements()));
    for (auto [index, address] : llvm::enumerate(addresses))
      visit(advanceBytes(builder, loc, address, bytes),
            add(operand.row, add(row, static_cast<int64_t>(index) * between)),
            column);
  }

  /// Like `forEach`, in a loop of the program.
  void loop(llvm::function_ref<void(Value, Value, Value)> visit) {
    auto loop = scf::ForOp::create(
        builder, loc, thread, constant(place.rows * perRow), constant(threads));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    Value row = divide(number, perRow);
    Value unit = arith::RemUIOp::create(builder, loc, number, constant(perRow));
    visit(getShared(row, unit), add(operand.row, row),
          add(operand.column, multiply(unit, getElements())));
  }

  /// Whether rows of the operand end within the tile.
  Value areRowsCut() {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                 countLeft(operand.column),
                                 constant(place.rowBytes / place.elementBytes));
  }
  /// How many elements a row of the operand has from `column` on.
  Value countLeft(Value column) {
    return arith::SubIOp::create(builder, loc, operand.columns, column);
  }

  /// How many bytes of a piece from `column` of row `row` on lie in the
  /// operand.
  Value getBytesInside(Value row, Value column) {
    Value count = arith::MinUIOp::create(builder, loc, countLeft(column),
                                         constant(getElements()));
    Value inside = arith::SelectOp::create(
        builder, loc, operand.isInside(builder, loc, row, column),
        multiply(count, place.elementBytes), constant(0));
    return arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(),
                                        inside);
  }

  /// Whether a whole piece from `column` of row `row` on lies in the operand.
  Value isWhole(Value row, Value column) {
    return operand.isInside(builder, loc, row, add(column, getElements() - 1));
  }
  Value isInside(Value row, Value column) {
    return operand.isInside(builder, loc, row, column);
  }
  Value getAddress(Value row, Value column, Value inside) {
    return operand.getAddress(builder, loc, row, column, inside);
  }
  Value add(Value lhs, int64_t rhs) {
    return rhs == 0 ? lhs : add(lhs, constant(rhs));
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  }
  Value multiply(Value lhs, int64_t rhs) {
    return arith::MulIOp::create(builder, loc, lhs, constant(rhs));
  }
  Value divide(Value lhs, int64_t rhs) {
    return arith::DivUIOp::create(builder, loc, lhs, constant(rhs));
  }
  /// The address of piece `unit` of row `row` in the buffer.
  Value getShared(Value row, Value unit) {
    return getSharedAddress(builder, loc, place, slot, row,
                            multiply(unit, kPieceBytes));
  }

  OpBuilder &builder;
  Location loc;
  const OperandTile operand;
  const SharedTile place;
  Value slot, thread;
  int64_t accessBytes, perRow, threads;
};

struct LowerCopyTile : public OpConversionPattern<tile::CopyTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto buffer = cast<MemRefType>(op.getBuffer().getType());
    TilePieces pieces(rewriter, op, adaptor);
    pieces.forEach([&](Value target, Value row, Value column) {
      if (pieces.getAccessBytes() >= kLeastAsync)
        return copyAsync(rewriter, loc, pieces, target, row, column);
      storePiece(rewriter, loc,
                 loadElements(rewriter, loc, pieces, buffer.getElementType(),
                              row, column),
                 target, kPieceBytes);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void copyAsync(OpBuilder &builder, Location loc, TilePieces &pieces,
                        Value target, Value row, Value column) {
    Value source = pieces.getAddress(row, column, pieces.isInside(row, column));
    Value inside = pieces.getBytesInside(row, column);
    const int64_t bytes = pieces.getAccessBytes();
    // The widest copies need not pass through the multiprocessor's own cache.
    auto cache = bytes == kPieceBytes ? NVVM::LoadCacheModifierKind::CG
                                      : NVVM::LoadCacheModifierKind::CA;
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(builder, loc, value, /*width=*/32);
    };
    for (int64_t part = 0; part < kPieceBytes; part += bytes) {
      Value own = inside;
      if (bytes < kPieceBytes) {
        Value left =
            arith::SubIOp::create(builder, loc, inside, constant(part));
        left = arith::MaxSIOp::create(builder, loc, left, constant(0));
        own = arith::MinSIOp::create(builder, loc, left, constant(bytes));
      }
      NVVM::CpAsyncOp::create(
          builder, loc, advanceBytes(builder, loc, target, part),
          advanceBytes(builder, loc, source, part), bytes, cache, own);
    }
  }

  /// A piece that is loaded one element after the other. Within the operand,
  /// nothing has to be asked of each. Beyond it, nothing may be loaded: an
  /// operand without elements lies nowhere.
  static Value loadElements(OpBuilder &builder, Location loc,
                            TilePieces &pieces, Type element, Value row,
                            Value column) {
    const int64_t bytes = pieces.getAccessBytes();
    Type type = VectorType::get({pieces.getElements()}, element);
    auto load = [&](llvm::function_ref<Value(int64_t)> loadOne) {
      SmallVector<Value> elements;
      for (int64_t index = 0; index < pieces.getElements(); ++index)
        elements.push_back(loadOne(index));
      scf::YieldOp::create(
          builder, loc,
          vector::FromElementsOp::create(builder, loc, type, elements)
              .getResult());
    };
    auto branch =
        scf::IfOp::create(builder, loc, type, pieces.isWhole(row, column),
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value address = pieces.getAddress(row, column, /*inside=*/Value());
    load([&](int64_t index) {
      return loadPiece(builder, loc, element,
                       advanceBytes(builder, loc, address, index * bytes),
                       bytes);
    });
    builder.setInsertionPointToStart(branch.elseBlock());
    Value zero = createConstantPiece(builder, loc, element,
                                     builder.getZeroAttr(element));
    load([&](int64_t index) -> Value {
      Value own = pieces.add(column, index);
      return loadIf(builder, loc, pieces.isInside(row, own), zero,
                    pieces.getAddress(row, own, /*inside=*/Value()), bytes);
    });
    return branch.getResult(0);
  }
};

struct LowerStoreTile : public OpConversionPattern<tile::StoreTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreTileOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto buffer = cast<MemRefType>(op.getBuffer().getType());
    TilePieces pieces(rewriter, op, adaptor);
    const int64_t count = pieces.getElements();
    Type element = getMemoryType(buffer.getElementType());
    auto type = VectorType::get({count}, element);
    pieces.forEachInLoop([&](Value source, Value row, Value column) {
      Value piece = loadPiece(rewriter, loc, type, source, kPieceBytes);
      storeWhole(rewriter, loc, pieces, piece, pieces.isWhole(row, column),
                 pieces.getAddress(row, column, /*inside=*/Value()));
    });
    storeRowEnds(rewriter, loc, pieces, element);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Stores `piece` if `whole` holds, in parts as wide as the alignment allows.
  static void storeWhole(OpBuilder &builder, Location loc, TilePieces &pieces,
                         Value piece, Value whole, Value address) {
    const int64_t bytes = pieces.getAccessBytes();
    if (bytes == kPieceBytes)
      return storeIf(builder, loc, whole, piece, address, bytes);
    auto branch = scf::IfOp::create(builder, loc, whole);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    const int64_t parts = kPieceBytes / bytes;
    const int64_t elements = pieces.getElements() / parts;
    for (int64_t part = 0; part < parts; ++part) {
      auto own = llvm::to_vector(
          llvm::seq<int64_t>(part * elements, (part + 1) * elements));
      storePiece(builder, loc,
                 vector::ShuffleOp::create(builder, loc, piece, piece, own),
                 advanceBytes(builder, loc, address, part * bytes), bytes);
    }
  }

  /// Stores the elements of pieces within which the operand's rows end. Only
  /// tiles at the operand's edge have such pieces, and other programs pass by
  /// the whole loop: written out for each piece, it would be most of a program.
  static void storeRowEnds(OpBuilder &builder, Location loc, TilePieces &pieces,
                           Type element) {
    OpBuilder::InsertionGuard guard(builder);
    auto edge = scf::IfOp::create(builder, loc, pieces.areRowsCut());
    builder.setInsertionPointToStart(edge.thenBlock());
    pieces.loop([&](Value source, Value row, Value column) {
      Value isPart = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ult, pieces.isWhole(row, column),
          pieces.isInside(row, column));
      auto branch = scf::IfOp::create(builder, loc, isPart);
      builder.setInsertionPointToStart(branch.thenBlock());
      const int64_t bytes = kPieceBytes / pieces.getElements();
      auto elements = scf::ForOp::create(
          builder, loc, arith::ConstantIndexOp::create(builder, loc, 0),
          pieces.countLeft(column),
          arith::ConstantIndexOp::create(builder, loc, 1));
      builder.setInsertionPointToStart(elements.getBody());
      Value index = elements.getInductionVar();
      Value offset = arith::MulIOp::create(
          builder, loc, index,
          arith::ConstantIndexOp::create(builder, loc, bytes));
      Value value =
          loadPiece(builder, loc, element,
                    advanceBytes(builder, loc, source, offset), bytes);
      Value own = arith::AddIOp::create(builder, loc, column, index);
      storePiece(builder, loc, value,
                 pieces.getAddress(row, own, /*inside=*/Value()), bytes);
    });
  }
};

} // namespace

void bastile::populateTileCopyPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<LowerCopyTile, LowerStoreTile>(converter, patterns.getContext());
}
