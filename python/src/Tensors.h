//===- Tensors.h - Python's tensors as views --------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Objects of every array library come in, and results go out as objects of the
// same one. A library that exchanges tensors through DLPack's C interface, as
// PyTorch does, is served without a line of Python; any other one by the
// adapter that the package registers.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_TENSORS_H
#define BASTILE_PYTHON_TENSORS_H

#include "Dlpack.h"
#include "bastile/runtime/Program.h"

#include <exception>
#include <optional>
#include <pybind11/pybind11.h>

namespace bastile::python {

/// The memory that a tensor lies in.
struct Location {
  bool isCuda = false;
  /// The GPU's number.
  int index = 0;

  /// The GPU's number, nothing for the CPU.
  std::optional<int> device() const {
    return isCuda ? std::optional<int>(index) : std::nullopt;
  }

  friend bool operator==(const Location &a, const Location &b) {
    return a.isCuda == b.isCuda && (!a.isCuda || a.index == b.index);
  }
  friend bool operator!=(const Location &a, const Location &b) {
    return !(a == b);
  }
};

/// "the CPU" or "GPU 0".
std::string print(const Location &location);

namespace dlpack {
DataType getDataType(runtime::ElementType type);
/// Raises TypeError or ValueError for a tensor that no kernel takes.
runtime::TensorView read(const Tensor &tensor, Location &location);
} // namespace dlpack

/// Thrown for a tensor without memory, such as one on PyTorch's device "meta".
/// The library of the tensor decides what a call on it means.
class NoMemory : public std::exception {
public:
  const char *what() const noexcept override {
    return "a kernel needs tensors with memory, but got one without, such as "
           "on "
           "the device 'meta'";
  }
};

/// The way to exchange tensors with a library; there is one for each type of
/// tensor.
class Library {
public:
  /// The library that `object` is a tensor of. Raises TypeError if it is none.
  static const Library &of(pybind11::handle object);
  virtual ~Library();

  /// Reads a tensor; `keepAlive` receives what must outlive the view beside
  /// the object itself.
  virtual runtime::TensorView read(pybind11::handle object, Location &location,
                                   pybind11::object &keepAlive) const = 0;

  /// Makes a tensor of the type and the sizes of `view` like those of the
  /// library, of which `view` is one then. It has the strides of `view` where
  /// the library can make such tensors, and is contiguous elsewhere.
  virtual pybind11::object allocate(const Location &location,
                                    pybind11::handle like,
                                    runtime::TensorView &view) const = 0;

  /// Makes output `index` of a call that has been made an object that users of
  /// the library expect; `like` is an input.
  virtual void deliver(pybind11::list &outputs, size_t index,
                       pybind11::handle like) const {}

  /// Whether kernels may write to a tensor of a caller.
  virtual bool isWritable(pybind11::handle object) const { return true; }

  /// The stream that the library works in now.
  virtual runtime::cuda::Stream currentStream(int device) const = 0;
};

/// Whether the elements of each row follow one another, as kernels need it.
bool hasContiguousRows(const runtime::TensorView &view);

/// A contiguous copy of a tensor.
pybind11::object copyContiguous(pybind11::handle tensor);

/// Registers the object that adapts libraries without the C interface. Its
/// methods are `describe(tensor)`, which returns (address or None, type, sizes,
/// strides, device or None, owner); `allocate(like, type, sizes, device)`,
/// which returns (tensor, address); `deliver(like, tensor)`, which returns what
/// the caller gets of it once the call is made; `current_stream(device)`;
/// `contiguous(tensor)`, which returns a copy; `is_writable(tensor)`; and
/// `unreadable_kind(tensor)`, which says what a tensor of PyTorch is whose
/// memory PyTorch does not give away, or returns None.
void setTensorAdapter(pybind11::object adapter);

} // namespace bastile::python

#endif // BASTILE_PYTHON_TENSORS_H
