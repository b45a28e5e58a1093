//===- Dlpack.h - The exchange of tensors between frameworks ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The binary interface of DLPack 1.x as far as it is used here, under names of
// our own (https://dmlc.github.io/dlpack/latest/c_api.html). A framework offers
// `ExchangeApi` as the attribute __dlpack_c_exchange_api__ of its tensor type.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_DLPACK_H
#define BASTILE_PYTHON_DLPACK_H

#include <cstdint>

namespace bastile::python::dlpack {

enum DeviceType : int32_t {
  Cpu = 1,
  Cuda = 2,
  CudaHost = 3,
  CudaManaged = 13,
};

struct Device {
  int32_t type;
  int32_t index;
};

enum TypeCode : uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  BFloat = 4,
  Bool = 6,
  Float8E4M3FN = 10,
  Float8E5M2 = 12,
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void *data;
  Device device;
  int32_t rank;
  DataType type;
  int64_t *shape;
  /// In elements.
  int64_t *strides;
  uint64_t byteOffset;
};

struct Version {
  uint32_t major, minor;
};

struct ManagedTensor {
  Version version;
  void *context;
  void (*release)(ManagedTensor *);
  uint64_t flags;
  Tensor tensor;
};

/// The form without a version, which many libraries still speak.
struct PlainManagedTensor {
  Tensor tensor;
  void *context;
  void (*release)(PlainManagedTensor *);
};

struct ExchangeApi {
  Version version;
  void *previous;
  /// Makes a tensor of the type, shape and device of `prototype`. Functions
  /// return 0 or, with an error set, -1.
  int (*allocate)(Tensor *prototype, ManagedTensor **result, void *errorContext,
                  void (*setError)(void *context, const char *kind,
                                   const char *message));
  int (*fromObject)(void *object, ManagedTensor **result);
  /// Makes an object of the framework; takes `tensor` over.
  int (*toObject)(ManagedTensor *tensor, void **result);
  /// A view that is good as long as the object is and nobody changes it.
  int (*viewObject)(void *object, Tensor *result);
  int (*currentStream)(DeviceType type, int32_t index, void **result);
};

} // namespace bastile::python::dlpack

#endif // BASTILE_PYTHON_DLPACK_H
