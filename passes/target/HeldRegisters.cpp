//===- HeldRegisters.cpp - What threads hold while they wait --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/target/HeldRegisters.h"

#include "dialect/Warps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/schedule/RowsModel.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// What `value` was made of by moving bits alone, or by repeating it.
static Value getSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::BitcastOp, arith::ExtFOp, arith::ExtUIOp, arith::ShLIOp,
             arith::AndIOp, vector::BitCastOp, vector::BroadcastOp,
             vector::ShapeCastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The registers of a vector, or of a number that is one. Addresses and the
/// numbers of rows and columns are no part of what is held of a row.
static int64_t countRegisters(Type type) {
  constexpr int64_t registerBits = 32;
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  if (vector ? !element.isIntOrFloat() : !isa<FloatType>(type))
    return 0;
  const int64_t elements = vector ? vector.getNumElements() : 1;
  return llvm::divideCeil(elements * element.getIntOrFloatBitWidth(),
                          registerBits);
}

/// The most registers that numbers take which a thread of `program` holds while
/// it waits for other threads. Numbers are counted as they were loaded, since
/// widening them once more takes no registers.
static int64_t countHeldRegisters(tile::ProgramOp program) {
  Block &body = program.getBody().front();
  // Of each value that is computed in the program, the last op of its block
  // that reads it or what is made of it.
  llvm::MapVector<Value, Operation *> lastReaders;
  for (Operation &op : body)
    op.walk([&](Operation *reader) {
      for (Value operand : reader->getOperands()) {
        Value source = getSource(operand);
        Operation *definition = source.getDefiningOp();
        if (definition && definition->getBlock() == &body &&
            !isa<arith::ConstantOp>(definition))
          lastReaders[source] = &op;
      }
    });
  DenseMap<Operation *, int64_t> changes;
  for (auto [value, reader] : lastReaders) {
    const int64_t registers = countRegisters(value.getType());
    changes[value.getDefiningOp()] += registers;
    changes[reader] -= registers;
  }
  int64_t held = 0, most = 0;
  for (Operation &op : body) {
    held += changes.lookup(&op);
    if (isa<gpu::BarrierOp, scf::WhileOp>(op))
      most = std::max(most, held);
  }
  return most;
}

/// The registers that each thread can have where a multiprocessor has room for
/// so many blocks.
static int64_t getRegistersOfThread(int64_t threads, int64_t blocks) {
  // A multiprocessor has four sets of registers, among which warps are shared
  // out, and gives each thread a multiple of eight.
  constexpr int64_t sets = 4, multiple = 8;
  const int64_t warps = llvm::divideCeil(threads * blocks, kWarp * sets);
  return kRegistersPerMultiprocessor / (sets * kWarp * warps) / multiple *
         multiple;
}

int32_t bastile::countBlocksThatFit(tile::ProgramOp program, int32_t most) {
  // Beside these, addresses and what is computed at a time: so many were the
  // fewest in clusters of random formulas that did not spill.
  constexpr int64_t others = 8;
  if (most == 1)
    return most;
  const int64_t needed = countHeldRegisters(program) + others;
  int32_t blocks = most;
  while (blocks > 1 && getRegistersOfThread(program.getSchedule().getThreads(),
                                            blocks) < needed)
    --blocks;
  return blocks;
}
