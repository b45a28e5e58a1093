//===- CudaClusters.cpp - Clusters that a GPU runs at once ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The blocks of a cluster share a group of multiprocessors. Groups differ in
// size, even between chips of one kind, and a cluster that finds no room waits
// for another one to end, so that a grid with one cluster too many takes twice
// as long. Only the driver knows the groups, and it counts clusters for a given
// kernel: we ask about one that does nothing and takes a whole multiprocessor
// for each block.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaDevice.h"

using namespace bastile::runtime;

static constexpr char probe[] = ".version 7.8\n"
                                ".target sm_90\n"
                                ".address_size 64\n"
                                ".visible .entry probe() { ret; }\n";

void CudaDevice::countClusters() const {
  constexpr int firstCapability = 90;
  CudaContextScope scope(*this);
  if (scope.takeError() || capability < firstCapability)
    return;
  const CudaDriver &driver = *driverTable;
  RelaxedCaptureScope capture(driver);
  // The module stays loaded, as its context does: unloading may wait for the
  // GPU.
  cuda::Module module = nullptr;
  cuda::Kernel kernel = nullptr;
  if (driver.moduleLoadDataEx(&module, probe, 0, nullptr, nullptr) !=
          cuda::successResult ||
      driver.moduleGetFunction(&kernel, module, "probe") !=
          cuda::successResult ||
      driver.funcSetAttribute(kernel, cuda::MaxDynamicSharedMemory,
                              static_cast<int>(sharedMemoryLimit)) !=
          cuda::successResult ||
      driver.funcSetAttribute(kernel, cuda::NonPortableClusterSize, 1) !=
          cuda::successResult)
    return;

  cuda::LaunchAttribute attribute = {};
  attribute.id = cuda::ClusterDimension;
  attribute.value.clusterDimension[1] = attribute.value.clusterDimension[2] = 1;
  cuda::LaunchSettings settings = {};
  settings.gridY = settings.gridZ = 1;
  settings.blockX = 128;
  settings.blockY = settings.blockZ = 1;
  settings.sharedMemory = static_cast<unsigned>(sharedMemoryLimit);
  settings.attributes = &attribute;
  settings.attributeCount = 1;
  for (size_t index = 0; index < clusterCounts.size(); ++index) {
    unsigned blocks = 1u << index;
    attribute.value.clusterDimension[0] = blocks;
    // The count does not depend on the grid, which only has to be a multiple of
    // clusters.
    settings.gridX = blocks;
    int count = 0;
    if (driver.occupancyMaxActiveClusters(&count, kernel, &settings) ==
        cuda::successResult)
      clusterCounts[index] = count;
  }
}

int64_t CudaDevice::countClusters(int64_t blocks) const {
  std::call_once(clustersCounted, [this] { countClusters(); });
  for (size_t index = 0; index < clusterCounts.size(); ++index)
    if (blocks == int64_t(1) << index && clusterCounts[index] > 0)
      return clusterCounts[index];
  return std::max<int64_t>(1, multiprocessorCount / blocks);
}
