//===- Context.cpp - The MLIR context that inputs share -------------------===//

#include "Context.h"
#include "bastile/Registration.h"
#include "lib/CodeGen.h"
#include "mlir/IR/DialectRegistry.h"

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
