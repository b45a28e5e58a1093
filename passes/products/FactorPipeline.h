//===- FactorPipeline.h - Factors that are copied by boxes ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The factors of a step along k are in one of several stages of shared memory.
// One thread copies boxes into a stage once all warpgroups of the cluster have
// read what it held, and warpgroups multiply what is in it once it is full.
// Both count steps from the program's start on, over all tiles that it
// computes.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_FACTORPIPELINE_H
#define BASTILE_PASSES_PRODUCTS_FACTORPIPELINE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/ProgramFrame.h"

namespace bastile {

class FactorPipeline {
public:
  /// Creates the stages and barriers, ahead of the roles. `rank` is the number
  /// of the block in its cluster, null without one.
  FactorPipeline(ProgramFrame &frame, mlir::Value rank);
  /// The bytes of all stages, from byte 0 on.
  int64_t getBytes() const { return bytes; }
  /// The warpgroups of the cluster, all of which read what a block copies.
  int64_t getReaders() const {
    return frame.schedule.getDotWarps() / 4 * blocks;
  }

  /// Copies the factors of a tile; `at` steps are copied before, and as many
  /// behind it are the result.
  mlir::Value copy(mlir::Value at);

  /// The sums of a tile's products, and the number of steps that are multiplied
  /// then, `at` of them before.
  struct Sums {
    llvm::SmallVector<mlir::Value> tiles;
    mlir::Value next;
  };
  Sums multiply(mlir::Value at);

private:
  /// A factor of one or several products.
  struct Factor {
    unsigned operand;
    mlir::Value slots;
    mlir::Type tile;
    /// The first row that the block copies, of a factor that the cluster
    /// shares; null otherwise.
    mlir::Value firstRow;
  };
  mlir::Value constant(int64_t value) { return frame.constant(value); }
  void addFactor(unsigned operand, mlir::Value rank);
  size_t findFactor(tile::DotOp dot, unsigned index) const;
  mlir::Value getSlot(mlir::Value step);
  mlir::Value getParity(mlir::Value step, int64_t ahead);
  void arriveAtEmpty(mlir::Value step);
  void copyStep(mlir::Value at);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const int64_t stages, blocks;
  llvm::SmallVector<Factor> factors;
  mlir::Value full, empty;
  int64_t bytes = 0, stepBytes = 0;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_FACTORPIPELINE_H
