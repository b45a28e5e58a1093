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
/// The largest angle that three parts of pi / 2 can reduce.
constexpr double kLargestInParts = 0x1p20;

/// An angle as a number of quarter turns, of which the low two bits matter, and
/// the rest, at most about pi / 4.
struct Reduced {
  Value quarters, rest;
};

Reduced reduceInParts(Formula &f, Value x) {
  // 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits.
  constexpr double rounder = 12582912.0;
  constexpr float first = static_cast<float>(kHalfPi);
  constexpr float second = static_cast<float>(kHalfPi - first);
  // Numbers next to a multiple of pi / 2 need digits of it that float64 lacks.
  constexpr double third = kHalfPi - first - second + 0x1.1a62633145c07p-54;
  Value shifted = f.fma(x, f.number(1 / kHalfPi), f.number(rounder));
  Value n = f.sub(shifted, f.number(rounder));
  Value rest = f.fma(n, f.number(-first), x);
  rest = f.fma(n, f.number(-second), rest);
  rest = f.fma(n, f.number(-third), rest);
  return {f.toBits(shifted), rest};
}

/// Reduces one number that is finite and above `kLargestInParts`.
///
/// It is M 2^k, where M is an integer of 32 bits. Bits of 2 / pi that are worth
/// more than 2 after a shift by k make whole turns and are left out; of the
/// others, 96 are multiplied by M, which leaves 62 bits behind the point.
Reduced reduceByBits(Formula &f, Value x) {
  // The bits of 2 / pi, behind as many zeros as the smallest k reaches back.
  constexpr uint32_t bitsOfTwoOverPi[] = {0x00000000, 0xA2F9836E, 0x4E441529,
                                          0xFC2757D1, 0xF534DDC0, 0xDB629599,
                                          0x3C439041};
  ImplicitLocOpBuilder &builder = f.builder;
  Type i64 = builder.getI64Type(), f64 = builder.getF64Type();
  auto word = [&](uint32_t bits) {
    return f.integer(static_cast<int32_t>(bits));
  };
  auto wide = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(builder, i64, number);
  };
  auto shiftLeft = [&](Value value, Value count) -> Value {
    return arith::ShLIOp::create(builder, value, count);
  };
  auto shiftRight = [&](Value value, Value count) -> Value {
    return arith::ShRUIOp::create(builder, value, count);
  };

  Value bits = f.toBits(f.abs(x));
  Value mantissa = f.orInt(f.shiftLeft(bits, 8), word(0x80000000));
  // The place where the bits begin: k + 30.
  Value begin = f.subInt(f.shiftRight(bits, 23), f.integer(128));
  Value isEven = f.isZero(f.andInt(begin, f.integer(32)));
  Value isNear = f.isZero(f.andInt(begin, f.integer(64)));
  SmallVector<Value> words;
  for (unsigned index = 0; index < 5; ++index)
    words.push_back(f.select(isNear, word(bitsOfTwoOverPi[index]),
                             word(bitsOfTwoOverPi[index + 2])));
  for (unsigned index = 0; index < 4; ++index)
    words[index] = f.select(isEven, words[index], words[index + 1]);
  Value shift = f.andInt(begin, f.integer(31));
  Value rest = f.subInt(f.integer(31), shift);
  auto product = [&](unsigned index) -> Value {
    // In two steps, as a shift by 32 would do nothing.
    Value lower = shiftRight(f.shiftRight(words[index + 1], 1), rest);
    Value window = f.orInt(shiftLeft(words[index], shift), lower);
    return arith::MulIOp::create(
        builder, arith::ExtUIOp::create(builder, i64, window),
        arith::ExtUIOp::create(builder, i64, mantissa));
  };
  Value fraction = shiftRight(product(2), wide(32));
  fraction = f.addInt(fraction, product(1));
  fraction = f.addInt(fraction, shiftLeft(product(0), wide(32)));

  // Takes two bits ahead of the point, and rounds by those behind it.
  Value quarters =
      shiftRight(f.addInt(fraction, wide(int64_t(1) << 61)), wide(62));
  quarters = arith::TruncIOp::create(builder, builder.getI32Type(), quarters);
  // float64 has the digits that a number next to a multiple of pi / 2 keeps.
  Value angle =
      arith::SIToFPOp::create(builder, f64, shiftLeft(fraction, wide(2)));
  Value scale = arith::ConstantOp::create(
      builder, builder.getF64FloatAttr(kHalfPi * 0x1p-64));
  angle = arith::MulFOp::create(builder, angle, scale);
  angle = arith::TruncFOp::create(builder, f.type, angle);
  Value isNegative = f.less(x, f.number(0.0));
  return {f.select(isNegative, f.subInt(f.integer(0), quarters), quarters),
          f.select(isNegative, f.neg(angle), angle)};
}

/// A function of an angle.
using AngleFunction = Value (*)(Formula &, Reduced);

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

/// `function` of one number if it is finite and large, else `otherwise`.
Value createOfLarge(Formula &f, Value x, Value otherwise,
                    AngleFunction function) {
  Value magnitude = f.abs(x);
  Value isLarge = f.andInt(
      f.less(f.number(kLargestInParts), magnitude),
      f.less(magnitude, f.number(std::numeric_limits<double>::infinity())));
  return f.select(isLarge, function(f, reduceByBits(f, x)), otherwise);
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
    return createOfLarge(f, x, results, function);
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
        result = createOfLarge(one, first, result, function);
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

template <typename OpTy, AngleFunction function>
struct ExpandAngleFunction : public OpRewritePattern<OpTy> {
  ExpandAngleFunction(MLIRContext *context, bool onHost)
      : OpRewritePattern<OpTy>(context), onHost(onHost) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    Value x = op.getOperand();
    Value result = function(f, reduceInParts(f, x));
    Value isLarge = f.less(f.number(kLargestInParts), f.abs(x));
    auto branch = scf::IfOp::create(
        f.builder, isAny(f, isLarge, onHost),
        [&](OpBuilder &inside, Location loc) {
          Formula large(inside, loc, op.getType(), op.getFastmath());
          scf::YieldOp::create(inside, loc,
                               replaceLarge(large, x, result, function));
        },
        [&](OpBuilder &inside, Location loc) {
          scf::YieldOp::create(inside, loc, result);
        });
    rewriter.replaceOp(op, branch);
    return success();
  }

  bool onHost;
};

} // namespace

void bastile::populateSinePatterns(RewritePatternSet &patterns,
                                   const Target &target) {
  patterns.add<ExpandAngleFunction<math::SinOp, createSine<0>>,
               ExpandAngleFunction<math::CosOp, createSine<1>>,
               ExpandAngleFunction<math::TanOp, createTangent>>(
      patterns.getContext(), target.isHost());
}
