//===- Kernel.h - Calling functions on Python's tensors ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_KERNEL_H
#define BASTILE_PYTHON_KERNEL_H

#include "Tensors.h"

#include <memory>

namespace bastile::python {

/// A compiled function, called on tensors of any library.
class Kernel {
public:
  /// `function` is one of `program`. Functions for the host take tensors on the
  /// CPU, others those on a GPU. With `together`, the function returns
  /// gradients beside its results; with `inPlace`, `forward` lets them take the
  /// memory of the inputs. With `inPlace` alone, results take it, as the
  /// function says.
  Kernel(std::shared_ptr<runtime::Program> program,
         const runtime::Function &function, bool together, bool inPlace);

  const runtime::Function &function() const { return *forwardFunction; }
  runtime::Program &program() const { return *owner; }

  /// Calls the function. `inPlace` lets outputs take the memory of the inputs
  /// where the function allows it. Returns one object for each output.
  pybind11::list run(const pybind11::sequence &inputs, bool inPlace) const;

  /// Calls the function and returns its results without what is only there for
  /// its backward: one object, or a tuple of several. Raises for inputs whose
  /// memory results are to take and cannot.
  pybind11::object call(const pybind11::sequence &inputs) const;

  /// Calls the function and returns (its result or results, what `backward`
  /// has to be given of this call).
  pybind11::tuple forward(const pybind11::sequence &inputs) const;

  /// The inputs and outputs of a call that `backward` needs.
  pybind11::tuple keep(const pybind11::sequence &inputs,
                       const pybind11::sequence &outputs) const;

  /// The gradients of all inputs, None where there is none. `kept` comes from
  /// `forward`, `gradients` are those of its results. `inPlace` lets gradients
  /// take the memory of what was kept where the function allows it.
  pybind11::tuple backward(const pybind11::sequence &kept,
                           const pybind11::sequence &gradients,
                           bool inPlace) const;

  /// How many results a call returns.
  unsigned resultCount() const { return results; }

  /// Whether a call computes gradients beside the results.
  bool isTogether() const { return together; }

  /// The inputs that `forward` may overwrite.
  std::vector<unsigned> consumedInputs() const;

private:
  using Source = runtime::Backward::Source;
  /// Whether outputs take the memory of inputs: never; where the function
  /// allows it and the input's rows are contiguous and share no memory; or
  /// wherever the function says so.
  enum class InPlace { Never, WherePossible, Always };
  pybind11::list runFunction(const runtime::Function &function,
                             const pybind11::sequence &inputs,
                             InPlace inPlace) const;
  /// The metadata of the backward; raises where no gradients were asked for.
  const runtime::Backward &recipe() const;
  pybind11::object unwrap(const pybind11::list &outputs) const;

  std::shared_ptr<runtime::Program> owner;
  const runtime::Function *forwardFunction;
  /// The function of the backward; null if there is none, or it has nothing to
  /// compute.
  const runtime::Function *backwardFunction = nullptr;
  /// How many outputs are results; the rest are saved for the backward, or are
  /// gradients.
  unsigned results = 0;
  bool together;
  bool inPlace;
};

/// How many threads of the host a call may use: `threads` or, for 0, what
/// `follow` says at each call or, for None, one for each processor of this
/// process.
void setThreadCount(unsigned threads);
void followThreadCount(pybind11::object follow);
unsigned getThreadCount();
/// How many threads share the work on `inputs`. The number depends on the sizes
/// of the inputs alone, so that sums of rows, which depend on it, are the same
/// in every call.
unsigned chooseThreads(const std::vector<runtime::TensorView> &inputs);

/// Raises `error` as the fitting exception.
[[noreturn]] void raise(const runtime::Error &error);

} // namespace bastile::python

#endif // BASTILE_PYTHON_KERNEL_H
