//===- Operator.cpp - An op that compiles for what it is called on --------===//

#include "Operator.h"

namespace py = pybind11;
using namespace bastile::python;
using bastile::runtime::TensorView;

/// Appends what code depends on of one operand.
static void describe(py::handle operand, std::string &key) {
  if (operand.is_none()) {
    key.push_back('-');
    return;
  }
  Location location;
  py::object keepAlive;
  const TensorView view =
      Library::of(operand).read(operand, location, keepAlive);
  // Rows may be repeated along leading dimensions of size 1.
  unsigned ones = 0;
  for (unsigned i = 0; i + 1 < view.rank(); ++i)
    ones |= unsigned(view.sizes[i] == 1) << i;
  const int64_t length = view.rank() == 0 ? 0 : view.sizes.back();
  key.push_back(location.isCuda ? 'g' : 'c');
  key.push_back(static_cast<char>(view.type));
  key.push_back(static_cast<char>(view.rank()));
  key.push_back(static_cast<char>(ones));
  key.append(reinterpret_cast<const char *>(&length), sizeof(length));
}

const Kernel &Operator::find(const py::tuple &operands,
                             const py::object &attributes,
                             const py::object &gradients) {
  if (!lastKernels || (attributes.ptr() != lastAttributes.ptr() &&
                       !attributes.equal(lastAttributes))) {
    if (!kernelsOfAttributes.contains(attributes)) {
      storage.push_back(std::make_unique<Kernels>());
      kernelsOfAttributes[attributes] = py::int_(storage.size() - 1);
    }
    auto index = kernelsOfAttributes[attributes].cast<size_t>();
    lastKernels = storage[index].get();
    lastAttributes = attributes;
  }
  Kernels &kernels = *lastKernels;

  // Guarded by the interpreter's lock, as all of this is.
  static auto &key = *new std::string();
  key.clear();
  for (py::handle operand : operands)
    describe(operand, key);
  if (!gradients.is_none())
    for (py::handle wanted : gradients)
      key.push_back(wanted.ptr() == Py_True ? '1' : '0');

  auto found = kernels.find(key);
  if (found != kernels.end())
    return *found->second.cast<const Kernel *>();
  std::string ownKey = key;
  py::object made = specialize(attributes, operands, gradients);
  py::object kernel = kernels.emplace(std::move(ownKey), made).first->second;
  return *kernel.cast<const Kernel *>();
}

/// The operands that are there.
static py::object withoutNone(const py::tuple &operands) {
  bool isComplete = true;
  for (py::handle operand : operands)
    isComplete &= !operand.is_none();
  if (isComplete)
    return operands;
  py::list present;
  for (py::handle operand : operands)
    if (!operand.is_none())
      present.append(operand);
  return std::move(present);
}

py::object Operator::call(const py::tuple &operands,
                          const py::object &attributes, bool inPlace) {
  const Kernel &kernel = find(operands, attributes, py::none());
  return kernel.call(withoutNone(operands), inPlace);
}

void Operator::clear() {
  kernelsOfAttributes = py::dict();
  storage.clear();
  lastAttributes = py::object();
  lastKernels = nullptr;
}
