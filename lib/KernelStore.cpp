//===- KernelStore.cpp - Programs, compiled once --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/KernelStore.h"
#include "BuildId.h"
#include "bastile/Version.h"
#include "bastile/runtime/PtxEntries.h"
#include "llvm/ADT/StringExtras.h"

using namespace bastile;
using runtime::CacheEntry;
using runtime::CacheKey;
using runtime::Expected;

KernelStore::KernelStore(runtime::CacheOptions options)
    : disk(std::move(options)) {}

/// What the code of a request depends on. No kernel is called "first": their
/// names end in "kernel" and what tells several apart.
static CacheKey makeKey(const CompileRequest &request) {
  std::string gradients = llvm::join(request.gradients, ",");
  if (request.together)
    gradients += request.inPlace ? " in place" : " together";
  return CacheKey(
      {{"kind", "code"},
       {"source", request.source},
       {"gradients", gradients},
       {"schedule", request.schedule},
       {"kernels", request.firstVariants ? "first" : request.kernel},
       {"target", request.target},
       {"host", request.target == "host" ? describeHost() : ""},
       {"compiler", "bastile " BASTILE_VERSION " " + getBuildId()}});
}

Expected<std::shared_ptr<const CacheEntry>>
KernelStore::compile(const CompileRequest &request) {
  return disk.getOrCreate(makeKey(request), [&]() -> Expected<CacheEntry> {
    ++compiled;
    Expected<CompiledText> text = compileText(request);
    if (!text)
      return text.takeError();
    return CacheEntry{request.name,
                      {{"metadata", std::move(text->metadata)},
                       {"code", std::move(text->code)}}};
  });
}

Expected<std::string> KernelStore::compileKernel(const CompileRequest &request,
                                                 const std::string &first,
                                                 const std::string &name) {
  if (std::optional<std::string> ptx = runtime::selectPtxEntry(first, name))
    return std::move(*ptx);
  CompileRequest one = request;
  one.firstVariants = false;
  one.kernel = name;
  auto entry = compile(one);
  if (!entry)
    return entry.takeError();
  std::optional<std::string> ptx =
      runtime::selectPtxEntry(*(*entry)->find("code"), name);
  if (!ptx)
    return runtime::Error("'" + request.name + "' has no kernel '" + name +
                          "', which its metadata names");
  return std::move(*ptx);
}

Expected<StoredProgram> KernelStore::load(const CompileRequest &request) {
  const bool isHost = request.target == "host";
  CompileRequest first = request;
  first.firstVariants = !isHost;
  auto entry = compile(first);
  if (!entry)
    return entry.takeError();
  std::shared_ptr<const CacheEntry> stored = *entry;
  Expected<runtime::Metadata> metadata =
      runtime::parseMetadata(*stored->find("metadata"));
  if (!metadata)
    return metadata.takeError();
  if (!isHost)
    return StoredProgram{
        runtime::Program::forGpu(
            std::move(*metadata),
            [this, request, stored](const runtime::CudaDevice &,
                                    const std::string &name) {
              return compileKernel(request, *stored->find("code"), name);
            }),
        stored};
  Expected<std::shared_ptr<const HostCode>> host =
      HostCode::load(*stored->find("code"));
  if (!host)
    return host.takeError();
  return StoredProgram{
      runtime::Program::forHost(
          std::move(*metadata),
          [code = *host](const std::string &name) { return code->find(name); }),
      stored};
}
