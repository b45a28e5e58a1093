//===- HiddenErrors.h - What roundings and kernels hide ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_HIDDENERRORS_H
#define BASTILE_PASSES_ANALYSIS_HIDDENERRORS_H

#include "dialect/Tile.h"

namespace bastile {

/// Whether `type` is one of floats of at most 16 bits, or of tensors or vectors
/// of such: rounding to it hides the error of a GPU's approximations.
bool isNarrowFloat(mlir::Type type);

/// Whether `op` asks if two numbers are equal. That hides no error: what has
/// been computed twice has to be the same bits.
bool asksForEqual(mlir::Operation *op);

/// Whether `kernel`, which is on whole tensors, hides errors of its argument
/// `position`: all that it returns of what it computes of it is rounded or may
/// be approximate (`tile.approximate`).
bool hidesErrorsOf(tile::KernelOp kernel, unsigned position);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_HIDDENERRORS_H
