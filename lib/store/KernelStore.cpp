//===- KernelStore.cpp - Programs, compiled once --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/KernelStore.h"
#include "bastile/Version.h"
#include "bastile/runtime/PtxEntries.h"
#include "lib/store/BuildId.h"
#include "llvm/ADT/StringExtras.h"

using namespace bastile;
using runtime::CacheEntry;
using runtime::CacheKey;
using runtime::Expected;

KernelStore::KernelStore(runtime::CacheOptions options,
                         runtime::Program::RunSlow runSlow)
    : disk(std::move(options)), runSlow(std::move(runSlow)) {}

/// The key of a request: everything that its code depends on.
static CacheKey makeKey(const CompileRequest &request) {
  const GradientOptions &asked = request.gradients;
  std::string gradients = llvm::join(asked.arguments, ",");
  if (asked.together)
    gradients += asked.inPlace ? " in place" : " together";
  if (asked.dropValue)
    gradients += " alone";
  return CacheKey(
      {{"kind", "code"},
       {"source", request.source},
       {"gradients", gradients},
       {"schedule", request.schedule},
       {"kernels", request.kernels.describe()},
       {"target", request.target},
       {"host", request.target == "host" ? describeHost() : ""},
       {"compiler", "bastile " BASTILE_VERSION " " + getBuildId()}});
}

Expected<std::shared_ptr<const CacheEntry>>
KernelStore::compile(const CompileRequest &request, bool *isNew) {
  return disk.getOrCreate(makeKey(request), [&]() -> Expected<CacheEntry> {
    ++compiled;
    if (isNew)
      *isNew = true;
    Expected<CompiledText> text = compileText(request);
    if (!text)
      return text.takeError();
    return CacheEntry{request.name,
                      {{"metadata", std::move(text->metadata)},
                       {"code", std::move(text->code)}}};
  });
}

Expected<std::string> KernelStore::compileKernel(const CompileRequest &request,
                                                 const std::string &name) {
  CompileRequest part = request;
  for (const KernelSelection &selection :
       {KernelSelection::firstVariants(), KernelSelection::only(name)}) {
    part.kernels = selection;
    auto entry = compile(part);
    if (!entry)
      return entry.takeError();
    if (std::optional<std::string> ptx =
            runtime::selectPtxEntry(*(*entry)->find("code"), name))
      return std::move(*ptx);
  }
  return runtime::Error("the code of kernel '" + name + "' is not in what '" +
                        request.name + "' compiles to");
}

Expected<StoredProgram> KernelStore::load(const CompileRequest &request) {
  const bool isHost = request.target == "host";
  CompileRequest first = request;
  if (!isHost)
    first.kernels = KernelSelection::firstVariants();
  bool isNew = false;
  auto entry = compile(first, &isNew);
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
            // The cache keeps an entry in memory while somebody holds it, so
            // this does not read the file again.
            [this, request, stored](const runtime::CudaDevice &,
                                    const std::string &name) {
              return compileKernel(request, name);
            },
            runSlow),
        stored, isNew};
  Expected<std::shared_ptr<const HostCode>> host =
      HostCode::load(*stored->find("code"));
  if (!host)
    return host.takeError();
  return StoredProgram{
      runtime::Program::forHost(
          std::move(*metadata),
          [code = *host](const std::string &name) { return code->find(name); }),
      stored, isNew};
}
