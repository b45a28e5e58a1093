//===- ElementBytes.h - The bytes of an element in memory -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_ELEMENTBYTES_H
#define BASTILE_DIALECT_ELEMENTBYTES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

namespace bastile {

/// The bytes of an element of `type`, a number or a tensor or vector of
/// numbers: at least 1, also for a condition, since memory has nothing less.
inline int64_t getElementBytes(mlir::Type type) {
  return llvm::divideCeil(
      mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth(), 8);
}

/// Whether `type` is one of the floats of 8 bits that products take.
inline bool isSmallFloat(mlir::Type type) {
  return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type);
}

} // namespace bastile

#endif // BASTILE_DIALECT_ELEMENTBYTES_H
