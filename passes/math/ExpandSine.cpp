//===- ExpandSine.cpp - Sine, cosine and tangent as arithmetic ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Sines, cosines and tangents. Angles of the size that models have are reduced
// by multiples of pi / 2 in three parts, without a branch. If any angle of a
// vector is too large for that, it is corrected in a branch, which multiplies
// the angle by the bits of 2 / pi that matter to it (Payne and Hanek, Radian
// Reduction for Trigonometric Functions, 1983).
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"
#include "passes/pieces/Pieces.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kHalfPi = 1.5707963267948966;
/// 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits.
constexpr double kRounder = 12582912.0;
/// The largest angle that three parts of pi / 2 can reduce.
constexpr double kLargestInParts = 0x1p20;

/// An angle as a number of quarter turns, of which the low two bits matter, and
/// the rest, at most about pi / 4.
struct Reduced {
  Value quarters, rest;
};

/// x less n times `halves` halves of pi.
Value subtractMultiples(Formula &f, Value n, Value x, int halves) {
  constexpr float first = static_cast<float>(kHalfPi);
  constexpr float second = static_cast<float>(kHalfPi - first);
  // Numbers next to a multiple of pi / 2 need digits of it that float64 lacks.
  constexpr double third = kHalfPi - first - second + 0x1.1a62633145c07p-54;
  Value rest = x;
  for (double part : {double(first), double(second), third})
    rest = f.fma(n, f.number(-halves * part), rest);
  return rest;
}

Reduced reduceInParts(Formula &f, Value x) {
  Value shifted = f.fma(x, f.number(1 / kHalfPi), f.number(kRounder));
  Value n = f.sub(shifted, f.number(kRounder));
  return {f.toBits(shifted), subtractMultiples(f, n, x, /*halves=*/1)};
}

/// Integers of 64 bits, for one number.
struct Wide {
  Value constant(int64_t number) const {
    return arith::ConstantIntOp::create(f.builder, f.builder.getI64Type(),
                                        number);
  }
  Value extend(Value value) const {
    return arith::ExtUIOp::create(f.builder, f.builder.getI64Type(), value);
  }
  Value truncate(Value value) const {
    return arith::TruncIOp::create(f.builder, f.builder.getI32Type(), value);
  }
  Value shiftLeft(Value value, Value count) const {
    return arith::ShLIOp::create(f.builder, value, count);
  }
  Value shiftRight(Value value, Value count) const {
    return arith::ShRUIOp::create(f.builder, value, count);
  }
  Formula &f;
};

/// The part of |x| / (2 pi) behind the point, as 64 bits, for one number that
/// is finite and above `kLargestInParts`.
///
/// The number is M 2^k, where M is an integer of 32 bits. Bits of 2 / pi that
/// are worth more than 2 after a shift by k make whole turns and are left out.
/// Of the others, so many `words` of 32 are multiplied by M: of the result, two
/// leave 32 bits that no lost bit reaches, and three 64.
Value findTurns(Formula &f, Value x, unsigned words) {
  // The bits of 2 / pi, behind as many zeros as the smallest k reaches back.
  constexpr uint32_t bitsOfTwoOverPi[] = {0x00000000, 0xA2F9836E, 0x4E441529,
                                          0xFC2757D1, 0xF534DDC0, 0xDB629599,
                                          0x3C439041};
  Wide wide{f};
  auto word = [&](uint32_t bits) {
    return f.integer(static_cast<int32_t>(bits));
  };
  Value bits = f.toBits(f.abs(x));
  Value mantissa = f.orInt(f.shiftLeft(bits, 8), word(0x80000000));
  // The place where the bits begin: k + 30.
  Value begin = f.subInt(f.shiftRight(bits, 23), f.integer(128));
  Value isEven = f.isZero(f.andInt(begin, f.integer(32)));
  Value isNear = f.isZero(f.andInt(begin, f.integer(64)));
  SmallVector<Value> chosen;
  for (unsigned index = 0; index < words + 2; ++index)
    chosen.push_back(f.select(isNear, word(bitsOfTwoOverPi[index]),
                              word(bitsOfTwoOverPi[index + 2])));
  for (unsigned index = 0; index < words + 1; ++index)
    chosen[index] = f.select(isEven, chosen[index], chosen[index + 1]);
  Value shift = f.andInt(begin, f.integer(31));
  Value rest = f.subInt(f.integer(31), shift);
  auto product = [&](unsigned index) -> Value {
    // In two steps, as a shift by 32 would do nothing.
    Value lower = wide.shiftRight(f.shiftRight(chosen[index + 1], 1), rest);
    Value window = f.orInt(wide.shiftLeft(chosen[index], shift), lower);
    return arith::MulIOp::create(f.builder, wide.extend(window),
                                 wide.extend(mantissa));
  };
  Value turns =
      f.addInt(product(1), wide.shiftLeft(product(0), wide.constant(32)));
  if (words > 2)
    turns = f.addInt(turns, wide.shiftRight(product(2), wide.constant(32)));
  return turns;
}

/// Reduces one number that is finite and above `kLargestInParts`.
Reduced reduceByBits(Formula &f, Value x) {
  ImplicitLocOpBuilder &builder = f.builder;
  Wide wide{f};
  Type f64 = builder.getF64Type();
  Value turns = findTurns(f, x, /*words=*/3);
  // Takes two bits ahead of the point, and rounds by those behind it.
  Value quarters = wide.truncate(wide.shiftRight(
      f.addInt(turns, wide.constant(int64_t(1) << 61)), wide.constant(62)));
  // float64 has the digits that a number next to a multiple of pi / 2 keeps.
  Value angle = arith::SIToFPOp::create(
      builder, f64, wide.shiftLeft(turns, wide.constant(2)));
  Value scale = arith::ConstantOp::create(
      builder, builder.getF64FloatAttr(kHalfPi * 0x1p-64));
  angle = arith::MulFOp::create(builder, angle, scale);
  angle = arith::TruncFOp::create(builder, f.type, angle);
  Value isNegative = f.less(x, f.number(0.0));
  return {f.select(isNegative, f.subInt(f.integer(0), quarters), quarters),
          f.select(isNegative, f.neg(angle), angle)};
}

/// A function of a reduced angle, and one of any angle.
using ReducedFunction = Value (*)(Formula &, Reduced);
using AngleFunction = Value (*)(Formula &, Value);

/// The sine of an angle and a number of `quarters` more.
template <int quarters>
Value createSine(Formula &f, Reduced angle) {
  Value r = angle.rest, s = f.mul(r, r);
  Value sine = f.polynomial(
      s, {2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1});
  sine = f.fma(sine, f.mul(s, r), r);
  Value cosine = f.polynomial(
      s, {2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -0.5, 1.0});
  Value quarter = angle.quarters;
  if (quarters)
    quarter = f.addInt(quarter, f.integer(quarters));
  Value isEven = f.isZero(f.andInt(quarter, f.integer(1)));
  Value isPositive = f.isZero(f.andInt(quarter, f.integer(2)));
  Value result = f.select(isEven, sine, cosine);
  return f.select(isPositive, result, f.neg(result));
}

/// The tangent, of which a quarter turn makes -1 / tan. The constants are
/// minimax coefficients of the relative error.
Value createTangent(Formula &f, Reduced angle) {
  Value tangent = f.oddPolynomial(
      angle.rest, {4.3734326e-3, 9.70028123e-5, 1.08282054e-2, 2.12860089e-2,
                   5.40589318e-2, 1.33326754e-1, 3.33333492e-1});
  Value isEven = f.isZero(f.andInt(angle.quarters, f.integer(1)));
  return f.select(isEven, tangent, f.div(f.number(-1.0), tangent));
}

/// The sine of an angle of at most pi / 2 where a rounding hides the error,
/// negated where the highest bit of `sign` is set, which is the only one.
Value createSignedSine(Formula &f, Value angle, Value sign) {
  Value sine = f.oddPolynomial(
      angle, {2.60547812e-06, -0.000198094735, 0.00833306459, -0.166666595});
  return f.fromBits(arith::XOrIOp::create(f.builder, f.toBits(sine), sign));
}

/// The sine of x and a number of `quarters` more, 0 or 1, where a rounding
/// hides the error. x is reduced by multiples of pi, so that no other function
/// is computed beside it.
template <int quarters>
Value createHiddenSine(Formula &f, Value x) {
  Value scale = f.number(0.5 / kHalfPi);
  Value shifted, n, halves;
  if (quarters) {
    // Turned by a quarter, x is next to a half of a multiple.
    shifted = f.add(f.fma(x, scale, f.number(-0.5)), f.number(kRounder));
    n = f.add(f.sub(shifted, f.number(kRounder)), f.number(0.5));
    halves = f.addInt(f.toBits(shifted), f.integer(1));
  } else {
    shifted = f.fma(x, scale, f.number(kRounder));
    n = f.sub(shifted, f.number(kRounder));
    halves = f.toBits(shifted);
  }
  return createSignedSine(f, subtractMultiples(f, n, x, /*halves=*/2),
                          f.shiftLeft(halves, 31));
}

/// The same of one number that is finite and above `kLargestInParts`.
template <int quarters>
Value createHiddenSineOfLarge(Formula &f, Value x) {
  ImplicitLocOpBuilder &builder = f.builder;
  Wide wide{f};
  Value turns = wide.truncate(
      wide.shiftRight(findTurns(f, x, /*words=*/2), wide.constant(32)));
  // The cosine is the sine of a quarter turn more, and even; the sine is odd.
  if (quarters)
    turns = f.addInt(turns, f.integer(1 << 30));
  // How far it is to the next half turn, and whether the number of these is
  // odd.
  Value angle =
      f.mul(f.intToFloat(f.shiftLeft(turns, 1)), f.number(kHalfPi * 0x1p-31));
  Value sign = f.addInt(turns, f.integer(1 << 30));
  if (!quarters)
    sign = arith::XOrIOp::create(builder, sign, f.toBits(x));
  constexpr auto highest = static_cast<int32_t>(0x80000000);
  return createSignedSine(f, angle, f.andInt(sign, f.integer(highest)));
}

/// `function` of one number if it is finite and large, else `otherwise`.
Value replaceOne(Formula &f, Value x, Value otherwise, AngleFunction function) {
  Value magnitude = f.abs(x);
  Value isLarge = f.andInt(
      f.less(f.number(kLargestInParts), magnitude),
      f.less(magnitude, f.number(std::numeric_limits<double>::infinity())));
  return f.select(isLarge, function(f, x), otherwise);
}

/// `results` with `function` of those of `x` that are large in their places.
///
/// The loop takes the first element and turns the vector by one: elements by
/// number would lie in memory, and a vector of code would be as long as all
/// else that a kernel does.
Value replaceLarge(Formula &f, Value x, Value results, AngleFunction function) {
  ImplicitLocOpBuilder &builder = f.builder;
  auto type = dyn_cast<VectorType>(x.getType());
  if (!type)
    return replaceOne(f, x, results, function);
  int64_t count = type.getNumElements();
  SmallVector<int64_t> turned(count);
  std::iota(turned.begin(), turned.end(), 1);
  Value begin = arith::ConstantIndexOp::create(builder, 0);
  Value end = arith::ConstantIndexOp::create(builder, count);
  Value step = arith::ConstantIndexOp::create(builder, 1);
  auto loop = scf::ForOp::create(
      builder, begin, end, step, ValueRange{x, results},
      [&](OpBuilder &inside, Location loc, Value, ValueRange turning) {
        Formula one(inside, loc, type.getElementType(), f.flags);
        auto turn = [&](Value vector, Value last) -> Value {
          Value lastOnly = vector::BroadcastOp::create(
              one.builder, VectorType::get(1, type.getElementType()), last);
          return vector::ShuffleOp::create(one.builder, vector, lastOnly,
                                           turned);
        };
        Value first =
            vector::ExtractOp::create(one.builder, turning[0], int64_t(0));
        Value result =
            vector::ExtractOp::create(one.builder, turning[1], int64_t(0));
        result = replaceOne(one, first, result, function);
        scf::YieldOp::create(one.builder, ValueRange{turn(turning[0], first),
                                                     turn(turning[1], result)});
      });
  keepRolled(loop);
  return loop.getResult(1);
}

/// Whether any element of a condition holds. The host has an instruction for
/// all of a vector; on a GPU, a vector's elements lie in as many registers.
Value isAny(Formula &f, Value condition, bool onHost) {
  auto type = dyn_cast<VectorType>(condition.getType());
  if (!type)
    return condition;
  if (onHost)
    return vector::ReductionOp::create(f.builder, vector::CombiningKind::OR,
                                       condition);
  Value any = vector::ExtractOp::create(f.builder, condition, int64_t(0));
  for (int64_t index = 1; index < type.getNumElements(); ++index)
    any = f.orInt(any, vector::ExtractOp::create(f.builder, condition, index));
  return any;
}

/// `function` of angles of the size that models have, and of large ones.
template <ReducedFunction function>
Value createOfUsual(Formula &f, Value x) {
  return function(f, reduceInParts(f, x));
}
template <ReducedFunction function>
Value createOfLarge(Formula &f, Value x) {
  return function(f, reduceByBits(f, x));
}

/// Whether `x` is what float32 has rounded, in place of a number from memory,
/// as it is or times a constant.
bool isRounded(Value x) {
  if (auto product = x.getDefiningOp<arith::MulFOp>()) {
    if (getConstant(product.getRhs()))
      x = product.getLhs();
    else if (getConstant(product.getLhs()))
      x = product.getRhs();
  }
  Operation *op = x.getDefiningOp();
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op))
    return isRounded(choice.getTrueValue()) ||
           isRounded(choice.getFalseValue());
  // The last is what an instruction's results, one by one, are put into.
  return isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp,
                         arith::DivFOp, LLVM::CallIntrinsicOp,
                         vector::InsertOp>(op) ||
         (op && isa<math::MathDialect>(op->getDialect()));
}

/// `x` without what exceeds 2^23 of it. A rounded angle of this size is off by
/// up to half a radian, so that its sine is any number; a branch for it would
/// part the code around it, and keep in registers all that is alive there.
Value boundAngle(Formula &f, Value x) {
  Value most = f.number(0x1p23), least = f.number(-0x1p23);
  Value bounded = arith::MinimumFOp::create(
      f.builder, arith::MaximumFOp::create(f.builder, x, least), most);
  // That of infinity is NaN.
  return f.fma(x, f.number(0.0), bounded);
}

struct AngleFunctions {
  AngleFunction ofUsual, ofLarge;
};

template <ReducedFunction function>
constexpr AngleFunctions kExact = {createOfUsual<function>,
                                   createOfLarge<function>};
template <int quarters>
constexpr AngleFunctions kHidden = {createHiddenSine<quarters>,
                                    createHiddenSineOfLarge<quarters>};

template <typename OpTy>
struct ExpandAngleFunction : public OpRewritePattern<OpTy> {
  ExpandAngleFunction(MLIRContext *context, bool onHost, AngleFunctions exact,
                      AngleFunctions hidden)
      : OpRewritePattern<OpTy>(context), onHost(onHost), exact(exact),
        hidden(hidden) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    Value x = op.getOperand();
    const bool isHidden = !onHost && isApproximate(op.getFastmath());
    const AngleFunctions &functions = isHidden ? hidden : exact;
    if (isHidden && isRounded(x)) {
      rewriter.replaceOp(op, functions.ofUsual(f, boundAngle(f, x)));
      return success();
    }
    Value result = functions.ofUsual(f, x);
    Value isLarge = f.less(f.number(kLargestInParts), f.abs(x));
    auto branch = scf::IfOp::create(
        f.builder, isAny(f, isLarge, onHost),
        [&](OpBuilder &inside, Location loc) {
          Formula large(inside, loc, op.getType(), op.getFastmath());
          scf::YieldOp::create(
              inside, loc, replaceLarge(large, x, result, functions.ofLarge));
        },
        [&](OpBuilder &inside, Location loc) {
          scf::YieldOp::create(inside, loc, result);
        });
    rewriter.replaceOp(op, branch);
    return success();
  }

  bool onHost;
  AngleFunctions exact, hidden;
};

} // namespace

void bastile::populateSinePatterns(RewritePatternSet &patterns,
                                   const Target &target) {
  MLIRContext *context = patterns.getContext();
  const bool onHost = target.isHost();
  patterns.add<ExpandAngleFunction<math::SinOp>>(
      context, onHost, kExact<createSine<0>>, kHidden<0>);
  patterns.add<ExpandAngleFunction<math::CosOp>>(
      context, onHost, kExact<createSine<1>>, kHidden<1>);
  patterns.add<ExpandAngleFunction<math::TanOp>>(
      context, onHost, kExact<createTangent>, kExact<createTangent>);
}
