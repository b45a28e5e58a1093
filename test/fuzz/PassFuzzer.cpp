//===- PassFuzzer.cpp - Single passes on modules of any kind --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Runs the passes that an input's first line names, as tile-opt does, so that a
// pass also meets programs that no earlier pass would have made.
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "Mutator.h"
#include "Options.h"
#include "Watch.h"
#include "bastile/Registration.h"
#include "bastile/SourceDiagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace bastile;

static constexpr llvm::StringLiteral pipelineOption = " --pass-pipeline=";

static const StringRef optionLines[] = {
    "--pass-pipeline=builtin.module(decompose)",
    "--pass-pipeline=builtin.module(differentiate{gradients=all})",
    "--pass-pipeline=builtin.module(differentiate{gradients=all together})",
    "--pass-pipeline=builtin.module(func.func(split-rows))",
    "--pass-pipeline=builtin.module(fuse)",
    "--pass-pipeline=builtin.module(schedule)",
    "--pass-pipeline=builtin.module(schedule{target=host})",
    "--pass-pipeline=builtin.module(tile)",
    "--pass-pipeline=builtin.module(tile{target=host})",
    "--pass-pipeline=builtin.module(keep-rows)",
    "--pass-pipeline=builtin.module(merge-launches)",
    "--pass-pipeline=builtin.module(overlap-launches)",
    "--pass-pipeline=builtin.module(distribute)",
    "--pass-pipeline=builtin.module(distribute{target=host})",
    "--pass-pipeline=builtin.module(lower-tiles)",
    "--pass-pipeline=builtin.module(lower-tiles{target=host})",
    "--pass-pipeline=builtin.module(expand-math)",
    "--pass-pipeline=builtin.module(expand-math{target=host})",
    "--pass-pipeline=builtin.module(lower-to-nvvm)",
    "--pass-pipeline=builtin.module(lower-to-host)",
};

extern "C" int LLVMFuzzerInitialize(int *count, char ***arguments) {
  fuzz::setFindings({*arguments, size_t(*count)});
  registerPasses();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  auto [options, rest] = text.split('\n');
  if (!options.consume_front(fuzz::optionsPrefix) ||
      !options.consume_front(pipelineOption))
    return 0;
  fuzz::TimeLimit limit;
  MLIRContext &context = fuzz::getContext();
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  FailureOr<OpPassManager> pipeline = parsePassPipeline(options, stream);
  if (failed(pipeline))
    return 0;

  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(rest, "fuzz"),
                            llvm::SMLoc());
  SourceDiagnostics diagnostics(source, &context, stream);
  OwningOpRef<ModuleOp> module = fuzz::parse(source, context);
  if (!module)
    return 0;
  PassManager passes(&context, pipeline->getOpAnchorName());
  static_cast<OpPassManager &>(passes) = *pipeline;
  // Each pass must accept or refuse any valid module. The first pass that
  // leaves an invalid one is to blame, and not those behind it.
  passes.enableVerifier();
  const LogicalResult result = passes.run(*module);
  fuzz::checkUses(*module);
  if (succeeded(result))
    fuzz::noteOps(*module);
  fuzz::noteMessages(messages);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  return fuzz::mutateText(data, size, maxSize, seed, optionLines);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first,
                                            size_t firstSize,
                                            const uint8_t *second,
                                            size_t secondSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  return fuzz::crossText({reinterpret_cast<const char *>(first), firstSize},
                         {reinterpret_cast<const char *>(second), secondSize},
                         out, maxSize, seed);
}
