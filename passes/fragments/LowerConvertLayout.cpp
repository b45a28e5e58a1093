//===- LowerConvertLayout.cpp - Tiles from one layout to another ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where each thread keeps its own elements, their registers get another order.
// Otherwise threads write the tile to shared memory, row by row, meet, and read
// it in the other layout. Rows lie so far apart that the lanes of a warp
// collide in as few banks as possible; how far is found out by counting.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/Role.h"
#include "passes/pieces/Pieces.h"
#include "passes/pieces/Scratch.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallSet.h"
#include <limits>

using namespace mlir;
using namespace bastile;

namespace {

using Position = std::pair<int64_t, int64_t>;

/// An element that a thread holds.
struct Held {
  int64_t piece, element;
};

/// How the threads of a block hold a tile.
class HeldTile {
public:
  explicit HeldTile(Type type)
      : type(cast<RankedTensorType>(type)), layout(getAnyLayout(type)) {}

  int64_t getNumPieces() const { return layout.getNumPieces(type.getShape()); }
  int64_t getWidth() const { return layout.getPieceElements(type.getShape()); }
  /// The row and column of an element of a thread.
  Position getPosition(int64_t thread, Held held) const {
    auto [row, column] =
        layout.getElement(type.getShape(), /*block=*/0, thread, held.piece);
    return {row, column + held.element};
  }
  /// How many bytes of a piece an instruction moves: a power of two, at
  /// most 16.
  int64_t getAccessBytes() const {
    constexpr int64_t most = 16;
    const int64_t bytes = getWidth() * getElementBytes(type);
    return std::min(most, bytes & -bytes);
  }

  const RankedTensorType type;
  const tile::LayoutInterface layout;
};

/// Finds for each element that a thread holds in `to`, in order, the register
/// of the same thread that holds it in `from`; nothing if some thread has to
/// get elements from another one, or not from the same registers.
std::optional<SmallVector<Held>> findOwn(const HeldTile &from,
                                         const HeldTile &to, int64_t threads) {
  DenseMap<Position, std::pair<int64_t, int64_t>> known;
  for (int64_t piece = 0; piece < from.getNumPieces(); ++piece)
    for (int64_t element = 0; element < from.getWidth(); ++element)
      known.try_emplace(from.getPosition(/*thread=*/0, {piece, element}), piece,
                        element);
  SmallVector<Held> own;
  for (int64_t piece = 0; piece < to.getNumPieces(); ++piece)
    for (int64_t element = 0; element < to.getWidth(); ++element) {
      auto found = known.find(to.getPosition(/*thread=*/0, {piece, element}));
      if (found == known.end())
        return std::nullopt;
      own.push_back({found->second.first, found->second.second});
      for (int64_t thread = 1; thread < threads; ++thread)
        if (to.getPosition(thread, {piece, element}) !=
            from.getPosition(thread, own.back()))
          return std::nullopt;
    }
  return own;
}

/// How many times in a row the banks serve a warp that accesses a piece each of
/// `tile`, whose rows are `pitch` bytes apart.
int64_t countTurns(const HeldTile &tile, int64_t pitch) {
  constexpr int64_t bankBytes = 4, banks = 32;
  const int64_t bytes = tile.getAccessBytes();
  const int64_t together =
      std::min(kWarp, banks * bankBytes / std::max(bytes, bankBytes));
  int64_t turns = 0;
  for (int64_t first = 0; first < kWarp; first += together) {
    llvm::SmallSet<int64_t, banks> words;
    SmallVector<int64_t> inBank(banks);
    for (int64_t lane = first; lane < first + together; ++lane) {
      auto [row, column] = tile.getPosition(lane, {0, 0});
      const int64_t begin = row * pitch + column * getElementBytes(tile.type);
      for (int64_t at = begin; at < begin + bytes; at += bankBytes)
        if (words.insert(at / bankBytes).second)
          ++inBank[at / bankBytes % banks];
    }
    turns += *llvm::max_element(inBank);
  }
  return turns;
}

/// How far apart the rows of a tile lie in shared memory, in bytes, when it
/// goes from one layout to the other.
int64_t choosePitch(const HeldTile &from, const HeldTile &to) {
  constexpr int64_t mostPadding = 128;
  const int64_t unit = std::max(from.getAccessBytes(), to.getAccessBytes());
  const int64_t rowBytes =
      llvm::alignTo(from.type.getDimSize(1) * getElementBytes(from.type), unit);
  int64_t best = rowBytes, fewest = std::numeric_limits<int64_t>::max();
  for (int64_t pitch = rowBytes; pitch < rowBytes + mostPadding;
       pitch += unit) {
    const int64_t turns = countTurns(from, pitch) + countTurns(to, pitch);
    if (turns < fewest) {
      fewest = turns;
      best = pitch;
    }
  }
  return best;
}

/// Where the calling thread's part of a tile begins.
struct FirstElement {
  Value row, column;
  /// Whether the thread is the one that writes what several threads hold; null
  /// if each has elements of its own.
  Value isHolder;
};

FirstElement getFirstElement(OpBuilder &builder, Operation *op,
                             const HeldTile &tile) {
  Location loc = op->getLoc();
  const Role role(op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto divide = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(builder, loc, value, constant(by));
  };
  auto remainder = [&](Value value, int64_t by) -> Value {
    return arith::RemUIOp::create(builder, loc, value, constant(by));
  };
  auto multiply = [&](Value value, int64_t by) -> Value {
    return arith::MulIOp::create(builder, loc, value, constant(by));
  };
  auto isZero = [&](Value value) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value,
                                 constant(0));
  };
  Value thread = role.getThread(builder, loc);
  FirstElement first;
  if (auto blocked = getLayout(tile.type)) {
    first.row = divide(thread, blocked.getThreadColumns());
    first.column = multiply(remainder(thread, blocked.getThreadColumns()),
                            blocked.getVector());
  } else if (tile::MmaAttr mma = getFragmentLayout(tile.type)) {
    FragmentPosition position(builder, op, mma);
    first.row = position.getRow(/*repeat=*/0, /*half=*/0);
    first.column = position.getColumn(/*chunk=*/0);
  } else {
    // Each warp holds all of a right operand.
    const auto right = cast<tile::MmaRhsAttr>(tile.type.getEncoding());
    constexpr int64_t lanesPerRow = tile::MmaAttr::kLanesPerRow;
    Value lane = remainder(thread, kWarp);
    first.row = divide(lane, lanesPerRow);
    first.column = multiply(remainder(lane, lanesPerRow), right.getVector());
    first.isHolder = isZero(role.getWarp(builder, loc));
  }
  for (auto [dimension, begin] :
       {std::pair<unsigned, Value &>(0, first.row),
        std::pair<unsigned, Value &>(1, first.column)})
    if (tile.type.getDimSize(dimension) == 1) {
      first.isHolder = combine(builder, loc, first.isHolder, isZero(begin));
      begin = constant(0);
    }
  return first;
}

/// The addresses of a thread's pieces of a tile in shared memory.
class PieceAddresses {
public:
  PieceAddresses(OpBuilder &builder, Location loc, const HeldTile &tile,
                 const FirstElement &first, Value memory, int64_t pitch)
      : builder(builder), loc(loc), tile(tile), pitch(pitch) {
    auto scale = [&](Value index, int64_t bytes) -> Value {
      return arith::MulIOp::create(
          builder, loc, index,
          arith::ConstantIndexOp::create(builder, loc, bytes));
    };
    base = advanceBytes(
        builder, loc, memory,
        arith::AddIOp::create(builder, loc, scale(first.row, pitch),
                              scale(first.column, getElementBytes(tile.type))));
  }

  /// All threads' pieces lie equally far from each other.
  Value get(int64_t piece) {
    auto [row, column] = tile.getPosition(/*thread=*/0, {piece, 0});
    return advanceBytes(builder, loc, base,
                        row * pitch + column * getElementBytes(tile.type));
  }

private:
  OpBuilder &builder;
  Location loc;
  const HeldTile &tile;
  const int64_t pitch;
  Value base;
};

struct LowerConvertLayout : public OpConversionPattern<tile::ConvertLayoutOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ConvertLayoutOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const HeldTile from(op.getInput().getType()), to(op.getType());
    const Role role(op);
    SmallVector<Value> pieces;
    if (auto own = findOwn(from, to, role.getThreads()))
      pieces = reorder(rewriter, op.getLoc(), adaptor.getInput(), to, *own);
    else
      pieces = exchange(rewriter, op, adaptor.getInput(), from, to);
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }

private:
  /// The pieces of `to` from registers of the same thread.
  static SmallVector<Value> reorder(OpBuilder &builder, Location loc,
                                    ValueRange pieces, const HeldTile &to,
                                    ArrayRef<Held> own) {
    SmallVector<Value> elements;
    for (const Held &held : own) {
      Value piece = pieces[held.piece];
      elements.push_back(
          isa<VectorType>(piece.getType())
              ? vector::ExtractOp::create(builder, loc, piece, held.element)
                    .getResult()
              : piece);
    }
    if (!isa<VectorType>(getPieceType(to.type)))
      return elements;
    SmallVector<Value> result;
    for (ArrayRef<Value> rest(elements); !rest.empty();
         rest = rest.drop_front(to.getWidth()))
      result.push_back(vector::FromElementsOp::create(
          builder, loc, getPieceType(to.type), rest.take_front(to.getWidth())));
    return result;
  }

  /// The pieces of `to` through shared memory.
  static SmallVector<Value> exchange(ConversionPatternRewriter &rewriter,
                                     tile::ConvertLayoutOp op,
                                     ValueRange pieces, const HeldTile &from,
                                     const HeldTile &to) {
    Location loc = op.getLoc();
    const Role role(op);
    const int64_t pitch = choosePitch(from, to);
    // Roles convert tiles at the same time.
    Value memory = getCommonScratch(
        rewriter, op, getConversionBytes(op),
        "conversions" + std::to_string(role.getNumber().value_or(0)));
    const FirstElement writes = getFirstElement(rewriter, op, from);
    PieceAddresses targets(rewriter, loc, from, writes, memory, pitch);
    // Threads may still read what was converted before.
    role.synchronize(rewriter, loc);
    for (auto [index, piece] : llvm::enumerate(pieces))
      storeIf(rewriter, loc, writes.isHolder,
              bitcastTo(rewriter, loc, getMemoryType(piece.getType()), piece),
              targets.get(index), from.getAccessBytes());
    role.synchronize(rewriter, loc);
    PieceAddresses sources(rewriter, loc, to, getFirstElement(rewriter, op, to),
                           memory, pitch);
    SmallVector<Value> result;
    for (int64_t piece = 0; piece < to.getNumPieces(); ++piece)
      result.push_back(loadPiece(rewriter, loc, getPieceType(to.type),
                                 sources.get(piece), to.getAccessBytes()));
    return result;
  }
};

} // namespace

int64_t bastile::getConversionBytes(tile::ConvertLayoutOp op) {
  const HeldTile from(op.getInput().getType()), to(op.getType());
  if (findOwn(from, to, Role(op).getThreads()))
    return 0;
  return from.type.getDimSize(0) * choosePitch(from, to);
}

void bastile::populateConvertLayoutPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerConvertLayout>(converter, patterns.getContext());
}
