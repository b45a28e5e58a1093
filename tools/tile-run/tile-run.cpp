//===- tile-run.cpp - Runs, checks and times functions --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Report.h"
#include "Trial.h"
#include "bastile/Compiler.h"
#include "bastile/Source.h"
#include "bastile/Version.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tools/GradientFlags.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::run;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("tile-run options");

cl::opt<std::string> inputPath(cl::Positional, cl::desc("<input .mlir>"),
                               cl::init("-"), cl::cat(category));
cl::opt<std::string> functionName(
    "function",
    cl::desc("The function to run, of the "
             "source or one that the compiler "
             "added (default all, with --value-and-grad those of the source)"),
    cl::value_desc("name"), cl::cat(category));
cl::opt<std::string>
    targetName("target",
               cl::desc("Where to run: host (default), gpu for the first GPU, "
                        "or a GPU architecture to compile for, as in sm_90"),
               cl::init("host"), cl::cat(category));
cl::opt<bool> isEmulated(
    "emulate",
    cl::desc("Run the code of a GPU architecture (default sm_90) on the host, "
             "thread by thread: slow, with races and accesses out of bounds "
             "as errors"),
    cl::cat(category));
cl::opt<std::string>
    schedule("schedule",
             cl::desc("Pin fields of every kernel's schedule, as for tilec"),
             cl::cat(category));
cl::opt<unsigned> threads("host-threads",
                          cl::desc("Threads that run a kernel on the host "
                                   "(default 1)"),
                          cl::init(1), cl::cat(category));

cl::list<int64_t> rows("rows", cl::CommaSeparated,
                       cl::desc("Row counts to run with, one after the other "
                                "(default that of the inputs given, or 8192)"),
                       cl::cat(category));
cl::list<std::string>
    shapes("shape",
           cl::desc("The shape of an input, as in gate=4x128x2880. Inputs of "
                    "the same rank have the same leading sizes"),
           cl::value_desc("name=sizes"), cl::cat(category));
cl::list<std::string>
    inputs("input",
           cl::desc("Read an input from an .npy file; other inputs are random, "
                    "floats normal, integers 0 or 1"),
           cl::value_desc("name=file"), cl::cat(category));
cl::list<std::string>
    ranges("range",
           cl::desc("Make the random integers of an input at least low and "
                    "less than high"),
           cl::value_desc("name=low:high"), cl::cat(category));
cl::list<std::string> outputs("output",
                              cl::desc("Write an output to an .npy file"),
                              cl::value_desc("name=file"), cl::cat(category));
cl::list<std::string> expected(
    "expect",
    cl::desc("Compare an output with an .npy file of float64 or of its type"),
    cl::value_desc("name=file"), cl::cat(category));
cl::opt<bool> check("check",
                    cl::desc("Compare with what the function means, evaluated "
                             "in float64 apart from the compiler"),
                    cl::cat(category));
cl::opt<double>
    tolerance("tolerance",
              cl::desc("Errors to allow, in units in the last place (default, "
                       "with --check, what rounding may cost each element; "
                       "with --expect 1 for floats of at most 16 bits, 32 for "
                       "f32 and f64, 0 for integers)"),
              cl::value_desc("ulps"), cl::cat(category));

GradientFlags gradientFlags(category);
cl::opt<bool> inPlace("in-place",
                      cl::desc("Let outputs take the memory of inputs where "
                               "the function allows it, and gradients that of "
                               "arguments"),
                      cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::desc("Seed of the random numbers"),
                       cl::init(0), cl::cat(category));
cl::opt<int64_t> gap("gap", cl::desc("Leave so many elements between rows"),
                     cl::value_desc("elements"), cl::init(0),
                     cl::cat(category));
cl::opt<int64_t> offset("offset",
                        cl::desc("Move tensors so many elements away from an "
                                 "aligned address"),
                        cl::value_desc("elements"), cl::init(0),
                        cl::cat(category));
cl::opt<bool> isReversed("reversed",
                         cl::desc("Lay out leading dimensions in reverse "
                                  "order, the first one innermost"),
                         cl::cat(category));
cl::opt<unsigned> repeat(
    "repeat",
    cl::desc("Time so many runs and print the median (default 10, 0 for none). "
             "On a GPU each goes over copies of the tensors larger than its "
             "caches"),
    cl::init(10), cl::cat(category));
cl::opt<bool> printsJson("json", cl::desc("Print one JSON object"),
                         cl::cat(category));

/// Checks the options and gathers those of a trial.
FailureOr<TrialOptions> getTrialOptions() {
  TrialOptions options;
  std::pair<const cl::list<std::string> &, NamedValues &> lists[] = {
      {inputs, options.inputs.files},
      {shapes, options.inputs.shapes},
      {ranges, options.inputs.ranges},
      {outputs, options.outputFiles},
      {expected, options.expectedFiles}};
  for (auto &[list, values] : lists) {
    auto parsed = parseNamedValues(
        std::vector<std::string>(list.begin(), list.end()), list.ArgStr.str());
    if (!parsed)
      return report(parsed.takeError());
    values = std::move(*parsed);
  }
  if (llvm::any_of(rows, [](int64_t count) { return count < 0; }))
    return report("--rows must not be negative");
  if (gap < 0 || offset < 0)
    return report("--gap and --offset must not be negative");
  options.inputs.placement = {gap, offset, isReversed};
  options.inputs.seed = seed;
  if (tolerance.getNumOccurrences() != 0) {
    if (!(tolerance >= 0))
      return report(
          "--tolerance must be 0 or more, in units in the last place");
    if (!check && expected.empty())
      return report("--tolerance needs --check or --expect");
    options.tolerance = tolerance;
  }
  options.inPlace = inPlace;
  options.repeat = isEmulated && !repeat.getNumOccurrences() ? 0 : repeat;
  return options;
}

/// Opens the GPU, if one is asked for, and looks the target up.
FailureOr<ProgramOptions> getProgramOptions() {
  ProgramOptions options;
  options.schedule = schedule;
  options.threads = threads;
  if (llvm::Error error = gradientFlags.apply(inPlace, options.gradients))
    return report(llvm::toString(std::move(error)));
  options.isEmulated = isEmulated;
  const bool isDefault = isEmulated && !targetName.getNumOccurrences();
  if (isDefault || targetName != "gpu") {
    llvm::Expected<const Target &> target =
        Target::lookup(isDefault ? "sm_90" : targetName.c_str());
    if (!target)
      return report(llvm::toString(target.takeError()));
    options.target = &*target;
  }
  if (isEmulated && (!options.target || options.target->isHost()))
    return report("--emulate runs the code of a GPU architecture, such as "
                  "sm_90, but --target is " +
                  targetName);
  if (isEmulated || (options.target && options.target->isHost()))
    return options;
  auto device = openDevice();
  if (!device)
    return report(device.takeError());
  options.device = std::move(*device);
  if (options.target)
    return options;
  auto target = getTarget(*options.device);
  if (!target)
    return report(target.takeError());
  options.target = *target;
  return options;
}

/// Leaves only the function asked for, so that no other has to compile. A
/// function that the compiler adds may belong to any, so all are left.
void selectSource(ModuleOp module) {
  if (functionName.empty() || !module.lookupSymbol<func::FuncOp>(functionName))
    return;
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (func.getName() != functionName)
      func.erase();
}

/// The compiled functions to run: the one asked for, or all for which `isMeant`
/// is true.
FailureOr<SmallVector<const runtime::Function *>>
selectFunctions(const runtime::Metadata &metadata,
                llvm::function_ref<bool(StringRef)> isMeant) {
  SmallVector<const runtime::Function *> functions;
  if (functionName.empty()) {
    for (const runtime::Function &function : metadata.functions)
      if (isMeant(function.name))
        functions.push_back(&function);
  } else if (const runtime::Function *found = metadata.find(functionName)) {
    functions.push_back(found);
  } else {
    std::string names;
    for (const runtime::Function &function : metadata.functions)
      names += (names.empty() ? "; there is '" : ", '") + function.name + "'";
    return report("no function is called '" + functionName + "'" + names);
  }
  auto takesInput = [](const runtime::BufferSpec &output) {
    return output.mayAlias.has_value();
  };
  if (inPlace && llvm::none_of(functions, [&](const auto *function) {
        return llvm::any_of(function->outputs, takesInput);
      }))
    return report("--in-place needs an output that may take the memory of an "
                  "input, but there is none");
  return functions;
}

/// Runs every function with every number of rows and prints the results.
LogicalResult runAll(ModuleOp module) {
  FailureOr<TrialOptions> options = getTrialOptions();
  if (failed(options))
    return failure();
  FailureOr<ProgramOptions> programOptions = getProgramOptions();
  if (failed(programOptions))
    return failure();
  selectSource(module);
  // A function that scales gradients computed with a value runs on request
  // only.
  llvm::StringSet<> inSource;
  for (auto func : module.getOps<func::FuncOp>())
    inSource.insert(func.getName());

  std::unique_ptr<Oracle> oracle;
  if (check)
    oracle = makeOracle(module, programOptions->gradients);
  FailureOr<Program> program = run::compile(module, *programOptions);
  if (failed(program))
    return failure();

  std::vector<std::optional<int64_t>> rowCounts(rows.begin(), rows.end());
  if (rowCounts.empty())
    rowCounts.emplace_back();
  auto functions = selectFunctions(program->metadata, [&](StringRef name) {
    return !programOptions->gradients.together || inSource.contains(name);
  });
  if (failed(functions))
    return failure();
  if (!options->outputFiles.empty() &&
      functions->size() * rowCounts.size() != 1)
    return report("--output takes one function and one number of rows");

  ArrayFiles files;
  std::vector<TrialResult> results;
  for (const runtime::Function *function : *functions) {
    for (const std::string &line :
         runtime::describeLeftOut(*function, program->machine->capacity()))
      llvm::WithColor::note(llvm::errs(), "tile-run") << line << "\n";
    for (std::optional<int64_t> count : rowCounts) {
      options->inputs.rows = count;
      auto result =
          runTrial(*program, oracle.get(), *function, *options, files);
      if (!result)
        return report(result.takeError());
      results.push_back(std::move(*result));
    }
  }
  if (printsJson)
    printJson(results, programOptions->target->name, llvm::outs());
  else
    printTable(results, programOptions->target->name, llvm::outs());
  return success(llvm::all_of(results, std::mem_fn(&TrialResult::passed)));
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "tile-run " BASTILE_VERSION "\n"; });
  cl::ParseCommandLineOptions(
      argc, argv, "tile-run: runs tile kernels, checks and times them\n");

  auto source = SourceFile::open(inputPath);
  if (!source)
    return failed(report(llvm::toString(source.takeError())));
  OwningOpRef<ModuleOp> module = (*source)->parse();
  return failed(module ? runAll(*module) : failure());
}
