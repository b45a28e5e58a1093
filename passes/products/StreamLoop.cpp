//===- StreamLoop.cpp - The loop over k of a program ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/StreamLoop.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// How many elements of the summed dimension a fragment has: 32, or 16 where
/// that wastes less and they have 16 bits, for which products need 32 bytes.
static int64_t getChunk(int64_t size, Type element) {
  constexpr int64_t most = 32, leastBytes = 32;
  const int64_t least = leastBytes / getElementBytes(element);
  return llvm::alignTo(size, least) % most == 0 ? most : least;
}

/// How many neighbours of a factor are in one register.
static int64_t getVector(tile::DotOp dot) {
  constexpr int64_t bytes = 4;
  return bytes / getElementBytes(dot.getFactorType());
}

//===----------------------------------------------------------------------===//
// What is copied
//===----------------------------------------------------------------------===//

void StreamLoop::addCopied(SmallVectorImpl<Copied> &copied, unsigned operand,
                           const StagedShape &shape, int64_t ofStages) {
  for (const Copied &other : copied)
    if (other.operand == operand)
      return;
  copied.push_back({operand, StagedTiles(builder, emitter.getMemory(operand),
                                         shape, ofStages, sharedBytes)});
  sharedBytes += copied.back().tiles.getBytes();
}

void StreamLoop::addFactor(SmallVectorImpl<Copied> &copied, tile::DotOp dot,
                           unsigned index, int64_t ofStages) {
  const unsigned operand = operands.findFactor(dot, index);
  const Operand &own = operands.getAll()[operand];
  const Extents &extents = emitter.getExtents();
  const bool isInner = space.isInner(dot);
  const int64_t summed =
      isInner ? own.type.getDimSize(dot.getContractedDimension(index))
              : extents.streamed;
  const int64_t free = own.isOf(Axis::Rows) ? extents.rows
                       : isInner            ? extents.streamed
                                            : extents.columns;
  const int64_t chunk = getChunk(summed, own.type);
  addCopied(copied, operand,
            {free, chunk, static_cast<int64_t>(llvm::divideCeil(summed, chunk)),
             dot.getContract()[index] == 1},
            ofStages);
}

void StreamLoop::stage(ArrayRef<tile::DotOp> dots,
                       ArrayRef<unsigned> elements) {
  if (!isStaged())
    return;
  const bool hasInner =
      llvm::any_of(dots, [&](tile::DotOp dot) { return space.isInner(dot); });
  for (tile::DotOp dot : dots)
    if (space.isInner(dot))
      addFactor(whole, dot, space.getRowFactor(dot), /*ofStages=*/1);
  groups.resize(hasInner ? 2 : 1);
  for (tile::DotOp dot : dots) {
    if (space.isInner(dot)) {
      addFactor(groups.front(), dot, 1 - space.getRowFactor(dot), stages);
      continue;
    }
    if (!KernelSpace::isLeftComputed(dot))
      addFactor(groups.back(), dot, /*index=*/0, stages);
    addFactor(groups.back(), dot, /*index=*/1, stages);
  }
  const Extents &extents = emitter.getExtents();
  for (unsigned operand : elements)
    addCopied(groups.front(), operand,
              {extents.rows, extents.streamed, /*chunks=*/1,
               /*isAlongRows=*/true},
              stages);
  while (!groups.empty() && groups.back().empty())
    groups.pop_back();
}

StreamLoop::Copied &StreamLoop::find(unsigned operand) {
  for (auto &group : groups)
    for (Copied &copied : group)
      if (copied.operand == operand)
        return copied;
  llvm_unreachable("the loop copies what its products need");
}

/// Begins to copy what the whole loop needs.
void StreamLoop::copyWhole() {
  if (whole.empty())
    return;
  for (Copied &copied : whole)
    copied.tiles.copy(emitter.getIndices(copied.operand), constant(0));
  tile::CommitCopiesOp::create(builder);
}

/// Begins to copy what step `number` needs of `group`: zeros behind the last
/// step, so that each step makes a group of copies.
void StreamLoop::copyStep(ArrayRef<Copied> group, Value number) {
  Value saved = emitter.stream;
  emitter.stream = arith::MulIOp::create(
      builder, number, constant(emitter.getExtents().streamed));
  if (!visited.conditions.empty()) {
    Value isBehind = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge,
                                           number, range.end);
    emitter.stream = arith::SelectOp::create(
        builder, isBehind, emitter.getSize("k"), emitter.stream);
  }
  Value stage = arith::RemUIOp::create(builder, number, constant(stages));
  for (Copied copied : group)
    copied.tiles.copy(emitter.getIndices(copied.operand), stage);
  emitter.stream = saved;
  tile::CommitCopiesOp::create(builder);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void StreamLoop::setStep(Value newStep) {
  step = newStep;
  nextGroup = 0;
  emitter.stream = arith::MulIOp::create(
      builder, step, constant(emitter.getExtents().streamed));
  if (isStaged())
    slot = arith::RemUIOp::create(builder, step, constant(stages));
}

/// Waits for the operands of group `group`. The stage of the step before, which
/// all threads have read by then, takes those of a later step.
void StreamLoop::enter(size_t group) {
  if (groups.size() < 2 || group < nextGroup)
    return;
  nextGroup = group + 1;
  const int64_t pending =
      static_cast<int64_t>(groups.size()) * (stages - 1) - 1;
  tile::WaitCopiesOp::create(builder, static_cast<int32_t>(pending));
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  copyStep(groups[group],
           arith::AddIOp::create(builder, step, constant(stages - 1)));
}

SmallVector<Value> StreamLoop::buildPlain(ValueRange initial, Body body) {
  auto loop =
      scf::ForOp::create(builder, range.first, range.end, constant(1), initial);
  emitter.enterLoop(loop);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  setStep(loop.getInductionVar());
  SmallVector<Value> after = body(loop.getRegionIterArgs());
  if (!after.empty())
    scf::YieldOp::create(builder, after);
  return SmallVector<Value>(loop.getResults());
}

/// The first steps copy only, the last ones compute only: the code of copies is
/// as long as that of one step.
SmallVector<Value> StreamLoop::buildOfOneGroup(ValueRange initial, Body body) {
  Value ahead = constant(stages - 1);
  Value firstFull = builder.createOrFold<arith::AddIOp>(ahead, range.first);
  auto loop = scf::ForOp::create(
      builder, range.first, arith::AddIOp::create(builder, range.end, ahead),
      constant(1), initial);
  emitter.enterLoop(loop);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  // The stage that is computed on is full once all threads have waited; that of
  // the step before, which is copied to next, has been read by all of them.
  tile::WaitCopiesOp::create(builder, static_cast<int32_t>(stages - 2));
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  copyStep(groups.front(), number);
  Value isFull = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge,
                                       number, firstFull);
  auto branch = scf::IfOp::create(builder, initial.getTypes(), isFull,
                                  /*withElseRegion=*/true);
  scf::YieldOp::create(builder, branch.getResults());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loop.getRegionIterArgs());
  builder.setInsertionPointToStart(branch.thenBlock());
  setStep(arith::SubIOp::create(builder, number, ahead));
  scf::YieldOp::create(builder, body(loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> StreamLoop::buildOfGroups(ValueRange initial, Body body) {
  for (int64_t ahead = 0; ahead < stages - 1; ++ahead)
    for (ArrayRef<Copied> group : groups)
      copyStep(group, builder.createOrFold<arith::AddIOp>(constant(ahead),
                                                          range.first));
  // What is copied once came first.
  tile::WaitCopiesOp::create(
      builder, static_cast<int32_t>(groups.size() * (stages - 1)));
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  for (Copied &copied : whole)
    for (int64_t chunk = 0; chunk < copied.tiles.getShape().chunks; ++chunk)
      wholeTiles[copied.operand].push_back(
          copied.tiles.take(constant(0), chunk, layout));
  return buildPlain(initial, body);
}

SmallVector<Value> StreamLoop::build(ValueRange initial, Body body) {
  copyWhole();
  range = emitStepRange(builder, emitter, space, visited);
  SmallVector<Value> totals = groups.empty() ? buildPlain(initial, body)
                              : groups.size() == 1
                                  ? buildOfOneGroup(initial, body)
                                  : buildOfGroups(initial, body);
  emitter.leaveLoop();
  if (groups.empty())
    return totals;
  // No thread reads the shared memory any more when the program goes on.
  tile::WaitCopiesOp::create(builder, /*pending=*/0);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  return totals;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value StreamLoop::emitInner(tile::DotOp dot) {
  RankedTensorType type = emitter.getTileType(dot.getSumType(), true);
  Value sum = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
  if (!isStaged())
    return emitter.emitLoadDot(dot, sum);
  const unsigned rowFactor = space.getRowFactor(dot);
  const unsigned left = operands.findFactor(dot, rowFactor);
  const unsigned right = operands.findFactor(dot, 1 - rowFactor);
  enter(0);
  Attribute rhs = tile::MmaRhsAttr::get(builder.getContext(), /*vector=*/2);
  for (auto [chunk, fragment] : llvm::enumerate(wholeTiles.lookup(left)))
    sum = tile::DotOp::create(
        builder, type, fragment,
        find(right).tiles.take(slot, static_cast<int64_t>(chunk), rhs), sum,
        ArrayRef<int64_t>{1, 1});
  return sum;
}

Value StreamLoop::addProducts(tile::DotOp dot, Value left, Value sum) {
  const unsigned right = operands.findFactor(dot, 1);
  if (left)
    left = emitter.roundLeft(dot, left);
  if (!isStaged())
    return tile::LoadDotOp::create(
        builder, cast<RankedTensorType>(sum.getType()), left, ValueRange(),
        emitter.getMemory(right), emitter.getIndices(right), sum,
        ArrayRef<int64_t>{1, dot.getContract()[1]});
  enter(groups.size() - 1);
  StagedTiles &tiles = find(right).tiles;
  const int64_t chunks = tiles.getShape().chunks;
  SmallVector<Value> pieces;
  if (left && chunks > 1) {
    auto type = cast<RankedTensorType>(left.getType());
    SmallVector<Type> types(
        chunks, type.clone({type.getDimSize(0), tiles.getShape().depth}));
    auto split = tile::SplitOp::create(builder, types, /*strands=*/1, left);
    llvm::append_range(pieces, split.getPieces());
  } else if (left) {
    pieces.push_back(left);
  }
  const int64_t vector = getVector(dot);
  const bool isSmall = isSmallFloat(dot.getFactorType());
  Attribute rhs = tile::MmaRhsAttr::get(builder.getContext(), vector);
  Attribute lhs = tile::MmaAttr::get(
      builder.getContext(), cast<tile::MmaAttr>(layout).getWarps(), vector);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Value fragment =
        left ? pieces[chunk]
             : find(operands.findFactor(dot, 0)).tiles.take(slot, chunk, lhs);
    Value columns = tiles.take(slot, chunk, rhs);
    // Tensor cores add products of 8 bits with fewer bits than a float has, so
    // that the sum over all of k is none of theirs.
    Value product = tile::DotOp::create(
        builder, sum.getType(), fragment, columns,
        /*accumulator=*/isSmall ? Value() : sum, ArrayRef<int64_t>{1, 1});
    sum = isSmall ? arith::AddFOp::create(builder, sum, product).getResult()
                  : product;
  }
  return sum;
}

Value StreamLoop::takeElements(unsigned operand) {
  for (auto [number, group] : llvm::enumerate(groups))
    for (Copied &copied : group)
      if (copied.operand == operand && copied.tiles.getShape().chunks == 1) {
        enter(number);
        return copied.tiles.take(slot, /*chunk=*/0, layout);
      }
  return Value();
}
