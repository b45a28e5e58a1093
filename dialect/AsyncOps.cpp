//===- AsyncOps.cpp - Copies, products and waits of programs --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/ElementBytes.h"
#include "dialect/Tile.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bastile::tile;

/// Threads of a warp, and warps of a warpgroup.
static constexpr int64_t kWarp = 32, kWarpgroup = 4;

/// The swizzle of a buffer or tile in shared memory; none elsewhere.
static std::optional<int64_t> getSwizzle(Type type) {
  auto memory = dyn_cast<MemRefType>(type);
  auto shared = memory ? dyn_cast_or_null<SharedAttr>(memory.getMemorySpace())
                       : SharedAttr();
  return shared ? std::optional(shared.getSwizzle()) : std::nullopt;
}

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
  constexpr size_t mostRoles = 3;
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
    constexpr int64_t warpgroup = kWarpgroup * kWarp;
    if (threads != 1 && (threads % kWarp != 0 ||
                         (threads > warpgroup && threads % warpgroup != 0)))
      return emitOpError("has a role of ")
             << threads << " threads, which are neither one nor whole warps of "
             << "a warpgroup nor whole warpgroups";
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
  int64_t registers = 0;
  for (auto [warps, each] : llvm::zip_equal(getWarps(), *getRegisters())) {
    if (each < 24 || each > 256 || each % 8 != 0)
      return emitOpError("gives each thread ")
             << each << " registers, which are no multiple of 8 from 24 to 256";
    if (warps % kWarpgroup != 0)
      return emitOpError("sets the registers of ")
             << warps << " warps, which are no whole warpgroups of "
             << kWarpgroup;
    registers += warps * kWarp * each;
  }
  constexpr int64_t most = 65536;
  if (registers > most)
    return emitOpError("gives its threads ")
           << registers << " registers, of which a multiprocessor has " << most;
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

LogicalResult AwaitOp::verify() {
  if (getBuffers().size() != getTiles().size())
    return emitOpError("has ") << getTiles().size() << " tiles of "
                               << getBuffers().size() << " buffers";
  for (auto [buffer, tile] : llvm::zip_equal(getBuffers(), getTiles())) {
    auto from = cast<MemRefType>(buffer.getType());
    auto to = cast<MemRefType>(tile.getType());
    if (!getSwizzle(from) || from.getRank() != 3 ||
        from.getShape().drop_front() != to.getShape() ||
        from.getElementType() != to.getElementType() ||
        from.getMemorySpace() != to.getMemorySpace())
      return emitOpError("takes ")
             << to << " from " << from << ", which is no slot of it";
  }
  return success();
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
  int64_t panel = std::min(*swizzle, buffer.getDimSize(2) *
                                         bastile::getElementBytes(buffer));
  int64_t rows = 1;
  for (int64_t size : map.getBox().drop_back())
    rows *= size;
  bool fits =
      isPart ? buffer.getDimSize(1) % rows == 0 : buffer.getDimSize(1) == rows;
  if (map.getMemory().getElementType() != buffer.getElementType() ||
      map.getSwizzle() != *swizzle || !fits ||
      map.getBox().back() * bastile::getElementBytes(buffer) != panel)
    return op->emitOpError("copies boxes of ")
           << map << ", of which no slots of " << buffer << " are made";
  return success();
}

LogicalResult CopyBoxOp::verify() {
  return verifyBox(*this, getOperand().getType(),
                   cast<MemRefType>(getBuffer().getType()), getIndices().size(),
                   bool(getRow()));
}

LogicalResult StoreBoxOp::verify() {
  return verifyBox(*this, getOperand().getType(),
                   cast<MemRefType>(getBuffer().getType()), getIndices().size(),
                   /*isPart=*/false);
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

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Checks that products can add to `sum`, for `op`: those of warpgroups, or of
/// single warps.
static LogicalResult verifySum(Operation *op, RankedTensorType sum,
                               bool isOfWarpgroups = true) {
  auto layout = dyn_cast_or_null<MmaAttr>(sum.getEncoding());
  if (!layout || layout.getVector() != 2 || sum.getRank() != 2 ||
      !sum.getElementType().isF32())
    return op->emitOpError("sums to ")
           << sum << ", not to float32 with a '#tile.mma' layout";
  if (isOfWarpgroups && layout.getWarps() % kWarpgroup != 0)
    return op->emitOpError("is of ")
           << layout.getWarps() << " warps, which are no whole warpgroups";
  // Of a single row or column, threads hold other elements.
  if (sum.getDimSize(0) == 1 || sum.getDimSize(1) == 1)
    return op->emitOpError("sums to ")
           << sum << ", which has a single row or column";
  return success();
}

LogicalResult BeginDotsOp::verify() {
  if (getType().getTile() != getTile().getType())
    return emitOpError("gives ")
           << getTile().getType() << " to products as " << getType();
  return verifySum(*this, getType().getTile());
}

/// Whether products take elements of the type.
static bool isFactor(Type element) {
  return element.isBF16() || element.isF16() ||
         isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

/// Checks what the operands of `op`, a product of warpgroups, are.
static LogicalResult verifyOfWarpgroups(DotOp op) {
  auto a = cast<ShapedType>(op.getA().getType());
  auto b = cast<MemRefType>(op.getB().getType());
  RankedTensorType sum = op.getSumType();
  auto layout = cast<MmaAttr>(sum.getEncoding());
  ArrayRef<int64_t> contract = op.getContract();
  if (!isa<PendingType>(op.getType()))
    return op.emitOpError("begins a product whose sum is ")
           << sum << ", which is there only after a 'tile.wait_dots'";
  if (a.getRank() != 2 || b.getRank() != 2 || !getSwizzle(b) ||
      (isa<MemRefType>(a) && !getSwizzle(a)))
    return op.emitOpError("multiplies ")
           << a << " and " << b << ", of which some is no tile in "
           << "'#tile.shared' memory";
  Type element = a.getElementType();
  const bool isWide = bastile::getElementBytes(b) == 2;
  // Registers hold pairs of 16 bits, and only these are transposed.
  if (!isWide &&
      (isa<RankedTensorType>(a) || contract[0] == 0 || contract[1] == 0))
    return op.emitOpError("of ")
           << element << " takes both operands from shared memory and sums "
           << "over their last dimensions";
  if (auto fragment = dyn_cast<RankedTensorType>(a);
      fragment && (fragment.getEncoding() != layout || contract[0] != 1))
    return op.emitOpError("takes ")
           << fragment << " from registers, whose layout is not that of "
           << sum;
  return success();
}

/// Checks what the operands of `op`, a product of each warp, are.
static LogicalResult verifyOfWarps(DotOp op) {
  auto a = dyn_cast<RankedTensorType>(op.getA().getType());
  auto b = cast<RankedTensorType>(op.getB().getType());
  RankedTensorType sum = op.getSumType();
  if (isa<PendingType>(op.getType()))
    return op.emitOpError("of operands in registers gives its sum at once, as ")
           << sum;
  auto sumLayout = cast<MmaAttr>(sum.getEncoding());
  constexpr int64_t pieceBytes = 4;
  const int64_t vector = pieceBytes / bastile::getElementBytes(b);
  auto layout = dyn_cast_or_null<MmaAttr>(a ? a.getEncoding() : Attribute());
  auto rhsLayout = dyn_cast_or_null<MmaRhsAttr>(b.getEncoding());
  if (!layout || layout.getWarps() != sumLayout.getWarps() ||
      layout.getVector() != vector || !rhsLayout ||
      rhsLayout.getVector() != vector)
    return op.emitOpError("multiplies ")
           << op.getA().getType() << " and " << b
           << " from registers; the layouts are '#tile.mma' of the sum's warps "
              "and '#tile.mma_rhs', with pieces of 4 bytes";
  if (op.getContract() != ArrayRef<int64_t>{1, 1})
    return op.emitOpError("contracts the dimensions [")
           << op.getContract() << "] of operands in registers, not [1, 1]";
  return success();
}

RankedTensorType DotOp::getSumType() {
  if (auto pending = dyn_cast<PendingType>(getType()))
    return pending.getTile();
  return cast<RankedTensorType>(getType());
}

LogicalResult DotOp::verify() {
  auto a = cast<ShapedType>(getA().getType());
  auto b = cast<ShapedType>(getB().getType());
  RankedTensorType sum = getSumType();
  if (failed(verifySum(*this, sum, isOfWarpgroups())))
    return failure();
  if (!isFactor(b.getElementType()))
    return emitOpError("multiplies bf16, f16, f8E4M3FN or f8E5M2, not ")
           << b.getElementType();
  ArrayRef<int64_t> contract = getContract();
  if (contract.size() != 2 || llvm::any_of(contract, [](int64_t dimension) {
        return dimension != 0 && dimension != 1;
      }))
    return emitOpError("contracts the dimensions [")
           << contract << "], not one of each operand";
  if (failed(isOfWarpgroups() ? verifyOfWarpgroups(*this)
                              : verifyOfWarps(*this)))
    return failure();
  if (a.getElementType() != b.getElementType() ||
      a.getDimSize(contract[0]) != b.getDimSize(contract[1]) ||
      a.getDimSize(1 - contract[0]) != sum.getDimSize(0) ||
      b.getDimSize(1 - contract[1]) != sum.getDimSize(1))
    return emitOpError("of ")
           << a << " and " << b << " over [" << contract << "] is no " << sum;
  if (isOfWarpgroups() &&
      (a.getDimSize(contract[0]) * bastile::getElementBytes(a) % 32 != 0 ||
       sum.getDimSize(1) > 256))
    return emitOpError("sums ")
           << a.getDimSize(contract[0]) << " products for each of "
           << sum.getDimSize(1)
           << " columns; sums are of whole 32 bytes, in at most 256 columns";
  if (Value accumulator = getAccumulator())
    if (accumulator.getType() != getType())
      return emitOpError("adds to ")
             << accumulator.getType() << ", but gives " << getType();
  return success();
}

LogicalResult WaitDotsOp::verify() {
  if (getPending() < 0 || getPending() > 7)
    return emitOpError("leaves ")
           << getPending() << " groups, which is not from 0 to 7";
  SmallVector<Type> types;
  for (Value sum : getSums())
    types.push_back(cast<PendingType>(sum.getType()).getTile());
  llvm::append_range(types, getAfter().getTypes());
  if (TypeRange(types) != TypeRange(getResultTypes()))
    return emitOpError("does not return the tiles of its sums and those that "
                       "it comes after");
  return success();
}
