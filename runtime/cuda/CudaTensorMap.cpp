//===- CudaTensorMap.cpp - Tensor maps by the driver ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaExecutor.h"
#include "runtime/Text.h"

using namespace bastile::runtime;

/// The number that the driver has for an element type. What it is decides only
/// how a copy adds to memory, and what a NaN is.
static int getTypeNumber(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::I1:
  case ElementType::I8:
    return 0;
  case ElementType::I32:
    return 3;
  case ElementType::I64:
    return 5;
  case ElementType::F16:
    return 6;
  case ElementType::F32:
    return 7;
  case ElementType::F64:
    return 8;
  case ElementType::BF16:
    return 9;
  }
  assert(false && "unknown type");
  return 0;
}

/// The number that the driver has for swizzled rows of `bytes` bytes.
static int getSwizzleNumber(unsigned bytes) {
  switch (bytes) {
  case 32:
    return 1;
  case 64:
    return 2;
  case 128:
    return 3;
  default:
    return 0;
  }
}

Error bastile::runtime::encodeTensorMap(const CudaDevice &device,
                                        const TensorMapSpec &spec,
                                        EncodedTensorMap &map) {
  const CudaDriver &driver = device.driver();
  if (!driver.tensorMapEncodeTiled)
    return makeError("tensor maps need a CUDA driver of version 12.0 or later");
  CudaContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  // The driver's first dimension is the contiguous one, whose stride it knows.
  uint64_t sizes[TensorMapLimits::rank], strides[TensorMapLimits::rank];
  uint32_t box[TensorMapLimits::rank], steps[TensorMapLimits::rank];
  for (unsigned d = 0; d != spec.rank; ++d) {
    const unsigned place = spec.rank - 1u - d;
    sizes[place] = static_cast<uint64_t>(spec.sizes[d]);
    if (place != 0)
      strides[place - 1] = static_cast<uint64_t>(spec.strides[d]);
    box[place] = spec.box[d];
    steps[place] = 1;
  }
  return driver.check(driver.tensorMapEncodeTiled(
                          map.bytes.data(), getTypeNumber(spec.type), spec.rank,
                          spec.address, sizes, strides, box, steps,
                          cuda::NotInterleaved, getSwizzleNumber(spec.swizzle),
                          cuda::PromoteTo256Bytes, cuda::FillWithZeros),
                      "make a tensor map of ", unsigned(spec.rank),
                      " dimensions at ", spec.address);
}

Error bastile::runtime::replaceTensorAddress(const CudaDevice &device,
                                             const TensorMapSpec &spec,
                                             EncodedTensorMap &map) {
  const CudaDriver &driver = device.driver();
  if (!driver.tensorMapReplaceAddress)
    return encodeTensorMap(device, spec, map);
  CudaContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  return driver.check(
      driver.tensorMapReplaceAddress(map.bytes.data(), spec.address),
      "move a tensor map to ", spec.address);
}
