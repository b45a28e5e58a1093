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
#include "llvm/Support/Error.h"

namespace bastile {

/// The command-line flags that every compiling tool shares.
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
                 llvm::cl::value_desc("names"), llvm::cl::cat(category)),
        dropValue("drop-value",
                  llvm::cl::desc("Leave out that first result, which is only "
                                 "there to be differentiated"),
                  llvm::cl::cat(category)) {}

  /// Sets `options` by the flags and the tool's own `inPlace`. Fails, with a
  /// message, if the flags contradict each other.
  llvm::Error apply(bool inPlace, GradientOptions &options) const {
    if (backward.getNumOccurrences() && together.getNumOccurrences())
      return llvm::createStringError(
          "'--grad' makes a function of the gradients, '--value-and-grad' adds "
          "them to one: give one of them");
    if (dropValue && !together.getNumOccurrences())
      return llvm::createStringError("'--drop-value' needs '--value-and-grad'");
    options.together = together.getNumOccurrences();
    options.dropValue = dropValue;
    options.inPlace = inPlace;
    const llvm::cl::opt<std::string> &flag =
        options.together ? together : backward;
    options.arguments.clear();
    if (!flag.getNumOccurrences())
      return llvm::Error::success();
    if (flag.empty()) {
      options.arguments.push_back("all");
      return llvm::Error::success();
    }
    for (llvm::StringRef name : llvm::split(llvm::StringRef(flag), ',')) {
      if (name.empty())
        return llvm::createStringError("'--" + flag.ArgStr + "=" + flag +
                                       "' has an empty name");
      options.arguments.push_back(name.str());
    }
    return llvm::Error::success();
  }

private:
  llvm::cl::opt<std::string> backward, together;
  llvm::cl::opt<bool> dropValue;
};

} // namespace bastile

#endif // BASTILE_TOOLS_GRADIENTFLAGS_H
