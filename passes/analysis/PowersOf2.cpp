//===- PowersOf2.cpp - Which powers may be computed as those of 2 ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/PowersOf2.h"

#include "dialect/Rows.h"
#include "passes/analysis/Constants.h"
#include "passes/analysis/FollowingSums.h"
#include "passes/analysis/HiddenErrors.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace bastile;

/// The value that `select` chooses where it does not choose minus infinity;
/// null if there is none.
static Value getShown(arith::SelectOp select) {
  if (getConstantFloat(select.getFalseValue()) == -INFINITY)
    return select.getTrueValue();
  if (getConstantFloat(select.getTrueValue()) == -INFINITY)
    return select.getFalseValue();
  return Value();
}

/// What is left of `x` without the selects that hide some of it.
static Value getShownOfAll(Value x) {
  while (auto select = x.getDefiningOp<arith::SelectOp>()) {
    Value shown = getShown(select);
    if (!shown)
      break;
    x = shown;
  }
  return x;
}

/// Whether `value` is bounded, or only as large as products of factors are.
static bool isOfFactors(Value value) {
  return isa_and_present<tile::DotOp, math::TanhOp>(value.getDefiningOp());
}

bool bastile::areScores(Value x) {
  constexpr double mostScale = 0x1p20;
  x = getShownOfAll(x);
  std::optional<std::pair<Value, double>> scaled = getScaled(x.getDefiningOp());
  return isOfFactors(scaled ? scaled->first : x) &&
         (!scaled || std::abs(scaled->second) <= mostScale);
}

/// Whether `use`, by the op that ends a kernel, is a result that may be
/// approximate.
static bool isApproximateResult(OpOperand &use) {
  auto kernel = dyn_cast<tile::KernelOp>(use.getOwner()->getParentOp());
  return kernel &&
         kernel.getResultAttr(use.getOperandNumber(),
                              tile::TileDialect::kApproximateAttrName);
}

/// Whether `use` hides a relative error of a few bits of float32: by rounding,
/// or as a logarithm, whose own rounding is as large.
static bool hidesError(OpOperand &use) {
  Operation *user = use.getOwner();
  if (getSizeOperand(user) == &use || isNarrowFloat(use.get().getType()) ||
      isa<math::LogOp>(user))
    return true;
  if (auto dot = dyn_cast<tile::DotOp>(user))
    return isNarrowFloat(dot.getFactorType(use.getOperandNumber()));
  return user->hasTrait<OpTrait::IsTerminator>() && isApproximateResult(use);
}

/// The y of a product c y of a number c; `x` itself if it is none.
static Value getWithoutScale(Value x) {
  std::optional<std::pair<Value, double>> scaled = getScaled(x.getDefiningOp());
  return scaled ? scaled->first : x;
}

/// Whether scores `x` are those of 16-bit factors, with a cap or without one.
static bool areNarrowScores(Value x) {
  Value scores = getWithoutScale(getShownOfAll(x));
  if (auto cap = scores.getDefiningOp<math::TanhOp>())
    scores = getWithoutScale(cap.getOperand());
  auto dot = scores.getDefiningOp<tile::DotOp>();
  return dot && isNarrowFloat(dot.getFactorType());
}

/// Whether `value` is a number of each row, as sums are.
static bool isNumberOfRow(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.getShape().back() == 1;
}

/// Whether all that is computed of `power`, one of scores `x`, hides its error.
/// A number of each row need not where the factors of the scores have 16 bits.
static bool isRoundedBehind(Value power, Value x) {
  const bool isNarrow = areNarrowScores(x);
  llvm::SetVector<Value> reached;
  reached.insert(power);
  for (size_t next = 0; next < reached.size(); ++next)
    for (OpOperand &use : reached[next].getUses()) {
      if (hidesError(use) ||
          (isNarrow && use.getOwner()->hasTrait<OpTrait::IsTerminator>() &&
           isNumberOfRow(use.get())))
        continue;
      // Products of wide factors do not hide it, and stores end the kernel.
      if (isa<tile::DotOp>(use.getOwner()) ||
          use.getOwner()->hasTrait<OpTrait::IsTerminator>())
        return false;
      reached.insert(use.getOwner()->result_begin(),
                     use.getOwner()->result_end());
    }
  return true;
}

/// The number of each row that `difference` subtracts; null if it is nothing of
/// the kind.
static Value getSubtracted(arith::SubFOp difference) {
  auto repeated = difference
                      ? difference.getRhs().getDefiningOp<tile::BroadcastOp>()
                      : tile::BroadcastOp();
  auto source = repeated
                    ? dyn_cast<RankedTensorType>(repeated.getSource().getType())
                    : RankedTensorType();
  return source && source.getRank() == repeated.getType().getRank() &&
                 source.getShape().back() == 1
             ? repeated.getSource()
             : Value();
}

std::optional<PowerOf2> bastile::findRoundedPower(math::ExpOp exp) {
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  Value statistic = getSubtracted(difference);
  if (!statistic || !getElementTypeOrSelf(exp.getType()).isF32() ||
      !isRoundedBehind(exp.getResult(), difference.getLhs()))
    return std::nullopt;
  return PowerOf2{difference.getLhs(), statistic};
}

std::optional<PowerOf2> bastile::findPowerOf2(math::ExpOp exp) {
  std::optional<PowerOf2> power = findRoundedPower(exp);
  if (!power)
    return std::nullopt;
  // The logarithm of a sum, behind a maximum, is no large number.
  const bool isOfLogarithm =
      getInLogs2(power->statistic) &&
      getSubtracted(power->x.getDefiningOp<arith::SubFOp>());
  return isOfLogarithm || areScores(power->x) ? power : std::nullopt;
}

Value bastile::getInLogs2(Value statistic) {
  std::optional<std::pair<Value, double>> scaled =
      getScaled(statistic.getDefiningOp());
  return scaled && static_cast<float>(scaled->second) ==
                       static_cast<float>(llvm::numbers::ln2)
             ? scaled->first
             : Value();
}

PowersOf2::PowersOf2(Block &block) {
  for (auto exp : block.getOps<math::ExpOp>())
    if (std::optional<PowerOf2> power = findPowerOf2(exp))
      powers.insert({exp.getResult(), *power});
  dropPartsOfSums(block);
  for (auto &[result, power] : powers) {
    Value product = getShownOfAll(power.x);
    if (auto own = getScaled(product.getDefiningOp()))
      findUnscaled(product, own->first, own->second);
  }
}

/// Drops powers of which others that follow the same maximum are none: the
/// factors that make earlier sums relative to a new maximum are those of all of
/// them.
void PowersOf2::dropPartsOfSums(Block &block) {
  const FollowingSums following(block);
  DenseSet<Value> others;
  auto forEachPower = [&](auto visit) {
    for (Operation &op : block)
      if (const FollowingSum *sum = following.lookup(&op))
        for (const Power &power : sum->powers)
          visit(sum->subtracted, power.result);
  };
  forEachPower([&](Value subtracted, Value power) {
    if (!powers.contains(power))
      others.insert(subtracted);
  });
  forEachPower([&](Value subtracted, Value power) {
    if (others.contains(subtracted))
      powers.erase(power);
  });
}

/// Lets `scores` take the place of `product` where its readers allow that.
void PowersOf2::findUnscaled(Value product, Value scores, double scale) {
  constexpr double leastScale = 0x1p-100;
  if (scale < leastScale)
    return;
  llvm::SetVector<Value> read;
  read.insert(product);
  for (size_t next = 0; next < read.size(); ++next)
    for (OpOperand &use : read[next].getUses()) {
      Operation *user = use.getOwner();
      auto reduce = dyn_cast<tile::ReduceOp>(user);
      auto select = dyn_cast<arith::SelectOp>(user);
      if (getSizeOperand(user) == &use ||
          (reduce && isRowReduction(reduce) &&
           reduce.getKind() == tile::ReduceKind::Max))
        continue;
      if (select && getShown(select) == read[next])
        read.insert(select.getResult());
      else if (!isa<arith::SubFOp>(user) || use.getOperandNumber() != 0 ||
               !llvm::all_of(user->getUsers(), [&](Operation *exp) {
                 return powers.contains(exp->getResult(0));
               }))
        return;
    }
  scaled[product] = {scores, scale};
}

double PowersOf2::getScale(Value x) const {
  auto it = scaled.find(getShownOfAll(x));
  return it == scaled.end() ? 1 : it->second.second;
}
