//===- ClusterExchange.cpp - Messages between the blocks of a cluster -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/ClusterExchange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/pieces/Scratch.h"
#include "passes/threads/LowerTiles.h"

using namespace mlir;
using namespace bastile;

ClusterExchange::ClusterExchange(ConversionPatternRewriter &rewriter,
                                 Operation *op, Type type, int64_t slots,
                                 int64_t blocks)
    : rewriter(rewriter), op(op), loc(op->getLoc()), type(type), slots(slots),
      blocks(blocks), places(op->getParentOfType<scf::ForOp>() ? 2 : 1) {
  assert(type.getIntOrFloatBitWidth() == 32 && "a message has 32 bits");
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(
      &op->getParentOfType<tile::ProgramOp>().getBody().front());
  memory = createScratch(rewriter, op, type, slots * places);
  barriers = createScratch(rewriter, op, rewriter.getI64Type(), places);
  prepareBarriers();
  prepareTurns();
}

Value ClusterExchange::constant(int64_t value) {
  return arith::ConstantIntOp::create(rewriter, loc, value, /*width=*/32);
}

Value ClusterExchange::getElement(Value base, Type element, Value index) {
  return LLVM::GEPOp::create(rewriter, loc, base.getType(), element, base,
                             ValueRange{index}, LLVM::GEPNoWrapFlags::none);
}

Value ClusterExchange::isFirstThread() {
  Value thread = getThreadId(rewriter, loc);
  return arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::eq, thread,
      arith::ConstantIndexOp::create(rewriter, loc, 0));
}

/// Makes `barrier` wait for the bytes of one more exchange.
void ClusterExchange::expect(Value barrier) {
  NVVM::MBarrierArriveExpectTxOp::create(
      rewriter, loc, /*res=*/Type(), barrier, constant(slots * 4),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
}

/// Initializes the barriers, ahead of the meeting of the blocks, after which
/// messages may come.
void ClusterExchange::prepareBarriers() {
  auto branch = scf::IfOp::create(rewriter, loc, isFirstThread());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  for (int64_t index = 0; index < places; ++index) {
    Value barrier =
        getElement(barriers, rewriter.getI64Type(), constant(index));
    NVVM::MBarrierInitOp::create(rewriter, loc, barrier, constant(1),
                                 /*predicate=*/Value());
    expect(barrier);
  }
  NVVM::FenceMbarrierInitOp::create(rewriter, loc);
}

/// Finds the set of places whose turn it is.
void ClusterExchange::prepareTurns() {
  if (places == 1) {
    place = parity = constant(0);
    return;
  }
  Value count = countVisits(rewriter, op);
  rewriter.setInsertionPoint(op);
  place = arith::AndIOp::create(rewriter, loc, count, constant(1));
  parity = arith::ShRUIOp::create(rewriter, loc, count, constant(1));
  parity = arith::AndIOp::create(rewriter, loc, parity, constant(1));
}

void ClusterExchange::send(ValueRange values, ValueRange indices, Value lane) {
  // The first lanes send, each to one block.
  Value count = arith::ConstantIndexOp::create(rewriter, loc, blocks);
  Value sends = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                      lane, count);
  auto branch = scf::IfOp::create(rewriter, loc, sends);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  // LLVM may move the mapping ahead of the branch, so it has to be of a block
  // that exists.
  Value last = arith::ConstantIndexOp::create(rewriter, loc, blocks - 1);
  Value block = arith::IndexCastUIOp::create(
      rewriter, loc, rewriter.getI32Type(),
      arith::MinUIOp::create(rewriter, loc, lane, last).getResult());
  auto map = [&](Value address) {
    return mapToBlock(rewriter, loc, address, block);
  };
  Value barrier = map(getElement(barriers, rewriter.getI64Type(), place));
  Value remote = map(
      getElement(memory, type,
                 arith::MulIOp::create(rewriter, loc, place, constant(slots))));
  for (auto [number, value, index] : llvm::enumerate(values, indices)) {
    Value bits =
        LLVM::BitcastOp::create(rewriter, loc, rewriter.getI32Type(), value);
    Value slot = arith::IndexCastUIOp::create(rewriter, loc,
                                              rewriter.getI32Type(), index);
    auto send = LLVM::InlineAsmOp::create(
        rewriter, loc, /*res=*/Type(),
        ValueRange{getElement(remote, type, slot), bits, barrier},
        kSendInstruction, "l,r,l,~{memory}", /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
        LLVM::AsmDialectAttr(), ArrayAttr());
    send->setAttr(kNumberAttrName,
                  rewriter.getI64IntegerAttr(static_cast<int64_t>(number)));
  }
}

Value ClusterExchange::receive() {
  Value barrier = getElement(barriers, rewriter.getI64Type(), place);
  waitForPhase(rewriter, loc, barrier, parity);
  if (places > 1) {
    auto branch = scf::IfOp::create(rewriter, loc, isFirstThread());
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    expect(barrier);
  }
  return getElement(
      memory, type,
      arith::MulIOp::create(rewriter, loc, place, constant(slots)));
}

/// Finds the ops behind `exchange` that `other` depends on, in their order.
/// Returns whether they may all stand ahead of it.
static bool findOpsAhead(tile::ExchangeOp exchange, tile::ExchangeOp other,
                         SmallVectorImpl<Operation *> &ahead) {
  Block *block = exchange->getBlock();
  llvm::SmallPtrSet<Operation *, 16> found;
  SmallVector<Operation *> reached;
  auto enter = [&](Operation *op) {
    op->walk([&](Operation *reader) {
      for (Value operand : reader->getOperands()) {
        Operation *definition = operand.getDefiningOp();
        if (definition)
          definition = block->findAncestorOpInBlock(*definition);
        if (definition && !definition->isBeforeInBlock(exchange) &&
            definition != op && found.insert(definition).second)
          reached.push_back(definition);
      }
    });
  };
  enter(other);
  while (!reached.empty()) {
    Operation *op = reached.pop_back_val();
    if (isa<tile::ExchangeOp>(op) || !isPure(op))
      return false;
    enter(op);
  }
  for (Operation &op : *block)
    if (found.contains(&op))
      ahead.push_back(&op);
  return true;
}

/// Lets `exchange` send the parts of `other` as well, and returns what both
/// become.
static tile::ExchangeOp join(tile::ExchangeOp exchange,
                             tile::ExchangeOp other) {
  SmallVector<Value> inputs(exchange.getInputs());
  llvm::append_range(inputs, other.getInputs());
  SmallVector<Type> types(exchange.getResultTypes());
  llvm::append_range(types, other.getResultTypes());
  OpBuilder builder(exchange);
  auto joined =
      tile::ExchangeOp::create(builder, exchange.getLoc(), types, inputs);
  const unsigned count = exchange.getNumResults();
  exchange.replaceAllUsesWith(joined.getResults().take_front(count));
  other.replaceAllUsesWith(joined.getResults().drop_front(count));
  exchange.erase();
  other.erase();
  return joined;
}

void bastile::joinExchanges(tile::ProgramOp program) {
  SmallVector<tile::ExchangeOp> exchanges;
  program.walk([&](tile::ExchangeOp op) { exchanges.push_back(op); });
  for (size_t first = 0; first < exchanges.size(); ++first)
    for (size_t next = first + 1; next < exchanges.size();) {
      tile::ExchangeOp exchange = exchanges[first], other = exchanges[next];
      SmallVector<Operation *> ahead;
      if (other->getBlock() != exchange->getBlock() ||
          other.getInputs().front().getType() !=
              exchange.getInputs().front().getType() ||
          !findOpsAhead(exchange, other, ahead)) {
        ++next;
        continue;
      }
      for (Operation *op : ahead)
        op->moveBefore(exchange);
      exchanges[first] = join(exchange, other);
      exchanges.erase(exchanges.begin() + next);
    }
}

// Messages may come once a block has started and initialized its barriers. The
// blocks announce that ahead of their loads, so that few are left to wait for
// when the loads have returned.
void bastile::insertClusterMeeting(tile::ProgramOp program) {
  Operation *first = nullptr;
  program.walk([&](tile::ExchangeOp op) {
    first = program.getBody().front().findAncestorOpInBlock(*op);
    return WalkResult::interrupt();
  });
  if (!first)
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
  NVVM::ClusterArriveRelaxedOp::create(builder, first->getLoc(),
                                       builder.getUnitAttr());
  builder.setInsertionPoint(first);
  NVVM::ClusterWaitOp::create(builder, first->getLoc(), builder.getUnitAttr());
}
