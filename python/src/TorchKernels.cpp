//===- TorchKernels.cpp - Kernels in PyTorch's dispatcher -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TorchKernels.h"
#include "Native.h"
#include "Operator.h"
#include "TorchShim.h"
#include "bastile/runtime/Shapes.h"

#include <shared_mutex>
#include <unordered_map>

namespace py = pybind11;
using namespace bastile::python;
using namespace bastile::runtime;
using torch::Shim;
using torch::StableValue;

static const Shim &shim() { return *Shim::get(); }

/// Throws where a function of PyTorch has failed, which has told why on the
/// standard error.
static void check(int status, const char *action) {
  if (status != 0)
    throw std::runtime_error(std::string("PyTorch cannot ") + action);
}

//===----------------------------------------------------------------------===//
// What the dispatcher hands over
//===----------------------------------------------------------------------===//

namespace {
class OwnedTensor {
public:
  explicit OwnedTensor(torch::Tensor handle) : handle(handle) {}
  OwnedTensor(OwnedTensor &&other) noexcept : handle(other.release()) {}
  OwnedTensor &operator=(OwnedTensor &&) = delete;
  ~OwnedTensor() {
    if (handle)
      shim().deleteTensor(handle);
  }
  torch::Tensor get() const { return handle; }
  torch::Tensor release() { return std::exchange(handle, nullptr); }

private:
  torch::Tensor handle;
};
} // namespace

using Tensors = std::vector<OwnedTensor>;

static Tensors takeTensors(StableValue value) {
  auto list = reinterpret_cast<torch::List>(value);
  size_t count = 0;
  check(shim().listSize(list, &count), "count tensors");
  Tensors tensors;
  tensors.reserve(count);
  for (size_t i = 0; i != count; ++i) {
    StableValue item = 0;
    check(shim().listItem(list, i, &item), "read a list of tensors");
    tensors.emplace_back(reinterpret_cast<torch::Tensor>(item));
  }
  check(shim().deleteList(list), "delete a list");
  return tensors;
}

static StableValue giveTensors(Tensors &tensors) {
  torch::List list = nullptr;
  check(shim().createList(tensors.size(), &list), "make a list");
  for (OwnedTensor &tensor : tensors)
    check(shim().listAppend(list,
                            reinterpret_cast<StableValue>(tensor.release())),
          "fill a list");
  return reinterpret_cast<StableValue>(list);
}

/// A string argument, read only where it is needed.
namespace {
class OwnedString {
public:
  explicit OwnedString(StableValue value)
      : handle(reinterpret_cast<torch::String>(value)) {}
  OwnedString(const OwnedString &) = delete;
  OwnedString &operator=(const OwnedString &) = delete;
  ~OwnedString() { shim().deleteString(handle); }

  std::string text() const {
    const char *data = nullptr;
    size_t length = 0;
    check(shim().stringText(handle, &data), "read a string");
    check(shim().stringLength(handle, &length), "read a string");
    return {data, length};
  }

private:
  torch::String handle;
};
} // namespace

static TensorView read(const OwnedTensor &tensor, Location &location) {
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t type = 0, deviceType = 0, deviceIndex = 0;
  TensorView view;
  torch::Tensor handle = tensor.get();
  check(shim().data(handle, &view.data), "read a tensor's address");
  check(shim().rank(handle, &rank), "read a tensor's rank");
  check(shim().sizes(handle, &sizes), "read a tensor's sizes");
  check(shim().strides(handle, &strides), "read a tensor's strides");
  check(shim().type(handle, &type), "read a tensor's type");
  check(shim().deviceType(handle, &deviceType), "read a tensor's device");
  check(shim().deviceIndex(handle, &deviceIndex), "read a tensor's device");
  std::optional<ElementType> element = shim().getElementType(type);
  if (!element || rank > int64_t(maxRank))
    throw std::runtime_error("no kernel takes a tensor of this type or rank");
  location = {deviceType == shim().cudaDevice, deviceIndex};
  view.type = *element;
  view.sizes = Dimensions(sizes, static_cast<size_t>(rank));
  view.strides = Dimensions(strides, static_cast<size_t>(rank));
  return view;
}

/// A tensor like `view`, of which `view` is one then.
static OwnedTensor allocate(const Location &location, TensorView &view) {
  torch::Tensor handle = shim().allocate(location.device(), view);
  check(handle ? 0 : 1, "allocate a tensor");
  return OwnedTensor(handle);
}

/// A copy of `tensor` with contiguous rows.
static OwnedTensor copyContiguous(const OwnedTensor &tensor, TensorView &view,
                                  const Location &location) {
  view = TensorView::contiguous(nullptr, view.type, view.sizes);
  OwnedTensor copy = allocate(location, view);
  check(shim().copyTensor(copy.get(), tensor.get(), /*nonBlocking=*/1),
        "copy a tensor");
  return copy;
}

//===----------------------------------------------------------------------===//
// Kernels by key
//===----------------------------------------------------------------------===//

namespace {
/// The kernels that operators have been called with. The dispatcher does not
/// hold the interpreter's lock.
class KernelTable {
public:
  void setLoader(py::object newLoader) { loader = std::move(newLoader); }

  /// `request` returns the text of the function.
  template <typename Request>
  const Kernel &get(int64_t key, const Location &location, Request request) {
    const auto place =
        std::make_pair(key, location.isCuda ? location.index : -1);
    {
      std::shared_lock<std::shared_mutex> lock(mutex);
      auto found = kernels.find(place);
      if (found != kernels.end())
        return *found->second;
    }
    py::gil_scoped_acquire gil;
    py::object device = place.second < 0 ? py::object(py::none())
                                         : py::object(py::int_(place.second));
    py::object kernel = loader(request(), device);
    auto *native = kernel.cast<const Kernel *>();
    // Kept for as long as the process lives.
    kernel.release();
    std::unique_lock<std::shared_mutex> lock(mutex);
    return *kernels.emplace(place, native).first->second;
  }

private:
  struct Hash {
    size_t operator()(const std::pair<int64_t, int> &place) const {
      // Keys are digests: products of them overflow.
      return std::hash<uint64_t>()(uint64_t(place.first) * 31 +
                                   uint64_t(place.second));
    }
  };
  std::shared_mutex mutex;
  std::unordered_map<std::pair<int64_t, int>, const Kernel *, Hash> kernels;
  py::object loader;
};
} // namespace

static KernelTable &table() {
  static auto &value = *new KernelTable();
  return value;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static Place getPlace(const Location &location,
                      const std::vector<TensorView> &inputs) {
  Place place;
  if (!location.isCuda) {
    place.threads = chooseThreads(inputs);
    return place;
  }
  place.device = location.index;
  check(shim().currentStream(location.index, &place.stream),
        "say its current stream");
  return place;
}

/// Runs a function on tensors and returns its outputs.
static Tensors run(Program &program, const Function &function,
                   const Tensors &inputs) {
  std::vector<TensorView> given, views;
  Tensors copies, outputs, temporaries;
  Location common;
  for (const OwnedTensor &input : inputs) {
    Location location;
    TensorView view = read(input, location);
    if (views.empty())
      common = location;
    else if (location != common)
      throw std::runtime_error(
          "'" + function.name +
          "' takes tensors of one device, but got one on " + print(common) +
          " and one on " + print(location));
    given.push_back(view);
    if (view.elementCount() == 0)
      view = TensorView::contiguous(view.data, view.type, view.sizes);
    const bool isFree = views.size() < function.inputs.size() &&
                        function.inputs[views.size()].strided;
    if (!isFree && !hasContiguousRows(view))
      copies.push_back(copyContiguous(input, view, location));
    views.push_back(view);
  }
  auto give = [&](const BufferSpec &spec, const Dimensions &sizes,
                  std::optional<unsigned> output) -> Expected<TensorView> {
    TensorView view = TensorView::contiguous(nullptr, spec.type, sizes);
    if (output && shim().keepsOrder())
      view.strides = chooseStrides(sizes, given);
    (output ? outputs : temporaries).push_back(allocate(common, view));
    return view;
  };
  if (Error error =
          program.call(function, views, getPlace(common, views), give))
    throw std::runtime_error(error.message());
  return outputs;
}

static void runChecked(StableValue *stack) {
  auto key = static_cast<int64_t>(stack[0]);
  OwnedString function(stack[1]);
  Tensors inputs = takeTensors(stack[2]);
  if (inputs.empty())
    throw std::runtime_error("bastile::run needs tensors");
  Location location;
  (void)read(inputs.front(), location);
  const Kernel &kernel =
      table().get(key, location, [&] { return function.text(); });
  Tensors outputs = run(kernel.program(), kernel.function(), inputs);
  stack[0] = giveTensors(outputs);
}

/// Runs, and returns whether that went well; otherwise `message` says why not.
static bool tryRun(StableValue *stack, const char *&message) {
  static thread_local std::string text;
  try {
    runChecked(stack);
    return true;
  } catch (const std::exception &error) {
    text = error.what();
  }
  message = text.c_str();
  return false;
}

/// An exception of ours must not pass through PyTorch, whose C++ library may be
/// another: PyTorch throws its own, and nothing here waits to be destroyed
/// then.
static void runOperator(StableValue *stack, uint64_t, uint64_t) {
  const char *message = nullptr;
  if (!tryRun(stack, message))
    shim().expect(false, "bastile::run", __FILE__, __LINE__, message);
}

//===----------------------------------------------------------------------===//
// Calls from Python
//===----------------------------------------------------------------------===//

/// Whether the dispatcher would do no more than run the kernel.
static bool isPlain(const py::list &inputs) {
  for (py::handle input : inputs)
    if (getRoute(input) != Route::Watched)
      return false;
  if (inputs.empty() || anyIsTrue(hooks().watchers))
    return false;
  // Most compiled programs turn gradients off around all of their calls, so
  // this is asked first.
  return !isTrue(hooks().recordsGradients) || !wantsGradients(inputs);
}

static py::object runShortcut(PyObject *original, PyObject *const *arguments,
                              Py_ssize_t count) {
  if (count != 3 || !PyLong_CheckExact(arguments[0]) ||
      !PyList_CheckExact(arguments[2]))
    return steal(PyObject_Vectorcall(original, arguments, count, nullptr));
  auto inputs = py::reinterpret_borrow<py::list>(arguments[2]);
  if (!isPlain(inputs))
    return steal(PyObject_Vectorcall(original, arguments, count, nullptr));
  Location location;
  py::object keepAlive;
  try {
    (void)Library::of(inputs[0]).read(inputs[0], location, keepAlive);
  } catch (const NoMemory &) {
    return steal(PyObject_Vectorcall(original, arguments, count, nullptr));
  }
  const Kernel &kernel =
      table().get(PyLong_AsLongLong(arguments[0]), location,
                  [&] { return py::str(py::handle(arguments[1])); });
  return kernel.run(inputs, /*inPlace=*/false);
}

static PyObject *callShortcut(PyObject *self, PyObject *const *arguments,
                              Py_ssize_t count) {
  return guard([&] {
    return runShortcut(getClosure(self).owner.ptr(), arguments, count);
  });
}

py::object bastile::python::shortcutTorchKernels(py::object load,
                                                 py::object original) {
  table().setLoader(std::move(load));
  static PyMethodDef definition = defineFunction("run", &callShortcut);
  return makeFunction(definition, {nullptr, std::move(original)});
}

bool bastile::python::registerTorchKernels(py::object load) {
  if (!Shim::get())
    return false;
  table().setLoader(std::move(load));
  for (const char *dispatchKey : {"CPU", "CUDA"}) {
    // Lives as long as the process does, as the registration is to.
    torch::Library library = nullptr;
    check(shim().createLibrary("bastile", dispatchKey, __FILE__, __LINE__,
                               &library),
          "register operators");
    check(shim().implement(library, "run", &runOperator),
          "register an operator");
  }
  return true;
}
