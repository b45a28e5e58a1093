//===- StreamPipeline.h - Streamed values between products ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The left factors of a tile's products are computed, of products of rows that
// the tile has as a whole. In attention, the queries are copied once for a
// tile, the keys and the values in steps, each with stages of their own: a
// step's keys are free long before its values. While one warpgroup computes
// powers, the tensor cores multiply for another one.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_STREAMPIPELINE_H
#define BASTILE_PASSES_ROLES_STREAMPIPELINE_H

#include "passes/analysis/FollowingSums.h"
#include "passes/products/MaskBounds.h"
#include "passes/roles/BoxStages.h"
#include "passes/roles/TilePipeline.h"

namespace bastile {

class StreamPipeline : public TilePipeline {
public:
  /// Creates the stages ahead of the roles.
  explicit StreamPipeline(ProgramFrame &frame);

  int64_t getBytes() const override {
    return whole.getBytes() + inner.getBytes() + outer.getBytes();
  }
  mlir::Value copy(mlir::Value at, mlir::Value turn) override;
  mlir::Value compute(mlir::Value at, mlir::Value turn) override;
  void findPlace(mlir::Value number, mlir::Value blockRow) override;
  /// Where a mask leaves the last rows most of k.
  bool isUneven() const override;

private:
  mlir::Value emitInner(tile::DotOp dot);
  mlir::Value addProducts(tile::DotOp dot, mlir::Value left, mlir::Value sum);
  llvm::SmallVector<mlir::Value> buildOverSteps(mlir::ValueRange initial,
                                                ProgramFrame::Body body);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const FollowingSums following;
  /// What the loop over k sums up, and the elements for which it is.
  llvm::SmallVector<mlir::Operation *> sums;
  Visited visited;
  llvm::SmallVector<tile::DotOp> innerDots;
  /// What is copied once for a tile; what inner products need of a step, and
  /// what the others do.
  BoxStages whole, inner, outer;
  /// The step that is computed, and how many of its products of both kinds have
  /// not begun.
  mlir::Value number;
  size_t innerLeft = 0, outerLeft = 0;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_STREAMPIPELINE_H
