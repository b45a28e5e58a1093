//===- compile_time.cpp - How long compiling takes in a process -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// compile-time [--runs=N] [--target=NAME] [--grad=NAMES] [--all-variants]
// FILE.mlir...: from text to PTX, for sm_90 if no target is given, metadata
// included, each time with a context of its own as a process would; with
// --grad, backward too. What is compiled is what a process compiles at first,
// the kernels for aligned tensors, and with --all-variants what tilec does.
// Prints the first run, and the fastest and the median of N (41) in all; the
// fastest says most on a machine that has other work. The last column is the
// fastest run's processor time, of all threads together.
//
//===----------------------------------------------------------------------===//

#include "bastile/TextCompiler.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <ctime>

using namespace bastile;

/// The processor time of all threads of this process so far, in ms.
static double getProcessorTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_nsec);
}

int main(int argc, char **argv) {
  unsigned runs = 41;
  llvm::outs() << llvm::formatv("{0,-32}{1,12}{2,14}{3,12}{4,16}\n", "file",
                                "first, ms", "fastest, ms", "median, ms",
                                "processor, ms");
  CompileRequest request;
  request.target = "sm_90";
  request.kernels = KernelSelection::firstVariants();
  for (int index = 1; index < argc; ++index) {
    if (llvm::StringRef flag = argv[index]; flag.consume_front("--grad=")) {
      request.gradients.arguments.clear();
      for (llvm::StringRef name : llvm::split(flag, ','))
        request.gradients.arguments.push_back(name.str());
      continue;
    }
    if (llvm::StringRef flag = argv[index]; flag.consume_front("--target=")) {
      request.target = flag.str();
      continue;
    }
    if (llvm::StringRef(argv[index]) == "--all-variants") {
      request.kernels = KernelSelection();
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
    auto file = llvm::MemoryBuffer::getFile(argv[index]);
    if (!file) {
      llvm::errs() << argv[index] << ": " << file.getError().message() << "\n";
      return 1;
    }
    request.name = argv[index];
    request.source = (*file)->getBuffer().str();
    std::vector<double> times, processorTimes;
    for (unsigned run = 0; run < runs; ++run) {
      const double processorBefore = getProcessorTime();
      auto start = std::chrono::steady_clock::now();
      auto compiled = compileText(request);
      if (!compiled) {
        llvm::errs() << compiled.takeError().message() << "\n";
        return 1;
      }
      std::chrono::duration<double, std::milli> elapsed =
          std::chrono::steady_clock::now() - start;
      times.push_back(elapsed.count());
      processorTimes.push_back(getProcessorTime() - processorBefore);
    }
    double first = times.front();
    llvm::sort(times);
    llvm::outs() << llvm::formatv(
        "{0,-32}{1,12:f1}{2,14:f1}{3,12:f1}{4,16:f1}\n", argv[index], first,
        times.front(), times[runs / 2], *llvm::min_element(processorTimes));
    llvm::outs().flush();
  }
  return 0;
}
