//===- Context.cpp - The MLIR context that inputs share -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "Watch.h"
#include "bastile/CodeGen.h"
#include "bastile/Registration.h"
#include "bastile/SourceLimits.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
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

OwningOpRef<ModuleOp> fuzz::parse(llvm::SourceMgr &source,
                                  MLIRContext &context) {
  if (failed(checkLimits(source, context)))
    return nullptr;
  return parseSourceFile<ModuleOp>(source, ParserConfig(&context));
}

bool fuzz::isModule(llvm::StringRef text) {
  Attempt attempt(text);
  TimeLimit limit;
  MLIRContext &context = getContext();
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text),
                            llvm::SMLoc());
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  return bool(parse(source, context));
}
