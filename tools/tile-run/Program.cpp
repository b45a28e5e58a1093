//===- Program.cpp - Compiling and loading --------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "bastile/CodeGen.h"
#include "bastile/Compiler.h"
#include "bastile/Emulator.h"
#include "bastile/Jit.h"
#include "llvm/Support/WithColor.h"

using namespace bastile;
using namespace bastile::run;
using runtime::CudaDevice;
using runtime::Error;
using runtime::Expected;

llvm::LogicalResult run::report(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "tile-run") << message << "\n";
  return llvm::failure();
}

llvm::LogicalResult run::report(const Error &error) {
  return report(error.message());
}

static llvm::LogicalResult report(llvm::Error error) {
  return run::report(llvm::toString(std::move(error)));
}

Expected<std::shared_ptr<const CudaDevice>> run::openDevice() {
  auto driver = runtime::CudaDriver::open();
  if (!driver)
    return driver.takeError();
  return CudaDevice::open(*driver);
}

Expected<const Target *> run::getTarget(const CudaDevice &device) {
  const auto capability = static_cast<unsigned>(device.computeCapability());
  const Target *best = Target::forGpu(capability);
  if (!best)
    return Error("no target suits the GPU, " + device.name() +
                 " of compute capability " + std::to_string(capability / 10) +
                 "." + std::to_string(capability % 10));
  return best;
}

static llvm::FailureOr<std::unique_ptr<Machine>>
loadHost(mlir::ModuleOp module, const ProgramOptions &options) {
  llvm::LLVMContext context;
  auto llvmModule = translateToLLVM(module, context, *options.target);
  if (!llvmModule)
    return ::report(llvmModule.takeError());
  auto jit = Jit::create(**llvmModule);
  if (!jit)
    return ::report(jit.takeError());
  return makeHostMachine(std::move(*jit), options.threads);
}

static llvm::FailureOr<std::unique_ptr<Machine>>
loadGPU(mlir::ModuleOp module, const ProgramOptions &options) {
  auto ptx = generateAssembly(module, *options.target);
  if (!ptx)
    return ::report(ptx.takeError());
  auto machine = makeCudaMachine(options.device, *ptx);
  if (!machine)
    return run::report(machine.takeError());
  return std::move(*machine);
}

static llvm::FailureOr<std::unique_ptr<Machine>>
loadEmulator(mlir::ModuleOp module) {
  auto emulator = Emulator::create(module);
  if (!emulator)
    return ::report(emulator.takeError());
  return makeEmulatedMachine(std::move(*emulator));
}

llvm::FailureOr<Program> run::compile(mlir::ModuleOp module,
                                      const ProgramOptions &options) {
  CompileOptions compileOptions;
  compileOptions.verifyPasses = options.verifyPasses;
  compileOptions.target = options.target;
  compileOptions.schedule = options.schedule;
  compileOptions.gradients = options.gradients;
  compileOptions.kernels = options.kernels;
  llvm::json::Value document = nullptr;
  if (failed(lower(module, Level::NVVM, compileOptions, &document)))
    return llvm::failure();
  // Metadata is read from text here, as the runtime reads it from a file.
  std::string text;
  llvm::raw_string_ostream(text) << document;
  auto metadata = runtime::parseMetadata(text);
  if (!metadata)
    return run::report(metadata.takeError());
  llvm::FailureOr<std::unique_ptr<Machine>> machine =
      options.target->isHost() ? loadHost(module, options)
      : options.isEmulated     ? loadEmulator(module)
                               : loadGPU(module, options);
  if (failed(machine))
    return llvm::failure();
  return Program{std::move(*metadata), std::move(*machine)};
}
