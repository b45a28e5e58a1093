//===- Operator.cpp - What chooses the kernel of a call -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Operator.h"

#include "Native.h"
#include "Node.h"

namespace py = pybind11;
using namespace bastile::python;
using bastile::runtime::TensorView;

/// Appends what code depends on in one operand. `fixed` has a bit for each
/// leading dimension whose size is part of the code.
static void describe(py::handle operand, unsigned fixed, std::string &key) {
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
  for (unsigned i = 0; i + 1 < view.rank(); ++i) {
    const int64_t size = view.sizes[i];
    if ((fixed >> i & 1) != 0)
      key.append(reinterpret_cast<const char *>(&size), sizeof(size));
  }
}

Operator::~Operator() = default;

std::string Operator::describeOperand(size_t index) const {
  const std::string operand = index < operandNames.size()
                                  ? "'" + operandNames[index] + "'"
                                  : std::to_string(index);
  return name + ": operand " + operand;
}

std::shared_ptr<Specialization> Operator::find(const py::tuple &operands,
                                               const py::object &attributes,
                                               const py::object &gradients) {
  if (!lastKernels || (attributes.ptr() != lastAttributes.ptr() &&
                       !attributes.equal(lastAttributes))) {
    if (!kernelsOfAttributes.contains(attributes)) {
      storage.push_back(std::make_shared<Kernels>());
      kernelsOfAttributes[attributes] = py::int_(storage.size() - 1);
    }
    auto index = kernelsOfAttributes[attributes].cast<size_t>();
    lastKernels = storage[index];
    lastAttributes = attributes;
  }
  // The kernels are held: Python, which adapters and the compiler run, may
  // clear them, and let other threads run, which may too.
  const std::shared_ptr<Kernels> kernels = lastKernels;

  // The key's memory is that of the thread's last call, but this call's own
  // while it makes the key, as an adapter may call an operator itself.
  thread_local std::string buffer;
  std::string key = std::move(buffer);
  key.clear();
  for (size_t i = 0; i != operands.size(); ++i) {
    try {
      describe(operands[i], i < fixedSizes.size() ? fixedSizes[i] : 0, key);
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

  auto found = kernels->find(key);
  if (found != kernels->end()) {
    buffer = std::move(key);
    return found->second;
  }
  py::object made = specialize(attributes, operands, gradients);
  auto entry = std::make_shared<Specialization>(std::move(made));
  if (noteFixedSizes(operands, entry->native->function())) {
    clear();
    return find(operands, attributes, gradients);
  }
  return kernels->emplace(std::move(key), std::move(entry)).first->second;
}

bool Operator::noteFixedSizes(const py::tuple &operands,
                              const runtime::Function &function) {
  bool isNew = false;
  fixedSizes.resize(operands.size());
  size_t input = 0;
  for (size_t i = 0; i != operands.size(); ++i) {
    if (operands[i].is_none() || input == function.inputs.size())
      continue;
    const auto &shape = function.inputs[input++].shape;
    for (unsigned d = 0; d + 1 < shape.size(); ++d) {
      const unsigned bit = 1U << d;
      // Which sizes are 1 is part of every key.
      if (shape[d].value_or(1) == 1 || (fixedSizes[i] & bit) != 0)
        continue;
      fixedSizes[i] |= bit;
      isNew = true;
    }
  }
  return isNew;
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
                         const py::object &attributes) {
  auto found = find(operands, attributes, py::none());
  py::object present = isFixed() ? py::object(operands) : withoutNone(operands);
  return found->native->call(present);
}

py::object Operator::record(const py::tuple &operands,
                            const py::object &attributes,
                            const py::object &gradients) {
  auto found = find(operands, attributes, gradients);
  if (!found->node)
    found->node = makeNode(found->kernel, operands);
  // The node is held, as the call may lead Python to forget the kernel.
  py::object node = found->node;
  return steal(PyObject_Call(node.ptr(), operands.ptr(), nullptr));
}

void Operator::clear() {
  kernelsOfAttributes = py::dict();
  storage.clear();
  lastAttributes = py::object();
  lastKernels = nullptr;
}

std::shared_ptr<Specialization>
FixedOperator::find(const py::tuple &operands, const py::object &attributes,
                    const py::object &) {
  Location location;
  py::object keepAlive, first = operands[0];
  Library::of(first).read(first, location, keepAlive);
  const int place = location.isCuda ? location.index : -1;
  auto found = kernels.find(place);
  if (found != kernels.end())
    return found->second;
  auto entry = std::make_shared<Specialization>(
      specialize(attributes, operands, py::none()));
  return kernels.emplace(place, std::move(entry)).first->second;
}

//===----------------------------------------------------------------------===//
// Routes
//===----------------------------------------------------------------------===//

/// Never destroyed: the interpreter may be gone by then.
static Hooks &mutableHooks() {
  static auto &value = *new Hooks();
  return value;
}

const Hooks &bastile::python::hooks() { return mutableHooks(); }

void bastile::python::setHooks(Hooks newHooks) {
  mutableHooks() = std::move(newHooks);
}

Route bastile::python::getRoute(py::handle operand) {
  static auto &routes = *new std::unordered_map<PyTypeObject *, Route>();
  PyTypeObject *type = Py_TYPE(operand.ptr());
  auto found = routes.find(type);
  if (found != routes.end())
    return found->second;
  py::object route =
      hooks().classify(py::handle(reinterpret_cast<PyObject *>(type)));
  // A type that is kept alive leaves its address to no other.
  Py_INCREF(type);
  return routes.emplace(type, static_cast<Route>(route.cast<int>()))
      .first->second;
}

/// Whether an attribute of a tensor is True; `attribute` is interned.
static bool has(py::handle object, PyObject *attribute) {
  if (object.is_none() || getRoute(object) == Route::Direct)
    return false;
  return steal(PyObject_GetAttr(object.ptr(), attribute)).ptr() == Py_True;
}

bool bastile::python::isTrue(const py::object &predicate) {
  py::object result = steal(PyObject_CallNoArgs(predicate.ptr()));
  if (result.ptr() == Py_True || result.ptr() == Py_False)
    return result.ptr() == Py_True;
  return PyObject_IsTrue(result.ptr()) == 1;
}

bool bastile::python::anyIsTrue(const std::vector<py::object> &predicates) {
  for (const py::object &predicate : predicates)
    if (isTrue(predicate))
      return true;
  return false;
}

static PyObject *requiresGrad() {
  static PyObject *const name = PyUnicode_InternFromString("requires_grad");
  return name;
}

bool bastile::python::wantsGradients(const py::sequence &operands) {
  for (size_t i = 0, count = operands.size(); i != count; ++i)
    if (has(operands[i], requiresGrad()))
      return isTrue(hooks().recordsGradients);
  return false;
}

/// For each operand, whether its gradient is wanted.
static py::tuple getWanted(const py::tuple &operands) {
  py::tuple wanted(operands.size());
  for (size_t i = 0; i != operands.size(); ++i)
    wanted[i] = py::bool_(has(operands[i], requiresGrad()));
  return wanted;
}

/// Raises for operands of other libraries than the one with gradients.
static void expectOneLibrary(const Operator &native,
                             const py::tuple &operands) {
  for (size_t i = 0; i != operands.size(); ++i)
    if (!operands[i].is_none() && getRoute(operands[i]) == Route::Direct)
      throw py::type_error(
          native.describeOperand(i) + " is of type " +
          std::string(py::str(py::type::of(operands[i]).attr("__name__"))) +
          ", but others are tensors of another library");
}

py::object bastile::python::call(py::handle owner, Operator &native,
                                 const py::tuple &operands,
                                 const py::object &attributes) {
  auto route = Route::Direct;
  for (py::handle operand : operands)
    if (!operand.is_none())
      route = std::max(route, getRoute(operand));
  if (route == Route::Direct)
    return native.run(operands, attributes);
  if (route == Route::Watched &&
      (anyIsTrue(hooks().watchers) || anyIsTrue(hooks().casters)))
    route = Route::Dispatched;
  const bool isDispatched = route == Route::Dispatched;
  const bool isRecorded =
      !isDispatched && native.hasGradients() && wantsGradients(operands);
  if (isRecorded || !native.isFixed())
    expectOneLibrary(native, operands);
  if (isDispatched)
    return hooks().dispatch(owner, operands, attributes);
  try {
    if (isRecorded)
      return native.record(operands, attributes, getWanted(operands));
    return native.run(operands, attributes);
  } catch (const NoMemory &) {
    return hooks().dispatch(owner, operands, attributes);
  }
}

static PyObject *callOperator(PyObject *self, PyObject *const *arguments,
                              Py_ssize_t count) {
  return guard([&] {
    if (count != 2 || !PyTuple_CheckExact(arguments[0]))
      throw py::type_error("an operator takes a tuple of operands and its "
                           "attributes");
    const Closure &closure = getClosure(self);
    return call(closure.owner, *static_cast<Operator *>(closure.native),
                py::reinterpret_borrow<py::tuple>(arguments[0]),
                py::reinterpret_borrow<py::object>(arguments[1]));
  });
}

py::object bastile::python::makeCaller(const py::object &owner) {
  static PyMethodDef definition = defineFunction("call", &callOperator);
  return makeFunction(definition, {owner.cast<Operator *>(), owner});
}
