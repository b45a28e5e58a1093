//===- Arrays.h - Tensors in memory of our own ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Results for a library that cannot be asked for memory: objects that any
// library takes in through DLPack.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_ARRAYS_H
#define BASTILE_PYTHON_ARRAYS_H

#include "Tensors.h"
#include "bastile/runtime/CudaDevice.h"

#include <memory>
#include <optional>

namespace bastile::python {

/// A contiguous tensor on the host or, with a device's number, on a GPU.
class Array : public std::enable_shared_from_this<Array> {
public:
  Array(runtime::ElementType type, const runtime::Dimensions &sizes,
        std::optional<int> device);
  ~Array();
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;

  const runtime::TensorView &view() const { return tensor; }
  const Location &location() const { return place; }

  /// A capsule as `__dlpack__` returns it, of DLPack 1.x if `isVersioned`.
  pybind11::object exportDlpack(bool isVersioned);

private:
  runtime::TensorView tensor;
  Location place;
  runtime::CudaBuffer gpuMemory;
};

/// Waits for the work in a stream of GPU `device`.
void synchronizeStream(int device, uintptr_t stream);

/// Reads what `__dlpack__` returned, as the adapter's `describe` does. The
/// capsule stays the owner of the tensor.
pybind11::tuple readDlpack(pybind11::object capsule);

void bindArrays(pybind11::module_ &module);

} // namespace bastile::python

#endif // BASTILE_PYTHON_ARRAYS_H
