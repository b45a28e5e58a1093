//===- Chain.h - A backward on what its forward has left ------*- C++ -*-===//
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

/// A call of a function that computes gradients, and the call of the forward
/// that has to come before it: statistics are those of the inputs, not random.
struct Chain {
  const runtime::Function *forward = nullptr;
  /// The inputs of the forward, and the gradients of its outputs, where it
  /// has any.
  std::vector<Tensor> inputs;
  std::vector<std::optional<Tensor>> seeds;
  /// What the function that computes gradients is called on.
  std::vector<Tensor> taken;
};

/// The function of whose gradients `function` is, or null.
const runtime::Function *findForward(const runtime::Metadata &metadata,
                                     const runtime::Function &function);

/// Makes the inputs of `forward` and the gradients of its results, and runs it.
/// `options` may name inputs of the forward, and of `function` those that are
/// gradients.
runtime::Expected<Chain> runForward(const Program &program,
                                    const runtime::Function &forward,
                                    const runtime::Function &function,
                                    const InputOptions &options,
                                    const Oracle &oracle, ArrayFiles &files);

/// Part of what a function that computes gradients has come to.
struct ChainedOutput {
  std::string name;
  const Tensor *tensor;
  Expectation expected;
};

/// What `oracle` says of the `outputs` of a call of `function` on `chain`,
/// which must outlive the result.
runtime::Expected<std::vector<ChainedOutput>>
expectChained(const Chain &chain, const runtime::Function &function,
              const std::vector<Tensor> &outputs, const Oracle &oracle);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_CHAIN_H
