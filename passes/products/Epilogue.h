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

/// Sums of a tile of which each of several blocks has a part. The tile's
/// columns are cut into parts as well, of which each block completes some.
class SplitSums {
public:
  virtual ~SplitSums() = default;
  /// Begins to give other blocks what this one has of the parts that they
  /// complete: of `sums`, one for each product.
  virtual void share(mlir::ValueRange sums) = 0;
  /// Waits for what the others give.
  virtual void await() = 0;
  /// Builds `body` for each part that the block completes.
  virtual void
  buildOverParts(llvm::function_ref<void(mlir::Value part)> body) = 0;
  /// The complete sums of a part, of product number `dot`.
  virtual mlir::Value take(size_t dot, mlir::Value part) = 0;
};

class Epilogue {
public:
  /// Stores the tile of a result.
  using Store = std::function<void(unsigned result, mlir::Value tile)>;

  /// Shared memory is free from byte `freeShared` on. With `split`, the block
  /// has only a part of the sums.
  Epilogue(ProgramFrame &frame, int64_t &freeShared, Store store,
           SplitSums *split = nullptr)
      : frame(frame), shape(EpilogueShape::get(frame)), freeShared(freeShared),
        store(std::move(store)), split(split) {}

  /// Computes and stores what is complete behind the loops.
  void emit();

private:
  void emitElements();
  void emitStatistics();
  void emitLoop();
  void emitSplit();
  void emitPart(mlir::Value part,
                llvm::function_ref<mlir::Value(size_t dot)> take);
  void emitUnrolled();

  ProgramFrame &frame;
  const EpilogueShape shape;
  int64_t &freeShared;
  const Store store;
  SplitSums *const split;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_EPILOGUE_H
