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
  /// Runs the code of a GPU on the emulator.
  bool isEmulated = false;
  /// Fields pinned in every schedule.
  std::string schedule;
  /// The gradients to derive.
  GradientOptions gradients;
  /// The variants to generate code for; no others can be launched.
  KernelSelection kernels;
  /// How many threads run the functions on the host.
  unsigned threads = 1;
  /// Verify the module after each pass.
  bool verifyPasses = false;
};

/// Opens the machine's first GPU.
runtime::Expected<std::shared_ptr<const runtime::CudaDevice>> openDevice();

/// The target that suits `device` best.
runtime::Expected<const Target *> getTarget(const runtime::CudaDevice &device);

/// Lowers and compiles `module`, and loads the result. A failure has been
/// reported as a diagnostic.
llvm::FailureOr<Program> compile(mlir::ModuleOp module,
                                 const ProgramOptions &options);

/// Reports an error that has no place in the source.
llvm::LogicalResult report(const llvm::Twine &message);
llvm::LogicalResult report(const runtime::Error &error);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_PROGRAM_H
