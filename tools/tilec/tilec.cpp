//===- tilec.cpp - The compiler's command line ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "OutputFile.h"
#include "Report.h"
#include "bastile/CodeGen.h"
#include "bastile/Compiler.h"
#include "bastile/Ptxas.h"
#include "bastile/Registration.h"
#include "bastile/Source.h"
#include "bastile/Version.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "tools/GradientFlags.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace bastile;
namespace cl = llvm::cl;

namespace {

/// What tilec writes: the module at one of the levels, which come first and
/// have their own numbers, or code.
enum class Emit {
  LLVM = std::size(levelNames),
  PTX,
  Cubin,
  Object,
  Assembly,
  Default,
};

/// Lets a flag take the name of any level.
struct LevelValues {
  template <typename Option>
  void apply(Option &option) const {
    for (const LevelName &level : levelNames)
      option.getParser().addLiteralOption(
          level.name, static_cast<Emit>(level.level), level.description);
  }
};

cl::OptionCategory category("tilec options");

cl::opt<std::string> inputPath(cl::Positional, cl::desc("<input .mlir>"),
                               cl::init("-"), cl::cat(category));
cl::opt<std::string> outputPath("o",
                                cl::desc("Where to write; - is the "
                                         "standard output"),
                                cl::value_desc("file"), cl::init("-"),
                                cl::cat(category));
cl::opt<std::string>
    targetName("target",
               cl::desc("What to compile for: sm_80, sm_90, sm_90a, sm_100a, "
                        "sm_120 or host (default sm_90)"),
               cl::init("sm_90"), cl::cat(category));
cl::opt<std::string> schedule(
    "schedule",
    cl::desc(
        "Pin fields of the schedule of every kernel on rows, as in "
        "'rows=2,threads=128,vector=8,columns=1024,persistent=1', of every "
        "product, as in '#tile.matmul<columns=64>', or of kernels by name, "
        "as in 'f_kernel: rows=2; g_kernel: columns=64'"),
    cl::cat(category));
GradientFlags gradientFlags(category);
cl::opt<bool> inPlace("in-place",
                      cl::desc("Let gradients that --value-and-grad computes "
                               "take the memory of the arguments"),
                      cl::cat(category));
cl::opt<Emit> emit(
    "emit",
    cl::desc("What to write (by default what the output's suffix says, "
             "else PTX, or assembly for the host)"),
    cl::init(Emit::Default), cl::cat(category), LevelValues(),
    cl::values(
        clEnumValN(Emit::LLVM, "llvm", "LLVM IR, optimized"),
        clEnumValN(Emit::PTX, "ptx", "PTX with its launch metadata"),
        clEnumValN(Emit::Cubin, "cubin",
                   "a cubin by ptxas, metadata beside it in <output>.json"),
        clEnumValN(Emit::Object, "object",
                   "a host object, metadata beside it in <output>.json"),
        clEnumValN(Emit::Assembly, "asm", "assembly of the target")));
cl::opt<bool> explain("explain",
                      cl::desc("Print a table of the kernels: bytes moved, "
                               "operations, schedule, resources, predicted "
                               "time"),
                      cl::cat(category));
cl::opt<int64_t> rows("rows",
                      cl::desc("Rows for the predicted time (default 8192)"),
                      cl::init(8192), cl::cat(category));
cl::opt<bool> timing("timing", cl::desc("Report where the compile time goes"),
                     cl::cat(category));
cl::opt<bool> verifyPasses("verify-passes",
                           cl::desc("Verify the program after each pass"),
                           cl::cat(category));

/// Reports an error that has no place in the source.
LogicalResult report(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "tilec") << message << "\n";
  return failure();
}
LogicalResult report(llvm::Error error) {
  return report(llvm::toString(std::move(error)));
}

/// The format that is written if the command line names none.
Emit getDefaultEmit(const Target &target) {
  StringRef path = outputPath;
  if (path.ends_with(".ptx"))
    return Emit::PTX;
  if (path.ends_with(".cubin"))
    return Emit::Cubin;
  if (path.ends_with(".o"))
    return Emit::Object;
  if (path.ends_with(".ll"))
    return Emit::LLVM;
  return target.isHost() ? Emit::Assembly : Emit::PTX;
}

/// Whether the module at a level is written, not code.
bool isLevel(Emit emit) { return emit < Emit::LLVM; }

Level getLevel(Emit emit) {
  return isLevel(emit) ? static_cast<Level>(emit) : Level::NVVM;
}

/// The contents that a compilation writes.
struct Result {
  std::string content;
  /// Metadata for a file of its own, where the content cannot hold it.
  std::string sidecar;
};

LogicalResult checkEmit(Emit emit, const Target &target) {
  bool needsGPU = emit == Emit::PTX || emit == Emit::Cubin;
  if (needsGPU && target.isHost())
    return report("the host has no " +
                  llvm::Twine(emit == Emit::PTX ? "PTX" : "cubin") +
                  "; give a GPU with --target, or --emit=object or asm");
  if (emit == Emit::Object && !target.isHost())
    return report("objects are made for the host only; give --target=host, or "
                  "--emit=cubin for " +
                  target.name);
  return success();
}

/// Generates code for a module in the LLVM dialect.
llvm::Expected<Result> generate(ModuleOp module, Emit emit,
                                const Target &target,
                                const llvm::json::Value &metadata,
                                TimingScope &timing) {
  const std::string sidecar = llvm::formatv("{0:1}\n", metadata).str();
  TimingScope generation = timing.nest("Generate code");
  if (emit == Emit::LLVM || emit == Emit::Object) {
    auto content = emit == Emit::LLVM ? generateLLVM(module, target)
                                      : generateObject(module, target);
    if (!content)
      return content.takeError();
    return Result{std::move(*content), emit == Emit::Object ? sidecar : ""};
  }
  auto assembly = generateAssembly(module, target);
  if (!assembly)
    return assembly.takeError();
  generation.stop();
  if (target.isHost())
    return Result{std::move(*assembly), ""};
  std::string ptx = formatMetadataComment(metadata) + *assembly;
  if (emit != Emit::Cubin)
    return Result{std::move(ptx), ""};
  TimingScope assembling = timing.nest("Assemble with ptxas");
  auto cubin = assembleCubin(ptx, target.chip);
  if (!cubin)
    return cubin.takeError();
  return Result{std::string(cubin->bytes.begin(), cubin->bytes.end()), sidecar};
}

/// Writes all files or none: what was there stays if one cannot be written.
LogicalResult write(const Result &result) {
  SmallVector<std::pair<OutputFile, StringRef>, 2> files;
  files.emplace_back(OutputFile(outputPath), result.content);
  if (!result.sidecar.empty() && outputPath != "-")
    files.emplace_back(OutputFile(outputPath + ".json"), result.sidecar);
  for (auto &[file, content] : files)
    if (llvm::Error error = file.write(content))
      return report(llvm::toString(std::move(error)));
  for (auto &[file, content] : llvm::reverse(files))
    if (llvm::Error error = file.keep())
      return report(llvm::toString(std::move(error)));
  return success();
}

LogicalResult compile(SourceFile &source, const Target &target) {
  Emit what = emit == Emit::Default ? getDefaultEmit(target) : emit;
  if (failed(checkEmit(what, target)))
    return failure();

  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  if (timing)
    timingManager.setEnabled(true);
  TimingScope total = timingManager.getRootScope();

  TimingScope parsing = total.nest("Parse");
  OwningOpRef<ModuleOp> module = source.parse();
  if (!module)
    return failure();
  parsing.stop();

  // Each pass manager reports under a scope of its own: timers are told apart
  // by the addresses of passes, and a later pass manager may use an address
  // again.
  SmallVector<std::unique_ptr<TimingScope>> scopes;
  auto configure = [&](PassManager &passes) {
    if (!scopes.empty())
      scopes.back()->stop();
    scopes.push_back(std::make_unique<TimingScope>(
        total.nest("Lower, part " + std::to_string(scopes.size() + 1))));
    passes.enableTiming(*scopes.back());
    return applyPassManagerCLOptions(passes);
  };
  CompileOptions options;
  options.target = &target;
  options.schedule = schedule;
  options.verifyPasses = verifyPasses;
  if (llvm::Error error = gradientFlags.apply(inPlace, options.gradients))
    return report(llvm::toString(std::move(error)));
  if (inPlace && !options.gradients.together)
    return report("--in-place needs --value-and-grad");
  options.configure = configure;
  if (explain) {
    if (failed(printReport(*module, options, rows, llvm::outs())))
      return failure();
    if (outputPath.getNumOccurrences() == 0)
      return success();
  }

  llvm::json::Value metadata = nullptr;
  Result result;
  if (failed(lower(*module, getLevel(what), options, &metadata)))
    return failure();
  scopes.clear();
  if (isLevel(what))
    llvm::raw_string_ostream(result.content) << *module << "\n";
  else if (auto generated = generate(*module, what, target, metadata, total))
    result = std::move(*generated);
  else
    return report(generated.takeError());
  return write(result);
}

/// Hides options from --help that only developers of LLVM need (--help-hidden
/// shows them).
void hideOptionsOfLLVM() {
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &category) &&
        !name.starts_with("mlir-") && name != "help" && name != "help-hidden" &&
        name != "version" && option->getOptionHiddenFlag() == cl::NotHidden)
      option->setHiddenFlag(cl::Hidden);
}

/// Makes diagnostics leave out the op in its generic form, unless the user asks
/// for it.
void shortenDiagnostics() {
  auto &options = cl::getRegisteredOptions();
  auto found = options.find("mlir-print-op-on-diagnostic");
  if (found != options.end())
    static_cast<cl::opt<bool> *>(found->second)->setInitialValue(false);
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  // Options such as --mlir-print-ir-after know passes by name.
  registerPasses();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  shortenDiagnostics();
  // LLVM has thousands of options to go over, so this is not done in every run.
  if (llvm::any_of(llvm::ArrayRef(argv, argc), [](StringRef argument) {
        return argument == "--help" || argument == "-help";
      }))
    hideOptionsOfLLVM();
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "tilec " BASTILE_VERSION "\n"; });
  cl::ParseCommandLineOptions(argc, argv,
                              "tilec: compiles tile kernels to PTX or for the "
                              "host\n");

  llvm::Expected<const Target &> target = Target::lookup(targetName);
  if (!target)
    return failed(report(target.takeError()));
  if (rows < 0)
    return failed(
        report("--rows must not be negative, but is " + llvm::Twine(rows)));
  auto source = SourceFile::open(inputPath);
  if (!source)
    return failed(report(source.takeError()));
  return failed(compile(**source, *target));
}
