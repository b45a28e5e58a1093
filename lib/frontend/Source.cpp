//===- Source.cpp - Files, and parsing with the names of arguments --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Source.h"

#include "bastile/CodeGen.h"
#include "bastile/Registration.h"
#include "bastile/SourceLimits.h"
#include "dialect/Tile.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

using namespace mlir;

/// IR does not keep the names of SSA values; the parser's record for editors
/// knows where each argument was written.
static void nameArguments(ModuleOp module, const AsmParserState &state) {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    const auto *block = state.getBlockDef(&func.front());
    if (!block)
      continue;
    for (auto [index, argument] : llvm::enumerate(block->arguments)) {
      llvm::SMRange range = argument.loc;
      if (!range.isValid() || index >= func.getNumArguments())
        continue;
      StringRef name(range.Start.getPointer(),
                     range.End.getPointer() - range.Start.getPointer());
      name.consume_front("%");
      if (!func.getArgAttr(index, bastile::tile::TileDialect::kNameAttrName))
        func.setArgAttr(index, bastile::tile::TileDialect::kNameAttrName,
                        StringAttr::get(module.getContext(), name));
    }
  }
}

OwningOpRef<ModuleOp> bastile::parseSource(llvm::SourceMgr &source,
                                           MLIRContext &context) {
  if (failed(checkLimits(source, context)))
    return {};
  Block block;
  AsmParserState state;
  // One mistake in the source may break more than one rule of the parser.
  bool reported = false;
  ScopedDiagnosticHandler firstErrorOnly(&context, [&](Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    bool repeated = isError && reported;
    reported |= isError;
    return success(repeated);
  });
  ParserConfig config(&context);
  if (failed(parseAsmSourceFile(source, &block, config, &state)))
    return {};
  Location loc = FileLineColLoc::get(
      &context,
      source.getMemoryBuffer(source.getMainFileID())->getBufferIdentifier(),
      /*line=*/0, /*column=*/0);
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
          &block, &context, loc);
  if (module)
    nameArguments(*module, state);
  return module;
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  bastile::registerDialects(registry);
  bastile::registerTranslations(registry);
  return registry;
}

// Threads gain nothing for one small module, and starting them costs more than
// compiling it.
bastile::SourceFile::SourceFile(std::unique_ptr<llvm::MemoryBuffer> contents)
    : context(makeRegistry(), MLIRContext::Threading::DISABLED),
      diagnostics(source, &context) {
  source.AddNewSourceBuffer(std::move(contents), llvm::SMLoc());
}

llvm::Expected<std::unique_ptr<bastile::SourceFile>>
bastile::SourceFile::open(StringRef path) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> contents = openInputFile(path, &error);
  if (!contents)
    return llvm::createStringError(error);
  return std::unique_ptr<SourceFile>(new SourceFile(std::move(contents)));
}
