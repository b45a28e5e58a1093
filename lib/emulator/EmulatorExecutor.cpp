//===- EmulatorExecutor.cpp - Launch plans on the emulator ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/EmulatorExecutor.h"

#include <algorithm>
#include <cstring>

using namespace bastile;

runtime::Error EmulatorExecutor::launch(const std::string &entry,
                                        const runtime::LaunchConfig &config,
                                        void **arguments) {
  GridSize grid, block;
  emulator.setMultiprocessors(static_cast<unsigned>(count));
  grid.x = static_cast<uint32_t>(config.grid);
  block.x = static_cast<uint32_t>(config.block);
  if (llvm::Error error =
          emulator.launch(entry, grid, block, config.sharedMemory, arguments,
                          static_cast<uint32_t>(config.cluster)))
    return runtime::Error(llvm::toString(std::move(error)));
  return runtime::Error::success();
}

runtime::Error EmulatorExecutor::zero(void *data, int64_t bytes) {
  std::memset(data, 0, bytes);
  return runtime::Error::success();
}

runtime::Error EmulatorExecutor::encode(const runtime::TensorMapSpec &spec,
                                        runtime::EncodedTensorMap &map) {
  const runtime::EmulatedTensorMap emulated(spec);
  std::memcpy(map.bytes.data(), &emulated, sizeof(emulated));
  return runtime::Error::success();
}

int64_t EmulatorExecutor::countClusters(int64_t blocks) const {
  return std::max<int64_t>(1, count / blocks);
}
