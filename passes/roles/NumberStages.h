//===- NumberStages.h - Stages for numbers of rows --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What transposed factors have of numbers of their rows, such as statistics,
// the role that copies brings to shared memory a step at a time: a warp loads
// each number once, and no warpgroup waits for memory or has registers full of
// what it has loaded ahead. They go with the boxes of the step, whose barriers
// stand for both (`BoxStages`).
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_NUMBERSTAGES_H
#define BASTILE_PASSES_ROLES_NUMBERSTAGES_H

#include "passes/products/ProgramFrame.h"

namespace bastile {

class NumberStages {
public:
  /// Creates slots for the numbers that each of the operands `operands` has of
  /// the rows of a step, ahead of the roles.
  NumberStages(ProgramFrame &frame, llvm::ArrayRef<unsigned> operands,
               int64_t stages);
  bool isEmpty() const { return copied.empty(); }

  /// Copies the numbers of a step, where the emitter is, to slot `slot`, with a
  /// warp.
  void copy(mlir::Value slot) const;
  /// Reads the numbers of operand `operand` from slot `slot`; null for an
  /// operand that has no stages.
  mlir::Value take(unsigned operand, mlir::Value slot) const;

private:
  struct Copied {
    unsigned operand;
    mlir::Value numbers;
  };
  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  llvm::SmallVector<Copied> copied;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_NUMBERSTAGES_H
