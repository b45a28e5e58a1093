//===- Arrays.cpp - Tensors in memory of our own --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Kernel.h"

#include <new>
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace bastile;
using namespace bastile::python;
using namespace bastile::runtime;
using namespace py::literals;

/// As wide as any vector load of the host.
static constexpr std::align_val_t hostAlignment{64};

static std::shared_ptr<const CudaDevice> getDevice(int ordinal) {
  auto device = CudaDevices::get(ordinal);
  if (!device)
    throw std::runtime_error(device.takeError().message());
  return *device;
}

Array::Array(ElementType type, const Dimensions &sizes,
             std::optional<int> device)
    : tensor(TensorView::contiguous(nullptr, type, sizes)) {
  const size_t bytes = static_cast<size_t>(tensor.byteCount());
  if (!device) {
    tensor.data = ::operator new(std::max<size_t>(bytes, 1), hostAlignment);
    return;
  }
  place = {/*isCuda=*/true, *device};
  if (bytes == 0)
    return;
  auto memory = CudaBuffer::allocate(getDevice(*device), bytes);
  if (!memory)
    throw std::runtime_error(memory.takeError().message());
  gpuMemory = std::move(*memory);
  tensor.data = gpuMemory.data();
}

Array::~Array() {
  if (!place.isCuda)
    ::operator delete(tensor.data, hostAlignment);
}

void bastile::python::synchronizeStream(int device, uintptr_t stream) {
  if (Error error = getDevice(device)->synchronize(
          reinterpret_cast<cuda::Stream>(stream)))
    throw std::runtime_error(error.message());
}

//===----------------------------------------------------------------------===//
// DLPack
//===----------------------------------------------------------------------===//

static constexpr const char *plainName = "dltensor";
static constexpr const char *versionedName = "dltensor_versioned";

namespace {
/// An array that has been handed out in form `Managed`.
template <typename Managed>
struct Export {
  explicit Export(std::shared_ptr<Array> exported)
      : array(std::move(exported)) {
    const TensorView &view = array->view();
    managed.context = this;
    managed.release = [](Managed *managed) {
      delete static_cast<Export *>(managed->context);
    };
    managed.tensor.data = view.data;
    managed.tensor.device = {array->location().isCuda ? dlpack::Cuda
                                                      : dlpack::Cpu,
                             array->location().index};
    managed.tensor.rank = static_cast<int32_t>(view.rank());
    managed.tensor.type = dlpack::getDataType(view.type);
    managed.tensor.shape = const_cast<int64_t *>(view.sizes.begin());
    managed.tensor.strides = const_cast<int64_t *>(view.strides.begin());
  }

  std::shared_ptr<Array> array;
  Managed managed = {};
};
} // namespace

/// Frees a tensor that nobody has taken out of its capsule.
template <typename Managed>
static void releaseUnused(PyObject *capsule, const char *name) {
  if (!PyCapsule_IsValid(capsule, name))
    return;
  auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule, name));
  if (managed->release)
    managed->release(managed);
}

py::object Array::exportDlpack(bool isVersioned) {
  PyObject *capsule = nullptr;
  if (isVersioned) {
    auto *exported = new Export<dlpack::ManagedTensor>(shared_from_this());
    exported->managed.version = {1, 0};
    capsule =
        PyCapsule_New(&exported->managed, versionedName, [](PyObject *self) {
          releaseUnused<dlpack::ManagedTensor>(self, versionedName);
        });
  } else {
    auto *exported = new Export<dlpack::PlainManagedTensor>(shared_from_this());
    capsule = PyCapsule_New(&exported->managed, plainName, [](PyObject *self) {
      releaseUnused<dlpack::PlainManagedTensor>(self, plainName);
    });
  }
  if (!capsule)
    throw py::error_already_set();
  return py::reinterpret_steal<py::object>(capsule);
}

static py::tuple writeTuple(const Dimensions &values) {
  py::tuple result(values.size());
  for (unsigned i = 0; i != values.size(); ++i)
    result[i] = py::int_(values[i]);
  return result;
}

py::tuple bastile::python::readDlpack(py::object capsule) {
  const dlpack::Tensor *tensor = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), versionedName)) {
    auto *managed = static_cast<dlpack::ManagedTensor *>(
        PyCapsule_GetPointer(capsule.ptr(), versionedName));
    if (managed->version.major != 1)
      throw py::value_error("a tensor comes by version " +
                            std::to_string(managed->version.major) +
                            " of DLPack, but 1 is the one that is known");
    tensor = &managed->tensor;
  } else if (PyCapsule_IsValid(capsule.ptr(), plainName)) {
    tensor = &static_cast<dlpack::PlainManagedTensor *>(
                  PyCapsule_GetPointer(capsule.ptr(), plainName))
                  ->tensor;
  } else {
    throw py::type_error("__dlpack__ did not return a capsule of DLPack");
  }
  Location location;
  const TensorView view = dlpack::read(*tensor, location);
  return py::make_tuple(
      reinterpret_cast<uintptr_t>(view.data), std::string(name(view.type)),
      writeTuple(view.sizes), writeTuple(view.strides),
      location.isCuda ? py::object(py::int_(location.index)) : py::none(),
      capsule);
}

//===----------------------------------------------------------------------===//
// Python
//===----------------------------------------------------------------------===//

static std::shared_ptr<Array> allocateArray(const std::vector<int64_t> &sizes,
                                            const std::string &spelling,
                                            std::optional<int> device) {
  std::optional<ElementType> type = parseElementType(spelling);
  if (!type || sizes.size() > maxRank)
    throw py::value_error("no array of this shape and type");
  return std::make_shared<Array>(*type, Dimensions(sizes.data(), sizes.size()),
                                 device);
}

static py::object exportArray(Array &array, const py::object &stream,
                              const py::object &maxVersion,
                              const py::object &device,
                              const py::object &copy) {
  auto isElsewhere = [&] {
    return device.cast<std::pair<int, int>>() !=
           std::pair<int, int>(array.location().isCuda ? dlpack::Cuda
                                                       : dlpack::Cpu,
                               array.location().index);
  };
  if ((!device.is_none() && isElsewhere()) || copy.equal(py::bool_(true))) {
    PyErr_SetString(PyExc_BufferError, "bastile.Array makes no copies");
    throw py::error_already_set();
  }
  bool isVersioned = !maxVersion.is_none() &&
                     maxVersion.cast<py::sequence>()[0].cast<int>() >= 1;
  return array.exportDlpack(isVersioned);
}

void bastile::python::bindArrays(py::module_ &module) {
  py::class_<Array, std::shared_ptr<Array>>(
      module, "Array",
      "A tensor that a call made; other libraries take it by from_dlpack.")
      .def_property_readonly(
          "shape",
          [](const Array &array) { return writeTuple(array.view().sizes); })
      .def_property_readonly("dtype",
                             [](const Array &array) {
                               return std::string(name(array.view().type));
                             })
      .def("__dlpack__", &exportArray, py::kw_only(), "stream"_a = py::none(),
           "max_version"_a = py::none(), "dl_device"_a = py::none(),
           "copy"_a = py::none())
      .def("__dlpack_device__",
           [](const Array &array) {
             return py::make_tuple(
                 int(array.location().isCuda ? dlpack::Cuda : dlpack::Cpu),
                 array.location().index);
           })
      .def_property_readonly("address",
                             [](const Array &array) {
                               return reinterpret_cast<uintptr_t>(
                                   array.view().data);
                             })
      .def("__repr__", [](const Array &array) {
        return "<bastile.Array of " + std::string(name(array.view().type)) +
               " " + std::string(py::str(writeTuple(array.view().sizes))) +
               " on " + print(array.location()) + ">";
      });
  module.def("allocate", &allocateArray, "sizes"_a, "element"_a, "device"_a);
  module.def("read_dlpack", &readDlpack, "capsule"_a);
  module.def("synchronize_stream", &synchronizeStream, "device"_a, "stream"_a);
}
