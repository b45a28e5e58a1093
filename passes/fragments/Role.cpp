//===- Role.cpp - The threads that run an op together ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Role.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/Fragments.h"
#include "passes/pieces/Pieces.h"
#include "passes/schedule/ThreadGrid.h"
using namespace mlir;
using namespace bastile;

static Value constantIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Role::Role(Operation *op) {
  auto program = op->getParentOfType<tile::ProgramOp>();
  threads = program.getSchedule().getThreads();
  for (Region *region = op->getParentRegion(); region;
       region = region->getParentRegion()) {
    auto roles = dyn_cast<tile::RolesOp>(region->getParentOp());
    if (!roles)
      continue;
    number = region->getRegionNumber();
    for (int64_t before = 0; before < *number; ++before)
      firstThread += roles.getWarps()[before] * kWarp;
    threads = roles.getThreads()[*number];
    return;
  }
}

Value Role::getThread(OpBuilder &builder, Location loc) const {
  Value thread = getThreadId(builder, loc);
  if (firstThread == 0)
    return thread;
  return arith::SubIOp::create(builder, loc, thread,
                               constantIndex(builder, loc, firstThread));
}

Value Role::getWarp(OpBuilder &builder, Location loc) const {
  Value warp = getWarpId(builder, loc);
  if (firstThread == 0)
    return warp;
  return arith::SubIOp::create(
      builder, loc, warp, constantIndex(builder, loc, firstThread / kWarp));
}

Value Role::getWarpgroup(OpBuilder &builder, Location loc) const {
  return arith::DivUIOp::create(builder, loc, getWarp(builder, loc),
                                constantIndex(builder, loc, kWarpsOfWarpgroup));
}

void Role::synchronize(OpBuilder &builder, Location loc) const {
  if (!number) {
    gpu::BarrierOp::create(builder, loc);
    return;
  }
  if (threads == 1)
    return;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, /*width=*/32);
  };
  NVVM::BarrierOp::create(builder, loc, /*resultTypes=*/TypeRange(),
                          constant(kRoleBarriers + *number), constant(threads),
                          /*reductionOp=*/{}, /*reductionPredicate=*/Value());
}

void bastile::synchronizeWarp(OpBuilder &builder, Location loc) {
  NVVM::SyncWarpOp::create(
      builder, loc,
      arith::ConstantIntOp::create(builder, loc, -1, /*width=*/32));
}

/// Has `build` run by the thread whose `number` is 0.
static void runOnZero(OpBuilder &builder, Location loc, Value number,
                      function_ref<void()> build) {
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        number, constantIndex(builder, loc, 0));
  auto branch = scf::IfOp::create(builder, loc, isFirst);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  build();
}

void Role::runOnFirst(OpBuilder &builder, Location loc,
                      function_ref<void()> build) const {
  if (threads == 1)
    return build();
  runOnZero(builder, loc, getThread(builder, loc), build);
}

void Role::runOnFirstOfWarps(OpBuilder &builder, Location loc,
                             function_ref<void()> build) const {
  runOnZero(builder, loc,
            arith::RemUIOp::create(builder, loc, getThreadId(builder, loc),
                                   constantIndex(builder, loc, kWarp)),
            build);
}

namespace {

/// Turns one `tile.roles` into branches.
class RolesLowering {
public:
  explicit RolesLowering(tile::RolesOp op)
      : op(op), builder(op), loc(op.getLoc()) {}

  void run() {
    thread = getThreadId(builder, loc);
    warp = getWarpId(builder, loc);
    if (op.getRegisters())
      lowerWarpgroups(/*number=*/0, /*firstWarp=*/0);
    else
      lower(/*number=*/0, op.getRoles().size(), /*firstWarp=*/0);
    op.erase();
  }

private:
  /// Builds `first` for warps ahead of `end`, and `others` for the rest.
  void branch(int64_t end, function_ref<void()> first,
              function_ref<void()> others) {
    Value isFirst =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, warp,
                              constantIndex(builder, loc, end));
    auto branch =
        scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.elseBlock());
    others();
    builder.setInsertionPointToStart(branch.thenBlock());
    first();
  }

  /// Builds the branches of role `number` and of those behind it, each of which
  /// sets its registers. The warps of a warpgroup do that together: roles that
  /// share one part behind it.
  void lowerWarpgroups(size_t number, int64_t firstWarp) {
    size_t next = number;
    int64_t end = firstWarp;
    do
      end += op.getWarps()[next++];
    while (end % kWarpsOfWarpgroup != 0);
    auto lowerFirst = [&] {
      setRegisters(number);
      lower(number, next, firstWarp);
    };
    if (next == op.getRoles().size())
      return lowerFirst();
    branch(end, lowerFirst, [&] { lowerWarpgroups(next, end); });
  }

  /// Builds the branches of the roles from `number` to `last`.
  void lower(size_t number, size_t last, int64_t firstWarp) {
    auto lowerFirst = [&] { inlineRole(number, firstWarp); };
    if (number + 1 == last)
      return lowerFirst();
    const int64_t end = firstWarp + op.getWarps()[number];
    branch(end, lowerFirst, [&] { lower(number + 1, last, end); });
  }

  void setRegisters(size_t number) {
    // A block begins with as many registers for each thread as fit, beside
    // other blocks of the multiprocessor.
    int64_t threads = 0;
    for (int64_t warps : op.getWarps())
      threads += warps * kWarp;
    auto program = op->getParentOfType<tile::ProgramOp>();
    threads *= std::max<int64_t>(1, program.getSchedule().getPersistent());
    constexpr int64_t all = 65536, unit = 8;
    int64_t each = all / threads / unit * unit;
    int64_t wanted = (*op.getRegisters())[number];
    if (wanted == each)
      return;
    NVVM::SetMaxRegisterOp::create(builder, loc, static_cast<int32_t>(wanted),
                                   wanted > each
                                       ? NVVM::SetMaxRegisterAction::increase
                                       : NVVM::SetMaxRegisterAction::decrease);
  }

  void inlineRole(size_t number, int64_t firstWarp) {
    int64_t threads = op.getThreads()[number];
    if (threads != op.getWarps()[number] * kWarp) {
      Value isActive = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ult, thread,
          constantIndex(builder, loc, firstWarp * kWarp + threads));
      auto branch = scf::IfOp::create(builder, loc, isActive);
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    Block *target = builder.getInsertionBlock();
    target->getOperations().splice(
        builder.getInsertionPoint(),
        op.getRoles()[number].front().getOperations());
  }

  tile::RolesOp op;
  OpBuilder builder;
  Location loc;
  Value thread, warp;
};

} // namespace

/// Whether `target` has the instructions that `op` becomes.
static bool isAvailable(Operation *op, const Target &target) {
  auto dot = dyn_cast<tile::DotOp>(op);
  if ((dot && dot.isOfWarpgroups()) ||
      isa<tile::BeginDotsOp, tile::WaitDotsOp>(op))
    return target.hasWarpgroupProducts();
  if (auto roles = dyn_cast<tile::RolesOp>(op); roles && roles.getRegisters())
    return target.hasWarpgroupProducts();
  if (isa<tile::RolesOp, tile::MakeBarriersOp, tile::MakeNumbersOp,
          tile::PutNumbersOp, tile::GetNumbersOp, tile::CopyNumbersOp,
          tile::TakeNumbersOp, tile::CopyBoxOp, tile::StoreBoxOp,
          tile::WaitStoresOp, tile::FenceSharedOp, tile::SendOp,
          tile::AnnounceBlockOp, tile::AwaitBlocksOp>(op))
    return target.hasBulkCopy();
  if (isa<tile::SynchronizeOp, tile::TakeTurnOp, tile::PassTurnOp,
          tile::CopyTileOp, tile::StoreTileOp, tile::AwaitCountOp,
          tile::ReleaseCountOp, tile::ConvertLayoutOp>(op))
    return !target.isHost();
  if (dot && getElementBytes(cast<ShapedType>(dot.getB().getType())) == 1)
    return target.hasSmallProducts();
  auto hasTile = [](Type type) { return bool(getFragmentLayout(type)); };
  if (llvm::any_of(op->getResultTypes(), hasTile) ||
      llvm::any_of(op->getOperandTypes(), hasTile))
    return !target.isHost();
  return true;
}

/// Checks that `type`, of `op`, is dealt to the threads of `role`.
static LogicalResult verifyThreads(Operation *op, Type type, const Role &role) {
  int64_t threads = role.getThreads();
  if (tile::MmaAttr layout = getFragmentLayout(type))
    threads = layout.getWarps() * kWarp;
  else if (tile::BlockedAttr layout = getLayout(type))
    threads = layout.getThreadRows() * layout.getThreadColumns();
  if (threads == role.getThreads())
    return success();
  return op->emitOpError("deals ")
         << type << " to " << threads << " threads, but is run by "
         << role.getThreads();
}

/// Checks that all threads of `role` hold both tiles of `op`, and that these
/// fit in shared memory that a kernel has without asking.
static LogicalResult verifyConversion(tile::ConvertLayoutOp op,
                                      const Role &role) {
  constexpr int64_t most = 48 * 1024;
  if (role.getThreads() % kWarp != 0)
    return op.emitOpError("is run by ")
           << role.getThreads() << " threads, which are no whole warps";
  if (failed(verifyThreads(op, op.getInput().getType(), role)) ||
      failed(verifyThreads(op, op.getType(), role)))
    return failure();
  const int64_t bytes = getConversionBytes(op);
  if (bytes <= most)
    return success();
  return op.emitOpError("takes a tile through ")
         << bytes << " bytes of shared memory, which are more than " << most
         << "; convert parts of it ('tile.split')";
}

/// Checks that the boxes that warps of `role` copy make up a slot.
static LogicalResult verifyWarps(tile::StoreBoxOp op, const Role &role) {
  int64_t rows = cast<MemRefType>(op.getBuffer().getType()).getDimSize(1);
  int64_t boxRows = 1;
  for (int64_t size : op.getOperand().getType().getBox().drop_back())
    boxRows *= size;
  // The order of bytes in a slot repeats itself after so many rows.
  constexpr int64_t unit = 8;
  if (role.getThreads() % kWarp == 0 && boxRows % unit == 0 &&
      boxRows * (role.getThreads() / kWarp) == rows)
    return success();
  return op.emitOpError("copies boxes of ")
         << boxRows << " rows for the warps of " << role.getThreads()
         << " threads, of which no slot of " << rows
         << " rows is made; each warp takes as many rows, a multiple of "
         << unit;
}

/// Checks where `op` stands: in which role, and who comes there.
static LogicalResult verifyPlace(Operation *op) {
  const Role role(op);
  if (isa<tile::TakeTurnOp, tile::PassTurnOp>(op)) {
    constexpr int64_t least = 2;
    if (!role.getNumber() || role.getWarpgroups() < least ||
        role.getWarpgroups() > Role::kMostTurns)
      return op->emitOpError("is for roles of ")
             << least << " to " << Role::kMostTurns
             << " warpgroups that take turns";
  }
  if (auto synchronize = dyn_cast<tile::SynchronizeOp>(op);
      synchronize && synchronize.getCluster() && role.getNumber())
    return op->emitOpError(
        "lets all threads of the cluster meet, but stands in "
        "a role, where not all of them come");
  if (isa<tile::AnnounceBlockOp>(op) && role.getNumber())
    return op->emitOpError("is run by all threads of the block, but stands in "
                           "a role");
  if (isa<tile::AwaitBlocksOp>(op) && role.getThreads() % kWarp != 0)
    return op->emitOpError("is run by ")
           << role.getThreads() << " threads, which are no whole warps";
  if (auto convert = dyn_cast<tile::ConvertLayoutOp>(op))
    return verifyConversion(convert, role);
  if (auto store = dyn_cast<tile::StoreBoxOp>(op); store && store.getWarp())
    return verifyWarps(store, role);
  for (Type type : op->getResultTypes()) {
    tile::MmaAttr layout = getFragmentLayout(type);
    if (!layout || layout.getWarps() * kWarp == role.getThreads())
      continue;
    return op->emitOpError("deals ")
           << type << " to " << layout.getWarps() << " warps, but is run by "
           << role.getThreads() << " threads";
  }
  return success();
}

/// Checks that a block of `program` fits in a multiprocessor of `target`.
static LogicalResult verifyLimits(tile::ProgramOp program,
                                  const Target &target) {
  if (target.isHost())
    return success();
  const int64_t threads = program.getSchedule().getThreads();
  const int64_t mostThreads = target.maxThreadsPerBlock;
  if (threads > mostThreads)
    return program.emitOpError("has ")
           << threads << " threads, but a block of " << target.name
           << " has at most " << mostThreads;
  const int64_t blocks = program.getSchedule().getBlocks();
  if (blocks > 1 && target.maxBlocksPerCluster == 1)
    return program.emitOpError("asks for clusters of ")
           << blocks << " blocks, which " << target.name << " does not have";
  if (blocks > Target::kMostBlocksPerCluster)
    return program.emitOpError("asks for clusters of ")
           << blocks << " blocks, which are more than the "
           << Target::kMostBlocksPerCluster << " of a cluster";
  const int64_t most = target.maxSharedBytesPerBlock;
  auto result = program.walk([&](tile::BufferOp buffer) {
    const int64_t end = buffer.getEnd(blocks);
    if (end <= most)
      return WalkResult::advance();
    buffer.emitOpError("ends at ")
        << end << " bytes, but a block of " << target.name << " has at most "
        << most << " of shared memory";
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  if (const int64_t bytes = program.getAllSharedBytes(); bytes > most)
    return program.emitOpError("takes ")
           << bytes << " bytes of shared memory with its barriers and numbers, "
           << "but a block of " << target.name << " has at most " << most;
  return success();
}

bool bastile::hasInstructions(const Target &target, tile::ProgramOp program) {
  return !program
              .walk([&](Operation *op) {
                return isAvailable(op, target) ? WalkResult::advance()
                                               : WalkResult::interrupt();
              })
              .wasInterrupted();
}

LogicalResult bastile::verifyRoles(tile::ProgramOp program,
                                   const Target &target) {
  auto result = program.walk([&](Operation *op) {
    if (!isAvailable(op, target)) {
      op->emitOpError("has no instructions on ") << target.name;
      return WalkResult::interrupt();
    }
    if (op != program && failed(verifyPlace(op)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted() ||
                 failed(verifyLimits(program, target)));
}

void bastile::lowerRoles(tile::ProgramOp program) {
  SmallVector<tile::RolesOp> all;
  program.walk([&](tile::RolesOp op) { all.push_back(op); });
  for (tile::RolesOp op : all)
    RolesLowering(op).run();
}
