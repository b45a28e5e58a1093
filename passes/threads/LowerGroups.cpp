//===- LowerGroups.cpp - Reductions of groups of columns ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reductions of groups of columns. A group that a power of two of neighbouring
// lanes holds is combined by shuffles; a group that all threads of a row hold
// is combined like a row. Any other group has parts in several chunks
// (GroupChunks.h). In each chunk, the lane with the first vector of the part
// gets the part's result and leaves it in shared memory, where the threads of
// the group find the results of all parts.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/schedule/GroupChunks.h"
#include "passes/threads/Reducer.h"

using namespace mlir;
using namespace bastile;

/// Returns the result of its group for each piece.
SmallVector<Value> Reducer::runOnGroups(ValueRange pieces) {
  tile::BlockedAttr groups = getLayout(op.getType());
  int64_t threads = groups.getGroupThreads();
  bool isOfWarp = llvm::isPowerOf2_64(threads) && threads <= kWarp;
  bool isOfRow = threads == grid.columns && threads % kWarp == 0;
  if (!groups.isGroupAligned() || (!isOfWarp && !isOfRow))
    return runOnChunks(pieces);
  const int64_t columns = layout.getColumnRepeats(input.getShape());
  SmallVector<Value> totals;
  SmallVector<size_t> counts;
  for (size_t row = 0; row < pieces.size(); row += columns)
    for (int64_t first = 0; first < columns; first += counts.back()) {
      // The last group may have fewer pieces.
      counts.push_back(std::min(groups.getGroupPieces(), columns - first));
      Value value = reduceInThread(pieces.slice(row + first, counts.back()));
      totals.push_back(reduceInWarp(value, std::min(threads, kWarp)));
    }
  if (!isOfWarp)
    reduceAcrossWarps(totals);
  SmallVector<Value> values;
  for (auto [total, count] : llvm::zip_equal(totals, counts))
    values.append(count, total);
  return values;
}

/// Every vector of a group has what was computed of the group in its piece. All
/// but the group's first become 0, so that a sum takes each group once.
SmallVector<Value> Reducer::keepFirstOfGroups(ValueRange pieces) {
  const int64_t vectors = layout.getGroup() / layout.getVector();
  const int64_t columns = layout.getColumnRepeats(input.getShape());
  Value column = getThreadPosition(rewriter, loc, layout).column;
  SmallVector<Value> areFirst;
  for (int64_t repeat = 0; repeat < columns; ++repeat)
    areFirst.push_back(compare(arith::CmpIPredicate::eq,
                               getRemainder(getVector(column, repeat), vectors),
                               constantIndex(0)));
  Value zero = arith::ConstantOp::create(
      rewriter, loc, rewriter.getZeroAttr(pieces.front().getType()));
  SmallVector<Value> kept;
  for (auto [index, piece] : llvm::enumerate(pieces))
    kept.push_back(arith::SelectOp::create(
        rewriter, loc, areFirst[index % columns], piece, zero));
  return kept;
}

Reducer::GroupPlace Reducer::getGroupPlace(int64_t repeat) {
  tile::BlockedAttr groups = getLayout(op.getType());
  int64_t lanes = std::min(kWarp, grid.columns);
  Value column = getThreadPosition(rewriter, loc, layout).column;
  Value vector = getVector(column, repeat);
  int64_t vectors = groups.getGroup() / groups.getVector();
  return {divide(vector, lanes), getRemainder(column, lanes),
          divide(vector, vectors), getRemainder(vector, vectors)};
}

/// Combines each part of a group, whose result ends in the lane of the part's
/// first vector: every lane adds what lanes farther and farther behind it have
/// combined, as long as these belong to the same part.
Value Reducer::reduceInChunk(Value value, const GroupPlace &place) {
  tile::BlockedAttr groups = getLayout(op.getType());
  GroupChunks chunks = GroupChunks::get(grid, /*repeats=*/1, groups.getGroup(),
                                        groups.getVector());
  if (chunks.areWhole())
    return reduceInWarp(value, chunks.lanes);
  auto countTo = [&](int64_t end, Value from) -> Value {
    return arith::SubIOp::create(rewriter, loc, constantIndex(end), from);
  };
  Value left = arith::MinUIOp::create(
      rewriter, loc, countTo(chunks.lanes, place.laneOfChunk),
      countTo(chunks.vectors, place.vectorOfGroup));
  for (int64_t offset = 1; offset < std::min(chunks.lanes, chunks.vectors);
       offset *= 2) {
    Value behind = gpu::ShuffleOp::create(rewriter, loc, value, offset, kWarp,
                                          gpu::ShuffleMode::DOWN)
                       .getShuffleResult();
    Value isOfPart =
        compare(arith::CmpIPredicate::ult, constantIndex(offset), left);
    value = arith::SelectOp::create(rewriter, loc, isOfPart,
                                    combine(value, behind), value);
  }
  return value;
}

/// Takes the value of the lane that has the first vector of this lane's group,
/// where one chunk is the whole row.
Value Reducer::takeFromGroupStart(Value value, const GroupPlace &place) {
  auto toInt32 = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(rewriter, loc, rewriter.getI32Type(),
                                        index);
  };
  Value lane = getRemainder(getThreadId(rewriter, loc), kWarp);
  Value start = arith::SubIOp::create(rewriter, loc, lane, place.vectorOfGroup);
  Value width =
      arith::ConstantIntOp::create(rewriter, loc, kWarp, /*width=*/32);
  return gpu::ShuffleOp::create(rewriter, loc, value, toInt32(start), width,
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

SmallVector<Value> Reducer::runOnChunks(ValueRange pieces) {
  tile::BlockedAttr groups = getLayout(op.getType());
  int64_t columns = layout.getColumnRepeats(input.getShape());
  GroupChunks chunks =
      GroupChunks::get(grid, columns, groups.getGroup(), groups.getVector());
  SmallVector<GroupPlace> places;
  for (int64_t repeat = 0; repeat < columns; ++repeat)
    places.push_back(getGroupPlace(repeat));
  SmallVector<Value> values;
  for (auto [index, piece] : llvm::enumerate(pieces)) {
    const GroupPlace &place = places[index % columns];
    values.push_back(reduceInChunk(reduceInThread(piece), place));
    if (chunks.isOneChunk())
      values.back() = takeFromGroupStart(values.back(), place);
  }
  if (!chunks.isOneChunk())
    reduceAcrossChunks(values, places);
  return values;
}

/// The slot of the first part of a group, counted from its row's first slot.
Value Reducer::getGroupBegin(Value group) {
  tile::BlockedAttr groups = getLayout(op.getType());
  int64_t vectors = groups.getGroup() / groups.getVector();
  return add(divide(multiply(group, vectors), std::min(kWarp, grid.columns)),
             group);
}

/// The slot of the last part of a group, counted likewise.
Value Reducer::getGroupLast(Value group) {
  tile::BlockedAttr groups = getLayout(op.getType());
  int64_t vectors = groups.getGroup() / groups.getVector();
  Value last = add(multiply(group, vectors), constantIndex(vectors - 1));
  return add(divide(last, std::min(kWarp, grid.columns)), group);
}

/// Combines every `step`-th of the slots from `first` to `last`, at most
/// `count` of them.
Value Reducer::combineSlots(Value scratch, Value first, Value last,
                            int64_t count, int64_t step) {
  Value neutral = arith::ConstantOp::create(
      rewriter, loc,
      tile::ReduceOp::getNeutral(op.getKind(), input.getElementType()));
  auto load = [&](Value slot) -> Value {
    Value inside = arith::MinUIOp::create(rewriter, loc, slot, last);
    Value isPart = compare(arith::CmpIPredicate::ule, slot, last);
    return arith::SelectOp::create(rewriter, loc, isPart,
                                   loadShared(scratch, inside), neutral);
  };
  auto loop =
      scf::ForOp::create(rewriter, loc, constantIndex(0), constantIndex(count),
                         constantIndex(1), ValueRange{neutral});
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    Value slot = add(first, multiply(loop.getInductionVar(), step));
    scf::YieldOp::create(rewriter, loc,
                         combine(loop.getRegionIterArg(0), load(slot)));
  }
  return loop.getResult(0);
}

/// Leaves the result of each part in shared memory, by the lane with the part's
/// first vector, and gives each piece the result of its group.
void Reducer::reduceAcrossChunks(SmallVectorImpl<Value> &values,
                                 ArrayRef<GroupPlace> places) {
  tile::BlockedAttr groups = getLayout(op.getType());
  const int64_t columns = places.size(), rowRepeats = values.size() / columns;
  GroupChunks chunks =
      GroupChunks::get(grid, columns, groups.getGroup(), groups.getVector());
  const int64_t slots = chunks.getSlots();
  const bool combinesOnce = chunks.combinesOnce(values.size());
  Value row = getThreadPosition(rewriter, loc, layout).row;
  auto getBase = [&](int64_t rowRepeat) {
    return multiply(add(row, constantIndex(rowRepeat * grid.rows)), slots);
  };
  // Where totals are left in memory as well, all threads have met since these
  // were read, before anyone writes again.
  int64_t count = grid.rows * rowRepeats * slots;
  Value partials =
      combinesOnce ? createScratch(rewriter, op, input.getElementType(), count)
                   : createPlace(count);
  Value zero = constantIndex(0);
  for (auto [repeat, place] : llvm::enumerate(places)) {
    Value isFirst = compare(arith::CmpIPredicate::eq, place.laneOfChunk, zero);
    isFirst = arith::OrIOp::create(
        rewriter, loc, isFirst,
        compare(arith::CmpIPredicate::eq, place.vectorOfGroup, zero));
    auto branch = scf::IfOp::create(rewriter, loc, isFirst);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    Value slot = add(place.chunk, place.group);
    for (int64_t rowRepeat = 0; rowRepeat < rowRepeats; ++rowRepeat)
      LLVM::StoreOp::create(
          rewriter, loc, values[rowRepeat * columns + repeat],
          getSharedAddress(partials, add(getBase(rowRepeat), slot)));
  }
  waitForRow();
  if (combinesOnce)
    return combineOncePerGroup(values, places, partials);
  for (auto [index, value] : llvm::enumerate(values)) {
    const GroupPlace &place = places[index % columns];
    Value base = getBase(index / columns);
    value = combineSlots(partials, add(base, getGroupBegin(place.group)),
                         add(base, getGroupLast(place.group)),
                         chunks.getParts(), /*step=*/1);
  }
}

/// Combines the parts of each group once: the lanes of a warp take one group
/// after the other, and leave its total in memory for all pieces of the group.
void Reducer::combineOncePerGroup(SmallVectorImpl<Value> &values,
                                  ArrayRef<GroupPlace> places, Value partials) {
  tile::BlockedAttr groups = getLayout(op.getType());
  const int64_t columns = places.size(), rowRepeats = values.size() / columns;
  GroupChunks chunks =
      GroupChunks::get(grid, columns, groups.getGroup(), groups.getVector());
  const int64_t perRow = chunks.getGroups(), tasks = rowRepeats * perRow;
  const int64_t warps = grid.columns / chunks.lanes;
  Value totals =
      createScratch(rewriter, op, input.getElementType(), grid.rows * tasks);
  ThreadPosition thread = getThreadPosition(rewriter, loc, layout);
  Value lane = getRemainder(thread.column, chunks.lanes);
  Value firstTask = divide(thread.column, chunks.lanes);
  auto loop = scf::ForOp::create(rewriter, loc, constantIndex(0),
                                 constantIndex(llvm::divideCeil(tasks, warps)),
                                 constantIndex(1));
  {
    // All lanes take part in every turn; beyond the last group, no lane stores.
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    Value task = add(firstTask, multiply(loop.getInductionVar(), warps));
    Value isTask =
        compare(arith::CmpIPredicate::ult, task, constantIndex(tasks));
    task =
        arith::MinUIOp::create(rewriter, loc, task, constantIndex(tasks - 1));
    Value row = add(thread.row, multiply(divide(task, perRow), grid.rows));
    Value group = getRemainder(task, perRow);
    Value base = multiply(row, chunks.getSlots());
    Value first = add(add(base, getGroupBegin(group)), lane);
    Value total = combineSlots(
        partials, first, add(base, getGroupLast(group)),
        llvm::divideCeil(chunks.getParts(), chunks.lanes), chunks.lanes);
    total = reduceInWarp(total, chunks.lanes);
    Value leaves = arith::AndIOp::create(
        rewriter, loc, isTask,
        compare(arith::CmpIPredicate::eq, lane, constantIndex(0)));
    auto branch = scf::IfOp::create(rewriter, loc, leaves);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    LLVM::StoreOp::create(
        rewriter, loc, total,
        getSharedAddress(totals, add(multiply(row, perRow), group)));
  }
  waitForRow();
  for (auto [index, value] : llvm::enumerate(values)) {
    Value row = add(thread.row, constantIndex(index / columns * grid.rows));
    value = loadShared(
        totals, add(multiply(row, perRow), places[index % columns].group));
  }
}
