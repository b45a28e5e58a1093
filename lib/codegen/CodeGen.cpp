//===- CodeGen.cpp - From the LLVM dialect to machine code ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/CodeGen.h"
#include "lib/codegen/AdvanceAddresses.h"
#include "lib/codegen/Contract.h"
#include "lib/codegen/Generate.h"
#include "lib/codegen/MaskedSums.h"
#include "lib/codegen/NarrowComparisons.h"
#include "lib/codegen/SinkConditions.h"
#include "lib/codegen/SplitBlocks.h"
#include "lib/codegen/ThreadOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <mutex>
#include <optional>

using namespace bastile;
using llvm::createStringError;

void bastile::registerTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  registerThreadOpTranslation(registry);
}

void bastile::addLineInfo(mlir::OpPassManager &passes) {
  mlir::LLVM::DIScopeForLLVMFuncOpPassOptions options;
  // Debug information beyond line directives would mark the PTX as a debug
  // build, for which ptxas turns its optimizations off.
  options.emissionKind = mlir::LLVM::DIEmissionKind::DebugDirectivesOnly;
  passes.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass(options));
}

static void addHostAttributes(llvm::Module &module, const Target &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    // No exception passes through, so no unwind tables are needed.
    function.setDoesNotThrow();
    // LLVM prefers 256 bits on many cores that have 512: a choice made for
    // mostly scalar code, which kernels are not.
    if (target.vectorBytes >= 64)
      function.addFnAttr("prefer-vector-width", "512");
  }
}

llvm::Expected<std::unique_ptr<llvm::Module>>
bastile::translateToLLVM(mlir::ModuleOp module, llvm::LLVMContext &context,
                         const Target &target, bool verifies) {
  mlir::DialectRegistry registry;
  registerTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  expandBarrierArrivals(module);

  std::unique_ptr<llvm::Module> result = mlir::translateModuleToLLVMIR(
      module, context, module.getName().value_or("bastile"),
      /*disableVerification=*/!verifies);
  if (!result)
    return createStringError("cannot translate the module to LLVM IR");

  llvm::Triple triple(target.triple);
  result->setDataLayout(triple.computeDataLayout());
  result->setTargetTriple(triple);
  if (target.isHost())
    addHostAttributes(*result, target);
  return result;
}

/// Makes the two code generators known to LLVM. Thread-safe, and free after
/// the first call.
static void initializeTargets() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // Inline assembly in host code is parsed, in PTX it is copied.
    LLVMInitializeX86AsmParser();
  });
}

bool bastile::multipliesF8(const llvm::Module &module) {
  return llvm::any_of(module.functions(), [](const llvm::Function &function) {
    llvm::StringRef name = function.getName();
    return name.consume_front("llvm.nvvm.mma.m16n8k32.row.col.f32.e");
  });
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
bastile::createTargetMachine(const Target &target, bool multipliesF8) {
  initializeTargets();
  llvm::Triple triple(target.triple);
  std::string message;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!backend)
    return createStringError("target '" + target.name + "': " + message);

  llvm::TargetOptions options;
  // Contract.h writes contractions out.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  // The highest level adds global value numbering, which the kernels' pipeline
  // has already done for a GPU.
  auto level = target.isHost() ? llvm::CodeGenOptLevel::Aggressive
                               : llvm::CodeGenOptLevel::Default;
  // Drivers load PTX 8.4 from version 550 on, so that only kernels which need
  // it have it. The latest version named counts.
  std::string features = target.features;
  if (multipliesF8)
    features += ",+ptx84";
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.chip, features, options, llvm::Reloc::PIC_,
      /*CM=*/std::nullopt, level));
  if (!machine)
    return createStringError("target '" + target.name +
                             "': LLVM cannot create a target machine");
  return machine;
}

/// The optimizations of a GPU kernel. Its code arrives tiled, unrolled and free
/// of calls, so the default pipeline would do the same in three times the time:
/// vectorizers, the inliner and the second round of loop passes find no work.
static llvm::ModulePassManager buildKernelPipeline() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());

  llvm::LoopPassManager rotation;
  rotation.addPass(llvm::LoopRotatePass());
  rotation.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotation),
                                                       /*UseMemorySSA=*/true));
  llvm::LoopPassManager induction;
  induction.addPass(llvm::IndVarSimplifyPass());
  induction.addPass(llvm::LoopDeletionPass());
  induction.addPass(llvm::LoopFullUnrollPass(/*OptLevel=*/3));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(induction)));

  passes.addPass(llvm::GVNPass());
  // Thread ids carry their range, by which this pass removes masks that always
  // hold.
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass(
      llvm::SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  passes.addPass(AdvanceAddressesPass());
  passes.addPass(NarrowComparisonsPass());
  passes.addPass(SinkConditionsPass());

  llvm::ModulePassManager module;
  module.addPass(llvm::AlwaysInlinerPass());
  module.addPass(llvm::createModuleToFunctionPassAdaptor(
      std::move(passes), /*EagerlyInvalidate=*/true));
  module.addPass(llvm::GlobalDCEPass());
  return module;
}

static llvm::OptimizationLevel hostLevel(unsigned level) {
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  return levels[std::min(level, 3u)];
}

namespace {

/// Keeps LLVM from sinking instructions for as long as one of them lives.
/// Sinking moves a load next to its first use, past the code that should hide
/// its latency. The only handles on it are command line options of LLVM, of
/// which there is one set for the whole process: threads share it.
class SinkingDisabled {
public:
  SinkingDisabled() {
    std::lock_guard<std::mutex> lock(mutex);
    if (users++ > 0)
      return;
    set("instcombine-code-sinking", false);
    set("disable-machine-sink", true);
  }
  ~SinkingDisabled() {
    std::lock_guard<std::mutex> lock(mutex);
    if (--users > 0)
      return;
    for (auto [option, value] : before)
      option->setValue(value);
    before.clear();
  }
  SinkingDisabled(const SinkingDisabled &) = delete;
  SinkingDisabled &operator=(const SinkingDisabled &) = delete;

private:
  using Option = llvm::cl::opt<bool>;

  static void set(llvm::StringRef name, bool value) {
    auto *option =
        static_cast<Option *>(llvm::cl::getRegisteredOptions().lookup(name));
    assert(option && "LLVM has renamed the option");
    if (!option)
      return;
    before.push_back({option, option->getValue()});
    option->setValue(value);
  }

  inline static std::mutex mutex;
  inline static unsigned users = 0;
  inline static llvm::SmallVector<std::pair<Option *, bool>, 2> before;
};

} // namespace

static void runPasses(llvm::Module &module, llvm::TargetMachine &machine,
                      unsigned level) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  if (!machine.getTargetTriple().isNVPTX()) {
    builder.buildPerModuleDefaultPipeline(hostLevel(level))
        .run(module, modules);
    return;
  }
  SinkingDisabled sinkingDisabled;
  buildKernelPipeline().run(module, modules);
}

void bastile::optimize(llvm::Module &module, llvm::TargetMachine &machine,
                       unsigned level) {
  runPasses(module, machine, level);
  if (machine.getTargetTriple().isNVPTX())
    addWhereMasked(module);
  contract(module);
}

namespace {

/// The passes that emit a file, less one that finds nothing: line directives
/// describe no variables, and looking for these takes a sixth of the time for a
/// host. For kernels, whose addresses share what they can and whose accesses
/// are as wide as they may be, three more would take a fifth of the time. To
/// NVPTX all constants cost the same, so that none is hoisted. Without these
/// passes, one stands behind itself, and is run once. Long blocks are split
/// behind the last pass that would join them again. Where conditions are
/// repeated, they stay so.
class EmissionPasses : public llvm::legacy::PassManager {
public:
  EmissionPasses(bool forKernels, bool repeatsConditions)
      : forKernels(forKernels), repeatsConditions(repeatsConditions) {}

  void add(llvm::Pass *pass) override {
    const llvm::StringRef name = pass->getPassName();
    if (name == "Live DEBUG_VALUE analysis" ||
        (forKernels && isLeftOutOfKernels(name))) {
      delete pass;
      return;
    }
    last = name;
    const bool isLastToJoin = name == "CodeGen Prepare";
    llvm::legacy::PassManager::add(pass);
    if (isLastToJoin)
      llvm::legacy::PassManager::add(createSplitBlocks());
  }

private:
  /// Passes are told by name, as their identities are no part of LLVM's
  /// interface.
  bool isLeftOutOfKernels(llvm::StringRef name) const {
    return name == "Straight line strength reduction" ||
           name == "Nary reassociation" ||
           name == "GPU Load and Store Vectorizer" ||
           name == "Constant Hoisting" ||
           (name == "Early CSE" && name == last) ||
           (repeatsConditions &&
            name == "Machine Common Subexpression Elimination");
  }

  const bool forKernels, repeatsConditions;
  /// The name of the pass that was added last.
  std::string last;
};

} // namespace

static llvm::Error emit(llvm::Module &module, llvm::TargetMachine &machine,
                        llvm::CodeGenFileType kind,
                        llvm::raw_pwrite_stream &os) {
  const bool forKernels = machine.getTargetTriple().isNVPTX();
  std::optional<SinkingDisabled> sinkingDisabled;
  if (forKernels)
    sinkingDisabled.emplace();
  EmissionPasses passes(forKernels, repeatsConditions(module));
  if (machine.addPassesToEmitFile(passes, os, /*DwoOut=*/nullptr, kind))
    return createStringError("target '" + machine.getTargetTriple().str() +
                             "' cannot emit a file of this kind");
  passes.run(module);
  return llvm::Error::success();
}

/// Messages between the blocks of a cluster came with PTX 8.1; all other
/// instructions of kernels came with 8.0, which older drivers take. LLVM knows
/// one version for a target, and does not look into inline assembly.
static void requireVersionOfMessages(std::string &ptx) {
  const std::string older = ".version 8.0";
  size_t at = ptx.find(older);
  if (at != std::string::npos && ptx.find("st.async") != std::string::npos)
    ptx.replace(at, older.size(), ".version 8.1");
}

llvm::Expected<std::string>
bastile::emitAssembly(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  // Without a buffer here, the printer, which takes it over, would write word
  // by word.
  os.SetBufferSize(1 << 16);
  if (llvm::Error error =
          emit(module, machine, llvm::CodeGenFileType::AssemblyFile, os))
    return error;
  std::string assembly = text.str().str();
  if (machine.getTargetTriple().isNVPTX())
    requireVersionOfMessages(assembly);
  return assembly;
}

llvm::Expected<llvm::SmallVector<char, 0>>
bastile::emitObject(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  if (llvm::Error error =
          emit(module, machine, llvm::CodeGenFileType::ObjectFile, os))
    return error;
  return bytes;
}

llvm::Expected<std::string>
bastile::generate(mlir::ModuleOp module, const Target &target, EmitFn emit) {
  llvm::LLVMContext context;
  auto translated = translateToLLVM(module, context, target);
  if (!translated)
    return translated.takeError();
  auto machine = createTargetMachine(target, multipliesF8(**translated));
  if (!machine)
    return machine.takeError();
  optimize(**translated, **machine);
  return emit(**translated, **machine);
}

llvm::Expected<std::string> bastile::generateLLVM(mlir::ModuleOp module,
                                                  const Target &target) {
  auto print = [](llvm::Module &optimized, llvm::TargetMachine &) {
    std::string text;
    llvm::raw_string_ostream(text) << optimized;
    return llvm::Expected<std::string>(std::move(text));
  };
  return generate(module, target, print);
}

llvm::Expected<std::string> bastile::generateObject(mlir::ModuleOp module,
                                                    const Target &target) {
  auto write = [](llvm::Module &optimized,
                  llvm::TargetMachine &machine) -> llvm::Expected<std::string> {
    auto object = emitObject(optimized, machine);
    if (!object)
      return object.takeError();
    return std::string(object->begin(), object->end());
  };
  return generate(module, target, write);
}
