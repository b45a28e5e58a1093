//===- KernelCodeGen.cpp - The kernels of a module side by side -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels share nothing, so each can be a module of its own, with its own LLVM
// context and thread. A module that cannot be taken apart is generated as one.
//
//===----------------------------------------------------------------------===//

#include "bastile/CodeGen.h"
#include "bastile/runtime/WorkerThreads.h"
#include "lib/codegen/Generate.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Threading.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>

using namespace mlir;
using namespace bastile;
using llvm::StringRef;

namespace {

/// A kernel of a module with the globals that go with it.
struct KernelParts {
  /// The kernel and its globals, in the order of the module.
  SmallVector<Operation *, 8> ops;
  size_t instructions = 0;
};

/// Moves ops to a module of their own while it lives. Copying them would cost
/// as much as a pass.
class SeparateModule {
public:
  SeparateModule(ModuleOp from, ArrayRef<Operation *> ops)
      : from(from), module(ModuleOp::create(from.getLoc())) {
    (*module)->setAttrs(from->getAttrDictionary());
    for (Operation *op : ops) {
      places.push_back({op, std::next(op->getIterator())});
      op->moveBefore(module->getBody(), module->getBody()->end());
    }
  }
  ~SeparateModule() {
    // `next` may be one of these ops: in reverse, it is back before it is
    // looked for.
    for (auto [op, next] : llvm::reverse(places))
      op->moveBefore(from.getBody(), next);
  }
  SeparateModule(const SeparateModule &) = delete;
  SeparateModule &operator=(const SeparateModule &) = delete;

  ModuleOp get() { return *module; }

private:
  ModuleOp from;
  OwningOpRef<ModuleOp> module;
  SmallVector<std::pair<Operation *, Block::iterator>, 8> places;
};

/// A kernel in LLVM IR; the IR must be destroyed before its context.
struct TranslatedKernel {
  size_t number;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

/// Translated kernels, handed from the thread that translates to those that
/// generate code.
class KernelQueue {
public:
  void push(std::unique_ptr<TranslatedKernel> kernel) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      kernels.push_back(std::move(kernel));
    }
    changed.notify_one();
  }
  /// Says that no more kernels will come.
  void close() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      closed = true;
    }
    changed.notify_all();
  }
  /// Waits for the next kernel; null at the end.
  std::unique_ptr<TranslatedKernel> pop() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return closed || !kernels.empty(); });
    if (kernels.empty())
      return nullptr;
    std::unique_ptr<TranslatedKernel> kernel = std::move(kernels.front());
    kernels.pop_front();
    return kernel;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<TranslatedKernel>> kernels;
  bool closed = false;
};

/// The text of a kernel's module in three parts.
struct KernelText {
  /// The version of PTX, the target and the width of addresses.
  StringRef header;
  StringRef body;
  /// The files to which the line numbers of the body refer.
  StringRef lineInfo;
};

} // namespace

static bool isKernel(LLVM::LLVMFuncOp function) {
  return !function.isExternal() &&
         function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

/// The parts of a module that consists of kernels, and of memory that no two of
/// them share; none for any other module.
static SmallVector<KernelParts> takeApart(ModuleOp module) {
  SmallVector<KernelParts> kernels;
  // The kernel that refers to a global; a global without one goes with the
  // first.
  llvm::DenseMap<StringRef, std::optional<size_t>> owners;
  for (auto global : module.getOps<LLVM::GlobalOp>())
    owners[global.getSymName()];
  for (Operation &op : *module.getBody()) {
    if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      // An initializer may refer to other globals.
      if (!global.getInitializerRegion().empty())
        return {};
      continue;
    }
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!function || !isKernel(function))
      return {};
    const size_t number = kernels.size();
    KernelParts &kernel = kernels.emplace_back();
    WalkResult result = function.getBody().walk([&](Operation *instruction) {
      ++kernel.instructions;
      auto address = dyn_cast<LLVM::AddressOfOp>(instruction);
      // A call leads out of the kernel, and so may other references to symbols.
      if (!address)
        return WalkResult(failure(isa<SymbolUserOpInterface>(instruction)));
      auto owner = owners.find(address.getGlobalName());
      if (owner == owners.end() || owner->second.value_or(number) != number)
        return WalkResult::interrupt();
      owner->second = number;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return {};
  }
  size_t next = 0;
  for (Operation &op : *module.getBody()) {
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    const size_t number =
        global ? owners[global.getSymName()].value_or(0) : next++;
    if (number < kernels.size())
      kernels[number].ops.push_back(&op);
  }
  return kernels;
}

/// Generates code of the kernels in `queue`. `texts` has a place for each
/// kernel.
static llvm::Error generateQueued(KernelQueue &queue, const Target &target,
                                  std::vector<std::string> &texts) {
  // One for most kernels, and one for those that need later PTX.
  std::unique_ptr<llvm::TargetMachine> machines[2];
  while (std::unique_ptr<TranslatedKernel> kernel = queue.pop()) {
    const bool isLater = multipliesF8(*kernel->module);
    std::unique_ptr<llvm::TargetMachine> &machine = machines[isLater];
    if (!machine) {
      auto created = createTargetMachine(target, isLater);
      if (!created)
        return created.takeError();
      machine = std::move(*created);
    }
    optimize(*kernel->module, *machine);
    auto text = emitAssembly(*kernel->module, *machine);
    if (!text)
      return text.takeError();
    texts[kernel->number] = std::move(*text);
  }
  return llvm::Error::success();
}

/// The numbers of kernels with these sizes, the largest first: if it came last,
/// the other threads would have no work left beside it.
static SmallVector<size_t> orderBySize(ArrayRef<size_t> sizes) {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, sizes.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(sizes[b], a) < std::pair(sizes[a], b);
  });
  return order;
}

/// Puts the kernel that `module` consists of into the queue.
static llvm::Error translateOne(ModuleOp module, size_t number,
                                const Target &target, bool verifies,
                                KernelQueue &queue) {
  auto kernel = std::make_unique<TranslatedKernel>();
  kernel->number = number;
  auto translated = translateToLLVM(module, kernel->context, target, verifies);
  if (!translated)
    return translated.takeError();
  kernel->module = std::move(*translated);
  queue.push(std::move(kernel));
  return llvm::Error::success();
}

static llvm::Error translateEach(ModuleOp module, ArrayRef<KernelParts> kernels,
                                 const Target &target, KernelQueue &queue) {
  auto sizes = llvm::map_to_vector(
      kernels, [](const KernelParts &kernel) { return kernel.instructions; });
  for (size_t number : orderBySize(sizes)) {
    SeparateModule separate(module, kernels[number].ops);
    if (llvm::Error error = translateOne(separate.get(), number, target,
                                         /*verifies=*/true, queue))
      return error;
  }
  return llvm::Error::success();
}

/// The order in which `threads` threads best get programs of these sizes from
/// the one that lowers them. While that one lowers the largest, the others have
/// nothing to do but what came before it. So where there is enough to do beside
/// the largest, the smallest program ahead of it that keeps a thread busy for
/// that long comes first.
static SmallVector<size_t> orderToLower(ArrayRef<size_t> sizes,
                                        unsigned threads) {
  SmallVector<size_t> order = orderBySize(sizes);
  // Code takes about that many times as long as lowering.
  constexpr size_t codeOfLowering = 5;
  const size_t largest = sizes[order.front()];
  auto *first = std::prev(llvm::partition_point(order, [&](size_t number) {
    return sizes[number] * codeOfLowering >= largest;
  }));
  const size_t all = std::accumulate(sizes.begin(), sizes.end(), size_t(0));
  if (all >= threads * (largest + sizes[*first]))
    std::rotate(order.begin(), first, std::next(first));
  return order;
}

static size_t countOps(Operation *op) {
  size_t count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Lowers each of `programs`, which become modules, and translates it if that
/// left nothing but one kernel in each so far; otherwise sets `areApart` to
/// false.
static llvm::Error lowerEach(MutableArrayRef<OwningOpRef<ModuleOp>> programs,
                             LowerFn lower, const Target &target,
                             KernelQueue &queue, bool &areApart) {
  auto sizes = llvm::map_to_vector(
      programs, [](auto &program) { return countOps(*program); });
  const unsigned threads =
      llvm::optimal_concurrency(programs.size()).compute_thread_count();
  for (size_t number : orderToLower(sizes, threads)) {
    ModuleOp program = *programs[number];
    if (failed(lower(program)))
      return llvm::createStringError("a program cannot be lowered");
    areApart = areApart && takeApart(program).size() == 1;
    if (!areApart)
      continue;
    if (llvm::Error error = translateOne(program, number, target,
                                         /*verifies=*/false, queue))
      return error;
  }
  return llvm::Error::success();
}

/// The texts of `count` kernels, which `translate` puts into a queue. As many
/// threads work as there are kernels and cores, the caller's included, or fewer
/// where the process cannot start as many. The caller's runs `meanwhile` once
/// all are in the queue.
static llvm::Expected<std::vector<std::string>> generateEach(
    size_t count, const Target &target,
    llvm::function_ref<llvm::Error(KernelQueue &)> translate,
    llvm::function_ref<void()> meanwhile = [] {}) {
  const unsigned threads =
      llvm::optimal_concurrency(count).compute_thread_count();
  std::vector<std::string> texts(count);
  KernelQueue queue;
  std::mutex failing;
  llvm::Error error = llvm::Error::success();
  auto fail = [&](llvm::Error other) {
    std::lock_guard<std::mutex> lock(failing);
    error = llvm::joinErrors(std::move(error), std::move(other));
  };
  auto work = [&] { fail(generateQueued(queue, target, texts)); };
  runtime::WorkerThreads others(threads - 1, work);

  // Only this thread touches MLIR's context, which is not safe for several.
  fail(translate(queue));
  queue.close();
  meanwhile();
  work();
  others.join();
  if (error)
    return error;
  return texts;
}

static KernelText splitText(StringRef text) {
  const size_t header = text.find('\n', text.find(".address_size")) + 1;
  const size_t end = text.rfind("\n}\n") + 3;
  return {text.take_front(header), text.slice(header, end),
          text.drop_front(end)};
}

/// One text of all kernels, whose labels are local to each; none where a file
/// does not have the same number in all of them.
static std::optional<std::string> join(ArrayRef<std::string> texts) {
  SmallVector<KernelText> kernels(llvm::map_range(texts, splitText));
  KernelText all = kernels.front();
  size_t size = all.header.size();
  for (const KernelText &kernel : kernels) {
    // Headers differ in the last digit of the version, if at all.
    all.header = std::max(all.header, kernel.header);
    if (all.lineInfo.empty())
      all.lineInfo = kernel.lineInfo;
    if (!kernel.lineInfo.empty() && kernel.lineInfo != all.lineInfo)
      return std::nullopt;
    size += kernel.body.size();
  }
  std::string result;
  result.reserve(size + all.lineInfo.size());
  result += all.header;
  for (const KernelText &kernel : kernels)
    result += kernel.body;
  result += all.lineInfo;
  return result;
}

llvm::Expected<std::string> bastile::generateAssembly(ModuleOp module,
                                                      const Target &target) {
  SmallVector<KernelParts> kernels;
  if (!target.isHost())
    kernels = takeApart(module);
  // Even a single core generates kernels apart, so that the text is the same on
  // every machine.
  if (kernels.size() > 1) {
    auto texts = generateEach(kernels.size(), target, [&](KernelQueue &queue) {
      return translateEach(module, kernels, target, queue);
    });
    if (!texts)
      return texts.takeError();
    if (std::optional<std::string> text = join(*texts))
      return std::move(*text);
  }
  return generate(module, target, emitAssembly);
}

/// Whether `module` consists of functions that refer to no symbol.
static bool consistsOfFunctions(ModuleOp module) {
  auto isAlone = [](Operation &op) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    return function && !function.isExternal() &&
           !op.walk([](Operation *inner) {
                return isa<SymbolUserOpInterface>(inner)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              }).wasInterrupted();
  };
  return llvm::all_of(*module.getBody(), isAlone);
}

/// Moves each function of `module` to a module of its own.
static SmallVector<OwningOpRef<ModuleOp>> separate(ModuleOp module) {
  SmallVector<OwningOpRef<ModuleOp>> modules;
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    modules.emplace_back(ModuleOp::create(module.getLoc()));
    ModuleOp own = *modules.back();
    own->setAttrs(module->getAttrDictionary());
    op.moveBefore(own.getBody(), own.getBody()->end());
  }
  return modules;
}

llvm::Expected<std::string>
bastile::generateAssembly(ModuleOp module, const Target &target, LowerFn lower,
                          llvm::function_ref<void()> meanwhile) {
  if (!consistsOfFunctions(module)) {
    if (failed(lower(module)))
      return llvm::createStringError("the module cannot be lowered");
    meanwhile();
    return generateAssembly(module, target);
  }
  auto programs = separate(module);
  bool areApart = true;
  if (programs.empty()) {
    meanwhile();
    return generate(module, target, emitAssembly);
  }
  auto texts = generateEach(
      programs.size(), target,
      [&](KernelQueue &queue) {
        return lowerEach(programs, lower, target, queue, areApart);
      },
      meanwhile);
  if (!texts)
    return texts.takeError();
  if (areApart)
    if (std::optional<std::string> text = join(*texts))
      return std::move(*text);
  for (OwningOpRef<ModuleOp> &program : programs)
    module.getBody()->getOperations().splice(
        module.getBody()->end(), program->getBody()->getOperations());
  return generate(module, target, emitAssembly);
}
