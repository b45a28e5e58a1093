//===- CudaFeatures.cpp - What a GPU and its driver can do ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaDevice.h"
#include "runtime/Text.h"

using namespace bastile::runtime;

/// The only GPUs that have wgmma.
static constexpr int hopper = 90;

/// The compilers of CUDA 12.8.0 to 12.9.0 make wrong code of kernels with
/// wgmma (JAX refuses them for its causal attention). Drivers of 12.9.1, which
/// do not, give the same version as those of 12.9.0.
static bool hasBrokenCompiler(int cudaVersion) {
  return cudaVersion >= 12080 && cudaVersion <= 12090;
}

bool CudaDevice::has(Feature feature) const {
  switch (feature) {
  case Feature::Wgmma:
    return capability == hopper && !hasBrokenCompiler(cudaVersion);
  case Feature::TensorMaps:
    return capability >= hopper && driverTable->tensorMapEncodeTiled;
  }
  return false;
}

std::string CudaDevice::explainLack(Feature feature) const {
  const bool hasInstructions =
      feature == Feature::Wgmma ? capability == hopper : capability >= hopper;
  if (!hasInstructions)
    return concat("which ", deviceName, " of compute capability ",
                  capability / 10, ".", capability % 10, " lacks");
  const std::string driver = concat("the driver's CUDA ", cudaVersion / 1000,
                                    ".", cudaVersion % 1000 / 10);
  return feature == Feature::Wgmma
             ? concat("which ", driver,
                      " compiles wrongly; install a driver of CUDA 13.0 or "
                      "later")
             : concat("which ", driver, " does not know");
}
