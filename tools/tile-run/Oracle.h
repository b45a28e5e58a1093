//===- Oracle.h - What calls should compute -------------------*- C++ -*-===//
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

/// Nothing where there is nothing to compare with.
using Expectations = std::vector<std::optional<Expectation>>;

/// Says what the functions of a source should compute.
class Oracle {
public:
  virtual ~Oracle();

  /// How many of the first outputs of `function` are the source's results.
  /// Those that follow are what the compiler adds.
  virtual unsigned countResults(const runtime::Function &function) const = 0;

  /// Whether functions return gradients beside their values, so that what
  /// belongs to them only multiplies these.
  virtual bool returnsGradients() const = 0;

  /// Whether the gradient of inputs called `name` was asked for.
  virtual bool isGradientOf(const std::string &name) const = 0;

  /// What a call of `function`, of the source, should write to each output.
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

/// An oracle that evaluates the functions of `module` as written, none of the
/// compiler's passes taking part (dialect/reference/Evaluate.h). `gradients` is
/// what the compiler adds to them. The module is copied.
std::unique_ptr<Oracle> makeOracle(mlir::ModuleOp module,
                                   const GradientOptions &gradients);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_ORACLE_H
