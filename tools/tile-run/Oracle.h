//===- Oracle.h - The expected results of calls -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_ORACLE_H
#define BASTILE_TOOLS_TILERUN_ORACLE_H

#include "Compare.h"
#include "bastile/Compiler.h"
#include "bastile/runtime/Error.h"
#include "bastile/runtime/Metadata.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>

namespace bastile::run {

/// One expectation for each tensor; nothing where there is nothing to compare
/// with.
using Expectations = std::vector<std::optional<Expectation>>;

/// Tells what the functions of a source should compute.
class Oracle {
public:
  virtual ~Oracle();

  /// How many of the first outputs of `function` are the source's results. The
  /// compiler adds the outputs that follow.
  virtual unsigned countResults(const runtime::Function &function) const = 0;

  /// Whether functions return gradients beside their values. Their backwards
  /// then only multiply these gradients.
  virtual bool returnsGradients() const = 0;

  /// Whether gradients of inputs called `name` were asked for.
  virtual bool isGradientOf(const std::string &name) const = 0;

  /// The outputs that a call of `function`, of the source, should write.
  virtual runtime::Expected<Expectations>
  evaluate(const runtime::Function &function,
           const std::vector<Tensor> &inputs) const = 0;

  /// The gradient of each of the inputs of `function`, of the source, given
  /// those of its results.
  virtual runtime::Expected<Expectations>
  differentiate(const runtime::Function &function,
                const std::vector<Tensor> &inputs,
                const std::vector<std::optional<Tensor>> &seeds) const = 0;
};

/// An oracle that evaluates the functions of `module` as written, without any
/// pass of the compiler (dialect/reference/Evaluate.h). `gradients` says which
/// gradients the compiler adds to them. The module is copied.
std::unique_ptr<Oracle> makeOracle(mlir::ModuleOp module,
                                   const GradientOptions &gradients);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_ORACLE_H
