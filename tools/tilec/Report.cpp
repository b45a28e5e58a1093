//===- Report.cpp - The table of tilec --explain --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "bastile/CodeGen.h"
#include "bastile/Explain.h"
#include "bastile/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bastile;

/// The resources of each kernel by ptxas; none where the target is the host.
static llvm::Expected<llvm::StringMap<KernelResources>>
getResources(ModuleOp module, const CompileOptions &options) {
  llvm::StringMap<KernelResources> resources;
  if (options.target->isHost())
    return resources;
  if (failed(lower(module, Level::NVVM, options)))
    return llvm::createStringError("it does not compile");
  auto ptx = generateAssembly(module, *options.target);
  if (!ptx)
    return ptx.takeError();
  auto cubin = assembleCubin(*ptx, options.target->chip);
  if (!cubin)
    return cubin.takeError();
  for (const KernelResources &kernel : cubin->kernels)
    resources[kernel.entry] = kernel;
  return resources;
}

/// The first line of a log that has an error; without one, its first line.
static std::string getReason(StringRef log) {
  llvm::SmallVector<StringRef> lines;
  log.split(lines, '\n');
  auto *error = llvm::find_if(
      lines, [](StringRef line) { return line.contains("error"); });
  return (error == lines.end() ? lines.front() : *error).trim().str();
}

LogicalResult bastile::printReport(ModuleOp module,
                                   const CompileOptions &options, int64_t rows,
                                   llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> scheduled = module.clone();
  if (failed(lower(*scheduled, Level::Scheduled, options)))
    return failure();
  OwningOpRef<ModuleOp> tiled = module.clone();
  if (failed(lower(*tiled, Level::Tiled, options)))
    return failure();
  OwningOpRef<ModuleOp> compiled = module.clone();
  llvm::StringMap<KernelResources> resources;
  std::string unknown;
  if (auto found = getResources(*compiled, options))
    resources = std::move(*found);
  else
    unknown = getReason(llvm::toString(found.takeError()));

  const Target &target = *options.target;
  os << "target " << target.name << ", " << rows << " rows, "
     << llvm::formatv("{0:f2} TB/s\n", target.memoryBytesPerSecond / 1e12);
  for (const KernelCost &cost :
       getKernelCosts(*scheduled, *tiled, target, rows)) {
    double bytes =
        static_cast<double>(cost.bytesPerRow) * rows + cost.bytesShared;
    os << "\n" << cost.name << "\n";
    auto line = [&](StringRef label, const llvm::Twine &value) {
      os << llvm::formatv("  {0,-22}{1}\n", label, value.str());
    };
    if (!cost.merged.empty())
      line("one launch with", llvm::join(cost.merged, ", "));
    line("schedule", cost.schedule);
    line("bytes moved",
         llvm::formatv("{0:f1} MB ({1} a row, {2} once)", bytes / 1e6,
                       cost.bytesPerRow, cost.bytesShared)
             .str());
    if (cost.sweeps > 1)
      line("sweeps over the row", llvm::Twine(cost.sweeps));
    // A kernel of row vectors alone has no rows.
    if (cost.bytesPerRow > 0)
      line("operations",
           llvm::formatv("{0} a row, {1:f1} a byte", cost.operationsPerRow,
                         static_cast<double>(cost.operationsPerRow) /
                             cost.bytesPerRow)
               .str());
    auto found = resources.find(cost.name);
    if (found != resources.end()) {
      const KernelResources &kernel = found->second;
      line("registers",
           llvm::Twine(kernel.registers) + " a thread, " +
               llvm::Twine(kernel.spillStoreBytes + kernel.spillLoadBytes) +
               " bytes spilled");
      line("shared memory",
           llvm::Twine(kernel.staticSharedBytes) + " bytes a block" +
               (cost.keptBytes > 0
                    ? ", and " + llvm::Twine(cost.keptBytes) + " of tiles"
                    : llvm::Twine()));
    } else if (!target.isHost()) {
      line("registers", "unknown: " + unknown);
    }
    line("predicted time",
         llvm::formatv("{0:f1} us", cost.getSeconds(rows, target) * 1e6).str());
  }
  return success();
}
