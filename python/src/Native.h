//===- Native.h - Functions that Python calls most --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Functions of Python that a call of a kernel passes through. Python calls them
// on an array of objects, whereas pybind11 finds an overload, converts each
// argument and collects them in a tuple.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_NATIVE_H
#define BASTILE_PYTHON_NATIVE_H

#include <pybind11/pybind11.h>

namespace bastile::python {

/// The `self` of such a function. `native` is part of `owner`, or lives for as
/// long as the process.
struct Closure {
  void *native;
  pybind11::object owner;
};

inline Closure &getClosure(PyObject *self) {
  return *static_cast<Closure *>(PyCapsule_GetPointer(self, nullptr));
}

using NativeFunction = PyObject *(*)(PyObject * self,
                                     PyObject *const *arguments,
                                     Py_ssize_t count);

/// `name` and `definition` have to live for as long as the process.
inline PyMethodDef defineFunction(const char *name, NativeFunction function) {
  auto pointer =
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
  return {name, pointer, METH_FASTCALL, nullptr};
}

/// A new object, which may be null where Python has raised an error.
inline pybind11::object steal(PyObject *object) {
  if (!object)
    throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}

inline pybind11::object makeFunction(PyMethodDef &definition, Closure closure) {
  auto destroy = [](PyObject *capsule) {
    delete static_cast<Closure *>(PyCapsule_GetPointer(capsule, nullptr));
  };
  auto data = std::make_unique<Closure>(std::move(closure));
  pybind11::object self = steal(PyCapsule_New(data.get(), nullptr, destroy));
  (void)data.release();
  return steal(PyCFunction_New(&definition, self.ptr()));
}

/// The arguments of a call as a tuple.
inline pybind11::tuple makeTuple(PyObject *const *arguments, Py_ssize_t count) {
  pybind11::tuple tuple(count);
  for (Py_ssize_t i = 0; i != count; ++i)
    tuple[i] = pybind11::handle(arguments[i]);
  return tuple;
}

/// The result of `function`; null, with an exception that it throws as Python's
/// error.
template <typename Function>
PyObject *guard(Function function) noexcept {
  try {
    return function().release().ptr();
  } catch (pybind11::error_already_set &error) {
    error.restore();
  } catch (const pybind11::builtin_exception &error) {
    error.set_error();
  } catch (const std::bad_alloc &error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

} // namespace bastile::python

#endif // BASTILE_PYTHON_NATIVE_H
