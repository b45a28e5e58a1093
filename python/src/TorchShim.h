//===- TorchShim.h - PyTorch's stable C interface ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Nothing here needs PyTorch's headers or libraries to build: the functions of
// its stable interface (torch/csrc/stable/c/shim.h and
// torch/csrc/inductor/aoti_torch/c/shim.h) are looked up in the process, which
// has loaded them if it has imported torch. PyTorch keeps them from version to
// version; those used here are there from 2.10 on.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_TORCHSHIM_H
#define BASTILE_PYTHON_TORCHSHIM_H

#include "bastile/runtime/TensorView.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bastile::python::torch {

/// An argument or a result, 64 bits that mean what the schema says.
using StableValue = uint64_t;
/// Owned by whoever holds it.
using Tensor = struct TensorOpaque *;
using List = struct ListOpaque *;
using String = struct StringOpaque *;
using Library = struct LibraryOpaque *;

/// A kernel of PyTorch's dispatcher: takes the arguments from the stack, which
/// it then owns, and puts the results there.
using BoxedKernel = void (*)(StableValue *stack, uint64_t arguments,
                             uint64_t results);

struct Shim {
  /// The interface of the PyTorch in this process; null if there is none that
  /// has all of it.
  static const Shim *get();

  int (*createLibrary)(const char *nameSpace, const char *dispatchKey,
                       const char *file, uint32_t line, Library *);
  int (*implement)(Library, const char *name, BoxedKernel);

  int (*listSize)(List, size_t *);
  int (*listItem)(List, size_t index, StableValue *);
  int (*createList)(size_t reserved, List *);
  int (*listAppend)(List, StableValue);
  int (*deleteList)(List);
  int (*stringText)(String, const char **);
  int (*stringLength)(String, size_t *);
  int (*deleteString)(String);

  int (*deleteTensor)(Tensor);
  int (*data)(Tensor, void **);
  int (*rank)(Tensor, int64_t *);
  int (*sizes)(Tensor, int64_t **);
  int (*strides)(Tensor, int64_t **);
  int (*type)(Tensor, int32_t *);
  int (*deviceType)(Tensor, int32_t *);
  int (*deviceIndex)(Tensor, int32_t *);
  int (*createTensor)(int64_t rank, const int64_t *sizes,
                      const int64_t *strides, int32_t type, int32_t deviceType,
                      int32_t deviceIndex, Tensor *);
  int (*copyTensor)(Tensor target, Tensor source, int32_t nonBlocking);
  /// Raises an error with this message, from within PyTorch, if `condition`
  /// does not hold.
  void (*expect)(bool condition, const char *function, const char *file,
                 uint32_t line, const char *message);
  /// A new reference to the Python object of a tensor, which stays the
  /// caller's. It is not part of the stable interface: null where it is
  /// missing.
  void *(*wrap)(const void *tensor);
  /// Null in a PyTorch without CUDA.
  int (*currentStream)(int32_t device, void **);

  int32_t cudaDevice = 0;
  /// PyTorch's number of each element type, by ours.
  int32_t typeNumbers[10] = {};

  int32_t getTypeNumber(runtime::ElementType type) const {
    return typeNumbers[static_cast<unsigned>(type)];
  }
  std::optional<runtime::ElementType> getElementType(int32_t number) const;

  /// Whether outputs of calls, from Python and in traced programs, have the
  /// strides that the runtime proposes: calls from Python need `wrap` for that.
  bool keepsOrder() const { return wrap; }

  /// Makes a tensor like `view` on GPU `device`, or without one on the CPU, of
  /// which `view` is one then. Null on failure, of which PyTorch has then told.
  Tensor allocate(std::optional<int> device, runtime::TensorView &view) const;
};

} // namespace bastile::python::torch

#endif // BASTILE_PYTHON_TORCHSHIM_H
