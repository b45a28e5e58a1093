//===- Tensors.cpp - Python's tensors as views ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"
#include "TorchShim.h"

#include <unordered_map>

namespace py = pybind11;
using namespace bastile;
using namespace bastile::python;
using bastile::runtime::Dimensions;
using bastile::runtime::ElementType;
using bastile::runtime::TensorView;

std::string bastile::python::print(const Location &location) {
  return location.isCuda ? "GPU " + std::to_string(location.index) : "the CPU";
}

Library::~Library() = default;

//===----------------------------------------------------------------------===//
// Through DLPack
//===----------------------------------------------------------------------===//

static std::optional<ElementType> getElementType(dlpack::DataType type) {
  if (type.lanes != 1)
    return std::nullopt;
  auto is = [&](dlpack::TypeCode code, int bits) {
    return type.code == code && type.bits == bits;
  };
  if (is(dlpack::BFloat, 16))
    return ElementType::BF16;
  if (is(dlpack::Float, 16))
    return ElementType::F16;
  if (is(dlpack::Float, 32))
    return ElementType::F32;
  if (is(dlpack::Float, 64))
    return ElementType::F64;
  if (is(dlpack::Float8E4M3FN, 8))
    return ElementType::F8E4M3FN;
  if (is(dlpack::Float8E5M2, 8))
    return ElementType::F8E5M2;
  if (is(dlpack::Int, 64))
    return ElementType::I64;
  if (is(dlpack::Int, 32))
    return ElementType::I32;
  if (is(dlpack::Int, 8))
    return ElementType::I8;
  if (is(dlpack::Bool, 8))
    return ElementType::I1;
  return std::nullopt;
}

dlpack::DataType dlpack::getDataType(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return {dlpack::Float, 64, 1};
  case ElementType::F32:
    return {dlpack::Float, 32, 1};
  case ElementType::F16:
    return {dlpack::Float, 16, 1};
  case ElementType::BF16:
    return {dlpack::BFloat, 16, 1};
  case ElementType::F8E4M3FN:
    return {dlpack::Float8E4M3FN, 8, 1};
  case ElementType::F8E5M2:
    return {dlpack::Float8E5M2, 8, 1};
  case ElementType::I1:
    return {dlpack::Bool, 8, 1};
  case ElementType::I8:
    return {dlpack::Int, 8, 1};
  case ElementType::I32:
    return {dlpack::Int, 32, 1};
  case ElementType::I64:
    break;
  }
  return {dlpack::Int, 64, 1};
}

static std::string print(dlpack::DataType type) {
  return "DLPack's code " + std::to_string(type.code) + " with " +
         std::to_string(type.bits) + " bits";
}

TensorView dlpack::read(const dlpack::Tensor &tensor, Location &location) {
  std::optional<ElementType> type = getElementType(tensor.type);
  if (!type)
    throw py::type_error("no kernel takes elements of type " +
                         ::print(tensor.type));
  if (tensor.rank > static_cast<int32_t>(runtime::maxRank))
    throw py::value_error("a tensor has rank " + std::to_string(tensor.rank) +
                          ", but kernels take at most " +
                          std::to_string(runtime::maxRank));
  location.isCuda = tensor.device.type == dlpack::Cuda ||
                    tensor.device.type == dlpack::CudaManaged;
  location.index = tensor.device.index;
  if (!location.isCuda && tensor.device.type != dlpack::Cpu &&
      tensor.device.type != dlpack::CudaHost)
    throw py::type_error("a tensor is neither on the CPU nor on a GPU of "
                         "NVIDIA");
  const auto rank = static_cast<size_t>(tensor.rank);
  void *data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  if (!tensor.strides)
    return TensorView::contiguous(data, *type, Dimensions(tensor.shape, rank));
  TensorView view;
  view.data = data;
  view.type = *type;
  view.sizes = Dimensions(tensor.shape, rank);
  view.strides = Dimensions(tensor.strides, rank);
  return view;
}

/// Never destroyed: the interpreter may be gone by then.
static py::object &adapter() {
  static auto &object = *new py::object();
  return object;
}

[[noreturn]] static void raisePythonError() { throw py::error_already_set(); }

namespace {
class DlpackLibrary : public Library {
public:
  explicit DlpackLibrary(const dlpack::ExchangeApi &api) : api(api) {}

  TensorView read(py::handle object, Location &location,
                  py::object &) const override {
    dlpack::Tensor tensor;
    if (api.viewObject(object.ptr(), &tensor) != 0) {
      py::error_already_set error;
      if (py::getattr(object, "is_meta", py::bool_(false)).cast<bool>())
        throw NoMemory();
      py::object kind = adapter().attr("unreadable_kind")(object);
      if (kind.is_none())
        throw error;
      throw py::type_error("a kernel takes dense tensors, but got " +
                           std::string(py::str(kind)));
    }
    try {
      return dlpack::read(tensor, location);
    } catch (const py::type_error &error) {
      // The message has the library's name of the type, in place of DLPack's
      // numbers.
      if (!getElementType(tensor.type))
        throw py::type_error("no kernel takes elements of type " +
                             describeType(object));
      throw;
    }
  }

  py::object allocate(const Location &location, py::handle,
                      TensorView &view) const override {
    dlpack::Tensor prototype = {};
    prototype.device = {location.isCuda ? dlpack::Cuda : dlpack::Cpu,
                        location.isCuda ? location.index : 0};
    prototype.rank = static_cast<int32_t>(view.rank());
    prototype.type = dlpack::getDataType(view.type);
    prototype.shape = const_cast<int64_t *>(view.sizes.begin());
    dlpack::ManagedTensor *managed = nullptr;
    if (api.allocate(&prototype, &managed, nullptr, &setError) != 0)
      raisePythonError();
    void *data =
        static_cast<char *>(managed->tensor.data) + managed->tensor.byteOffset;
    void *object = nullptr;
    if (api.toObject(managed, &object) != 0)
      raisePythonError();
    view = TensorView::contiguous(data, view.type, view.sizes);
    return py::reinterpret_steal<py::object>(static_cast<PyObject *>(object));
  }

  runtime::cuda::Stream currentStream(int device) const override {
    void *stream = nullptr;
    if (api.currentStream(dlpack::Cuda, device, &stream) != 0)
      raisePythonError();
    return stream;
  }

private:
  static std::string describeType(py::handle object) {
    return py::str(py::getattr(object, "dtype", py::str("an unknown type")));
  }

  static void setError(void *, const char *kind, const char *message) {
    py::gil_scoped_acquire lock;
    PyObject *type = std::string_view(kind) == "MemoryError"
                         ? PyExc_MemoryError
                         : PyExc_RuntimeError;
    if (!PyErr_Occurred())
      PyErr_SetString(type, message);
  }

  const dlpack::ExchangeApi &api;
};
} // namespace

namespace {
/// PyTorch, which makes its own tensors where it can: its allocator does not
/// know memory that comes through DLPack, so that `record_stream` would not
/// hold that.
class TorchLibrary final : public DlpackLibrary {
public:
  TorchLibrary(const dlpack::ExchangeApi &api, const torch::Shim &shim)
      : DlpackLibrary(api), shim(shim) {}

  /// PyTorch may leave a sign to whoever reads a tensor, such as the imaginary
  /// parts of a conjugate, which lie two elements apart. Rows of more than one
  /// element that lie so are copied, with their signs; a column is read as it
  /// lies.
  TensorView read(py::handle object, Location &location,
                  py::object &keepAlive) const override {
    TensorView view = DlpackLibrary::read(object, location, keepAlive);
    if (mayHaveSigns(view) && object.attr("is_neg")().cast<bool>())
      throw py::type_error("a kernel takes dense tensors, but got one whose "
                           "negative bit is set; resolve_neg() makes it dense");
    return view;
  }

  py::object allocate(const Location &location, py::handle,
                      TensorView &view) const override {
    torch::Tensor tensor = shim.allocate(location.device(), view);
    if (!tensor)
      throw std::runtime_error("PyTorch cannot allocate a tensor of " +
                               std::to_string(view.byteCount()) + " bytes");
    void *object = shim.wrap(tensor);
    shim.deleteTensor(tensor);
    if (!object)
      raisePythonError();
    return py::reinterpret_steal<py::object>(static_cast<PyObject *>(object));
  }

private:
  static bool mayHaveSigns(const TensorView &view) {
    return view.rank() != 0 && view.sizes.back() <= 1 && !view.isContiguous();
  }

  const torch::Shim &shim;
};
} // namespace

//===----------------------------------------------------------------------===//
// Through the package's adapter
//===----------------------------------------------------------------------===//

void bastile::python::setTensorAdapter(py::object object) {
  adapter() = std::move(object);
}

bool bastile::python::hasContiguousRows(const TensorView &view) {
  return view.rank() == 0 || view.sizes.back() <= 1 || view.strides.back() == 1;
}

py::object bastile::python::copyContiguous(py::handle tensor) {
  return adapter().attr("contiguous")(tensor);
}

static Dimensions readDimensions(const py::sequence &values) {
  Dimensions result;
  if (py::len(values) > runtime::maxRank)
    throw py::value_error(
        "a tensor has rank " + std::to_string(py::len(values)) +
        ", but kernels take at most " + std::to_string(runtime::maxRank));
  for (py::handle value : values)
    result.push_back(value.cast<int64_t>());
  return result;
}

static py::tuple writeDimensions(const Dimensions &values) {
  py::tuple result(values.size());
  for (unsigned i = 0; i != values.size(); ++i)
    result[i] = py::int_(values[i]);
  return result;
}

static py::object writeDevice(const Location &location) {
  return location.isCuda ? py::object(py::int_(location.index)) : py::none();
}

namespace {
class AdaptedLibrary final : public Library {
public:
  TensorView read(py::handle object, Location &location,
                  py::object &keepAlive) const override {
    py::tuple fields = adapter().attr("describe")(object);
    if (fields[0].is_none())
      throw NoMemory();
    TensorView view;
    view.data = reinterpret_cast<void *>(fields[0].cast<uintptr_t>());
    std::string spelling = py::str(fields[1]);
    std::optional<ElementType> type = runtime::parseElementType(spelling);
    if (!type)
      throw py::type_error("no kernel takes elements of type " + spelling);
    view.type = *type;
    view.sizes = readDimensions(fields[2]);
    view.strides = readDimensions(fields[3]);
    location.isCuda = !fields[4].is_none();
    location.index = location.isCuda ? fields[4].cast<int>() : 0;
    keepAlive = fields[5];
    return view;
  }

  py::object allocate(const Location &location, py::handle like,
                      TensorView &view) const override {
    py::tuple made = adapter().attr("allocate")(
        like, std::string(name(view.type)), writeDimensions(view.sizes),
        writeDevice(location));
    view = TensorView::contiguous(
        reinterpret_cast<void *>(made[1].cast<uintptr_t>()), view.type,
        view.sizes);
    return made[0];
  }

  void deliver(py::list &outputs, size_t index,
               py::handle like) const override {
    outputs[index] = adapter().attr("deliver")(like, outputs[index]);
  }

  bool isWritable(py::handle object) const override {
    return adapter().attr("is_writable")(object).cast<bool>();
  }

  runtime::cuda::Stream currentStream(int device) const override {
    return reinterpret_cast<void *>(
        adapter().attr("current_stream")(device).cast<uintptr_t>());
  }
};
} // namespace

static std::unique_ptr<Library>
makeDlpackLibrary(const dlpack::ExchangeApi &api, py::handle type) {
  std::string module = py::str(type.attr("__module__"));
  if (const torch::Shim *shim = torch::Shim::get();
      shim && shim->keepsOrder() && module.rfind("torch", 0) == 0)
    return std::make_unique<TorchLibrary>(api, *shim);
  return std::make_unique<DlpackLibrary>(api);
}

const Library &Library::of(py::handle object) {
  // There is an entry for each type, and it keeps the type alive, as another
  // type might get the address of one that is gone.
  static auto &libraries =
      *new std::unordered_map<PyTypeObject *, std::unique_ptr<Library>>();
  // Most calls have tensors of one type alone.
  static PyTypeObject *lastType = nullptr;
  static const Library *lastLibrary = nullptr;
  PyTypeObject *type = Py_TYPE(object.ptr());
  if (type == lastType)
    return *lastLibrary;
  auto found = libraries.find(type);
  if (found != libraries.end()) {
    lastType = type;
    lastLibrary = found->second.get();
    return *lastLibrary;
  }

  std::unique_ptr<Library> library;
  py::handle typeObject(reinterpret_cast<PyObject *>(type));
  py::object capsule =
      py::getattr(typeObject, "__dlpack_c_exchange_api__", py::none());
  if (PyCapsule_CheckExact(capsule.ptr())) {
    auto *api = static_cast<const dlpack::ExchangeApi *>(
        PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr())));
    if (api && api->version.major == 1 && api->viewObject)
      library = makeDlpackLibrary(*api, typeObject);
  }
  if (!library) {
    // Raises for an object that is no tensor.
    adapter().attr("describe")(object);
    library = std::make_unique<AdaptedLibrary>();
  }
  Py_INCREF(type);
  return *libraries.emplace(type, std::move(library)).first->second;
}
