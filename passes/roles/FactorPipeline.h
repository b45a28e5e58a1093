//===- FactorPipeline.h - Factors that are copied by boxes ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The factors of a step along k are in one of several stages of shared memory:
// while one is multiplied, the next ones are copied.
//
// Tensor cores have the sums of products of 16 bits to themselves for the whole
// loop. Those of 8-bit floats they add with fewer bits than a float32 has, so
// that what they give for a step is added to the sums in registers.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_FACTORPIPELINE_H
#define BASTILE_PASSES_ROLES_FACTORPIPELINE_H

#include "passes/roles/BoxStages.h"
#include "passes/roles/TilePipeline.h"

namespace bastile {

class FactorPipeline : public TilePipeline {
public:
  /// Creates the stages ahead of the roles. `rank` is the number of the block
  /// in its cluster, null without one. Its blocks share what they copy, or have
  /// parts each of the steps of a tile.
  FactorPipeline(ProgramFrame &frame, mlir::Value rank);

  int64_t getBytes() const override { return stages.getBytes(); }
  mlir::Value copy(mlir::Value at, mlir::Value turn) override;
  mlir::Value compute(mlir::Value at, mlir::Value turn) override;
  void findPlace(mlir::Value number, mlir::Value blockRow) override {
    frame.findPlace(number, blockRow);
  }

private:
  llvm::SmallVector<mlir::Value> buildOverSteps(mlir::ValueRange initial,
                                                ProgramFrame::Body body);
  void releaseBefore(mlir::Value number, mlir::Value at);
  mlir::Value multiply(tile::DotOp dot, tile::PendingType type, mlir::Value sum,
                       int64_t column);
  mlir::Value computeInPlace(mlir::Value at);
  mlir::Value computeInSteps(mlir::Value at);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  /// The number of the block among those that have parts of the steps; null if
  /// it has all of them.
  mlir::Value splitRank;
  BoxStages stages;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_FACTORPIPELINE_H
