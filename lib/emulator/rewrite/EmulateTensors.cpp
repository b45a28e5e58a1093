//===- EmulateTensors.cpp - Calls for copies of tensors -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/rewrite/EmulateOps.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
namespace calls = bastile::emulator_calls;

/// The mask of the blocks that get a copy, as the emulator takes it.
Value OpEmulator::multicastMask(Location loc, Value mask) {
  if (!mask)
    return constant(loc, /*value=*/-1);
  return LLVM::ZExtOp::create(builder, loc, i32(), mask);
}

bool OpEmulator::rewrite(NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
  if (op.getPredicate() || op.getMode() != NVVM::TMALoadMode::TILE ||
      op.getGroup())
    return false;
  Location loc = op.getLoc();
  spill(op, op.getCoordinates());
  call(loc, calls::loadTensor, Type(),
       {op.getDstMem(), op.getTmaDescriptor(), scratch(op),
        constant(loc, op.getCoordinates().size()), op.getMbar(),
        multicastMask(loc, op.getMulticastMask()), site(op)});
  op.erase();
  return true;
}

bool OpEmulator::rewrite(NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op) {
  if (op.getPredicate() || op.getMode() != NVVM::TMAStoreMode::TILE)
    return false;
  Location loc = op.getLoc();
  spill(op, op.getCoordinates());
  call(loc, calls::storeTensor, Type(),
       {op.getTmaDescriptor(), op.getSrcMem(), scratch(op),
        constant(loc, op.getCoordinates().size()), constant(loc, /*value=*/0),
        site(op)});
  op.erase();
  return true;
}

bool OpEmulator::rewrite(NVVM::CpAsyncBulkTensorReduceOp op) {
  if (op.getRedKind() != NVVM::TMAReduxKind::ADD ||
      op.getMode() != NVVM::TMAStoreMode::TILE)
    return false;
  Location loc = op.getLoc();
  spill(op, op.getCoordinates());
  call(loc, calls::storeTensor, Type(),
       {op.getTmaDescriptor(), op.getSrcMem(), scratch(op),
        constant(loc, op.getCoordinates().size()), constant(loc, /*value=*/1),
        site(op)});
  op.erase();
  return true;
}

bool OpEmulator::rewriteTensors(Operation *op) {
  Location loc = op->getLoc();
  auto become = [&](StringRef callee, ValueRange operands) {
    call(loc, callee, Type(), operands);
    op->erase();
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp,
            NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp,
            NVVM::CpAsyncBulkTensorReduceOp>(
          [&](auto copy) { return rewrite(copy); })
      .Case([&](NVVM::CpAsyncBulkGlobalToSharedClusterOp copy) {
        return become(calls::loadBytes,
                      {copy.getDstMem(), copy.getSrcMem(), copy.getMbar(),
                       copy.getSize(),
                       multicastMask(loc, copy.getMulticastMask()), site(op)});
      })
      .Case([&](NVVM::CpAsyncBulkCommitGroupOp) {
        return become(calls::closeStores, {});
      })
      .Case([&](NVVM::CpAsyncBulkWaitGroupOp wait) {
        return become(calls::waitForStores,
                      {constant(loc, wait.getGroup()),
                       constant(loc, wait.getRead() ? 1 : 0)});
      })
      .Case([&](NVVM::PrefetchOp prefetch) {
        op->erase();
        return true;
      })
      .Case([&](NVVM::FenceProxyOp fence) {
        switch (fence.getKind()) {
        case NVVM::ProxyKind::async:
        case NVVM::ProxyKind::async_shared:
          return become(calls::fenceProxies, {});
        // Nothing is checked of the order of accesses to the grid's memory.
        case NVVM::ProxyKind::async_global:
          op->erase();
          return true;
        default:
          return false;
        }
      })
      .Default(false);
}
