//===- KernelStore.h - Programs, compiled once ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The compiler and the runtime meet here: a request becomes a module of
// functions ready to call, from the cache on disk if it was compiled before.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_KERNELSTORE_H
#define BASTILE_KERNELSTORE_H

#include "bastile/TextCompiler.h"
#include "bastile/runtime/DiskCache.h"
#include "bastile/runtime/Program.h"
#include <atomic>
#include <memory>

namespace bastile {

/// Compiled functions, and the entry that they were loaded from.
struct StoredProgram {
  std::shared_ptr<runtime::Program> program;
  /// The entry's sections are "code" (an object of the host, or PTX of the
  /// first variant of each launch) and "metadata".
  std::shared_ptr<const runtime::CacheEntry> entry;
  /// Whether it was compiled for this, and not found in the cache.
  bool isNew = false;
};

/// Compiles requests, each once for all processes that share a cache. Safe to
/// use from several threads. Must outlive what it loads.
class KernelStore {
public:
  /// What is compiled or loaded at the first launch of a kernel of a program
  /// from `load`, as by misaligned tensors, runs in `runSlow` if there is one.
  explicit KernelStore(runtime::CacheOptions options,
                       runtime::Program::RunSlow runSlow = {});

  /// The compiled functions of a request. Each kernel is loaded into a GPU as
  /// PTX when it is first launched. Variants for misaligned tensors are
  /// compiled at their first launch, too: most processes never need one. The
  /// cache could keep a cubin made by the driver's linker, but the linker gave
  /// the same PTX 45 registers where loading it takes 32, at 0.89 of the speed.
  runtime::Expected<StoredProgram> load(const CompileRequest &request);

  /// The sections "code", with every kernel, and "metadata" of a request.
  /// `isNew` is set to true where the cache does not have them.
  runtime::Expected<std::shared_ptr<const runtime::CacheEntry>>
  compile(const CompileRequest &request, bool *isNew = nullptr);

  /// The PTX of kernel `name` alone, taken from the first variants or compiled
  /// by itself.
  runtime::Expected<std::string> compileKernel(const CompileRequest &request,
                                               const std::string &name);

  /// How many requests this process has compiled, without those that the cache
  /// answered.
  int64_t compilations() const { return compiled; }

  runtime::DiskCache &cache() { return disk; }

private:
  runtime::DiskCache disk;
  runtime::Program::RunSlow runSlow;
  std::atomic<int64_t> compiled{0};
};

} // namespace bastile

#endif // BASTILE_KERNELSTORE_H
