//===- TextCompiler.cpp - The compiler without MLIR's headers -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/TextCompiler.h"
#include "bastile/CodeGen.h"
#include "bastile/Compiler.h"
#include "bastile/Explain.h"
#include "bastile/Jit.h"
#include "bastile/Registration.h"
#include "bastile/ScheduleSpace.h"
#include "bastile/Source.h"
#include "bastile/SourceDiagnostics.h"
#include "dialect/Tile.h"
#include "lib/driver/Metadata.h"
#include "lib/driver/RowSharing.h"
#include "lib/driver/StructuralKey.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace bastile;
using runtime::Error;
using runtime::Expected;

namespace {

/// A module in a context of its own, and what was said about it.
class Compilation {
public:
  explicit Compilation(const CompileRequest &request)
      : stream(messages),
        context(makeRegistry(), MLIRContext::Threading::DISABLED),
        diagnostics(source, &context, stream) {
    // The place in the source says more than the op in generic form.
    context.printOpOnDiagnostic(false);
    source.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(request.source, request.name),
        llvm::SMLoc());
    options.schedule = request.schedule;
    options.gradients = request.gradients;
    options.kernels = request.kernels;
  }

  /// Parses the source.
  Error parse() {
    module = parseSource(source, context);
    return module ? Error::success() : fail();
  }

  /// Parses the source; `options` then say what is asked of it.
  Error open(const CompileRequest &request) {
    llvm::Expected<const Target &> target = Target::lookup(request.target);
    if (!target)
      return Error(llvm::toString(target.takeError()));
    options.target = &*target;
    return parse();
  }

  /// An error that says what the compiler said.
  Error fail() {
    stream.flush();
    llvm::StringRef text = llvm::StringRef(messages).rtrim();
    return Error(text.empty() ? "the compiler failed without a message"
                              : text.str());
  }

  CompileOptions options;

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    registerTranslations(registry);
    return registry;
  }

  std::string messages;
  llvm::raw_string_ostream stream;
  llvm::SourceMgr source;
  MLIRContext context;
  SourceDiagnostics diagnostics;

public:
  /// Goes before its context does.
  OwningOpRef<ModuleOp> module;
};

} // namespace

static Error take(llvm::Error error) {
  return Error(llvm::toString(std::move(error)));
}

static std::string print(const llvm::json::Value &value) {
  return llvm::formatv("{0}", value).str();
}

Expected<CompiledText> bastile::compileText(const CompileRequest &request) {
  Compilation compilation(request);
  if (Error error = compilation.open(request))
    return error;
  ModuleOp module = *compilation.module;
  const Target &target = *compilation.options.target;
  const CompileOptions &options = compilation.options;
  llvm::json::Value metadata = nullptr;
  if (target.isHost()) {
    if (failed(lower(module, Level::NVVM, options, &metadata)))
      return compilation.fail();
    auto object = generateObject(module, target);
    if (!object)
      return take(object.takeError());
    return CompiledText{std::move(*object), print(metadata)};
  }
  const bool areWritten = hasPrograms(module);
  if (failed(lowerToPrograms(module, options, metadata)))
    return compilation.fail();
  // The metadata says what launches programs.
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    func.erase();
  bool areLowered = true;
  auto lowerProgram = [&](ModuleOp program) {
    areLowered =
        succeeded(lowerPrograms(program, Level::NVVM, options, areWritten));
    return success(areLowered);
  };
  std::string comment, text;
  auto printMetadata = [&] {
    comment = formatMetadataComment(metadata);
    text = print(metadata);
  };
  auto ptx = generateAssembly(module, target, lowerProgram, printMetadata);
  if (!areLowered) {
    llvm::consumeError(ptx.takeError());
    return compilation.fail();
  }
  if (!ptx)
    return take(ptx.takeError());
  return CompiledText{comment + *ptx, std::move(text)};
}

Expected<std::string> bastile::describeSource(const std::string &source,
                                              const std::string &name) {
  CompileRequest request;
  request.source = source;
  request.name = name;
  Compilation compilation(request);
  if (Error error = compilation.parse())
    return error;
  ModuleOp module = *compilation.module;
  llvm::json::Array functions;
  for (auto func : module.getOps<func::FuncOp>())
    functions.push_back(describeSignature(func));
  const bool isScheduled =
      module
          ->walk([](Operation *op) {
            return op->hasAttr(tile::TileDialect::kScheduleAttrName)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  return print(llvm::json::Object{{"key", getStructuralKey(module)},
                                  {"is_scheduled", isScheduled},
                                  {"functions", std::move(functions)}});
}

Expected<std::string> bastile::describeText(const CompileRequest &request) {
  Compilation compilation(request);
  if (Error error = compilation.open(request))
    return error;
  llvm::json::Value metadata = nullptr;
  if (failed(
          lowerToPrograms(*compilation.module, compilation.options, metadata)))
    return compilation.fail();
  return print(metadata);
}

Expected<std::string> bastile::describeSharing(const CompileRequest &request) {
  Compilation compilation(request);
  if (Error error = compilation.open(request))
    return error;
  if (failed(
          lower(*compilation.module, Level::Decomposed, compilation.options)))
    return compilation.fail();
  llvm::json::Object functions;
  for (auto func : compilation.module->getOps<func::FuncOp>())
    functions[func.getSymName()] = describeRowSharing(func);
  return print(llvm::json::Value(std::move(functions)));
}

Expected<std::string> bastile::lowerText(const CompileRequest &request,
                                         std::string_view name) {
  // LLVM IR follows the last level, and is no MLIR module.
  const bool isLLVM = name == "llvm";
  const LevelName *level = llvm::find_if(
      levelNames, [&](const LevelName &level) { return level.name == name; });
  if (!isLLVM && level == std::end(levelNames)) {
    std::string names;
    for (const LevelName &known : levelNames)
      names.append(known.name).append(", ");
    return Error("unknown level '" + std::string(name) +
                 "', expected one of: " + names + "llvm");
  }
  Compilation compilation(request);
  if (Error error = compilation.open(request))
    return error;
  if (failed(lower(*compilation.module, isLLVM ? Level::NVVM : level->level,
                   compilation.options)))
    return compilation.fail();
  if (isLLVM) {
    auto text = generateLLVM(*compilation.module, *compilation.options.target);
    if (!text)
      return take(text.takeError());
    return std::move(*text);
  }
  std::string text;
  llvm::raw_string_ostream(text) << *compilation.module;
  return text;
}

Expected<std::vector<KernelReport>>
bastile::explainText(const CompileRequest &request, int64_t rows) {
  Compilation compilation(request);
  if (Error error = compilation.open(request))
    return error;
  OwningOpRef<ModuleOp> scheduled = compilation.module->clone();
  if (failed(lower(*scheduled, Level::Scheduled, compilation.options)) ||
      failed(lower(*compilation.module, Level::Tiled, compilation.options)))
    return compilation.fail();
  std::vector<KernelReport> reports;
  for (const KernelCost &cost : getKernelCosts(
           *scheduled, *compilation.module, *compilation.options.target, rows))
    reports.push_back({cost.name, cost.schedule, cost.bytesPerRow,
                       cost.bytesShared, cost.operationsPerRow, cost.sweeps,
                       cost.getSeconds(rows, *compilation.options.target)});
  return reports;
}

Expected<std::vector<LaunchCandidates>>
bastile::enumerateSchedules(const CompileRequest &request) {
  Compilation compilation(request);
  if (Error error = compilation.open(request))
    return error;
  FailureOr<std::vector<LaunchSpace>> spaces =
      getScheduleSpaces(*compilation.module, compilation.options);
  if (failed(spaces))
    return compilation.fail();
  std::vector<LaunchCandidates> result;
  for (LaunchSpace &space : *spaces) {
    result.push_back({std::move(space.function), std::move(space.kernel), {}});
    for (ScheduleChoice &choice : space.choices)
      result.back().candidates.push_back(
          {std::move(choice.pins), std::move(choice.fields)});
  }
  return result;
}

std::vector<std::string> bastile::getTargetNames() {
  std::vector<std::string> names;
  for (const Target &target : Target::all())
    names.push_back(target.name);
  return names;
}

std::optional<std::string> bastile::findTarget(int computeCapability) {
  if (const Target *target =
          Target::forGpu(static_cast<unsigned>(computeCapability)))
    return target->name;
  return std::nullopt;
}

std::string bastile::describeHost() {
  const Target &host = Target::host();
  return host.triple + " " + host.chip + " " + host.features;
}

std::string bastile::getLlvmVersion() { return LLVM_VERSION_STRING; }

//===----------------------------------------------------------------------===//
// Host code
//===----------------------------------------------------------------------===//

HostCode::~HostCode() = default;

namespace {
class JittedCode final : public HostCode {
public:
  explicit JittedCode(std::unique_ptr<Jit> jit) : jit(std::move(jit)) {}

  void *find(const std::string &name) const override {
    llvm::Expected<void *> address = jit->lookup(name);
    if (address)
      return *address;
    llvm::consumeError(address.takeError());
    return nullptr;
  }

private:
  std::unique_ptr<Jit> jit;
};
} // namespace

Expected<std::shared_ptr<const HostCode>>
HostCode::load(const std::string &object) {
  auto jit = Jit::load(llvm::MemoryBuffer::getMemBufferCopy(object, "object"));
  if (!jit)
    return take(jit.takeError());
  return std::shared_ptr<const HostCode>(
      std::make_shared<JittedCode>(std::move(*jit)));
}
