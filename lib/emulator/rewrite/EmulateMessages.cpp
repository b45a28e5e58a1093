//===- EmulateMessages.cpp - Calls for what arrives in shared memory ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/rewrite/EmulateOps.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/fragments/Fragments.h"
#include "passes/threads/ClusterExchange.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
namespace calls = bastile::emulator_calls;

bool OpEmulator::rewriteMessages(Operation *op) {
  Location loc = op->getLoc();
  auto become = [&](StringRef callee, ValueRange operands) {
    call(loc, callee, Type(), operands);
    op->erase();
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::MBarrierInitOp init) {
        return !init.getPredicate() &&
               become(calls::initBarrier,
                      {init.getAddr(), init.getCount(), site(op)});
      })
      // Nothing in the emulator knows the state that an arrival returns.
      .Case([&](NVVM::MBarrierArriveExpectTxOp arrive) {
        return !arrive.getPredicate() && op->use_empty() &&
               become(calls::expectMessages,
                      {arrive.getAddr(), constant(loc, /*value=*/1),
                       arrive.getTxcount(), site(op)});
      })
      .Case([&](NVVM::MBarrierArriveOp arrive) {
        Value count = arrive.getCount();
        return op->use_empty() &&
               become(calls::expectMessages,
                      {arrive.getAddr(),
                       count ? count : constant(loc, /*value=*/1),
                       constant(loc, /*value=*/0), site(op)});
      })
      .Case([&](NVVM::MBarrierExpectTxOp expect) {
        return become(calls::expectMessages,
                      {expect.getAddr(), constant(loc, /*value=*/0),
                       expect.getTxcount(), site(op)});
      })
      .Case([&](NVVM::MBarrierTryWaitOp wait) {
        if (!wait.getStateOrPhase().getType().isInteger(32))
          return false;
        call(loc, calls::waitForMessages, Type(),
             {wait.getAddr(), wait.getStateOrPhase(), site(op)});
        replace(op, LLVM::ConstantOp::create(builder, loc, builder.getI1Type(),
                                             true));
        return true;
      })
      .Case([&](NVVM::MBarrierTryWaitParityOp wait) {
        return become(calls::waitForMessages,
                      {wait.getAddr(), wait.getPhase(), site(op)});
      })
      .Case([&](LLVM::InlineAsmOp instruction) {
        SmallVector<Value> operands(instruction.getOperands());
        operands.push_back(site(op));
        if (instruction.getAsmString() == kSendInstruction)
          return become(calls::sendMessage, operands);
        return instruction.getAsmString() == kSendUnitInstruction &&
               become(calls::sendUnit, operands);
      })
      .Case([&](NVVM::CpAsyncOp copy) {
        Value bytes = constant(loc, copy.getSize());
        Value sourceBytes = copy.getCpSize();
        return become(calls::startCopy,
                      {copy.getDst(), copy.getSrc(), bytes,
                       sourceBytes ? sourceBytes : bytes, site(op)});
      })
      .Case([&](NVVM::CpAsyncCommitGroupOp) {
        return become(calls::closeCopies, {});
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp wait) {
        return become(calls::waitForCopies, constant(loc, wait.getN()));
      })
      .Case([&](tile::PollCountOp poll) {
        return become(calls::pollCount,
                      {poll.getAddress(), poll.getCount(), site(op)});
      })
      .Case([&](tile::PublishCountOp publish) {
        return become(calls::publishCount,
                      {publish.getAddress(), publish.getCount(), site(op)});
      })
      .Case([&](NVVM::FenceMbarrierInitOp) {
        return become(calls::fenceBarriers, {});
      })
      .Default([](Operation *) { return false; });
}
