//===- NumberStages.h - Stages for numbers of rows --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What transposed factors have of numbers of their rows, such as statistics,
// the role that copies brings to shared memory a step at a time: a warp loads
// each number once, and no warpgroup waits for memory or has registers full of
// what it has loaded ahead.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_NUMBERSTAGES_H
#define BASTILE_PASSES_ROLES_NUMBERSTAGES_H

#include "passes/products/ProgramFrame.h"
#include "passes/roles/SlotRing.h"

namespace bastile {

class NumberStages {
public:
  /// Creates slots for the numbers that each of the operands `operands` has of
  /// the rows of a step, and barriers, ahead of the roles.
  NumberStages(ProgramFrame &frame, llvm::ArrayRef<unsigned> operands,
               int64_t stages);
  bool isEmpty() const { return copied.empty(); }

  /// Copies the numbers of step `number`, where the emitter is, with a warp.
  void copy(mlir::Value number);
  /// Waits for the numbers of step `number`.
  void await(mlir::Value number);
  /// Reads the numbers of operand `operand` of the step that was awaited last;
  /// null for an operand that has no stages.
  mlir::Value take(unsigned operand);
  /// Says that the warpgroups have read step `number`.
  void release(mlir::Value number);

private:
  struct Copied {
    unsigned operand;
    mlir::Value numbers;
  };
  void arrive(mlir::Value barriers, mlir::Value number);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const SlotRing ring;
  llvm::SmallVector<Copied> copied;
  mlir::Value full, empty, slot;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_NUMBERSTAGES_H
