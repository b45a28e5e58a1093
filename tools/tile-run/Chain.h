//===- Chain.h - A backward on the results of its forward -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_CHAIN_H
#define BASTILE_TOOLS_TILERUN_CHAIN_H

#include "Inputs.h"
#include "Oracle.h"
#include "Program.h"

namespace bastile::run {

/// A call of a function that computes gradients, and the call of its forward
/// before it, so that statistics are those of the inputs and not random.
struct Chain {
  const runtime::Function *forward = nullptr;
  /// The inputs of the forward, and the gradients of its outputs that have one.
  std::vector<Tensor> inputs;
  std::vector<std::optional<Tensor>> seeds;
  /// The inputs of the function that computes gradients.
  std::vector<Tensor> taken;
};

/// The function whose gradients `function` computes, or null.
const runtime::Function *findForward(const runtime::Metadata &metadata,
                                     const runtime::Function &function);

/// Makes the inputs of `forward` and the gradients of its results, and runs it.
/// The names in `options` may be inputs of the forward, or inputs of `function`
/// that are gradients.
runtime::Expected<Chain> runForward(const Program &program,
                                    const runtime::Function &forward,
                                    const runtime::Function &function,
                                    const InputOptions &options,
                                    const Oracle &oracle, ArrayFiles &files);

/// One output of a function that computes gradients, with its expectation.
struct ChainedOutput {
  std::string name;
  const Tensor *tensor;
  Expectation expected;
};

/// The expectations of `oracle` for the `outputs` of a call of `function` on
/// `chain`, which must outlive the result.
runtime::Expected<std::vector<ChainedOutput>>
expectChained(const Chain &chain, const runtime::Function &function,
              const std::vector<Tensor> &outputs, const Oracle &oracle);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_CHAIN_H
