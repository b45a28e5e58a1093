//===- EmulatedMath.cpp - The GPU's approximate functions -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/rewrite/EmulatedMath.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <limits>

using namespace bastile;

std::optional<ApproximateCall>
bastile::parseApproximation(llvm::StringRef name) {
  if (!name.consume_front("llvm.nvvm."))
    return std::nullopt;
  // LLVM has renamed some of these intrinsics from `.f` to `.f32`, and takes
  // both.
  name.consume_back(".f") || name.consume_back(".f32");
  bool flushes = name.consume_back(".ftz");
  using Function = std::optional<Approximation>;
  Function function = llvm::StringSwitch<Function>(name)
                          .Case("ex2.approx", Approximation::Exp2)
                          .Case("lg2.approx", Approximation::Log2)
                          .Case("rcp.approx", Approximation::Reciprocal)
                          .Case("rsqrt.approx", Approximation::ReciprocalSqrt)
                          .Case("sqrt.approx", Approximation::Sqrt)
                          .Case("sin.approx", Approximation::Sine)
                          .Case("cos.approx", Approximation::Cosine)
                          .Case("tanh.approx", Approximation::Tanh)
                          .Case("div.approx", Approximation::Divide)
                          .Case("div.full", Approximation::FullRangeDivide)
                          .Default(std::nullopt);
  if (!function)
    return std::nullopt;
  bool isDivision = *function == Approximation::Divide ||
                    *function == Approximation::FullRangeDivide;
  return ApproximateCall{*function, flushes, isDivision ? 2u : 1u};
}

static double evaluate(Approximation function, double x, double y) {
  switch (function) {
  case Approximation::Exp2:
    return std::exp2(x);
  case Approximation::Log2:
    return std::log2(x);
  case Approximation::Reciprocal:
    return 1.0 / x;
  case Approximation::ReciprocalSqrt:
    return 1.0 / std::sqrt(x);
  case Approximation::Sqrt:
    return std::sqrt(x);
  case Approximation::Sine:
    return std::sin(x);
  case Approximation::Cosine:
    return std::cos(x);
  case Approximation::Tanh:
    return std::tanh(x);
  case Approximation::Divide:
    // A division by a divisor past 2^126 is documented to give zero.
    if (std::isfinite(x) && std::isfinite(y) && std::abs(y) > 0x1p126)
      return std::copysign(0.0, x * y);
    return x / y;
  case Approximation::FullRangeDivide:
    return x / y;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// The largest absolute error that the PTX ISA documents for a result.
static double errorBound(Approximation function, double x, double result) {
  double size = std::abs(result);
  switch (function) {
  case Approximation::Exp2:
  case Approximation::Divide:
  case Approximation::FullRangeDivide:
    return size * 0x1p-22;
  case Approximation::Log2:
    return x > 0.5 && x < 2.0 ? 0x1p-22 : size * 0x1p-22;
  case Approximation::Reciprocal:
  case Approximation::Sqrt:
    return size * 0x1p-23;
  case Approximation::ReciprocalSqrt:
    return size * std::exp2(-22.9);
  case Approximation::Sine:
  case Approximation::Cosine:
    return std::exp2(-20.5);
  case Approximation::Tanh:
    return size * 0x1p-11;
  }
  return 0.0;
}

static float flushSubnormal(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

/// One bit that depends on all bits of the operand.
static bool isRoundedUp(float x) {
  auto bits = llvm::bit_cast<uint32_t>(x);
  return (bits * 0x9e3779b9u) >> 31;
}

float bastile::approximate(Approximation function, bool flushesSubnormals,
                           bool worst, float x, float y) {
  if (flushesSubnormals) {
    x = flushSubnormal(x);
    y = flushSubnormal(y);
  }
  double result = evaluate(function, x, y);
  if (worst && std::isfinite(result) && result != 0) {
    double error = errorBound(function, x, result);
    result += isRoundedUp(x) ? error : -error;
    if (function == Approximation::Tanh)
      result = std::fmin(1.0, std::fmax(-1.0, result));
  }
  auto rounded = static_cast<float>(result);
  return flushesSubnormals ? flushSubnormal(rounded) : rounded;
}
