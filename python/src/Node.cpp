//===- Node.cpp - Kernels as nodes of PyTorch's graph ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// A class of `torch.autograd.Function` for each kernel, so that a call hands
// over its operands and nothing else, and finds what it needs in a closure. The
// names below are the attributes that PyTorch's own methods set.
//
//===----------------------------------------------------------------------===//

#include "Node.h"
#include "Native.h"
#include "Operator.h"

namespace py = pybind11;
using namespace bastile::python;

namespace {
struct Node {
  py::object kernelObject;
  const Kernel *kernel;
  /// The operands that are there; all if it is empty.
  std::vector<size_t> present;
  size_t operandCount;

  py::object forward(py::handle context, const py::tuple &operands) const;
  py::object backward(py::handle context, const py::tuple &gradients) const;

private:
  py::tuple select(const py::tuple &operands) const;
  py::tuple spread(const py::tuple &gradients) const;
};
} // namespace

static void set(py::handle object, const char *attribute, py::handle value) {
  if (PyObject_SetAttrString(object.ptr(), attribute, value.ptr()) != 0)
    throw py::error_already_set();
}

py::tuple Node::select(const py::tuple &operands) const {
  if (present.empty())
    return operands;
  py::tuple selected(present.size());
  for (size_t i = 0; i != present.size(); ++i)
    selected[i] = operands[present[i]];
  return selected;
}

py::tuple Node::spread(const py::tuple &gradients) const {
  if (present.empty())
    return gradients;
  py::tuple result(operandCount);
  for (size_t i = 0; i != operandCount; ++i)
    result[i] = py::none();
  for (size_t i = 0; i != present.size(); ++i)
    result[present[i]] = gradients[i];
  return result;
}

/// The results that have no gradient. Where gradients were computed with a
/// total, the total is the one result that has any.
static py::list getConstants(const Kernel &kernel, const py::tuple &results) {
  py::list constants;
  for (size_t i = 0; i != results.size(); ++i)
    if (kernel.isTogether() ? i != 0
                            : !isFloat(kernel.function().outputs[i].type))
      constants.append(results[i]);
  return constants;
}

py::object Node::forward(py::handle context, const py::tuple &operands) const {
  const py::tuple inputs = select(operands);
  py::tuple outcome = kernel->forward(inputs);
  py::object results = outcome[0], kept = outcome[1];
  if (kernel->isTogether())
    kept = hooks().keepGradients(kernelObject, kept, inputs);
  set(context, "to_save", kept);
  if (PyTuple_CheckExact(results.ptr()))
    set(context, "non_differentiable",
        py::tuple(getConstants(*kernel, py::tuple(results))));
  return results;
}

py::object Node::backward(py::handle context,
                          const py::tuple &gradients) const {
  // Reading this attribute runs the hooks of those who keep saved tensors
  // elsewhere.
  static PyObject *const saved = PyUnicode_InternFromString("saved_tensors");
  py::object kept = steal(PyObject_GetAttr(context.ptr(), saved));
  const bool inPlace = kernel->isTogether() && isTrue(hooks().isLastBackward);
  py::tuple computed =
      spread(kernel->backward(py::sequence(kept), gradients, inPlace));
  // With `create_graph`, gradients of these gradients may be asked for, which
  // the compiler does not derive.
  if (isTrue(hooks().recordsGradients))
    return hooks().refuseTwice(kernel->function().name, computed,
                               kept + py::object(gradients));
  return std::move(computed);
}

static const Node &getNode(PyObject *self) {
  return *static_cast<const Node *>(getClosure(self).native);
}

static PyObject *forward(PyObject *self, PyObject *const *arguments,
                         Py_ssize_t count) {
  return guard([&] {
    return getNode(self).forward(arguments[0],
                                 makeTuple(arguments + 1, count - 1));
  });
}

static PyObject *backward(PyObject *self, PyObject *const *arguments,
                          Py_ssize_t count) {
  return guard([&] {
    return getNode(self).backward(arguments[0],
                                  makeTuple(arguments + 1, count - 1));
  });
}

py::object bastile::python::makeNode(const py::object &kernel,
                                     const py::tuple &operands) {
  auto node = std::make_unique<Node>();
  node->kernelObject = kernel;
  node->kernel = kernel.cast<const Kernel *>();
  node->operandCount = operands.size();
  for (size_t i = 0; i != operands.size(); ++i)
    if (!operands[i].is_none())
      node->present.push_back(i);
  if (node->present.size() == operands.size())
    node->present.clear();
  const std::string &name = node->kernel->function().name;
  void *native = node.get();
  py::capsule owner(node.release(),
                    [](void *pointer) { delete static_cast<Node *>(pointer); });
  static PyMethodDef forwardDefinition = defineFunction("forward", &forward);
  static PyMethodDef backwardDefinition = defineFunction("backward", &backward);
  return hooks().makeNode(name,
                          makeFunction(forwardDefinition, {native, owner}),
                          makeFunction(backwardDefinition, {native, owner}));
}
