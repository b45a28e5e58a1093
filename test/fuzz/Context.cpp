//===- Context.cpp - The MLIR context that inputs share -------------------===//

#include "Context.h"
#include "bastile/Registration.h"
#include "lib/CodeGen.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <memory>

using namespace bastile;
using namespace mlir;

MLIRContext &fuzz::getContext() {
  constexpr unsigned inputsOfContext = 200;
  static std::unique_ptr<MLIRContext> context;
  static unsigned inputs = 0;
  if (!context || ++inputs == inputsOfContext) {
    inputs = 0;
    DialectRegistry registry;
    registerDialects(registry);
    registerTranslations(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    context->printOpOnDiagnostic(false);
  }
  return *context;
}

bool fuzz::isModule(llvm::StringRef text) {
  MLIRContext &context = getContext();
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  return bool(parseSourceString<ModuleOp>(text, &context));
}
