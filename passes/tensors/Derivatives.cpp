//===- Derivatives.cpp - The derivative of each primitive -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where a function has a corner, its derivative there is PyTorch's: where a
// value equals a number, their minimum or maximum passes the whole gradient on
// to the value; where two values are equal, they share it. No rule computes a
// gradient in another way because the gradient of another operand is not asked
// for.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Derivatives.h"

#include "dialect/Dimensions.h"
#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
using tile::Expr;

bool bastile::isDifferentiable(Type type) {
  return isa<RankedTensorType>(type) &&
         isa<FloatType>(getElementTypeOrSelf(type));
}

bool bastile::dependsOnAny(Operation *op, const DenseSet<Value> &values) {
  return llvm::any_of(getValueOperands(op),
                      [&](Value operand) { return values.contains(operand); });
}

void Gradients::add(Value value, Value gradient) {
  if (!isActive(value))
    return;
  // Gradients have the precision that formulas of the value are computed in.
  Type element = getElementTypeOrSelf(value.getType());
  if (!element.isF64())
    element = builder.getF32Type();
  gradient = Expr(builder, gradient).as(element);
  Value &sum = sums[value];
  sum = sum ? arith::AddFOp::create(builder, sum, gradient).getResult()
            : gradient;
}

void Gradients::add(Value value, const Expr &gradient) {
  add(value, gradient.getValue());
}

namespace {

/// The derivative of one op with one result, whose gradient is `g`.
class Rule {
public:
  Rule(Operation *op, Gradients &gradients)
      : op(op), gradients(gradients), builder(gradients.getBuilder()),
        g(builder, gradients.lookup(op->getResult(0))) {}

  /// Adds to the gradients of the operands. Fails if there is no rule.
  LogicalResult apply();

private:
  LogicalResult applyAngleFunction();
  Expr operand(unsigned index) { return Expr(builder, op->getOperand(index)); }
  Expr result() { return Expr(builder, op->getResult(0)); }
  /// The result, to be compared with the operand's elements.
  Expr comparableResult();
  void add(unsigned index, const Expr &gradient) {
    gradients.add(op->getOperand(index), gradient);
  }
  bool isActive(unsigned index) {
    return gradients.isActive(op->getOperand(index));
  }

  /// Adds the gradients of a minimum or maximum of two values. The op returns
  /// NaN if either value is NaN or, with `dropsNaN`, the other value.
  void chooseOne(bool larger, bool dropsNaN);
  void applyPower();
  /// Adds `gradient` to that of the first operand.
  LogicalResult pass(const Expr &gradient) {
    add(0, gradient);
    return success();
  }
  LogicalResult applyProduct();
  LogicalResult applyBroadcast(tile::BroadcastOp broadcast);
  void applyReduce(tile::ReduceOp reduce);
  void applyReduceRows(tile::ReduceRowsOp reduce);
  void applyRepeatBands(tile::RepeatBandsOp repeat);
  void applyDot(tile::DotOp dot);
  void applyJoin(tile::JoinOp join);
  /// Adds the gradient of a minimum or maximum along rows or over them.
  /// `repeated` is its result for each element, and `sum` adds up a tensor in
  /// the same direction.
  void shareAmongEqual(const Expr &repeated, const Expr &gradient,
                       llvm::function_ref<Expr(const Expr &)> sum);

  Operation *op;
  Gradients &gradients;
  ImplicitLocOpBuilder &builder;
  Expr g;
};

/// Whether `value` is a number repeated: no tensor that may have a gradient.
bool isNumber(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, arith::ExtFOp, arith::TruncFOp, arith::NegFOp>(
            op))
      break;
    value = op->getOperand(0);
  }
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return elements.isSplat();
  return !isa<ShapedType>(value.getType());
}

/// The constant that each element of `value` is.
std::optional<double> getConstant(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, arith::ExtFOp>(op))
      break;
    value = op->getOperand(0);
  }
  APFloat number(0.0);
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  return number.convertToDouble();
}

LogicalResult Rule::applyProduct() {
  if (op->getOperand(0) == op->getOperand(1)) {
    // A gradient that is repeated, as a sum's is, is doubled ahead.
    auto repeated = g.getValue().getDefiningOp<tile::BroadcastOp>();
    const bool isAhead =
        repeated && isDifferentiable(repeated.getSource().getType());
    add(0, (isAhead ? (Expr(builder, repeated.getSource()) * 2.0).like(g)
                    : g * 2.0) *
               operand(0));
  } else {
    for (unsigned index : {0, 1})
      if (isActive(index))
        add(index, g * operand(1 - index));
  }
  if (isa<math::FmaOp>(op))
    add(2, g);
  return success();
}

void Rule::chooseOne(bool larger, bool dropsNaN) {
  using Predicate = arith::CmpFPredicate;
  bool isBesideNumber =
      isNumber(op->getOperand(0)) || isNumber(op->getOperand(1));
  Predicate predicate = larger ? Predicate::OGE : Predicate::OLE;
  if (!isBesideNumber && !dropsNaN)
    predicate = larger ? Predicate::UGE : Predicate::ULE;
  Expr share = g;
  if (!isBesideNumber)
    share = select(compare(Predicate::OEQ, operand(0), operand(1)), g * 0.5, g);
  for (unsigned index : {0, 1}) {
    if (!isActive(index))
      continue;
    Expr self = operand(index), other = operand(1 - index);
    Value isResult = compare(predicate, self, other);
    if (dropsNaN)
      isResult = arith::OrIOp::create(builder, isResult,
                                      compare(Predicate::UNO, other, other));
    add(index, select(isResult, share, g.constant(0)));
  }
}

void Rule::applyPower() {
  using Predicate = arith::CmpFPredicate;
  Expr base = operand(0), exponent = operand(1), zero = g.constant(0);
  std::optional<double> constantBase = getConstant(op->getOperand(0));
  std::optional<double> constant = getConstant(op->getOperand(1));
  // A factor that is the same for all bases has no gradient, also at 0, where
  // the power below is infinite.
  if (isActive(0) && constant && *constant != 0)
    add(0, g * (power(base, base.constant(*constant - 1)) * *constant));
  if (isActive(0) && !constant) {
    Expr slope = exponent * power(base, exponent - 1.0);
    add(0, select(compare(Predicate::OEQ, exponent, zero), zero, g * slope));
  }
  if (!isActive(1))
    return;
  Expr slope = result() * log(base);
  if (!constantBase || *constantBase == 0) {
    // Where the base is 0, the result is 0 or 1 and the logarithm infinite.
    Value isFlat =
        arith::AndIOp::create(builder, compare(Predicate::OEQ, base, zero),
                              compare(Predicate::OGE, exponent, zero));
    slope = select(isFlat, zero, slope);
  }
  add(1, g * slope);
}

/// The first op that repeats the same rows as `broadcast`, for rows of the same
/// sizes.
static tile::BroadcastOp findFirstAlike(tile::BroadcastOp broadcast) {
  auto getSizes = [](tile::BroadcastOp op) {
    return op.getLike() ? getSizeRoot(op.getLike()) : Value();
  };
  tile::BroadcastOp first = broadcast;
  for (Operation *user : broadcast.getSource().getUsers()) {
    auto other = dyn_cast<tile::BroadcastOp>(user);
    if (other && other.getSource() == broadcast.getSource() &&
        other.getType() == broadcast.getType() &&
        getSizes(other) == getSizes(broadcast) && other->isBeforeInBlock(first))
      first = other;
  }
  return first;
}

LogicalResult Rule::applyBroadcast(tile::BroadcastOp broadcast) {
  // The gradients of one row's repetitions are added up once.
  if (broadcast.repeatsRows())
    if (tile::BroadcastOp first = findFirstAlike(broadcast);
        first != broadcast) {
      gradients.add(first.getResult(), g);
      return success();
    }
  auto source = cast<RankedTensorType>(broadcast.getSource().getType());
  auto result = cast<RankedTensorType>(broadcast.getType());
  if (result.getRank() == 1 && source != result)
    return op->emitOpError(
        "repeats a number along a row vector, and a gradient "
        "with respect to it, the sum of a vector, is not "
        "supported; repeat it over rows");
  const bool sumsRows =
      source.getRank() != result.getRank() || broadcast.repeatsRows();
  if (sumsRows && source.getRank() > 1 &&
      ShapedType::isDynamic(source.getShape().back()))
    return op->emitOpError(
        "repeats rows whose length only a call knows, and a gradient with "
        "respect to them, a sum of rows, is not supported; multiply a column "
        "of ones by the row, whose gradient is a product, or give the rows a "
        "known length");
  Expr sum = g;
  if (source.getShape().back() != result.getShape().back())
    sum = rowSum(sum, source.getShape().back());
  if (source.getRank() != result.getRank())
    sum = sumOfRows(sum);
  else if (broadcast.repeatsRows())
    sum = sumOfRows(sum, source.getShape());
  add(0, sum);
  return success();
}

/// The gradient of a row is the sum over the band that it is repeated for.
void Rule::applyRepeatBands(tile::RepeatBandsOp repeat) {
  add(0, packBands(sumOfBands(g, repeat.getBand()), repeat.getBand()));
}

/// Whether every kernel computes the same bits of `value`: those of an
/// argument, moved and widened but never rounded.
static bool isUnrounded(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::NegFOp, math::AbsFOp, tile::BroadcastOp,
             tile::SplitOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

/// Finds a minimum or maximum again among the elements that it is compared
/// with. A result that the forward saves may equal none of the elements that
/// the backward computes again, since these may be rounded otherwise: products
/// and sums contract, and sums over rows take the order that a schedule gives
/// them.
Expr Rule::comparableResult() {
  if (isUnrounded(op->getOperand(0)))
    return result();
  return Expr(builder, builder.clone(*op)->getResult(0));
}

void Rule::shareAmongEqual(const Expr &repeated, const Expr &gradient,
                           llvm::function_ref<Expr(const Expr &)> sum) {
  Expr input = operand(0);
  Value isEqual = compare(arith::CmpFPredicate::OEQ, input, repeated);
  Expr one = input.constant(1), zero = input.constant(0);
  Expr share = gradient / sum(select(isEqual, one, zero));
  // No element equals a result of NaN; all gradients are NaN then.
  Expr rest = share * 0.0;
  add(0, select(isEqual, share.like(input), rest.like(input)));
}

void Rule::applyReduce(tile::ReduceOp reduce) {
  if (reduce.getKind() == tile::ReduceKind::Add)
    return add(0, g.like(operand(0)));
  shareAmongEqual(comparableResult().like(operand(0)), g,
                  [&](const Expr &tensor) {
                    return rowSum(tensor, reduce.getType().getShape().back());
                  });
}

void Rule::applyReduceRows(tile::ReduceRowsOp reduce) {
  if (reduce.getKind() == tile::ReduceKind::Add)
    return add(0, g.like(operand(0)));
  shareAmongEqual(comparableResult().like(operand(0)), g,
                  [&](const Expr &tensor) {
                    return sumOfRows(tensor, reduce.getType().getShape());
                  });
}

/// `type` with the size 1 in each dimension of the batch in which neither `a`
/// nor `b` has another one, as a product of these has it.
static RankedTensorType getProductType(RankedTensorType type,
                                       RankedTensorType a, RankedTensorType b) {
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t ahead = 0; ahead + 2 < type.getRank(); ++ahead)
    if (getBatchSize(a, b, ahead) == 1)
      shape[type.getRank() - 3 - ahead] = 1;
  return type.clone(shape);
}

/// Each gradient is a product as well, of the result's gradient and the other
/// operand, in the type of the operands: so tensor cores compute it. Floats of
/// 8 bits are too coarse for gradients, and widened. Where only one operand has
/// a dimension that is summed over, its gradient repeats itself there.
void Rule::applyDot(tile::DotOp dot) {
  Type element = dot.getFactorType();
  if (element.getIntOrFloatBitWidth() == 8)
    element = builder.getBF16Type();
  Value gradient = g.as(element);
  Value factors[] = {operand(0).as(element), operand(1).as(element)};
  for (unsigned index : {0, 1}) {
    if (!isActive(index))
      continue;
    Value other = factors[1 - index], lhs = gradient, rhs = other;
    // The dimension of the gradient over which it is summed, and that of the
    // other operand: what the operand does not have.
    int64_t left = index == 0 ? 1 : 0, right = 1 - dot.getContract()[1 - index];
    // A matrix whose rows are those that are summed over takes its rows from
    // the other operand.
    if (dot.getContract()[index] == 0) {
      std::swap(lhs, rhs);
      std::swap(left, right);
    }
    auto own = cast<RankedTensorType>(dot.getOperand(index).getType())
                   .clone(g.getType().getElementType());
    RankedTensorType type =
        getProductType(own, cast<RankedTensorType>(gradient.getType()),
                       cast<RankedTensorType>(other.getType()));
    Value product = tile::DotOp::create(builder, type, lhs, rhs,
                                        /*accumulator=*/Value(),
                                        ArrayRef<int64_t>{left, right});
    if (type != own)
      product = tile::BroadcastOp::create(builder, own, product,
                                          dot.getOperand(index));
    gradients.add(dot.getOperand(index), product);
  }
}

void Rule::applyJoin(tile::JoinOp join) {
  Type element = g.getType().getElementType();
  SmallVector<Type> types =
      llvm::map_to_vector(join.getPieces().getTypes(), [&](Type type) -> Type {
        return cast<RankedTensorType>(type).clone(element);
      });
  auto pieces =
      tile::SplitOp::create(builder, types, join.getStrands(), g.getValue());
  for (auto [operand, piece] :
       llvm::zip_equal(join.getPieces(), pieces.getPieces()))
    gradients.add(operand, piece);
}

/// Trigonometric and hyperbolic functions and their inverses.
LogicalResult Rule::applyAngleFunction() {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](math::SinOp) { return pass(g * cos(operand(0))); })
      .Case([&](math::CosOp) { return pass(-(g * sin(operand(0)))); })
      .Case([&](math::TanOp) { return pass(g * (result() * result() + 1.0)); })
      .Case([&](math::SinhOp) { return pass(g * cosh(operand(0))); })
      .Case([&](math::CoshOp) { return pass(g * sinh(operand(0))); })
      .Case([&](math::TanhOp) {
        Expr tanh = result();
        return pass(g * (1.0 - tanh * tanh));
      })
      .Case<math::AsinOp, math::AcosOp>([&](auto) {
        Expr slope = g * rsqrt(1.0 - operand(0) * operand(0));
        return pass(isa<math::AcosOp>(op) ? -slope : slope);
      })
      .Case([&](math::AtanOp) {
        return pass(g / (operand(0) * operand(0) + 1.0));
      })
      .Case([&](math::Atan2Op) {
        Expr y = operand(0), x = operand(1), zero = g.constant(0);
        Expr square = x * x + y * y;
        // Where the angle is not defined, the gradient is 0, as in PyTorch.
        Value isOrigin = compare(arith::CmpFPredicate::OEQ, square, zero);
        Expr share = select(isOrigin, zero, g / square);
        if (isActive(0))
          add(0, share * x);
        if (isActive(1))
          add(1, -(share * y));
        return success();
      })
      .Case([&](math::AsinhOp) {
        return pass(g * rsqrt(operand(0) * operand(0) + 1.0));
      })
      .Case([&](math::AcoshOp) {
        return pass(g * rsqrt(operand(0) * operand(0) - 1.0));
      })
      .Case([&](math::AtanhOp) {
        return pass(g / (1.0 - operand(0) * operand(0)));
      })
      .Default(
          [](Operation *op) { return op->emitOpError("has no derivative"); });
}

LogicalResult Rule::apply() {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::AddFOp) {
        add(0, g);
        add(1, g);
        return success();
      })
      .Case([&](arith::SubFOp) {
        add(0, g);
        if (isActive(1))
          add(1, -g);
        return success();
      })
      .Case<arith::MulFOp, math::FmaOp>([&](auto) { return applyProduct(); })
      .Case([&](arith::DivFOp) {
        Expr quotient = g / operand(1);
        add(0, quotient);
        if (isActive(1))
          add(1, -(quotient * result()));
        return success();
      })
      .Case([&](arith::RemFOp) {
        add(0, g);
        // The quotient is an integer, but for its rounding.
        if (isActive(1))
          add(1, -(g * round((operand(0) - result()) / operand(1))));
        return success();
      })
      .Case([&](arith::NegFOp) {
        add(0, -g);
        return success();
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        chooseOne(/*larger=*/true, isa<arith::MaxNumFOp>(op));
        return success();
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        chooseOne(/*larger=*/false, isa<arith::MinNumFOp>(op));
        return success();
      })
      .Case([&](arith::SelectOp choice) {
        if (isActive(1))
          add(1, select(choice.getCondition(), g, g.constant(0)));
        if (isActive(2))
          add(2, select(choice.getCondition(), g.constant(0), g));
        return success();
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return pass(g); })
      .Case([&](math::ExpOp) { return pass(g * result()); })
      .Case([&](math::Exp2Op) {
        constexpr double ln2 = 0.69314718055994530942;
        return pass(g * result() * ln2);
      })
      .Case([&](math::ExpM1Op) {
        add(0, g * (result() + 1.0));
        return success();
      })
      .Case([&](math::LogOp) {
        add(0, g / operand(0));
        return success();
      })
      .Case([&](math::Log2Op) {
        constexpr double log2e = 1.4426950408889634074;
        add(0, g / operand(0) * log2e);
        return success();
      })
      .Case([&](math::Log10Op) {
        constexpr double log10e = 0.43429448190325182765;
        add(0, g / operand(0) * log10e);
        return success();
      })
      .Case([&](math::Log1pOp) {
        add(0, g / (operand(0) + 1.0));
        return success();
      })
      .Case([&](math::SqrtOp) {
        add(0, g / result() * 0.5);
        return success();
      })
      .Case([&](math::CbrtOp) {
        add(0, g / (result() * result()) * (1.0 / 3));
        return success();
      })
      .Case([&](math::RsqrtOp) {
        Expr root = result();
        add(0, g * (root * root * root * -0.5));
        return success();
      })
      .Case<math::ErfOp, math::ErfcOp>([&](auto) {
        constexpr double twoOverSqrtPi = 1.12837916709551257390;
        Expr x = operand(0);
        Expr slope = exp(-(x * x)) * twoOverSqrtPi;
        add(0, isa<math::ErfcOp>(op) ? -(g * slope) : g * slope);
        return success();
      })
      .Case([&](math::AbsFOp) {
        Expr x = operand(0), zero = g.constant(0);
        Expr whereNegative =
            select(compare(arith::CmpFPredicate::OLT, x, zero), -g, zero);
        add(0, select(compare(arith::CmpFPredicate::OGT, x, zero), g,
                      whereNegative));
        return success();
      })
      .Case([&](math::PowFOp) {
        applyPower();
        return success();
      })
      // Steps are flat wherever they have a derivative.
      .Case<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp,
            math::TruncOp>([](auto) { return success(); })
      .Case([&](tile::BroadcastOp broadcast) {
        return applyBroadcast(broadcast);
      })
      .Case([&](tile::ReduceOp reduce) {
        applyReduce(reduce);
        return success();
      })
      .Case([&](tile::ReduceRowsOp reduce) {
        applyReduceRows(reduce);
        return success();
      })
      .Case([&](tile::RepeatBandsOp repeat) {
        applyRepeatBands(repeat);
        return success();
      })
      .Case([&](tile::DotOp dot) {
        applyDot(dot);
        return success();
      })
      .Case([&](tile::JoinOp join) {
        applyJoin(join);
        return success();
      })
      .Default([&](Operation *) { return applyAngleFunction(); });
}

/// Pieces that nothing depends on have a gradient of zero.
void propagateThroughSplit(tile::SplitOp split, Gradients &gradients) {
  ImplicitLocOpBuilder &builder = gradients.getBuilder();
  Value any;
  for (Value piece : split.getPieces())
    if (Value gradient = gradients.lookup(piece))
      any = gradient;
  SmallVector<Value> pieces =
      llvm::map_to_vector(split.getPieces(), [&](Value piece) -> Value {
        Value gradient = gradients.lookup(piece);
        return gradient ? gradient : Expr(builder, any).constant(0).getValue();
      });
  Type element = getElementTypeOrSelf(any.getType());
  auto type = cast<RankedTensorType>(split.getInput().getType());
  gradients.add(split.getInput(),
                tile::JoinOp::create(builder, type.clone(element),
                                     split.getStrands(), pieces)
                    .getResult());
}

} // namespace

LogicalResult bastile::propagateGradients(Operation *op, Gradients &gradients) {
  if (!dependsOnAny(op, gradients.getActive()))
    return success();
  if (llvm::none_of(op->getResults(), [&](Value result) {
        return bool(gradients.lookup(result));
      }))
    return success();
  gradients.getBuilder().setLoc(op->getLoc());
  if (auto split = dyn_cast<tile::SplitOp>(op)) {
    propagateThroughSplit(split, gradients);
    return success();
  }
  // A rule is of one result.
  if (op->getNumResults() != 1)
    return op->emitOpError("has no derivative");
  if (propagateThroughSigmoid(op, gradients))
    return success();
  return Rule(op, gradients).apply();
}
