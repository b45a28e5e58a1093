//===- SharedSums.h - Sums that programs add up in memory -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_CROSSED_SHAREDSUMS_H
#define BASTILE_PASSES_CROSSED_SHAREDSUMS_H

#include "passes/crossed/CrossedKernels.h"
#include "passes/products/ProgramFrame.h"
#include "passes/roles/StreamPipeline.h"

namespace bastile {

/// The sums over columns of crossed kernels: float32 numbers in memory, with a
/// row for each streamed one, which programs add up; and a counter of turns for
/// each step.
class SharedSums {
public:
  /// Appends arguments to the program of `frame`: `sums`, of a program of the
  /// kernel over columns, with `marks`; and the counters.
  SharedSums(ProgramFrame &frame, mlir::BlockArgument sums,
             mlir::DictionaryAttr marks);

  mlir::Value getSums() const { return sums; }
  mlir::Value getCounters() const { return counters; }
  /// Where the step begins in the sums.
  llvm::SmallVector<mlir::Value> getIndices();
  /// The number of the counter of the step.
  mlir::Value getCounter();
  /// The last tile that has a part of the step. Steps that no tile has are the
  /// first tile's.
  mlir::Value emitLastTile(StreamPipeline &pipeline);

private:
  mlir::Value append(mlir::Type type, const mlir::NamedAttrList &marks);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  mlir::ArrayAttr dimensions;
  mlir::Value sums, counters;
};

} // namespace bastile

#endif // BASTILE_PASSES_CROSSED_SHAREDSUMS_H
