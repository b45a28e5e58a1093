//===- EmulateGpu.cpp - Rewriting a GPU module for the emulator -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/rewrite/EmulateGpu.h"
#include "lib/emulator/rewrite/EmulateOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace bastile;
using namespace mlir;

/// Lists the variables of the module, gives the shared ones their place in the
/// block's memory and takes those out of the module.
static void collectVariables(ModuleOp module, EmulatedModule &result) {
  DataLayout layout(module);
  uint64_t dynamicAlignment = 1;
  for (auto global :
       llvm::make_early_inc_range(module.getBody()->getOps<LLVM::GlobalOp>())) {
    EmulatedVariable variable;
    variable.name = global.getSymName().str();
    variable.bytes = layout.getTypeSize(global.getType());
    variable.isConstant = global.getConstant();
    variable.isShared = global.getAddrSpace() ==
                        static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
    uint64_t alignment = global.getAlignment().value_or(
        layout.getTypeABIAlignment(global.getType()));
    if (!variable.isShared) {
      global.setAddrSpace(0);
      // The emulator asks for the address by name.
      global.setLinkage(LLVM::Linkage::External);
    } else if (variable.bytes == 0) {
      variable.isDynamic = true;
      dynamicAlignment = std::max(dynamicAlignment, alignment);
    } else {
      variable.offset = llvm::alignTo(result.staticSharedBytes, alignment);
      result.staticSharedBytes = variable.offset + variable.bytes;
    }
    if (variable.isShared)
      global.erase();
    result.variables.push_back(std::move(variable));
  }

  // The dynamic part starts behind the static one; all variables of the dynamic
  // part start there.
  result.staticSharedBytes =
      llvm::alignTo(result.staticSharedBytes, dynamicAlignment);
  for (EmulatedVariable &variable : result.variables)
    if (variable.isDynamic)
      variable.offset = result.staticSharedBytes;
}

static void eraseAddressSpaces(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](LLVM::LLVMPointerType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  module.walk([](LLVM::AddrSpaceCastOp op) {
    op.replaceAllUsesWith(op.getArg());
    op.erase();
  });
}

/// Adds the function that a launch calls, with an array of pointers to the
/// kernel's arguments.
static EmulatedKernel makeEntry(LLVM::LLVMFuncOp kernel, OpBuilder &builder) {
  EmulatedKernel info;
  DataLayout layout(kernel->getParentOfType<ModuleOp>());
  info.name = kernel.getName().str();
  info.entry = "bastile.emulator.entry." + info.name;
  if (auto block = kernel->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getReqntidAttrName()))
    info.requiredBlock = llvm::to_vector<3>(block.asArrayRef());
  if (auto cluster = kernel->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getClusterDimAttrName()))
    info.requiredCluster = cluster[0];
  for (NamedAttribute attribute :
       llvm::to_vector(kernel->getDiscardableAttrs()))
    if (isa_and_present<NVVM::NVVMDialect>(attribute.getNameDialect()))
      kernel->removeDiscardableAttr(attribute.getName());

  Location loc = UnknownLoc::get(builder.getContext());
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type nothing = LLVM::LLVMVoidType::get(builder.getContext());
  OpBuilder::InsertionGuard guard(builder);
  auto entry = LLVM::LLVMFuncOp::create(
      builder, loc, info.entry, LLVM::LLVMFunctionType::get(nothing, pointer));
  Block *body = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  SmallVector<Value> arguments;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, pointer, pointer, body->getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
    if (auto byValue = kernel.getArgAttrOfType<TypeAttr>(
            index, LLVM::LLVMDialect::getByValAttrName())) {
      info.byValue.push_back({static_cast<unsigned>(index),
                              layout.getTypeSize(byValue.getValue())});
      arguments.push_back(address);
      continue;
    }
    arguments.push_back(LLVM::LoadOp::create(builder, loc, type, address));
  }
  // These attributes are about parameters of a GPU's kernel.
  kernel.removeArgAttrsAttr();
  LLVM::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return info;
}

llvm::Expected<EmulatedModule> bastile::rewriteForEmulation(ModuleOp module) {
  EmulatedModule result;
  collectVariables(module, result);

  SmallVector<Operation *> operations;
  SmallVector<LLVM::LLVMFuncOp> kernels;
  DenseSet<Operation *> waiting;
  module.walk([&](LLVM::LLVMFuncOp function) {
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      kernels.push_back(function);
    function.getBody().walk([&](Operation *op) {
      operations.push_back(op);
      if (isa<tile::PollCountOp, tile::PublishCountOp>(op))
        waiting.insert(function);
    });
  });

  OpEmulator emulator(module, result);
  module.walk(
      [&](LLVM::LLVMFuncOp function) { emulator.checkProductUses(function); });
  for (Operation *op : operations) {
    std::string description = describe(op);
    if (!emulator.rewrite(op))
      return llvm::createStringError("the emulator does not run " +
                                     description);
  }
  eraseAddressSpaces(module);

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (LLVM::LLVMFuncOp kernel : kernels) {
    result.kernels.push_back(makeEntry(kernel, builder));
    result.kernels.back().waitsForCounts = waiting.contains(kernel);
  }
  // The GPU's triple and data layout.
  for (NamedAttribute attribute :
       llvm::to_vector(module->getDiscardableAttrs()))
    module->removeDiscardableAttr(attribute.getName());
  return result;
}
