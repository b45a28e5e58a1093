//===- tile-opt.cpp - Run Bastile's passes on an .mlir file ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Registration.h"
#include "bastile/SourceDiagnostics.h"

#include "bastile/SourceLimits.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// Whether the parser has the stack and memory that `file` takes; reports an
/// error if it has not.
static bool canParse(const llvm::MemoryBuffer &file) {
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(file.getMemBufferRef(),
                                       /*RequiresNullTerminator=*/false),
      llvm::SMLoc());
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bastile::SourceDiagnostics diagnostics(source, &context);
  return succeeded(bastile::checkLimits(source, context));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  bastile::registerDialects(registry);
  bastile::registerPasses();
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "Bastile's tile dialect optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  // With these options, no input is read.
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> result =
      file ? openOutputFile(output, &error) : nullptr;
  if (!result) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  if (!canParse(*file) ||
      failed(MlirOptMain(result->os(), std::move(file), registry, config)))
    return EXIT_FAILURE;
  result->keep();
  return EXIT_SUCCESS;
}
