//===- Epilogue.h - What a program computes behind its loops ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_EPILOGUE_H
#define BASTILE_PASSES_PRODUCTS_EPILOGUE_H

#include "passes/products/ProgramFrame.h"
#include "passes/products/StagedTiles.h"

namespace bastile {

/// In which parts, one after the other, a program computes what follows the
/// products: threads hold so many elements of a tile for tensor cores that
/// there is no room for many values of all of them.
struct EpilogueShape {
  static EpilogueShape get(const ProgramFrame &frame);

  /// The columns of a part.
  int64_t columns;
  /// Whether one piece of code computes all parts, whose sums wait in shared
  /// memory: code for each of them would take long to compile.
  bool isLoop;
};

/// What the blocks of a cluster do that have a part each of the sums of the
/// same tile: each completes some of its columns.
struct SplitSums {
  /// The number of the block.
  mlir::Value rank;
  int64_t blocks;
  /// Waits until the parts of all blocks are in their shared memory.
  std::function<void()> share;
};

class Epilogue {
public:
  /// Stores the tile of a result.
  using Store = std::function<void(unsigned result, mlir::Value tile)>;

  /// Shared memory is free from byte `freeShared` on.
  Epilogue(ProgramFrame &frame, int64_t &freeShared, Store store,
           std::optional<SplitSums> split = std::nullopt)
      : frame(frame), shape(EpilogueShape::get(frame)), freeShared(freeShared),
        store(std::move(store)), split(std::move(split)) {}

  /// Computes and stores what is complete behind the loops.
  void emit();

private:
  void emitElements();
  void emitStatistics();
  void emitLoop();
  void emitUnrolled();
  mlir::Value take(const KeptParts &kept, mlir::Value part);

  ProgramFrame &frame;
  const EpilogueShape shape;
  int64_t &freeShared;
  const Store store;
  const std::optional<SplitSums> split;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_EPILOGUE_H
