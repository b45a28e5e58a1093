//===- ModelOp.h - Model ops by their names ---------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What builds text for other languages creates model ops with.
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

/// The dialects that a text may have.
mlir::DialectRegistry makeDialectRegistry();

/// Loads the dialects that functions on whole tensors are built of. To load all
/// that are registered takes longer than to build a function.
void loadFunctionDialects(mlir::MLIRContext &context);

/// Collects what is reported in a context, for errors.
class Messages {
public:
  explicit Messages(mlir::MLIRContext &context);

  /// What was reported since the last error, or `fallback`.
  runtime::Error fail(const llvm::Twine &fallback);

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// A model op to be created.
struct ModelOpRequest {
  /// Without its dialect.
  std::string op;
  /// Null for one that the op can do without, and is left out.
  llvm::SmallVector<mlir::Value> operands;
  /// Names and values as in MLIR's generic form.
  std::vector<std::pair<std::string, std::string>> attributes;
  /// The types of the results where those do not follow from the operands.
  std::vector<std::string> results;
};

/// The types of the results of `request`. Its operands may be of any block.
runtime::Expected<llvm::SmallVector<mlir::Type>>
inferModelOp(mlir::OpBuilder &builder, Messages &messages,
             const ModelOpRequest &request);

/// Creates the op. Fails, and creates nothing, where its verifier does.
runtime::Expected<mlir::Operation *>
createModelOp(mlir::OpBuilder &builder, Messages &messages,
              const ModelOpRequest &request);

} // namespace bastile

#endif // BASTILE_LIB_FRONTEND_MODELOP_H
