//===- EmulatedMath.h - The GPU's approximate functions ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_REWRITE_EMULATEDMATH_H
#define BASTILE_LIB_EMULATOR_REWRITE_EMULATEDMATH_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace bastile {

enum class Approximation : int32_t {
  Exp2,
  Log2,
  Reciprocal,
  ReciprocalSqrt,
  Sqrt,
  Sine,
  Cosine,
  Tanh,
  Divide,
  FullRangeDivide,
};

struct ApproximateCall {
  Approximation function;
  /// Subnormal operands and results are zero.
  bool flushesSubnormals;
  unsigned numOperands;
};

/// Recognizes the name of an intrinsic such as "llvm.nvvm.ex2.approx.ftz.f".
std::optional<ApproximateCall> parseApproximation(llvm::StringRef intrinsic);

/// Computes the function: rounded correctly or, if `worst`, as wrong as its
/// documentation permits, up or down depending on the operand's bits.
float approximate(Approximation function, bool flushesSubnormals, bool worst,
                  float x, float y);

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_REWRITE_EMULATEDMATH_H
