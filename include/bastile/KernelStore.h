//===- KernelStore.h - Programs, compiled once ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where the compiler and the runtime meet: a request becomes a program, out of
// the cache on disk where somebody compiled it before.
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

/// A program and what it was loaded from.
struct StoredProgram {
  std::shared_ptr<runtime::Program> program;
  /// The sections "code" (an object of the host, or PTX of the first variant of
  /// each launch) and "metadata".
  std::shared_ptr<const runtime::CacheEntry> entry;
};

/// Compiles programs, each once for all processes that share a cache. Safe to
/// use from several threads. Outlives the programs that it loads.
class KernelStore {
public:
  explicit KernelStore(runtime::CacheOptions options);

  /// The program of a request. Its kernels are loaded into a GPU as PTX, one by
  /// one, when they are first launched. Variants for tensors that are not
  /// aligned are compiled then, too: most processes never meet one. A cubin to
  /// keep could be had from the driver's linker, but that one gave the same PTX
  /// 45 registers where loading it takes 32, at 0.89 of the speed.
  runtime::Expected<StoredProgram> load(const CompileRequest &request);

  /// The sections "code", with every kernel, and "metadata" of a request.
  runtime::Expected<std::shared_ptr<const runtime::CacheEntry>>
  compile(const CompileRequest &request);

  /// The PTX of kernel `name` alone: out of the first variants, or compiled by
  /// itself.
  runtime::Expected<std::string> compileKernel(const CompileRequest &request,
                                               const std::string &name);

  /// How many times this process has compiled. What came out of the cache does
  /// not count.
  int64_t compilations() const { return compiled; }

  runtime::DiskCache &cache() { return disk; }

private:
  runtime::DiskCache disk;
  std::atomic<int64_t> compiled{0};
};

} // namespace bastile

#endif // BASTILE_KERNELSTORE_H
