//===- compile_time.cpp - How long compiling takes in a process -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// compile-time [--runs=N] [--grad=NAMES] FILE.mlir...: from text to PTX for
// sm_90, metadata included, each time with a context of its own as a process
// would; with --grad, backward too. Prints the first run, and the fastest and
// the median of N (41) in all; the fastest says most on a machine that has
// other work.
//
//===----------------------------------------------------------------------===//

#include "bastile/Compiler.h"
#include "bastile/Registration.h"
#include "lib/CodeGen.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include <algorithm>
#include <chrono>

using namespace bastile;

/// Returns the PTX, or nothing after a message.
static std::string compile(llvm::StringRef text, llvm::StringRef path,
                           const GradientOptions &gradients) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerTranslations(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, path),
                            llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler diagnostics(source, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module = parseSource(source, context);
  auto target = Target::lookup("sm_90");
  if (!module || !target)
    return "";
  CompileOptions options;
  options.target = &*target;
  options.gradients = gradients;
  llvm::json::Value metadata = nullptr;
  if (failed(lower(*module, Stage::NVVM, options, &metadata)))
    return "";
  auto ptx = generateAssembly(*module, *target);
  if (!ptx) {
    llvm::errs() << llvm::toString(ptx.takeError()) << "\n";
    return "";
  }
  return formatMetadataComment(metadata) + *ptx;
}

int main(int argc, char **argv) {
  unsigned runs = 41;
  llvm::outs() << llvm::formatv("{0,-32}{1,12}{2,14}{3,12}\n", "file",
                                "first, ms", "fastest, ms", "median, ms");
  GradientOptions gradients;
  for (int index = 1; index < argc; ++index) {
    if (llvm::StringRef flag = argv[index]; flag.consume_front("--grad=")) {
      gradients.arguments.clear();
      for (llvm::StringRef name : llvm::split(flag, ','))
        gradients.arguments.push_back(name.str());
      continue;
    }
    if (llvm::StringRef flag = argv[index]; flag.consume_front("--runs=")) {
      if (flag.getAsInteger(10, runs) || runs == 0) {
        llvm::errs() << "--runs expects a number from 1 up, not '" << flag
                     << "'\n";
        return 1;
      }
      continue;
    }
    std::string error;
    auto file = mlir::openInputFile(argv[index], &error);
    if (!file) {
      llvm::errs() << error << "\n";
      return 1;
    }
    std::vector<double> times;
    for (unsigned run = 0; run < runs; ++run) {
      auto start = std::chrono::steady_clock::now();
      if (compile(file->getBuffer(), argv[index], gradients).empty())
        return 1;
      std::chrono::duration<double, std::milli> elapsed =
          std::chrono::steady_clock::now() - start;
      times.push_back(elapsed.count());
    }
    double first = times.front();
    llvm::sort(times);
    llvm::outs() << llvm::formatv("{0,-32}{1,12:f1}{2,14:f1}{3,12:f1}\n",
                                  argv[index], first, times.front(),
                                  times[runs / 2]);
    llvm::outs().flush();
  }
  return 0;
}
