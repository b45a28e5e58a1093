//===- Scratch.cpp - Shared memory of one op ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/pieces/Scratch.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace bastile;

static LLVM::GlobalOp declare(ConversionPatternRewriter &rewriter,
                              tile::ProgramOp program, Location loc, Type type,
                              int64_t elements, StringRef name) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(program);
  return LLVM::GlobalOp::create(
      rewriter, loc, LLVM::LLVMArrayType::get(type, elements),
      /*isConstant=*/false, LLVM::Linkage::Internal, name,
      /*value=*/Attribute(), /*alignment=*/16,
      static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
}

Value bastile::createScratch(ConversionPatternRewriter &rewriter, Operation *op,
                             Type type, int64_t elements) {
  auto module = op->getParentOfType<ModuleOp>();
  auto program = op->getParentOfType<tile::ProgramOp>();
  std::string name;
  unsigned index = 0;
  do {
    name = (program.getSymName() + "_scratch" + std::to_string(index++)).str();
  } while (module.lookupSymbol(name));
  LLVM::GlobalOp global =
      declare(rewriter, program, op->getLoc(), type, elements, name);
  return LLVM::AddressOfOp::create(rewriter, op->getLoc(), global);
}

Value bastile::getCommonScratch(ConversionPatternRewriter &rewriter,
                                Operation *op, int64_t bytes,
                                StringRef memory) {
  auto program = op->getParentOfType<tile::ProgramOp>();
  std::string name = (program.getSymName() + "_" + memory).str();
  Type type = rewriter.getI8Type();
  auto global =
      op->getParentOfType<ModuleOp>().lookupSymbol<LLVM::GlobalOp>(name);
  if (!global)
    global = declare(rewriter, program, op->getLoc(), type, bytes, name);
  auto array = cast<LLVM::LLVMArrayType>(global.getGlobalType());
  if (bytes > static_cast<int64_t>(array.getNumElements()))
    rewriter.modifyOpInPlace(global, [&] {
      global.setGlobalType(LLVM::LLVMArrayType::get(type, bytes));
    });
  return LLVM::AddressOfOp::create(rewriter, op->getLoc(), global);
}

Value bastile::getScratchAddress(OpBuilder &builder, Location loc,
                                 Value scratch, Type type, Value index) {
  Value offset =
      arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), index);
  return LLVM::GEPOp::create(builder, loc, scratch.getType(), type, scratch,
                             ValueRange{offset}, LLVM::GEPNoWrapFlags::none);
}

Value bastile::mapToBlock(OpBuilder &builder, Location loc, Value address,
                          Value block) {
  constexpr auto memory =
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster);
  return NVVM::MapaOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext(), memory),
      address, block);
}

Value bastile::countVisits(ConversionPatternRewriter &rewriter, Operation *op) {
  Location loc = op->getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(rewriter, loc, value, /*width=*/32);
  };
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(
      &op->getParentOfType<tile::ProgramOp>().getBody().front());
  Value counter = LLVM::AllocaOp::create(
      rewriter, loc, LLVM::LLVMPointerType::get(rewriter.getContext()),
      rewriter.getI32Type(), constant(1));
  LLVM::StoreOp::create(rewriter, loc, constant(0), counter);
  rewriter.setInsertionPoint(op);
  Value count =
      LLVM::LoadOp::create(rewriter, loc, rewriter.getI32Type(), counter);
  LLVM::StoreOp::create(
      rewriter, loc,
      arith::AddIOp::create(rewriter, loc, count, constant(1)).getResult(),
      counter);
  return count;
}

void bastile::waitForReaders(OpBuilder &builder, Operation *op) {
  if (op->getParentOfType<scf::ForOp>())
    gpu::BarrierOp::create(builder, op->getLoc());
}
