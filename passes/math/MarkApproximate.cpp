//===- MarkApproximate.cpp - Which functions may be approximate -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Marks the ops that a GPU may approximate. A rounding to 16 bits or fewer
// hides the error of the GPU's approximations. Values that reach a wider result
// without such a rounding are wide: one backward walk from the stores of such
// results finds them, and all other values of the kernel may be approximate. A
// result that is only read by values that are rounded later is marked, and does
// not count as wide.
//
// A comparison for equality hides nothing: one loop computes the numbers,
// another one computes them again, and both must find the same bits. So all
// values that lead to such a comparison are wide, whether they are rounded or
// not.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/analysis/HiddenErrors.h"
#include "passes/threads/ClusterExchange.h"

using namespace mlir;
using namespace bastile;

namespace {

bool isWide(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 16;
}

/// Whether one instruction, or a formula around one, may stand for `op`.
bool hasApproximation(Operation *op) {
  return isa<arith::DivFOp, math::CosOp, math::ErfOp, math::ErfcOp, math::ExpOp,
             math::Exp2Op, math::LogOp, math::Log1pOp, math::Log2Op,
             math::PowFOp, math::RsqrtOp, math::SinOp, math::SqrtOp,
             math::TanhOp>(op);
}

/// The variable that `address` is in, or the pointer that it is computed from.
Value getBase(Value address) {
  while (Operation *op = address.getDefiningOp()) {
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp, NVVM::MapaOp>(op))
      break;
    address = op->getOperand(0);
  }
  return address;
}

/// What all addresses of one variable have in common, and which number of an
/// exchange lies there; 0 elsewhere.
using Variable = std::pair<const void *, int64_t>;

/// The variable at `address`, which `op` reads or writes.
Variable getVariable(Value address, Operation *op) {
  Value base = getBase(address);
  auto number = op->getAttrOfType<IntegerAttr>(kNumberAttrName);
  const int64_t index = number ? number.getInt() : 0;
  if (auto global = base.getDefiningOp<LLVM::AddressOfOp>())
    return {global.getGlobalNameAttr().getAsOpaquePointer(), index};
  return {base.getAsOpaquePointer(), index};
}

bool isShared(Value address) {
  auto space = static_cast<NVVM::NVVMMemorySpace>(
      cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace());
  return space == NVVM::NVVMMemorySpace::Shared ||
         space == NVVM::NVVMMemorySpace::SharedCluster;
}

/// Whether `address` lies in a result that may be approximate.
bool mayBeApproximate(Value address) {
  auto argument = dyn_cast<BlockArgument>(getBase(address));
  auto program =
      argument ? dyn_cast<tile::ProgramOp>(argument.getOwner()->getParentOp())
               : tile::ProgramOp();
  return program && program.isArgApproximate(argument.getArgNumber());
}

class WideValues {
public:
  explicit WideValues(tile::ProgramOp program) {
    program.walk([&](Operation *op) { visit(op); });
    if (functions.empty())
      return;
    isExact = true;
    followAll(compared);
    isExact = false;
    followAll(results);
  }

  void markTheOthers() {
    for (Operation *op : functions) {
      if (wide.contains(op->getResult(0)))
        continue;
      addFlags(op, kApproximate);
    }
  }

private:
  void visit(Operation *op) {
    if (asksForEqual(op))
      return llvm::append_range(compared, op->getOperands());
    if (auto store = dyn_cast<LLVM::StoreOp>(op))
      return visitStore(store, store.getAddr(), store.getValue());
    if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op)) {
      if (isWide(store.getValue().getType()))
        results.push_back(store.getMask());
      return visitStore(store, store.getData(), store.getValue());
    }
    if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
        assembly && sendsNumbers(assembly))
      return;
    if (hasApproximation(op) && !getElementTypeOrSelf(op->getResult(0)).isF64())
      return functions.push_back(op);
    // Products keep their numbers in registers.
    if (isa<tile::WgmmaOp, tile::WgmmaFenceOp, tile::WgmmaWaitOp>(op))
      return;
    // Atomic additions, and any other op that takes numbers out of the kernel.
    bool takesFloats = llvm::any_of(op->getOperandTypes(), [](Type type) {
      return isa<FloatType>(getElementTypeOrSelf(type));
    });
    if (takesFloats && op->getNumRegions() == 0 &&
        !op->hasTrait<OpTrait::IsTerminator>() && !isMemoryEffectFree(op))
      llvm::append_range(results, op->getOperands());
  }

  /// Numbers reach the shared memory of other blocks by assembly, which takes
  /// an address there ahead of them. Returns whether `assembly` is of this
  /// kind.
  bool sendsNumbers(LLVM::InlineAsmOp assembly) {
    OperandRange operands = assembly.getOperands();
    auto isPointer = [](Value value) {
      return isa<LLVM::LLVMPointerType>(value.getType());
    };
    if (operands.empty() || !isPointer(operands.front()) ||
        !isShared(operands.front()))
      return false;
    for (Value value : operands.drop_front())
      if (!isPointer(value))
        visitStore(assembly, operands.front(), value);
    return true;
  }

  void visitStore(Operation *op, Value address, Value value) {
    if (isShared(address))
      sharedStores[getVariable(address, op)].push_back(value);
    else if (isWide(value.getType()) && !mayBeApproximate(address))
      results.push_back(value);
  }

  void followAll(ArrayRef<Value> values) {
    for (Value value : values)
      add(value);
    while (!pending.empty())
      follow(pending.pop_back_val());
  }

  void add(Value value) {
    Type type = value.getType();
    if ((isExact || !isNarrowFloat(type)) && !type.isIndex() &&
        wide.insert(value).second)
      pending.push_back(value);
  }

  void addOperands(Operation *op) {
    for (Value operand : op->getOperands())
      add(operand);
  }

  void follow(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return followArgument(argument);
    auto result = cast<OpResult>(value);
    Operation *op = result.getOwner();
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      if (isShared(load.getAddr()))
        for (Value stored :
             sharedStores.lookup(getVariable(load.getAddr(), load)))
          add(stored);
      return;
    }
    // A relative error of a logarithm's operand is an absolute error of the
    // logarithm, as small as that of rounding the operand.
    if (!isExact && isa<math::LogOp, math::Log2Op>(op))
      return;
    if (isa<tile::WgmmaFenceOp, tile::WgmmaWaitOp>(op))
      return add(op->getOperand(result.getResultNumber()));
    if (op->getNumRegions() == 0) {
      // An op of many results, such as a product, has as many operands.
      if (followed.insert(op).second)
        addOperands(op);
      return;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return followIteration(loop, result.getResultNumber());
    // The value that each branch yields for this result.
    addOperands(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (auto yield = dyn_cast<scf::YieldOp>(block.getTerminator()))
          add(yield.getOperand(result.getResultNumber()));
  }

  void followArgument(BlockArgument argument) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument.getArgNumber() >= loop.getNumInductionVars())
      followIteration(loop,
                      argument.getArgNumber() - loop.getNumInductionVars());
  }

  void followIteration(scf::ForOp loop, unsigned index) {
    add(loop.getInitArgs()[index]);
    add(loop.getYieldedValues()[index]);
  }

  SmallVector<Operation *> functions;
  DenseMap<Variable, SmallVector<Value, 2>> sharedStores;
  DenseSet<Value> wide;
  /// Ops whose operands are wide, since a result is.
  DenseSet<Operation *> followed;
  SmallVector<Value> pending;
  /// The values that the walk begins at: those that leave the kernel, and those
  /// that are compared for equality.
  SmallVector<Value> results, compared;
  /// Whether no rounding ends the walk.
  bool isExact = false;
};

} // namespace

void bastile::addFlags(Operation *op, arith::FastMathFlags flags) {
  auto function = cast<arith::ArithFastMathInterface>(op);
  flags = flags | function.getFastMathFlagsAttr().getValue();
  op->setAttr(function.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}

void bastile::markApproximate(tile::ProgramOp program) {
  WideValues(program).markTheOthers();
}
