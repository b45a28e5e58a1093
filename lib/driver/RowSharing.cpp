//===- RowSharing.cpp - How calls that share rows combine results ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/RowSharing.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;

namespace {

/// How a value depends on the rows of the call.
enum class Sharing {
  /// It does not depend on any rows.
  Same,
  /// It depends only on the row that it belongs to.
  Rows,
  /// It combines all rows, and does nothing else: the same combination of some
  /// of the rows is a share of it.
  Share,
  /// It depends on rows beyond its own in any other way.
  All,
};

struct State {
  Sharing sharing = Sharing::Same;
  /// How shares are combined.
  tile::ReduceKind kind = tile::ReduceKind::Add;
};

class Analysis {
public:
  explicit Analysis(func::FuncOp func);
  State get(Value value) const { return states.lookup(value); }

private:
  State visit(Operation *op) const;
  /// The state of the result of `op` on a share, or `All`.
  State visitShare(Operation *op, State share) const;

  llvm::DenseMap<Value, State> states;
};

} // namespace

static bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 1;
}

Analysis::Analysis(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments())
    states[argument] = {hasRows(argument) ? Sharing::Rows : Sharing::Same};
  for (Operation &op : func.front()) {
    State state = visit(&op);
    for (Value result : op.getResults())
      states[result] = state;
  }
}

State Analysis::visit(Operation *op) const {
  State widest;
  for (Value operand : op->getOperands())
    if (State state = get(operand); state.sharing >= widest.sharing)
      widest = state;
  // A call numbers its rows from 0.
  if (auto iota = dyn_cast<tile::IotaOp>(op); iota && iota.getOver())
    return {Sharing::All};
  if (widest.sharing == Sharing::Same || widest.sharing == Sharing::All)
    return widest;
  // The rows of one factor are columns of the result, or are summed over.
  if (isa<tile::DotOp>(op))
    return {Sharing::All};
  if (widest.sharing == Sharing::Share)
    return visitShare(op, widest);
  if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op))
    return {Sharing::Share, reduce.getKind()};
  // These ops combine neighbouring rows, which may go to different calls.
  if (isa<tile::ReduceBandsOp, tile::PackBandsOp, tile::RepeatBandsOp>(op))
    return {Sharing::All};
  return {Sharing::Rows};
}

State Analysis::visitShare(Operation *op, State share) const {
  // A rounded share is still a share: each call rounds its own.
  if (isa<arith::ExtFOp, arith::TruncFOp, tile::CopyOp>(op))
    return share;
  if (share.kind != tile::ReduceKind::Add)
    return {Sharing::All};
  // A share of a sum stays one through ops that are linear in it.
  auto isShare = [&](Value value) {
    State state = get(value);
    return state.sharing == Sharing::Share && state.kind == share.kind;
  };
  auto isSame = [&](Value value) {
    return get(value).sharing == Sharing::Same;
  };
  bool isLinear =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case([](arith::NegFOp) { return true; })
          .Case<arith::AddFOp, arith::SubFOp>([&](auto sum) {
            return isShare(sum.getLhs()) && isShare(sum.getRhs());
          })
          .Case([&](arith::MulFOp product) {
            return isSame(product.getLhs()) || isSame(product.getRhs());
          })
          .Case(
              [&](arith::DivFOp quotient) { return isSame(quotient.getRhs()); })
          .Default([](Operation *) { return false; });
  return isLinear ? share : State{Sharing::All};
}

static llvm::StringRef getName(State state) {
  switch (state.sharing) {
  case Sharing::Same:
    return "same";
  case Sharing::Rows:
    return "rows";
  case Sharing::Share:
    return tile::stringifyReduceKind(state.kind);
  case Sharing::All:
    break;
  }
  return "";
}

llvm::json::Value bastile::describeRowSharing(func::FuncOp func) {
  Analysis analysis(func);
  llvm::json::Array results;
  for (Value result : func.front().getTerminator()->getOperands()) {
    State state = analysis.get(result);
    if (state.sharing == Sharing::All)
      return nullptr;
    results.push_back(getName(state));
  }
  return results;
}
