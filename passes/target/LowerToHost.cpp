//===- LowerToHost.cpp - Lower programs to functions of the host ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/target/LowerToLLVM.h"

namespace bastile {
#define GEN_PASS_DEF_LOWERTOHOST
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Makes `program` a function that unpacks its arguments and runs a range of
/// programs in a loop.
void buildHostFunction(tile::ProgramOp program) {
  ImplicitLocOpBuilder builder(program.getLoc(), program);
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type(), index = builder.getIndexType();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), {pointer, i64, i64, i64});
  auto func = LLVM::LLVMFuncOp::create(builder, program.getSymName(), type);
  builder.setInsertionPointToStart(func.addEntryBlock(builder));
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(builder, index, value);
  };
  SmallVector<Value> arguments;
  for (auto [position, argument] :
       llvm::enumerate(program.getArgumentTypes())) {
    Value slot = LLVM::GEPOp::create(
        builder, pointer, pointer, func.getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(position)});
    Value address = LLVM::LoadOp::create(builder, pointer, slot);
    bool isIndex = argument.isIndex();
    Value value =
        LLVM::LoadOp::create(builder, isIndex ? i64 : argument, address);
    arguments.push_back(isIndex ? toIndex(value) : value);
  }
  Value begin = toIndex(func.getArgument(1)),
        end = toIndex(func.getArgument(2));
  Value count = toIndex(func.getArgument(3));
  Value one = arith::ConstantIndexOp::create(builder, 1);
  auto loop = scf::ForOp::create(builder, begin, end, one);
  LLVM::ReturnOp::create(builder, ValueRange());

  program.walk([&](Operation *op) {
    if (isa<tile::ProgramIdOp>(op))
      op->replaceAllUsesWith(ValueRange(loop.getInductionVar()));
    else if (isa<tile::ProgramCountOp>(op))
      op->replaceAllUsesWith(ValueRange(count));
    else
      return;
    op->erase();
  });
  Block &body = program.getBody().front();
  body.getTerminator()->erase();
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  Block *target = loop.getBody();
  target->getOperations().splice(target->getTerminator()->getIterator(),
                                 body.getOperations());
  program.erase();
}

/// Stores bfloat16 as integers: where LLVM merges the stores of two branches,
/// its code generation would take the choice between vectors of bfloat16
/// through float32, rounding by calls.
void storeAsIntegers(LLVM::StoreOp store) {
  Type type = store.getValue().getType();
  if (!getElementTypeOrSelf(type).isBF16())
    return;
  OpBuilder builder(store);
  Type bits = builder.getI16Type();
  if (auto vector = dyn_cast<VectorType>(type))
    bits = vector.clone(bits);
  store.getValueMutable().assign(
      LLVM::BitcastOp::create(builder, store.getLoc(), bits, store.getValue()));
}

struct LowerToHostPass
    : public bastile::impl::LowerToHostBase<LowerToHostPass> {
  void runOnOperation() override {
    if (failed(verifyIsLowered(getOperation())))
      return signalPassFailure();
    eraseLaunchPlan(getOperation());
    for (auto program :
         llvm::make_early_inc_range(getOperation().getOps<tile::ProgramOp>()))
      buildHostFunction(program);
    auto addPatterns = [](LLVMTypeConverter &converter,
                          RewritePatternSet &patterns, ConversionTarget &) {
      // Functions of float64 that the processor lacks come from libm, which
      // takes the numbers of a vector one by one.
      populateMathToLibmConversionPatterns(patterns);
      populateFuncToLLVMConversionPatterns(converter, patterns);
    };
    if (failed(convertToLLVM(getOperation(), addPatterns)))
      return signalPassFailure();
    getOperation().walk(storeAsIntegers);
  }
};

} // namespace
