//===- AsyncOps.cpp - Copies and waits of programs ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/ElementBytes.h"
#include "dialect/OperandMemory.h"
#include "dialect/Warps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::tile;

//===----------------------------------------------------------------------===//
// Roles of warps
//===----------------------------------------------------------------------===//

LogicalResult RolesOp::verify() {
  size_t count = getRoles().size();
  if (count == 0 || getWarps().size() != count || getThreads().size() != count)
    return emitOpError("has ")
           << count << " regions for " << getWarps().size()
           << " numbers of warps and " << getThreads().size() << " of threads";
  // The barriers of other roles would be those of turns.
  constexpr size_t mostRoles = 4;
  if (count > mostRoles)
    return emitOpError("has ")
           << count << " regions, and a block has barriers for " << mostRoles;
  if ((*this)->getParentOfType<RolesOp>())
    return emitOpError("is part of a role: its warps cannot part again");
  int64_t all = 0;
  for (auto [warps, threads] : llvm::zip_equal(getWarps(), getThreads())) {
    if (warps < 1 || threads < 1 || threads > warps * kWarp)
      return emitOpError("gives ") << warps << " warps a role of " << threads
                                   << " threads, which do not fit in them";
    // Threads meet by whole warps, and arrive by whole warpgroups.
    if (threads != 1 && (threads % kWarp != 0 ||
                         (threads > kWarpgroup && threads % kWarpgroup != 0)))
      return emitOpError("has a role of ")
             << threads << " threads, which are neither one nor whole warps of "
             << "a warpgroup nor whole warpgroups";
    if (threads >= kWarpgroup && all % kWarpgroup != 0)
      return emitOpError("has a role of ")
             << threads << " threads that begins with warp " << all / kWarp
             << ", which is not the first one of a warpgroup";
    all += warps * kWarp;
  }
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (program && program.getSchedule().getThreads() != all)
    return emitOpError("has roles for ")
           << all << " threads, but the block has "
           << program.getSchedule().getThreads();
  if (!getRegisters())
    return success();
  if (getRegisters()->size() != count)
    return emitOpError("has ")
           << count << " regions for " << getRegisters()->size()
           << " numbers of registers";
  int64_t registers = 0, others = 0, ofOthers = 0;
  for (auto [warps, each] : llvm::zip_equal(getWarps(), *getRegisters())) {
    if (each < 24 || each > 256 || each % 8 != 0)
      return emitOpError("gives each thread ")
             << each << " registers, which are no multiple of 8 from 24 to 256";
    // Warps of a warpgroup set their registers together.
    if (others != 0 && each != ofOthers)
      return emitOpError("gives each thread ")
             << each << " registers in a warpgroup where other roles have "
             << ofOthers;
    others = (others + warps) % kWarpsOfWarpgroup;
    ofOthers = each;
    registers += warps * kWarp * each;
  }
  if (others != 0)
    return emitOpError("sets the registers of ")
           << others << " warps, which are no whole warpgroup of "
           << kWarpsOfWarpgroup;
  constexpr int64_t most = 65536;
  if (registers > most)
    return emitOpError("gives its threads ")
           << registers << " registers, of which a multiprocessor has " << most;
  return success();
}

LogicalResult RolesOp::verifyRegions() {
  // The barriers of turns are those of one role.
  const auto count = llvm::count_if(getRoles(), [](Region &role) {
    return role
        .walk([](Operation *op) {
          return isa<TakeTurnOp, PassTurnOp>(op) ? WalkResult::interrupt()
                                                 : WalkResult::advance();
        })
        .wasInterrupted();
  });
  if (count > 1)
    return emitOpError("has ")
           << count
           << " roles whose warpgroups take turns, but a block has "
              "barriers for those of one";
  return success();
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

LogicalResult MakeBarriersOp::verify() {
  constexpr int64_t most = (1 << 20) - 1;
  if (getArrivals() < 1 || getArrivals() > most)
    return emitOpError("waits for ")
           << getArrivals() << " arrivals, which are not from 1 to " << most;
  return success();
}

LogicalResult ExpectOp::verify() {
  // Of a phase's bytes, a barrier counts no more.
  constexpr int64_t unit = 16, most = (1 << 20) - 1;
  const auto bytes = static_cast<int64_t>(getBytes());
  if (bytes < 0 || bytes > most || bytes % unit != 0)
    return emitOpError("announces ")
           << bytes << " bytes, which are no multiple of " << unit
           << " from 0 to " << most;
  return success();
}

LogicalResult ArriveOp::verify() {
  if (getWarps() && getCluster())
    return emitOpError("is of each warp, in this block only");
  return success();
}

/// Checks that a slot of `numbers` holds `count` numbers.
static LogicalResult verifyNumbers(Operation *op, MemRefType numbers,
                                   size_t count) {
  if (static_cast<int64_t>(count) <= numbers.getShape().back())
    return success();
  return op->emitOpError("has ")
         << count << " numbers for slots of " << numbers;
}

LogicalResult PutNumbersOp::verify() {
  return verifyNumbers(*this, cast<MemRefType>(getNumbers().getType()),
                       getValues().size());
}

LogicalResult GetNumbersOp::verify() {
  return verifyNumbers(*this, cast<MemRefType>(getNumbers().getType()),
                       getValues().size());
}

LogicalResult CopyNumbersOp::verify() {
  auto from = cast<MemRefType>(getMemref().getType());
  constexpr int64_t least = 2;
  if (from.getElementType().isF32() && from.getRank() >= least &&
      from.getRank() == static_cast<int64_t>(getIndices().size()))
    return success();
  return emitOpError("copies numbers of rows from ")
         << from << " at " << getIndices().size()
         << " indices, which are no rows of f32";
}

LogicalResult TakeNumbersOp::verify() {
  auto from = cast<MemRefType>(getNumbers().getType());
  const int64_t count = from.getShape().back();
  if (isa_and_present<MmaAttr>(getType().getEncoding()) &&
      getType().getElementType() == from.getElementType() &&
      getType().getShape() == ArrayRef<int64_t>{1, count})
    return success();
  return emitOpError("takes ") << getType() << " from slots of " << from
                               << ", which are no row of a product's tile";
}

/// Checks that `tiles`, which `op` has for results, are slots of `buffers`.
static LogicalResult verifyTiles(Operation *op, OperandRange buffers,
                                 ResultRange tiles) {
  if (buffers.size() != tiles.size())
    return op->emitOpError("has ")
           << tiles.size() << " tiles of " << buffers.size() << " buffers";
  for (auto [buffer, tile] : llvm::zip_equal(buffers, tiles)) {
    auto from = cast<MemRefType>(buffer.getType());
    auto to = cast<MemRefType>(tile.getType());
    if (!getSwizzle(from) || from.getRank() != 3 ||
        from.getShape().drop_front() != to.getShape() ||
        from.getElementType() != to.getElementType() ||
        from.getMemorySpace() != to.getMemorySpace())
      return op->emitOpError("takes ")
             << to << " from " << from << ", which is no slot of it";
  }
  return success();
}

LogicalResult AwaitOp::verify() {
  return verifyTiles(*this, getBuffers(), getTiles());
}

LogicalResult GetTilesOp::verify() {
  return verifyTiles(*this, getBuffers(), getTiles());
}

//===----------------------------------------------------------------------===//
// Counters in memory
//===----------------------------------------------------------------------===//

/// Checks that `counters`, of `op`, are an operand of its program that has
/// some.
static LogicalResult verifyCounters(Operation *op, Value counters) {
  auto program = op->getParentOfType<ProgramOp>();
  if (!program)
    return success();
  auto argument = dyn_cast<BlockArgument>(counters);
  if (argument && argument.getOwner() == &program.getBody().front() &&
      program.getArgCounters(argument.getArgNumber()))
    return success();
  return op->emitOpError("takes counters from ")
         << counters.getType() << ", which is no operand with '"
         << ProgramOp::kCountersAttrName << "'";
}

LogicalResult AwaitCountOp::verify() {
  return verifyCounters(*this, getCounters());
}

LogicalResult ReleaseCountOp::verify() {
  return verifyCounters(*this, getCounters());
}

//===----------------------------------------------------------------------===//
// Copies of tensors
//===----------------------------------------------------------------------===//

/// Checks that boxes of `map` make up a slot of `buffer`, for the copy `op`,
/// or, with `isPart`, some rows of it.
static LogicalResult verifyBox(Operation *op, TensorMapType map,
                               MemRefType buffer, size_t numIndices,
                               bool isPart) {
  std::optional<int64_t> swizzle = getSwizzle(buffer);
  if (!swizzle || buffer.getRank() != 3)
    return op->emitOpError("copies boxes of ")
           << buffer << ", which is no buffer in '#tile.shared' memory";
  if (static_cast<int64_t>(numIndices) != map.getMemory().getRank())
    return op->emitOpError("has ")
           << numIndices << " indices of " << map.getMemory();
  auto fits = [&] {
    // A map has integers or floats.
    if (map.getMemory().getElementType() != buffer.getElementType() ||
        map.getSwizzle() != *swizzle || !buffer.hasStaticShape())
      return false;
    int64_t rows = 1;
    for (int64_t size : map.getBox().drop_back())
      rows *= size;
    int64_t columns = std::min(*swizzle / bastile::getElementBytes(buffer),
                               buffer.getDimSize(2));
    return map.getBox().back() == columns &&
           (isPart ? buffer.getDimSize(1) % rows == 0
                   : buffer.getDimSize(1) == rows);
  };
  if (fits())
    return success();
  return op->emitOpError("copies boxes of ")
         << map << ", of which no slots of " << buffer << " are made";
}

LogicalResult CopyBoxOp::verify() {
  return verifyBox(*this, getOperand().getType(),
                   cast<MemRefType>(getBuffer().getType()), getIndices().size(),
                   bool(getRow()));
}

LogicalResult StoreBoxOp::verify() {
  if (auto buffer = cast<MemRefType>(getBuffer().getType());
      getAdd() && !buffer.getElementType().isF32())
    return emitOpError("adds elements of ")
           << buffer << ", but only those of float32 are added";
  return verifyBox(*this, getOperand().getType(),
                   cast<MemRefType>(getBuffer().getType()), getIndices().size(),
                   getWarp());
}

/// Checks `op`, by which threads move a tile between an operand and a buffer.
template <typename Op>
static LogicalResult verifyTileCopy(Op op) {
  auto memory = cast<MemRefType>(op.getMemref().getType());
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  if (!getSwizzle(buffer) || buffer.getRank() != 3)
    return op.emitOpError("copies tiles of ")
           << buffer << ", which is no buffer in '#tile.shared' memory";
  if (memory.getElementType() != buffer.getElementType())
    return op.emitOpError("moves between ")
           << memory << " and " << buffer << ", whose element types differ";
  if (memory.getRank() < 2 ||
      op.getIndices().size() != static_cast<size_t>(memory.getRank()))
    return op.emitOpError("has ")
           << op.getIndices().size() << " indices of " << memory
           << ", not one for each of two or more dimensions";
  auto program = op->template getParentOfType<ProgramOp>();
  if (program && !program.getDimensions())
    return op.emitOpError("is part of a program without named dimensions");
  if (program && !isa<BlockArgument>(op.getMemref()))
    return op.emitOpError("moves a tile of ")
           << memory << ", which is no operand of the program";
  return success();
}

LogicalResult CopyTileOp::verify() { return verifyTileCopy(*this); }

LogicalResult StoreTileOp::verify() { return verifyTileCopy(*this); }
