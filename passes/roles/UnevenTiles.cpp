//===- UnevenTiles.cpp - Tiles that take unequal times --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/UnevenTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The numbers of the tiles that programs take in turn.
class Turns {
public:
  Turns(ProgramFrame &frame, Value place)
      : frame(frame), builder(frame.builder), place(place),
        programs(tile::ProgramCountOp::create(builder)),
        tiles(frame.getAllTiles()) {}

  Value getTileInReverse();
  Value getTileOfPair();

private:
  ProgramFrame &frame;
  ImplicitLocOpBuilder &builder;
  Value place, programs, tiles;
};

} // namespace

/// Goes through the tiles as they are numbered, and through those of every
/// other turn in reverse. The last turn may not have a tile for each program.
/// It goes forward, as all turns do that are as far from it as is even: so it
/// leaves out the programs whose tiles in the turn before took the longest.
Value Turns::getTileInReverse() {
  Value whole = arith::DivUIOp::create(builder, tiles, programs);
  Value turn = arith::DivUIOp::create(builder, place, programs);
  Value inTurn = arith::RemUIOp::create(builder, place, programs);
  Value begin = arith::SubIOp::create(builder, place, inTurn);
  Value isWhole =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, turn, whole);
  Value left = arith::SubIOp::create(builder, whole, turn);
  Value isOdd = arith::CmpIOp::create(
      builder, arith::CmpIPredicate::eq,
      arith::RemUIOp::create(builder, left, frame.constant(2)),
      frame.constant(1));
  Value last = arith::SubIOp::create(builder, programs, frame.constant(1));
  Value behind = arith::SelectOp::create(
      builder, arith::AndIOp::create(builder, isWhole, isOdd),
      arith::SubIOp::create(builder, last, inTurn), inTurn);
  return arith::AddIOp::create(builder, begin, behind);
}

/// Takes both of a pair, tiles 2 i and 2 i + 1, one turn after the other. In
/// the last two turns, which have not a pair for each program, the longer ones
/// of the pairs that are left come first.
Value Turns::getTileOfPair() {
  Value two = frame.constant(2);
  Value length = arith::MulIOp::create(builder, programs, two);
  Value inTurns = arith::RemUIOp::create(builder, place, length);
  Value begin = arith::SubIOp::create(builder, place, inTurns);
  Value pairs = arith::CeilDivUIOp::create(
      builder,
      arith::MinUIOp::create(builder, length,
                             arith::SubIOp::create(builder, tiles, begin)),
      two);
  Value isSecond =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, inTurns, pairs);
  Value pair = arith::SelectOp::create(
      builder, isSecond, arith::SubIOp::create(builder, inTurns, pairs),
      inTurns);
  Value tile = arith::AddIOp::create(builder, begin,
                                     arith::MulIOp::create(builder, pair, two));
  return arith::AddIOp::create(builder, tile,
                               arith::SelectOp::create(builder, isSecond,
                                                       frame.constant(1),
                                                       frame.constant(0)));
}

void bastile::findUnevenPlace(ProgramFrame &frame, Value place, bool lastFirst,
                              Value fitsCache) {
  ImplicitLocOpBuilder &builder = frame.builder;
  Turns turns(frame, place);
  SmallVector<Type> types(frame.countPlace(), builder.getIndexType());
  auto branch =
      scf::IfOp::create(builder, types, fitsCache, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    frame.findPlaceOfRows(turns.getTileInReverse(), lastFirst);
    scf::YieldOp::create(builder, frame.getPlace());
    builder.setInsertionPointToStart(branch.elseBlock());
    frame.findPlaceOfPairs(turns.getTileOfPair(), lastFirst);
    scf::YieldOp::create(builder, frame.getPlace());
  }
  const SmallVector<Value> found(branch.getResults());
  (void)frame.setPlace(found);
}
