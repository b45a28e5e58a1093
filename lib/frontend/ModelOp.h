//===- ModelOp.h - Model ops by their names ---------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Creates model ops from names and texts, for bindings to other languages.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_FRONTEND_MODELOP_H
#define BASTILE_LIB_FRONTEND_MODELOP_H

#include "bastile/runtime/Error.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include <string>
#include <utility>
#include <vector>

namespace bastile {

/// The dialects that a source may use.
mlir::DialectRegistry makeDialectRegistry();

/// Loads the dialects that functions on whole tensors are built of. Loading all
/// registered dialects would take longer than building a function.
void loadFunctionDialects(mlir::MLIRContext &context);

/// Collects the diagnostics of a context, for errors.
class Messages {
public:
  explicit Messages(mlir::MLIRContext &context);

  /// The diagnostics since the last error, or `fallback`.
  runtime::Error fail(const llvm::Twine &fallback);

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// A model op to be created.
struct ModelOpRequest {
  /// The name of the op without its dialect.
  std::string op;
  /// The operands; null for an optional one that is absent.
  llvm::SmallVector<mlir::Value> operands;
  /// Names and values of attributes, as in MLIR's generic form.
  std::vector<std::pair<std::string, std::string>> attributes;
  /// The types of the results where those do not follow from the operands.
  std::vector<std::string> results;
};

/// The types of the results of `request`. Its operands may be in any block.
runtime::Expected<llvm::SmallVector<mlir::Type>>
inferModelOp(mlir::OpBuilder &builder, Messages &messages,
             const ModelOpRequest &request);

/// Creates the op. Fails, and creates nothing, if the op's verifier fails.
runtime::Expected<mlir::Operation *>
createModelOp(mlir::OpBuilder &builder, Messages &messages,
              const ModelOpRequest &request);

} // namespace bastile

#endif // BASTILE_LIB_FRONTEND_MODELOP_H
