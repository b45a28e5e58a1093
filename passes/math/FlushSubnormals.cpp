//===- FlushSubnormals.cpp - Where the least numbers do not matter --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A GPU's approximations take subnormal numbers, those below 2^-126, for 0, or
// spend three to six instructions on them beside the one that computes. Here
// ops are marked of which none of their operands and results is subnormal, or
// of which no reader can tell a subnormal result from 0; and the operands of
// approximate divisions are scaled so that none is. Ops whose every bit counts
// are marked as well: next to an instruction that may flush, the formulas of
// ExpandQuotients.cpp need no branch.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "passes/math/Ranges.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The least number that is not subnormal, and the largest one whose reciprocal
/// is not.
constexpr double kLeastNormal = 0x1p-126, kMostDivisor = 0x1p126;
/// By what the operands of a division are multiplied so that the reciprocal of
/// no number is subnormal.
constexpr double kDivisionScale = 0.25;

/// The values that hold what `use` takes on as it is, possibly rounded; nothing
/// if the use does something else with it.
std::optional<SmallVector<Value>> follow(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<arith::TruncFOp, LLVM::BitcastOp, LLVM::ExtractElementOp,
          LLVM::InsertElementOp, vector::ExtractOp, vector::FromElementsOp>(
          user))
    return SmallVector<Value>{user->getResult(0)};
  if (isa<tile::WgmmaWaitOp>(user))
    return SmallVector<Value>{user->getResult(use.getOperandNumber())};
  if (auto loop = dyn_cast<scf::ForOp>(user);
      loop && loop.getTiedLoopRegionIterArg(&use))
    return SmallVector<Value>{loop.getTiedLoopRegionIterArg(&use),
                              loop.getTiedLoopResult(&use)};
  if (isa<scf::YieldOp>(user))
    if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
      return SmallVector<Value>{loop.getRegionIterArg(use.getOperandNumber()),
                                loop.getResult(use.getOperandNumber())};
  return std::nullopt;
}

/// Whether what `first` takes, rounded or not, is only used as the left operand
/// of products of warpgroups, whose sums it is a factor of.
bool isFactorOfDots(OpOperand &first) {
  SmallVector<OpOperand *> uses{&first};
  DenseSet<Value> seen;
  while (!uses.empty()) {
    OpOperand *use = uses.pop_back_val();
    if (isa<tile::WgmmaFenceOp>(use->getOwner()))
      continue;
    std::optional<SmallVector<Value>> values = follow(*use);
    if (!values)
      return false;
    for (Value value : *values)
      if (seen.insert(value).second)
        for (OpOperand &next : value.getUses())
          uses.push_back(&next);
  }
  return true;
}

/// Whether a result below 2^-126 may be flushed to 0: `value` is only used in
/// sums and in products with a number that is the same for all of a vector, as
/// the terms of a softmax are. So small a number adds nothing to a sum and
/// stays small in such a product; a gate, in contrast, may be multiplied by
/// something large.
bool isTerm(Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::AddFOp, arith::SubFOp, math::Log1pOp, vector::ReductionOp>(
            user) ||
        isFactorOfDots(use))
      return true;
    if (!isa<arith::MulFOp, arith::DivFOp>(user))
      return false;
    Value other = user->getOperand(user->getOperand(0) == value ? 1 : 0);
    return other != value &&
           (isa<arith::MulFOp>(user) || user->getOperand(0) == value) &&
           other.getDefiningOp<vector::BroadcastOp>();
  });
}

bool isNormal(NumberRange range) { return range.least >= kLeastNormal; }

/// Divides numbers of a quarter of the size, where every divisor is so large
/// that a quarter of it is no subnormal number. Then no reciprocal is one.
void scaleDivision(arith::DivFOp division) {
  OpBuilder builder(division);
  Formula f(builder, division.getLoc(), division.getType());
  auto scale = [&](Value value) {
    if (std::optional<double> number = getConstant(value))
      return f.number(kDivisionScale * *number);
    Value factor = f.number(kDivisionScale);
    auto sum = value.getDefiningOp<arith::AddFOp>();
    std::optional<double> term = sum ? getConstant(sum.getRhs()) : std::nullopt;
    return term ? f.fma(sum.getLhs(), factor, f.number(kDivisionScale * *term))
                : f.mul(value, factor);
  };
  division.getLhsMutable().assign(scale(division.getLhs()));
  division.getRhsMutable().assign(scale(division.getRhs()));
}

bool canFlush(arith::DivFOp division, NumberRanges &ranges) {
  NumberRange divisor = ranges.find(division.getRhs());
  // A quotient whose every bit counts is scaled where it is expanded, by an
  // eighth.
  if (!isApproximate(division.getFastmath()))
    return divisor.least >= 8 * kLeastNormal;
  if (isNormal(divisor) && divisor.most <= kMostDivisor)
    return true;
  if (divisor.least < kLeastNormal / kDivisionScale)
    return false;
  scaleDivision(division);
  return true;
}

bool canFlush(Operation *op, NumberRanges &ranges) {
  if (auto division = dyn_cast<arith::DivFOp>(op))
    return canFlush(division, ranges);
  if (isa<math::ExpOp, math::Exp2Op>(op)) {
    auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
    return (isApproximate(flags.getValue()) && isTerm(op->getResult(0))) ||
           isNormal(ranges.find(op->getResult(0)));
  }
  return isa<math::RsqrtOp, math::SqrtOp, math::LogOp, math::Log2Op>(op) &&
         isNormal(ranges.find(op->getOperand(0)));
}

/// Whether `op` is finite, as are the operands of a quotient. Infinite numbers,
/// and those next to them, take instructions of their own.
bool staysFinite(Operation *op, NumberRanges &ranges) {
  constexpr double mostPower = 88, most = 0x1p100;
  if (isa<math::ExpOp>(op))
    return ranges.find(op->getOperand(0)).most <= mostPower;
  if (!isa<arith::DivFOp>(op))
    return false;
  NumberRange dividend = ranges.find(op->getOperand(0));
  NumberRange divisor = ranges.find(op->getOperand(1));
  return dividend.least >= -most && dividend.most <= most &&
         divisor.least >= 1 && divisor.most <= most;
}

} // namespace

void bastile::markEndsOfRange(tile::ProgramOp program) {
  NumberRanges ranges;
  SmallVector<Operation *> functions;
  program.walk([&](Operation *op) {
    if (isa<arith::ArithFastMathInterface>(op) && op->getNumResults() == 1 &&
        isFloat32(op->getResult(0).getType()))
      functions.push_back(op);
  });
  for (Operation *op : functions) {
    if (staysFinite(op, ranges))
      addFlags(op, kFinite);
    if (!isFlushed(op) && canFlush(op, ranges))
      setFlushed(op);
  }
}
