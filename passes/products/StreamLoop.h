//===- StreamLoop.h - The loop over k of a program --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// With tensor cores, all threads copy the operands of a step into shared memory
// some steps ahead. What a step needs at the same time is a group of copies: in
// attention the keys are one and the values another, so that the next keys come
// while exponentials are computed.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_STREAMLOOP_H
#define BASTILE_PASSES_PRODUCTS_STREAMLOOP_H

#include "passes/products/MaskBounds.h"
#include "passes/products/StagedTiles.h"

namespace bastile {

/// Builds a loop over k, and the products inside of it.
class StreamLoop {
public:
  /// `stages` steps are computed or under way at once; with one, products read
  /// their operands from memory. `layout` is that of sums.
  StreamLoop(mlir::ImplicitLocOpBuilder &builder, SpaceEmitter &emitter,
             const KernelSpace &space, const ProgramOperands &operands,
             mlir::Attribute layout, int64_t stages)
      : builder(builder), emitter(emitter), space(space), operands(operands),
        layout(layout), stages(stages) {}

  /// Copies what the loop needs of these products and of these streamed
  /// operands.
  void stage(llvm::ArrayRef<tile::DotOp> dots,
             llvm::ArrayRef<unsigned> elements);

  /// Leaves out the steps that have no element which is visited.
  void bound(Visited elements) { visited = std::move(elements); }

  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::ValueRange before)>;
  /// Builds the loop; `body` returns what it carries.
  llvm::SmallVector<mlir::Value> build(mlir::ValueRange initial, Body body);

  /// The elements of a product for which no program has all of k.
  mlir::Value emitInner(tile::DotOp dot);
  /// Adds to `sum` the products of a step: of `left`, or of a left factor in
  /// memory.
  mlir::Value addProducts(tile::DotOp dot, mlir::Value left, mlir::Value sum);
  /// A streamed operand's tile that lies in shared memory; null for others.
  mlir::Value takeElements(unsigned operand);

private:
  struct Copied {
    unsigned operand;
    StagedTiles tiles;
  };
  bool isStaged() const { return stages > 1; }
  mlir::Value constant(int64_t value) { return emitter.constant(value); }
  void addCopied(llvm::SmallVectorImpl<Copied> &copied, unsigned operand,
                 const StagedShape &shape, int64_t ofStages);
  void addFactor(llvm::SmallVectorImpl<Copied> &copied, tile::DotOp dot,
                 unsigned index, int64_t ofStages);
  Copied &find(unsigned operand);
  void copyWhole();
  void copyStep(llvm::ArrayRef<Copied> group, mlir::Value step);
  void enter(size_t group);
  llvm::SmallVector<mlir::Value> buildPlain(mlir::ValueRange initial,
                                            Body body);
  llvm::SmallVector<mlir::Value> buildOfOneGroup(mlir::ValueRange initial,
                                                 Body body);
  llvm::SmallVector<mlir::Value> buildOfGroups(mlir::ValueRange initial,
                                               Body body);
  void setStep(mlir::Value newStep);

  mlir::ImplicitLocOpBuilder &builder;
  SpaceEmitter &emitter;
  const KernelSpace &space;
  const ProgramOperands &operands;
  mlir::Attribute layout;
  const int64_t stages;

  /// What is copied once, and the groups of what each step needs.
  llvm::SmallVector<Copied> whole;
  llvm::SmallVector<llvm::SmallVector<Copied>, 2> groups;
  /// The fragments of what is copied once, by operand.
  llvm::DenseMap<unsigned, llvm::SmallVector<mlir::Value>> wholeTiles;
  int64_t sharedBytes = 0;
  /// The elements that the loop is for, and the steps that have such.
  Visited visited;
  StepRange range;
  /// The current step, the stage that holds its operands, and the first group
  /// that it has not waited for.
  mlir::Value step, slot;
  size_t nextGroup = 0;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_STREAMLOOP_H
