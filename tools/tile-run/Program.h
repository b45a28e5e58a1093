//===- Program.h - Compiling and loading ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_PROGRAM_H
#define BASTILE_TOOLS_TILERUN_PROGRAM_H

#include "Machine.h"
#include "bastile/Compiler.h"
#include "bastile/Target.h"
#include "mlir/IR/BuiltinOps.h"

namespace bastile::run {

/// Compiled functions, loaded into the machine that runs them.
struct Program {
  runtime::Metadata metadata;
  std::unique_ptr<Machine> machine;
};

struct ProgramOptions {
  const Target *target = nullptr;
  /// The GPU to run on; null for the host, and for an emulator.
  std::shared_ptr<const runtime::CudaDevice> device;
  /// Run a GPU's code on an emulator.
  bool isEmulated = false;
  /// Fields pinned in every schedule.
  std::string schedule;
  /// Gradients to derive.
  GradientOptions gradients;
  /// Which variants to make code of; only those may be needed.
  KernelSelection kernels;
  /// How many threads run the functions on the host.
  unsigned threads = 1;
};

/// Opens the machine's first GPU.
runtime::Expected<std::shared_ptr<const runtime::CudaDevice>> openDevice();

/// The target that suits `device` best.
runtime::Expected<const Target *> getTarget(const runtime::CudaDevice &device);

/// Compiles `module`, which it lowers, and loads the result. Errors have been
/// reported when this fails.
llvm::FailureOr<Program> compile(mlir::ModuleOp module,
                                 const ProgramOptions &options);

/// Reports an error that has no place in the source.
llvm::LogicalResult report(const llvm::Twine &message);
llvm::LogicalResult report(const runtime::Error &error);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_PROGRAM_H
