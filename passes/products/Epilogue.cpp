//===- Epilogue.cpp - What a program computes behind its loops ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/Epilogue.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace bastile;

EpilogueShape EpilogueShape::get(const ProgramFrame &frame) {
  const int64_t columns = frame.extents.columns;
  const tile::MatmulAttr schedule = frame.schedule;
  if (!schedule.isStaged() || !frame.space.getDot())
    return {columns, /*isLoop=*/false};
  // Elements of another tensor take several instructions each to load.
  constexpr int64_t ofLoad = 4;
  int64_t instructions = llvm::count_if(frame.getBody(), [&](Operation &op) {
    return OpTrait::hasElementwiseMappableTraits(&op) &&
           !frame.space.isStreamed(op.getResult(0)) &&
           KernelSpace::hasColumns(op.getResult(0));
  });
  ArrayRef<int64_t> shape = frame.space.getDot().getSumType().getShape();
  bool loads = false, storesWide = false;
  // A row of a part has at least so many bytes in shared memory.
  constexpr int64_t rowBytes = 32;
  int64_t least = 16;
  for (const Operand &operand : frame.operands.getAll()) {
    if (!operand.isResult && !operand.isFactor &&
        operand.column == Axis::Columns && operand.type.getShape() == shape) {
      loads = true;
      instructions += ofLoad;
    }
    if (frame.isStoredStaged(operand)) {
      const int64_t bytes = getElementBytes(operand.type);
      storesWide |= bytes == 4;
      least = std::max(least, rowBytes / bytes);
    }
  }
  if (!schedule.isSpecialized()) {
    constexpr int64_t few = 4, part = 16;
    const bool isLoop = instructions > few && columns % part == 0;
    return {isLoop ? part : columns, isLoop};
  }
  // Rows of wide parts have the most bytes that a swizzle mixes; narrow ones
  // leave registers for what is loaded.
  constexpr int64_t few = 40, narrow = 32, wide = 64;
  // The blocks that share a tile have some of the parts each.
  if (const int64_t blocks = schedule.getSplitBlocks(); blocks > 1)
    return {std::clamp(columns / blocks, least,
                       loads || storesWide ? narrow : wide),
            /*isLoop=*/true};
  const bool isLoop = instructions > few;
  int64_t part = isLoop || loads || storesWide ? narrow : wide;
  while (columns % part != 0)
    part /= 2;
  return {part, isLoop};
}

void Epilogue::emitElements() {
  // Ops are built in the kernel's order, and so in no deep recursion.
  for (Operation &op : frame.getBody().without_terminator())
    for (Value result : op.getResults())
      if (!frame.space.isStreamed(result))
        frame.emitter.emit(result);
  for (auto [index, value] :
       llvm::enumerate(frame.getBody().getTerminator()->getOperands()))
    if (!frame.space.isStreamed(value))
      store(index, frame.emitter.emit(value));
}

/// Computes what has no columns, which is the same in all parts.
void Epilogue::emitStatistics() {
  for (Operation &op : frame.getBody().without_terminator())
    for (Value result : op.getResults())
      if (!frame.space.isStreamed(result) && !KernelSpace::hasColumns(result))
        frame.emitter.emit(result);
}

/// The same for one part of the tile's columns, of whose sums `take` has those
/// of each product.
void Epilogue::emitPart(Value part, llvm::function_ref<Value(size_t)> take) {
  SpaceEmitter &emitter = frame.emitter;
  emitter.setColumns(arith::AddIOp::create(
                         frame.builder, emitter.column,
                         arith::MulIOp::create(frame.builder, part,
                                               frame.constant(shape.columns))),
                     shape.columns);
  for (auto [index, dot] : llvm::enumerate(frame.space.getDots()))
    emitter.map(tile::DotOp(dot).getResult(), take(index));
  emitElements();
}

/// The same in a loop over parts of the tile's columns, whose sums wait in
/// shared memory.
void Epilogue::emitLoop() {
  ImplicitLocOpBuilder &builder = frame.builder;
  const int64_t parts = frame.extents.columns / shape.columns;
  SmallVector<KeptParts> kept;
  for (tile::DotOp dot : frame.space.getDots()) {
    kept.emplace_back(builder, frame.emitter.emit(dot), parts, freeShared);
    freeShared += kept.back().getBytes();
  }
  emitStatistics();
  auto loop = scf::ForOp::create(builder, frame.constant(0),
                                 frame.constant(parts), frame.constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value part = loop.getInductionVar();
  emitPart(part, [&](size_t dot) { return kept[dot].take(part); });
}

/// The same for the parts that the block completes of what all blocks of the
/// cluster have summed.
void Epilogue::emitSplit() {
  SmallVector<Value> sums;
  for (tile::DotOp dot : frame.space.getDots())
    sums.push_back(frame.emitter.emit(dot));
  split->share(sums);
  // They are computed while sums are on their way.
  emitStatistics();
  split->await();
  split->buildOverParts([&](Value part) {
    emitPart(part, [&](size_t dot) { return split->take(dot, part); });
  });
}

/// The same for one part after the other, whose sums stay in registers.
void Epilogue::emitUnrolled() {
  ImplicitLocOpBuilder &builder = frame.builder;
  SpaceEmitter &emitter = frame.emitter;
  const int64_t parts = frame.extents.columns / shape.columns;
  SmallVector<SmallVector<Value>> pieces;
  for (tile::DotOp dot : frame.space.getDots()) {
    Value tile = emitter.emit(dot);
    auto type = cast<RankedTensorType>(tile.getType());
    SmallVector<Type> types(parts,
                            type.clone({type.getDimSize(0), shape.columns}));
    auto split = tile::SplitOp::create(builder, types, /*strands=*/1, tile);
    pieces.emplace_back(split.getPieces());
  }
  emitStatistics();
  const Value first = emitter.column;
  for (int64_t part = 0; part < parts; ++part) {
    SpaceEmitter::Scope scope(emitter);
    emitter.setColumns(
        arith::AddIOp::create(builder, first,
                              frame.constant(part * shape.columns)),
        shape.columns);
    for (auto [dot, tiles] : llvm::zip_equal(frame.space.getDots(), pieces))
      emitter.map(tile::DotOp(dot).getResult(), tiles[part]);
    emitElements();
  }
}

void Epilogue::emit() {
  if (shape.columns == frame.extents.columns)
    emitElements();
  else if (split)
    emitSplit();
  else if (shape.isLoop)
    emitLoop();
  else
    emitUnrolled();
}
