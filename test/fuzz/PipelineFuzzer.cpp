//===- PipelineFuzzer.cpp - Text through the whole compiler ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Parses, verifies and lowers text as tilec does, with the options of its first
// line. The runtime must be able to read the metadata of text that compiles.
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "Mutator.h"
#include "Options.h"
#include "Watch.h"
#include "bastile/CodeGen.h"
#include "bastile/Compiler.h"
#include "bastile/Source.h"
#include "bastile/SourceDiagnostics.h"
#include "bastile/runtime/Metadata.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>

using namespace mlir;
using namespace bastile;

/// A mutant without a line of options gets one, and now and then another mutant
/// does.
static const StringRef optionLines[] = {
    "--target=sm_90a",
    "--target=sm_90a --grad",
    "--target=sm_90a --value-and-grad",
    "--target=sm_90a --value-and-grad --in-place",
    "--target=sm_90a --value-and-grad --drop-value",
    "--target=sm_90a --grad --emit=ptx",
    "--target=sm_80 --grad",
    "--target=host",
    "--target=host --grad",
    "--target=host --grad --emit=asm",
    "--target=host --value-and-grad",
    "--target=host --value-and-grad --in-place",
    "--target=host --value-and-grad --drop-value",
};

namespace {

struct Options {
  CompileOptions compile;
  /// Whether LLVM generates code, too.
  bool emits = false;
};

} // namespace

static Options getOptions(StringRef text) {
  Options options;
  options.compile.target = &llvm::cantFail(Target::lookup("sm_90a"));
  GradientOptions &gradients = options.compile.gradients;
  auto setGradients = [&](StringRef names) {
    gradients.arguments.clear();
    if (!names.consume_front("="))
      gradients.arguments.push_back("all");
    for (StringRef name : llvm::split(names, ','))
      if (!name.empty())
        gradients.arguments.push_back(name.str());
  };
  for (StringRef option : fuzz::getOptions(text)) {
    if (option.consume_front("--target=")) {
      if (llvm::Expected<const Target &> target = Target::lookup(option))
        options.compile.target = &*target;
      else
        llvm::consumeError(target.takeError());
    } else if (option.consume_front("--grad")) {
      setGradients(option);
    } else if (option.consume_front("--value-and-grad")) {
      setGradients(option);
      gradients.together = true;
    } else if (option.consume_front("--schedule=")) {
      options.compile.schedule = option.str();
    }
    gradients.inPlace |= option == "--in-place";
    gradients.dropValue |= option == "--drop-value";
    options.emits |= option.starts_with("--emit=");
  }
  // The command line refuses this option without gradients.
  gradients.inPlace &= gradients.together;
  gradients.dropValue &= gradients.together;
  return options;
}

extern "C" int LLVMFuzzerInitialize(int *count, char ***arguments) {
  fuzz::setFindings({*arguments, size_t(*count)});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  const Options options = getOptions(text);
  fuzz::TimeLimit limit;
  MLIRContext &context = fuzz::getContext();
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz"),
                            llvm::SMLoc());
  SourceDiagnostics diagnostics(source, &context, stream);

  OwningOpRef<ModuleOp> module = parseSource(source, context);
  llvm::json::Value metadata = nullptr;
  const bool isLowered = module && succeeded(lower(*module, Level::NVVM,
                                                   options.compile, &metadata));
  if (module)
    fuzz::checkUses(*module);
  if (!isLowered) {
    // A refusal must come with a reason.
    if (messages.empty())
      std::abort();
    fuzz::noteMessages(messages);
    return 0;
  }
  fuzz::noteOps(*module);
  auto read = runtime::parseMetadata(llvm::formatv("{0}", metadata).str());
  if (!read) {
    llvm::errs() << read.takeError().message() << "\n";
    std::abort();
  }
  if (options.emits)
    llvm::consumeError(
        generateAssembly(*module, *options.compile.target).takeError());
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
