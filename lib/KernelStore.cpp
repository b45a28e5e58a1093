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

/// What the code of a request depends on.
static CacheKey makeKey(const CompileRequest &request) {
  std::string gradients = llvm::join(request.gradients, ",");
  if (request.together)
    gradients += request.inPlace ? " in place" : " together";
  return CacheKey(
      {{"kind", "code"},
       {"source", request.source},
       {"gradients", gradients},
       {"schedule", request.schedule},
       {"target", request.target},
       {"host", request.target == "host" ? describeHost() : ""},
       {"compiler", "bastile " BASTILE_VERSION " " + getBuildId()}});
}

Expected<CacheEntry> KernelStore::compile(const CompileRequest &request) {
  ++compiled;
  Expected<CompiledText> text = compileText(request);
  if (!text)
    return text.takeError();
  return CacheEntry{request.name,
                    {{"metadata", std::move(text->metadata)},
                     {"code", std::move(text->code)}}};
}

Expected<StoredProgram> KernelStore::load(const CompileRequest &request) {
  auto entry =
      disk.getOrCreate(makeKey(request), [&] { return compile(request); });
  if (!entry)
    return entry.takeError();
  std::shared_ptr<const CacheEntry> stored = *entry;
  Expected<runtime::Metadata> metadata =
      runtime::parseMetadata(*stored->find("metadata"));
  if (!metadata)
    return metadata.takeError();
  const std::string &code = *stored->find("code");
  if (request.target != "host")
    return StoredProgram{
        runtime::Program::forGpu(
            std::move(*metadata),
            [stored](const runtime::CudaDevice &, const std::string &name) {
              return runtime::selectPtxEntry(*stored->find("code"), name);
            }),
        stored};
  Expected<std::shared_ptr<const HostCode>> host = HostCode::load(code);
  if (!host)
    return host.takeError();
  return StoredProgram{
      runtime::Program::forHost(
          std::move(*metadata),
          [code = *host](const std::string &name) { return code->find(name); }),
      stored};
}
