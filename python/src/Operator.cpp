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
  // GPUs may be of several kinds.
  key.push_back(location.isCuda ? static_cast<char>(location.index) : 'c');
  key.push_back(location.isCuda ? 'g' : 'c');
  key.push_back(static_cast<char>(view.type));
  key.push_back(static_cast<char>(view.rank()));
  key.push_back(static_cast<char>(ones));
  key.append(reinterpret_cast<const char *>(&length), sizeof(length));
}

std::string Operator::describeOperand(size_t index) const {
  return name + ": operand '" + operandNames[index] + "'";
}

py::object Operator::find(const py::tuple &operands,
                          const py::object &attributes,
                          const py::object &gradients) {
  if (!lastKernels || (attributes.ptr() != lastAttributes.ptr() &&
                       !attributes.equal(lastAttributes))) {
    if (!kernelsOfAttributes.contains(attributes)) {
      storage.push_back(std::make_shared<Kernels>());
      kernelsOfAttributes[attributes] = py::int_(storage.size() - 1);
    }
    auto index = kernelsOfAttributes[attributes].cast<size_t>();
    lastKernels = storage[index].get();
    lastAttributes = attributes;
  }
  Kernels &kernels = *lastKernels;

  // The interpreter's lock guards the rest, but an adapter in Python may let
  // other threads run while a key is made.
  thread_local std::string key;
  key.clear();
  for (size_t i = 0; i != operands.size(); ++i) {
    try {
      describe(operands[i], key);
    } catch (const py::type_error &error) {
      throw py::type_error(describeOperand(i) + ": " + error.what());
    } catch (const py::value_error &error) {
      throw py::value_error(describeOperand(i) + ": " + error.what());
    } catch (py::error_already_set &error) {
      if (!error.matches(PyExc_TypeError))
        throw;
      throw py::type_error(describeOperand(i) + ": " +
                           std::string(py::str(error.value())));
    }
  }
  if (!gradients.is_none())
    for (py::handle wanted : gradients)
      key.push_back(wanted.ptr() == Py_True ? '1' : '0');

  auto found = kernels.find(key);
  if (found != kernels.end())
    return found->second;
  std::string ownKey = key;
  // What is called now may clear this.
  std::shared_ptr<Kernels> owner =
      storage[kernelsOfAttributes[attributes].cast<size_t>()];
  py::object made = specialize(attributes, operands, gradients);
  return owner->emplace(std::move(ownKey), std::move(made)).first->second;
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

py::object Operator::run(const py::tuple &operands,
                         const py::object &attributes, bool inPlace) {
  py::object kernel = find(operands, attributes, py::none());
  return kernel.cast<const Kernel &>().call(withoutNone(operands), inPlace);
}

py::tuple Operator::forward(const py::tuple &operands,
                            const py::object &attributes,
                            const py::object &gradients) {
  py::object kernel = find(operands, attributes, gradients);
  py::tuple result =
      kernel.cast<const Kernel &>().forward(withoutNone(operands));
  return py::make_tuple(kernel, result[0], result[1]);
}

void Operator::clear() {
  kernelsOfAttributes = py::dict();
  storage.clear();
  lastAttributes = py::object();
  lastKernels = nullptr;
}

//===----------------------------------------------------------------------===//
// Routes
//===----------------------------------------------------------------------===//

/// Never destroyed: the interpreter may be gone by then.
static Hooks &hooks() {
  static auto &value = *new Hooks();
  return value;
}

void bastile::python::setHooks(Hooks newHooks) {
  hooks() = std::move(newHooks);
}

static Route getRoute(py::handle operand) {
  static auto &routes = *new std::unordered_map<PyTypeObject *, Route>();
  PyTypeObject *type = Py_TYPE(operand.ptr());
  auto found = routes.find(type);
  if (found != routes.end())
    return found->second;
  py::object route =
      hooks().classify(py::handle(reinterpret_cast<PyObject *>(type)));
  // Keeps the address of the type its own.
  Py_INCREF(type);
  return routes.emplace(type, static_cast<Route>(route.cast<int>()))
      .first->second;
}

/// Whether an attribute of any operand is True; `name` is interned.
static bool anyHas(const py::tuple &operands, PyObject *name) {
  for (py::handle operand : operands) {
    if (operand.is_none())
      continue;
    PyObject *value = PyObject_GetAttr(operand.ptr(), name);
    if (!value)
      throw py::error_already_set();
    Py_DECREF(value);
    if (value == Py_True)
      return true;
  }
  return false;
}

static bool isTrue(const py::object &predicate) {
  py::object result = predicate();
  return PyObject_IsTrue(result.ptr()) == 1;
}

py::object bastile::python::call(const py::object &owner, Operator &native,
                                 const py::tuple &operands,
                                 const py::object &attributes) {
  auto route = Route::Direct;
  for (py::handle operand : operands)
    if (!operand.is_none())
      route = std::max(route, getRoute(operand));
  if (route == Route::Watched)
    for (const py::object &watcher : hooks().watchers)
      if (isTrue(watcher))
        route = Route::Dispatched;
  if (route == Route::Direct)
    return native.run(operands, attributes, /*inPlace=*/false);
  for (size_t i = 0; i != operands.size(); ++i)
    if (!operands[i].is_none() && getRoute(operands[i]) == Route::Direct)
      throw py::type_error(
          native.describeOperand(i) + " is of type " +
          std::string(py::str(py::type::of(operands[i]).attr("__name__"))) +
          ", but others are tensors of another library");
  if (route == Route::Dispatched)
    return hooks().dispatch(owner, operands, attributes);
  static PyObject *requiresGrad = PyUnicode_InternFromString("requires_grad");
  static PyObject *isMeta = PyUnicode_InternFromString("is_meta");
  if (anyHas(operands, requiresGrad) && isTrue(hooks().recordsGradients)) {
    if (anyHas(operands, isMeta))
      return hooks().dispatch(owner, operands, attributes);
    return hooks().differentiate(owner, attributes, *operands);
  }
  try {
    return native.run(operands, attributes, /*inPlace=*/false);
  } catch (const NoMemory &) {
    return hooks().dispatch(owner, operands, attributes);
  }
}
