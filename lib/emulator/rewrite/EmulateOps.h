//===- EmulateOps.h - Operations of a GPU as calls to the emulator -*- C++
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//-*-=//

#ifndef BASTILE_LIB_EMULATOR_REWRITE_EMULATEOPS_H
#define BASTILE_LIB_EMULATOR_REWRITE_EMULATEOPS_H

#include "dialect/Tile.h"
#include "lib/emulator/rewrite/EmulateGpu.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace bastile {

/// Names an operation and its place in the source, for messages.
std::string describe(mlir::Operation *op);

/// Rewrites one operation at a time, for `rewriteForEmulation`.
class OpEmulator {
public:
  OpEmulator(mlir::ModuleOp module, EmulatedModule &result)
      : module(module), builder(module.getContext()), layout(module),
        result(result) {}

  /// Returns false for an operation that the emulator cannot run.
  bool rewrite(mlir::Operation *op);

  /// Has the emulator check, where the registers of products are used, that the
  /// products are over. Called ahead of the rewriting.
  void checkProductUses(mlir::LLVM::LLVMFuncOp function);

private:
  using Location = mlir::Location;
  using Operation = mlir::Operation;
  using Type = mlir::Type;
  using Value = mlir::Value;

  bool rewriteRegister(Operation *op);
  bool rewriteMemory(Operation *op);
  bool rewriteMessages(Operation *op);
  bool rewriteTensors(Operation *op);
  bool rewriteWarpgroup(Operation *op);
  bool rewriteMatrices(Operation *op);
  bool rewriteIntrinsic(mlir::LLVM::CallIntrinsicOp op);
  bool rewriteApproximate(mlir::Operation *op);

  void rewrite(mlir::LLVM::AddressOfOp op);
  void rewrite(mlir::NVVM::ShflOp op);
  void rewrite(mlir::NVVM::VoteSyncOp op);
  void rewrite(mlir::NVVM::BarrierOp op);
  void rewrite(mlir::NVVM::ConvertF32x2ToF8x2Op op);
  void rewrite(mlir::NVVM::ConvertF8x2ToF16x2Op op);
  void rewrite(mlir::LLVM::MaskedLoadOp op);
  void rewrite(mlir::LLVM::MaskedStoreOp op);
  bool rewrite(mlir::NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op);
  bool rewrite(mlir::NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op);
  bool rewrite(mlir::NVVM::CpAsyncBulkTensorReduceOp op);
  bool rewrite(mlir::NVVM::MmaOp op);
  bool rewriteProduct(mlir::LLVM::CallIntrinsicOp op);
  /// Replaces `op`, a product of a warp of these operands in registers.
  void multiply(Operation *op, FactorType aType, FactorType bType,
                mlir::ValueRange a, mlir::ValueRange b, mlir::ValueRange sums);
  bool rewrite(mlir::NVVM::LdMatrixOp op);
  bool rewrite(mlir::NVVM::StMatrixOp op);
  /// Replaces a struct of registers, or a single one, by what lies in the
  /// scratch memory.
  void replaceByScratch(Operation *op);
  bool rewrite(tile::WgmmaOp op);
  bool rewrite(tile::WgmmaWaitOp op);
  Value multicastMask(Location loc, Value mask);
  void callStep(Operation *op, WarpgroupStep step, int64_t operand = 0,
                unsigned words = 0);

  /// Emits a call to the emulator, declaring it when it is the first one.
  Value call(Location loc, llvm::StringRef callee, Type resultType,
             mlir::ValueRange operands);
  void replace(Operation *op, Value value);

  Value constant(Location loc, int64_t value) {
    return mlir::LLVM::ConstantOp::create(builder, loc, i32(), value);
  }
  Value constant64(Location loc, int64_t value) {
    return mlir::LLVM::ConstantOp::create(builder, loc, i64(), value);
  }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }
  Type pointer() {
    return mlir::LLVM::LLVMPointerType::get(builder.getContext());
  }

  /// Memory of the thread through which values pass to the emulator and back,
  /// each in words of four bytes.
  Value scratch(Operation *op);
  /// Stores values there, from `word` on; returns the next free word.
  unsigned spill(Operation *op, mlir::ValueRange values, unsigned word = 0);
  Value scratchAt(Operation *op, unsigned word);
  /// How many words values take.
  unsigned wordsOf(mlir::ValueRange values);

  /// The index of the text by which messages name `op`.
  Value site(Operation *op);
  void checkAccess(Operation *op, Value address, Type type,
                   std::optional<uint64_t> alignment, EmulatedAccess access);
  void checkMasked(Operation *op, Value address, Value mask,
                   mlir::VectorType type, uint64_t alignment,
                   EmulatedAccess access);

  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  mlir::DataLayout layout;
  EmulatedModule &result;
  llvm::DenseMap<Operation *, Value> scratches;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_REWRITE_EMULATEOPS_H
