//===- Integers.cpp - Elementwise ops on integers, casts, comparisons -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

namespace {

double getDifference(int64_t a, int64_t b) {
  return std::fabs(static_cast<double>(a) - static_cast<double>(b));
}

/// The least and the largest number that `x` may be, or its value if the error
/// is unbounded.
std::array<int64_t, 2> getEnds(const Integer &x) {
  const auto error = static_cast<int64_t>(std::min(std::ceil(x.error), 0x1p62));
  int64_t low = x.value, high = x.value;
  if (llvm::SubOverflow(x.value, error, low))
    low = INT64_MIN;
  if (llvm::AddOverflow(x.value, error, high))
    high = INT64_MAX;
  return {low, high};
}

/// Applies `function`, on bits of a width, to integers. Where operands have
/// errors, the function is taken to be monotone from one end of them to the
/// other.
class IntegerOp {
public:
  IntegerOp(Type result, Operands operands)
      : result(result), operands(operands),
        width(getWidth(operands[0]->elementType())) {}

  template <typename Function>
  Array unary(Function function) const {
    Array array(result, operands[0]->sizes());
    for (int64_t i = 0, count = array.count(); i != count; ++i) {
      Integer x = operands[0]->integer(i);
      auto at = [&](int64_t x) { return get(function(bits(x))); };
      Integer value{at(x.value), 0};
      if (x.error != 0)
        for (int64_t end : getEnds(x))
          value.error =
              std::max(value.error, getDifference(at(end), value.value));
      array.set(i, value);
    }
    return array;
  }

  /// `function` returns nothing where the result is not defined.
  template <typename Function>
  Array binary(Function function) const {
    Array array(result, operands[0]->sizes());
    for (int64_t i = 0, count = array.count(); i != count; ++i) {
      Integer a = operands[0]->integer(i), b = operands[1]->integer(i);
      auto at = [&](int64_t a, int64_t b) -> std::optional<int64_t> {
        std::optional<APInt> value = function(bits(a), bits(b));
        return value ? std::optional<int64_t>(get(*value)) : std::nullopt;
      };
      std::optional<int64_t> value = at(a.value, b.value);
      double error = value ? 0 : kInfinity;
      if (value && (a.error != 0 || b.error != 0))
        for (int64_t x : getEnds(a))
          for (int64_t y : getEnds(b)) {
            std::optional<int64_t> end = at(x, y);
            error =
                std::max(error, end ? getDifference(*end, *value) : kInfinity);
          }
      array.set(i, Integer{value.value_or(0), error});
    }
    return array;
  }

private:
  APInt bits(int64_t value) const {
    return APInt(64, static_cast<uint64_t>(value)).trunc(width);
  }
  int64_t get(const APInt &bits) const {
    return wrap(result, bits.sextOrTrunc(64).getSExtValue());
  }

  Type result;
  Operands operands;
  unsigned width;
};

/// Whether `a` and `b` may be equal, given their errors.
template <typename T>
bool mayBeEqual(const T &a, const T &b, double difference) {
  const double error = a.error + b.error;
  return error != 0 && !(difference > error);
}

bool compare(arith::CmpFPredicate predicate, double a, double b) {
  // The outcomes of a comparison, as bits.
  constexpr unsigned equal = 1, greater = 2, less = 4, unordered = 8;
  const unsigned is = std::isnan(a) || std::isnan(b) ? unordered
                      : a == b                       ? equal
                      : a > b                        ? greater
                                                     : less;
  const auto number = static_cast<unsigned>(predicate);
  unsigned trueFor = number;
  // Ordered predicates are numbered by these bits, and unordered ones follow
  // them.
  if (predicate == arith::CmpFPredicate::UNO)
    trueFor = unordered;
  else if (number >= static_cast<unsigned>(arith::CmpFPredicate::UEQ) &&
           predicate != arith::CmpFPredicate::AlwaysTrue)
    trueFor = (number - 7) | unordered;
  return (trueFor & is) != 0;
}

Array compareFloats(arith::CmpFOp op, Operands operands) {
  arith::CmpFPredicate predicate = op.getPredicate();
  Array result(getElementTypeOrSelf(op.getType()), operands[0]->sizes());
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    Number a = operands[0]->number(i), b = operands[1]->number(i);
    // A NaN that is sure compares alike with anything.
    bool isUnsure = a.error + b.error == kInfinity ||
                    (!std::isnan(a.value) && !std::isnan(b.value) &&
                     mayBeEqual(a, b, std::fabs(a.value - b.value)));
    result.set(
        i, Integer{compare(predicate, a.value, b.value), isUnsure ? 1.0 : 0.0});
  }
  return result;
}

Array compareIntegers(arith::CmpIOp op, Operands operands) {
  Type type = operands[0]->elementType();
  Array result(getElementTypeOrSelf(op.getType()), operands[0]->sizes());
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    Integer a = operands[0]->integer(i), b = operands[1]->integer(i);
    auto bits = [&](int64_t value) {
      return APInt(64, static_cast<uint64_t>(value)).trunc(getWidth(type));
    };
    bool value = arith::applyCmpPredicate(op.getPredicate(), bits(a.value),
                                          bits(b.value));
    bool isUnsure = mayBeEqual(a, b, getDifference(a.value, b.value));
    result.set(i, Integer{value, isUnsure ? 1.0 : 0.0});
  }
  return result;
}

template <typename Test>
Array classify(Type type, const Array &operand, Test test) {
  Array result(type, operand.sizes());
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    Number x = operand.number(i);
    result.set(i, Integer{test(x.value), x.error == kInfinity ? 1.0 : 0.0});
  }
  return result;
}

/// Which numbers are neither zero, subnormal, infinite nor NaN; a number with
/// an error is compared with the least normal number.
Array classifyNormal(Type type, const Array &operand) {
  const double least =
      APFloat::getSmallestNormalized(
          cast<FloatType>(operand.elementType()).getFloatSemantics())
          .convertToDouble();
  Array result(type, operand.sizes());
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    Number x = operand.number(i);
    const double distance = std::fabs(std::fabs(x.value) - least);
    bool isUnsure = x.error != 0 && !(x.error < distance);
    result.set(i, Integer{std::isfinite(x.value) && std::fabs(x.value) >= least,
                          isUnsure ? 1.0 : 0.0});
  }
  return result;
}

/// Rounds floats towards zero. Beyond the type, the result may be anything.
Array toIntegers(Type type, const Array &operand, bool isSigned) {
  const double width = getWidth(type) - isSigned;
  const double low = isSigned ? -std::exp2(width) : 0, high = std::exp2(width);
  Array result(type, operand.sizes());
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    Number whole =
        apply([](double x) { return std::trunc(x); }, operand.number(i), 0);
    bool fits = whole.value >= low && whole.value < high;
    if (!fits) {
      result.set(i, Integer{0, kInfinity});
      continue;
    }
    auto value = isSigned
                     ? static_cast<int64_t>(whole.value)
                     : static_cast<int64_t>(static_cast<uint64_t>(whole.value));
    result.set(i, Integer{value, whole.error});
  }
  return result;
}

Array toFloats(Type type, const Array &operand, bool isSigned) {
  Format format{cast<FloatType>(type)};
  Array result(type, operand.sizes());
  const unsigned width = getWidth(operand.elementType());
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    Integer x = operand.integer(i);
    double value = static_cast<double>(x.value);
    // As a signed number, a condition that is true is -1.
    if (isSigned && width == 1)
      value = -value;
    else if (!isSigned)
      value = static_cast<double>(APInt(64, static_cast<uint64_t>(x.value))
                                      .trunc(width)
                                      .getZExtValue());
    // Integers of many digits are rounded.
    result.set(i, format.round(Number(value, x.error, format.unit())));
  }
  return result;
}

/// The bits of floats as integers, and back.
Array castBits(Type type, const Array &operand) {
  Array result(type, operand.sizes());
  if (operand.isFloat() == result.isFloat())
    return operand.elementType() == type ? operand : Array();
  Type floatType = operand.isFloat() ? operand.elementType() : type;
  const llvm::fltSemantics &semantics =
      cast<FloatType>(floatType).getFloatSemantics();
  Format format{cast<FloatType>(floatType)};
  bool losesInfo;
  auto toBits = [&](double value) {
    APFloat number(value);
    number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    return number.bitcastToAPInt().sextOrTrunc(64).getSExtValue();
  };
  auto toNumber = [&](int64_t bits) {
    APInt integer(64, static_cast<uint64_t>(bits));
    APFloat number(semantics, integer.trunc(getWidth(floatType)));
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return number.convertToDouble();
  };
  for (int64_t i = 0, count = result.count(); i != count; ++i) {
    if (operand.isFloat()) {
      Number x = operand.number(i);
      int64_t bits = toBits(x.value);
      double error = 0;
      if (x.error != 0)
        error = x.error == kInfinity
                    ? kInfinity
                    : std::max(getDifference(toBits(x.value - x.error), bits),
                               getDifference(toBits(x.value + x.error), bits));
      result.set(i, Integer{bits, error});
      continue;
    }
    Integer x = operand.integer(i);
    Number number(toNumber(x.value), 0, format.unit());
    if (x.error != 0)
      for (int64_t end : getEnds(x))
        number.error =
            std::max(number.error, std::fabs(toNumber(end) - number.value));
    if (std::isnan(number.error) || x.error == kInfinity)
      number.error = kInfinity;
    result.set(i, number);
  }
  return result;
}

/// The arithmetic of integers.
std::optional<Array> compute(Operation *op, const IntegerOp &on) {
  using Result = std::optional<Array>;
  using Bits = const APInt &;
  using Bit = std::optional<APInt>;
  auto binary = [&](auto function) {
    return [&on, function](auto) -> Result { return on.binary(function); };
  };
  auto unary = [&](auto function) {
    return [&on, function](auto) -> Result { return on.unary(function); };
  };
  // Divisions by 0 are not defined, nor is -128 / -1 in 8 bits.
  auto divide = [&](auto function, bool isSigned) {
    return binary([=](Bits a, Bits b) -> Bit {
      if (b.isZero() || (isSigned && a.isMinSignedValue() && b.isAllOnes()))
        return std::nullopt;
      return function(a, b);
    });
  };
  auto shift = [&](auto function) {
    return binary([=](Bits a, Bits b) -> Bit {
      if (b.uge(a.getBitWidth()))
        return std::nullopt;
      return function(a, static_cast<unsigned>(b.getZExtValue()));
    });
  };
  using Rounding = APInt::Rounding;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddIOp>(binary([](Bits a, Bits b) -> Bit { return a + b; }))
      .Case<arith::SubIOp>(binary([](Bits a, Bits b) -> Bit { return a - b; }))
      .Case<arith::MulIOp>(binary([](Bits a, Bits b) -> Bit { return a * b; }))
      .Case<arith::AndIOp>(binary([](Bits a, Bits b) -> Bit { return a & b; }))
      .Case<arith::OrIOp>(binary([](Bits a, Bits b) -> Bit { return a | b; }))
      .Case<arith::XOrIOp>(binary([](Bits a, Bits b) -> Bit { return a ^ b; }))
      .Case<arith::MaxSIOp>(binary(
          [](Bits a, Bits b) -> Bit { return llvm::APIntOps::smax(a, b); }))
      .Case<arith::MaxUIOp>(binary(
          [](Bits a, Bits b) -> Bit { return llvm::APIntOps::umax(a, b); }))
      .Case<arith::MinSIOp>(binary(
          [](Bits a, Bits b) -> Bit { return llvm::APIntOps::smin(a, b); }))
      .Case<arith::MinUIOp>(binary(
          [](Bits a, Bits b) -> Bit { return llvm::APIntOps::umin(a, b); }))
      .Case<arith::DivSIOp>(
          divide([](Bits a, Bits b) { return a.sdiv(b); }, true))
      .Case<arith::RemSIOp>(
          divide([](Bits a, Bits b) { return a.srem(b); }, true))
      .Case<arith::FloorDivSIOp>(divide(
          [](Bits a, Bits b) {
            return llvm::APIntOps::RoundingSDiv(a, b, Rounding::DOWN);
          },
          true))
      .Case<arith::CeilDivSIOp>(divide(
          [](Bits a, Bits b) {
            return llvm::APIntOps::RoundingSDiv(a, b, Rounding::UP);
          },
          true))
      .Case<arith::DivUIOp>(
          divide([](Bits a, Bits b) { return a.udiv(b); }, false))
      .Case<arith::RemUIOp>(
          divide([](Bits a, Bits b) { return a.urem(b); }, false))
      .Case<arith::CeilDivUIOp>(divide(
          [](Bits a, Bits b) {
            return llvm::APIntOps::RoundingUDiv(a, b, Rounding::UP);
          },
          false))
      .Case<arith::ShLIOp>(shift([](Bits a, unsigned n) { return a.shl(n); }))
      .Case<arith::ShRUIOp>(shift([](Bits a, unsigned n) { return a.lshr(n); }))
      .Case<arith::ShRSIOp>(shift([](Bits a, unsigned n) { return a.ashr(n); }))
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>(
          unary([](Bits x) { return x.zextOrTrunc(64); }))
      .Case<arith::ExtSIOp, arith::IndexCastOp, arith::TruncIOp>(
          unary([](Bits x) { return x.sextOrTrunc(64); }))
      .Case<math::AbsIOp>(unary([](Bits x) { return x.abs(); }))
      .Case<math::CountLeadingZerosOp>(
          unary([](Bits x) { return APInt(64, x.countl_zero()); }))
      .Case<math::CountTrailingZerosOp>(
          unary([](Bits x) { return APInt(64, x.countr_zero()); }))
      .Case<math::CtPopOp>(
          unary([](Bits x) { return APInt(64, x.popcount()); }))
      .Default(Result());
}

} // namespace

std::optional<Array> bastile::reference::evaluateIntegers(Operation *op,
                                                          Operands operands) {
  using Result = std::optional<Array>;
  if (op->getNumResults() != 1 || operands.empty())
    return std::nullopt;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  const Array &first = *operands[0];
  auto classifyBy = [&](auto test) {
    return [&, test](auto) -> Result { return classify(type, first, test); };
  };
  if (isa<arith::BitcastOp>(op))
    return castBits(type, first);
  if (!first.isFloat())
    return llvm::TypeSwitch<Operation *, Result>(op)
        .Case([&](arith::CmpIOp cmp) { return compareIntegers(cmp, operands); })
        .Case<arith::SIToFPOp>(
            [&](auto) { return toFloats(type, first, /*isSigned=*/true); })
        .Case<arith::UIToFPOp>(
            [&](auto) { return toFloats(type, first, /*isSigned=*/false); })
        .Default([&](Operation *op) -> Result {
          if (!llvm::all_of(operands,
                            [](const Array *a) { return !a->isFloat(); }))
            return std::nullopt;
          return compute(op, IntegerOp(type, operands));
        });
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::CmpFOp cmp) { return compareFloats(cmp, operands); })
      .Case<arith::FPToSIOp>(
          [&](auto) { return toIntegers(type, first, /*isSigned=*/true); })
      .Case<arith::FPToUIOp>(
          [&](auto) { return toIntegers(type, first, /*isSigned=*/false); })
      .Case<math::IsNaNOp>(classifyBy([](double x) { return std::isnan(x); }))
      .Case<math::IsInfOp>(classifyBy([](double x) { return std::isinf(x); }))
      .Case<math::IsFiniteOp>(
          classifyBy([](double x) { return std::isfinite(x); }))
      .Case([&](math::IsNormalOp) -> Result {
        return classifyNormal(type, first);
      })
      .Default(Result());
}
