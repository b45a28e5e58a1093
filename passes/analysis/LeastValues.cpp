//===- LeastValues.cpp - What values are above ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/LeastValues.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/analysis/Constants.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace bastile;

/// What `value` repeats, or stands for where a gradient stops.
static Value getRepeated(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, tile::StopGradientOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static std::optional<double> getNumber(Value value) {
  return getConstantFloat(getRepeated(value));
}

/// What tree of `Op` combines to `value`, none if it is made of too many ops.
template <typename Op>
static std::optional<SmallVector<Value>> getTerms(Value value) {
  constexpr size_t mostTerms = 8;
  SmallVector<Value> terms{getRepeated(value)};
  for (size_t next = 0; next < terms.size();) {
    auto op = terms[next].getDefiningOp<Op>();
    if (!op) {
      ++next;
      continue;
    }
    terms[next] = getRepeated(op.getLhs());
    terms.push_back(getRepeated(op.getRhs()));
    if (terms.size() > mostTerms)
      return std::nullopt;
  }
  return terms;
}

/// The x of a reduction of rows of x by `kind`; null for anything else.
static Value getReduced(Value value, tile::ReduceKind kind) {
  auto reduce = value.getDefiningOp<tile::ReduceOp>();
  return reduce && isRowReduction(reduce) && reduce.getKind() == kind
             ? reduce.getInput()
             : Value();
}

/// Whether `value` adds up powers relative to the maximum of their exponents,
/// one of which is a number.
static bool sumsShownPowers(Value value) {
  auto sum = getTerms<arith::AddFOp>(value);
  if (!sum)
    return false;
  Value maximum;
  SmallVector<Value> exponents;
  for (Value term : *sum) {
    Value row = getReduced(term, tile::ReduceKind::Add);
    auto exp = (row ? row : term).getDefiningOp<math::ExpOp>();
    auto difference =
        exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
    if (!difference)
      return false;
    Value subtracted = getRepeated(difference.getRhs());
    if (maximum && subtracted != maximum)
      return false;
    maximum = subtracted;
    exponents.push_back(getRepeated(difference.getLhs()));
  }
  if (!findLeast(maximum))
    return false;
  auto terms = getTerms<arith::MaximumFOp>(maximum);
  return terms && llvm::all_of(*terms, [&](Value term) {
           Value row = getReduced(term, tile::ReduceKind::Max);
           const std::optional<double> number = getNumber(term);
           return llvm::any_of(exponents, [&](Value exponent) {
             return exponent == (row ? getRepeated(row) : term) ||
                    (number && getNumber(exponent) == number);
           });
         });
}

/// Whether `value` adds a number above 0 to what is not negative.
static bool addsNumber(Value value) {
  auto terms = getTerms<arith::AddFOp>(value);
  return terms && llvm::all_of(*terms, isNeverNegative) &&
         llvm::any_of(*terms, [](Value term) {
           return getNumber(term).value_or(0) > 0;
         });
}

/// Whether `condition` asks if `value` is above minus infinity.
static bool isAboveMinusInfinity(Value condition, Value value) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  return compare && compare.getPredicate() == arith::CmpFPredicate::OGT &&
         compare.getLhs() == value && getNumber(compare.getRhs()) == -INFINITY;
}

bool bastile::isNeverNegative(Value value) {
  if (std::optional<double> number = getNumber(value))
    return *number >= 0;
  Value row = getReduced(value, tile::ReduceKind::Add);
  return (row ? row : value).getDefiningOp<math::ExpOp>() != nullptr;
}

std::optional<double> bastile::findLeast(Value value) {
  value = getRepeated(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function =
        dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    auto above = function ? function.getArgAttrOfType<FloatAttr>(
                                argument.getArgNumber(),
                                tile::TileDialect::kAboveAttrName)
                          : nullptr;
    return above ? std::optional(above.getValueAsDouble()) : std::nullopt;
  }
  if (value.getDefiningOp<arith::MaximumFOp>()) {
    auto terms = getTerms<arith::MaximumFOp>(value);
    const bool hasNumber = terms && llvm::any_of(*terms, [](Value term) {
                             const std::optional<double> number =
                                 getNumber(term);
                             return number && *number > -INFINITY;
                           });
    return hasNumber ? std::optional(-INFINITY) : std::nullopt;
  }
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (sum && (addsNumber(value) || sumsShownPowers(value)))
    return 0;
  // A logarithm of what is above 0, and a part of that, are above minus
  // infinity.
  if (Operation *op = value.getDefiningOp();
      isa_and_present<math::LogOp, math::Log2Op>(op)) {
    const std::optional<double> least = findLeast(op->getOperand(0));
    return least && *least >= 0 ? std::optional(-INFINITY) : std::nullopt;
  }
  // That of such a sum is no number of much size.
  if (sum)
    if (Operation *log = getRepeated(sum.getRhs()).getDefiningOp();
        isa_and_present<math::LogOp, math::Log2Op>(log) &&
        findLeast(log->getResult(0)) && findLeast(sum.getLhs()))
      return -INFINITY;
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    if (isAboveMinusInfinity(select.getCondition(), select.getTrueValue()) &&
        findLeast(select.getFalseValue()))
      return -INFINITY;
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    const std::optional<double> part = getNumber(product.getRhs());
    if (part && *part > 0 && *part <= 1 && findLeast(product.getLhs()))
      return -INFINITY;
  }
  return std::nullopt;
}
