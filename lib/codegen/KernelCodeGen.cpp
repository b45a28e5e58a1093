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
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Threading.h"
#include <condition_variable>
#include <deque>
#include <mutex>
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

/// Translates the largest kernel first: if it came last, the other threads
/// would have no work left beside it.
static llvm::Error translateEach(ModuleOp module, ArrayRef<KernelParts> kernels,
                                 const Target &target, KernelQueue &queue) {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, kernels.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return kernels[a].instructions > kernels[b].instructions;
  });
  for (size_t number : order) {
    auto kernel = std::make_unique<TranslatedKernel>();
    kernel->number = number;
    SeparateModule separate(module, kernels[number].ops);
    auto translated = translateToLLVM(separate.get(), kernel->context, target);
    if (!translated)
      return translated.takeError();
    kernel->module = std::move(*translated);
    queue.push(std::move(kernel));
  }
  return llvm::Error::success();
}

/// The kernels' texts, in the order of `kernels`. As many threads work as there
/// are kernels and cores, the caller's included, or fewer where the process
/// cannot start as many.
static llvm::Expected<std::vector<std::string>>
generateEach(ModuleOp module, ArrayRef<KernelParts> kernels,
             const Target &target) {
  const unsigned threads =
      llvm::optimal_concurrency(kernels.size()).compute_thread_count();
  std::vector<std::string> texts(kernels.size());
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
  fail(translateEach(module, kernels, target, queue));
  queue.close();
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
    auto texts = generateEach(module, kernels, target);
    if (!texts)
      return texts.takeError();
    if (std::optional<std::string> text = join(*texts))
      return std::move(*text);
  }
  return generate(module, target, emitAssembly);
}
