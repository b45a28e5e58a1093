//===- Source.cpp - Files, and parsing with the names of arguments --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CodeGen.h"
#include "bastile/Compiler.h"
#include "bastile/Registration.h"
#include "dialect/Tile.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"

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

/// MLIR's parser calls itself for whatever is inside of something else, and has
/// no limit of its own.
static constexpr unsigned maxNesting = 256;

/// Where `text` is first nested deeper than `maxNesting`; null if nowhere.
static const char *findDeepNesting(StringRef text) {
  unsigned depth = 0;
  // A sign is an expression inside of another as well: `- - - x`.
  unsigned signs = 0;
  for (size_t i = 0; i != text.size(); ++i) {
    const StringRef rest = text.drop_front(i);
    if (rest.starts_with("//")) {
      i += std::min(rest.find('\n'), rest.size()) - 1;
      continue;
    }
    if (rest.starts_with("->")) {
      ++i;
      continue;
    }
    switch (rest.front()) {
    case '"':
      // To its end, past what is escaped, or to that of the line.
      for (++i; i != text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\' && i + 1 != text.size())
          ++i;
      if (i == text.size())
        return nullptr;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      ++depth;
      break;
    case ')':
    case ']':
    case '}':
    case '>':
      // A comparison has only one half of a pair.
      depth -= depth != 0;
      break;
    default:
      break;
    }
    if (rest.front() == '-')
      ++signs;
    else if (!llvm::isSpace(rest.front()))
      signs = 0;
    if (depth > maxNesting || signs > maxNesting)
      return rest.data();
  }
  return nullptr;
}

/// Refuses a source that would take more stack to parse than there may be.
static LogicalResult checkNesting(const llvm::SourceMgr &source,
                                  MLIRContext &context) {
  const unsigned file = source.getMainFileID();
  const llvm::MemoryBuffer *buffer = source.getMemoryBuffer(file);
  const char *place = findDeepNesting(buffer->getBuffer());
  if (!place)
    return success();
  auto [line, column] =
      source.getLineAndColumn(llvm::SMLoc::getFromPointer(place), file);
  return emitError(FileLineColLoc::get(&context, buffer->getBufferIdentifier(),
                                       line, column))
         << "nested deeper than " << maxNesting << " levels";
}

OwningOpRef<ModuleOp> bastile::parseSource(llvm::SourceMgr &source,
                                           MLIRContext &context) {
  if (failed(checkNesting(source, context)))
    return {};
  Block block;
  AsmParserState state;
  // One thing that is wrong may break more than one rule of the parser.
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

// One small module gains nothing from threads, and starting them costs more
// than compiling it.
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
