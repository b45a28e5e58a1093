//===- GradientFlags.h - The gradients to derive ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_GRADIENTFLAGS_H
#define BASTILE_TOOLS_GRADIENTFLAGS_H

#include "bastile/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

namespace bastile {

/// The flags of every tool that compiles.
class GradientFlags {
public:
  explicit GradientFlags(llvm::cl::OptionCategory &category)
      : backward("grad", llvm::cl::ValueOptional,
                 llvm::cl::desc("Add the backward of each function, for all "
                                "arguments of floats or those named"),
                 llvm::cl::value_desc("names"), llvm::cl::cat(category)),
        together("value-and-grad", llvm::cl::ValueOptional,
                 llvm::cl::desc("Let each function return the gradients of its "
                                "first result's sum, too"),
                 llvm::cl::value_desc("names"), llvm::cl::cat(category)) {}

  /// Sets what the flags say; fails if they contradict each other.
  bool apply(GradientOptions &options) const {
    if (backward.getNumOccurrences() && together.getNumOccurrences()) {
      llvm::errs() << "error: '--grad' makes a function of the gradients, "
                      "'--value-and-grad' adds them to one: give one of them\n";
      return false;
    }
    options.together = together.getNumOccurrences();
    const llvm::cl::opt<std::string> &flag =
        options.together ? together : backward;
    if (!flag.getNumOccurrences())
      return true;
    options.arguments.clear();
    for (llvm::StringRef name : llvm::split(llvm::StringRef(flag), ','))
      options.arguments.push_back(name.empty() ? "all" : name.str());
    return true;
  }

private:
  llvm::cl::opt<std::string> backward, together;
};

} // namespace bastile

#endif // BASTILE_TOOLS_GRADIENTFLAGS_H
