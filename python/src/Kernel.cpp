//===- Kernel.cpp - Calling compiled functions on Python's tensors --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "bastile/runtime/Shapes.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sched.h>
#include <thread>

namespace py = pybind11;
using namespace bastile::python;
using namespace bastile::runtime;

[[noreturn]] void bastile::python::raise(const Error &error) {
  throw py::value_error(error.message());
}

//===----------------------------------------------------------------------===//
// Threads of the host
//===----------------------------------------------------------------------===//

static std::atomic<unsigned> threadCount{0};

/// Never destroyed: the interpreter may be gone by then.
static py::object &threadSource() {
  static auto &object = *new py::object();
  return object;
}

void bastile::python::setThreadCount(unsigned threads) {
  threadCount = threads;
}

void bastile::python::followThreadCount(py::object follow) {
  threadSource() = std::move(follow);
}

static unsigned countProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max(std::thread::hardware_concurrency(), 1u);
  return static_cast<unsigned>(CPU_COUNT(&set));
}

unsigned bastile::python::getThreadCount() {
  if (unsigned threads = threadCount)
    return threads;
  if (py::object &source = threadSource(); source && !source.is_none()) {
    py::gil_scoped_acquire lock;
    return std::max(source().cast<unsigned>(), 1u);
  }
  return countProcessors();
}

/// The bytes that a thread has to read to be worth its start.
static constexpr int64_t leastBytesPerThread = 1 << 17;

unsigned bastile::python::chooseThreads(const std::vector<TensorView> &inputs) {
  int64_t bytes = 0;
  for (const TensorView &input : inputs)
    bytes += input.byteCount();
  if (bytes < 2 * leastBytesPerThread)
    return 1;
  return static_cast<unsigned>(
      std::min<int64_t>(bytes / leastBytesPerThread, getThreadCount()));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Outputs that are only there for the backward are called saved0, saved1, ...
static bool isSaved(const BufferSpec &output) {
  return output.name.rfind("saved", 0) == 0;
}

static bool hasOutput(const Function &function, const std::string &name) {
  return std::any_of(
      function.outputs.begin(), function.outputs.end(),
      [&](const BufferSpec &output) { return output.name == name; });
}

Kernel::Kernel(std::shared_ptr<Program> program, const Function &function,
               bool together, bool inPlace)
    : owner(std::move(program)), forwardFunction(&function), together(together),
      inPlace(inPlace) {
  for (const BufferSpec &output : function.outputs)
    results += !isSaved(output);
  if (together)
    for (const InputSpec &input : function.inputs)
      results -= hasOutput(function, "grad_" + input.name);
  if (function.backward && !function.backward->function.empty())
    backwardFunction = owner->metadata().find(function.backward->function);
}

namespace {
/// The tensors of one call.
struct CallTensors {
  /// Whether an input is the caller's tensor itself, whose rows are contiguous.
  std::vector<bool> isOriginal;
  /// The inputs as the caller gave them, and as the kernels take them.
  std::vector<TensorView> given, inputs;
  /// Objects that own the memory of the call's tensors.
  std::vector<py::object> alive;
};
} // namespace

/// Storage that calls use again, so that a call takes no memory from the heap.
/// Guarded by the interpreter's lock; a call that finds it taken, because a
/// library called back into Python, makes its own.
static std::vector<std::unique_ptr<CallTensors>> &freeTensors() {
  static auto &list = *new std::vector<std::unique_ptr<CallTensors>>();
  return list;
}

namespace {
class CallScope {
public:
  CallScope() {
    auto &list = freeTensors();
    if (list.empty()) {
      tensors = std::make_unique<CallTensors>();
    } else {
      tensors = std::move(list.back());
      list.pop_back();
    }
  }
  ~CallScope() {
    tensors->isOriginal.clear();
    tensors->given.clear();
    tensors->inputs.clear();
    tensors->alive.clear();
    freeTensors().push_back(std::move(tensors));
  }
  CallTensors &operator*() { return *tensors; }

private:
  std::unique_ptr<CallTensors> tensors;
};
} // namespace

/// Reads the inputs, which have to be in one place.
static Location readInputs(const Function &function, const py::sequence &inputs,
                           CallTensors &tensors) {
  const size_t count = py::len(inputs);
  if (count != function.inputs.size())
    throw py::type_error("'" + function.name + "' takes " +
                         std::to_string(function.inputs.size()) +
                         " tensors, but got " + std::to_string(count));
  Location common;
  for (size_t i = 0; i != count; ++i) {
    py::object input = inputs[i];
    Location location;
    py::object keepAlive;
    const Library &library = Library::of(input);
    TensorView view = library.read(input, location, keepAlive);
    const bool isFree = function.inputs[i].strided;
    tensors.isOriginal.push_back(isFree || hasContiguousRows(view));
    tensors.given.push_back(view);
    // A tensor without elements is contiguous to libraries, whatever its
    // strides.
    if (view.elementCount() == 0)
      view = TensorView::contiguous(view.data, view.type, view.sizes);
    if (!isFree && !hasContiguousRows(view)) {
      input = copyContiguous(input);
      view = library.read(input, location, keepAlive);
      tensors.alive.push_back(std::move(input));
    }
    tensors.inputs.push_back(view);
    if (keepAlive)
      tensors.alive.push_back(std::move(keepAlive));
    if (i == 0)
      common = location;
    else if (location != common)
      throw py::value_error(
          "'" + function.name + "' takes tensors of one " + "device, but '" +
          function.inputs[0].name + "' is on " + print(common) + " and '" +
          function.inputs[i].name + "' is on " + print(location));
  }
  return common;
}

/// Whether different indices lead to different elements, as far as the order
/// of the strides tells.
static bool hasSeparateElements(const TensorView &view) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (unsigned i = 0; i != view.rank(); ++i)
    if (view.sizes[i] != 1)
      steps.emplace_back(std::abs(view.strides[i]), view.sizes[i]);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 1;
  for (auto [stride, size] : steps) {
    if (stride < reach)
      return false;
    reach += (size - 1) * stride;
  }
  return true;
}

/// Whether an output can take the memory of an input that has elements.
static bool canOverwrite(const CallTensors &tensors, size_t index) {
  const TensorView &view = tensors.inputs[index];
  return tensors.isOriginal[index] &&
         (view.isContiguous() || hasSeparateElements(view));
}

/// Raises for inputs whose memory outputs cannot take.
static void requirePlaces(const Function &function, const py::sequence &inputs,
                          const CallTensors &tensors) {
  for (const BufferSpec &output : function.outputs) {
    if (!output.mayAlias)
      continue;
    const unsigned index = *output.mayAlias;
    const std::string what = "'" + function.name + "' overwrites '" +
                             function.inputs[index].name + "'";
    py::object input = inputs[index];
    if (!Library::of(input).isWritable(input))
      throw py::value_error(what + ", which cannot be written to");
    if (tensors.inputs[index].elementCount() != 0 &&
        !canOverwrite(tensors, index))
      throw py::value_error(
          what + ", whose rows have to be contiguous and share no memory; "
                 "call it on a contiguous copy, and copy the result back");
  }
}

py::list Kernel::runFunction(const Function &function,
                             const py::sequence &inputs,
                             InPlace inPlace) const {
  CallScope scope;
  CallTensors &tensors = *scope;
  const Location location = readInputs(function, inputs, tensors);
  if (location.isCuda == owner->isHost())
    throw py::value_error("'" + function.name + "' was compiled for " +
                          (owner->isHost() ? "the CPU" : "GPUs") +
                          ", but its tensors are on " + print(location));
  if (inPlace == InPlace::Always)
    requirePlaces(function, inputs, tensors);
  py::object first = inputs[0];
  const Library &library = Library::of(first);
  Place place;
  if (location.isCuda) {
    place.device = location.index;
    place.stream = library.currentStream(location.index);
  } else {
    place.threads = chooseThreads(tensors.inputs);
  }

  py::list outputs(function.outputs.size());
  auto allocate = [&](const BufferSpec &spec, const Dimensions &sizes,
                      std::optional<unsigned> output) -> Expected<TensorView> {
    // Host code runs without the interpreter's lock.
    py::gil_scoped_acquire lock;
    if (output && spec.mayAlias &&
        (inPlace == InPlace::Always ||
         (inPlace == InPlace::WherePossible &&
          canOverwrite(tensors, *spec.mayAlias)))) {
      outputs[*output] = inputs[*spec.mayAlias];
      return tensors.inputs[*spec.mayAlias];
    }
    TensorView view = TensorView::contiguous(nullptr, spec.type, sizes);
    if (output)
      view.strides = chooseStrides(sizes, tensors.given);
    py::object made = library.allocate(location, first, view);
    if (output)
      outputs[*output] = std::move(made);
    else
      tensors.alive.push_back(std::move(made));
    return view;
  };
  Error error;
  if (location.isCuda) {
    // The interpreter's lock is kept: a launch takes less time than handing it
    // over. Code that is yet to be made or loaded is so without it.
    error = owner->call(function, tensors.inputs, place, allocate);
  } else {
    py::gil_scoped_release unlocked;
    error = owner->call(function, tensors.inputs, place, allocate);
  }
  if (error)
    raise(error);
  for (size_t i = 0; i != outputs.size(); ++i)
    library.deliver(outputs, i, first);
  return outputs;
}

py::list Kernel::run(const py::sequence &inputs, bool inPlace) const {
  return runFunction(*forwardFunction, inputs,
                     inPlace ? InPlace::WherePossible : InPlace::Never);
}

std::vector<unsigned> Kernel::consumedInputs() const {
  std::vector<unsigned> inputs;
  for (const BufferSpec &output : forwardFunction->outputs)
    if (inPlace && output.mayAlias)
      inputs.push_back(static_cast<unsigned>(*output.mayAlias));
  return inputs;
}

py::object Kernel::unwrap(const py::list &outputs) const {
  if (results == 1)
    return outputs[0];
  py::tuple tuple(results);
  for (unsigned i = 0; i != results; ++i)
    tuple[i] = outputs[i];
  return std::move(tuple);
}

py::object Kernel::call(const py::sequence &inputs) const {
  return unwrap(
      runFunction(*forwardFunction, inputs,
                  inPlace && !together ? InPlace::Always : InPlace::Never));
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

const Backward &Kernel::recipe() const {
  if (!forwardFunction->backward)
    throw py::value_error("'" + forwardFunction->name +
                          "' was compiled without gradients");
  return *forwardFunction->backward;
}

py::tuple Kernel::keep(const py::sequence &inputs,
                       const py::sequence &outputs) const {
  py::list kept;
  for (const Source &source : recipe().inputs) {
    if (source.kind == Source::Kind::Input)
      kept.append(inputs[source.index]);
    else if (source.kind == Source::Kind::Output)
      kept.append(outputs[source.index]);
  }
  return py::tuple(kept);
}

py::tuple Kernel::forward(const py::sequence &inputs) const {
  (void)recipe();
  py::list outputs = run(inputs, inPlace);
  return py::make_tuple(unwrap(outputs), keep(inputs, outputs));
}

py::tuple Kernel::backward(const py::sequence &kept,
                           const py::sequence &gradients, bool inPlace) const {
  const Backward &recipe = this->recipe();
  py::list computed;
  if (backwardFunction) {
    py::list inputs;
    size_t next = 0;
    for (const Source &source : recipe.inputs) {
      if (source.kind == Source::Kind::Gradient)
        inputs.append(gradients[source.index]);
      else
        inputs.append(kept[next++]);
    }
    computed = runFunction(*backwardFunction, inputs,
                           inPlace ? InPlace::WherePossible : InPlace::Never);
  }
  py::tuple result(recipe.gradients.size());
  for (size_t i = 0; i != recipe.gradients.size(); ++i) {
    const std::optional<Source> &source = recipe.gradients[i];
    if (!source)
      result[i] = py::none();
    else if (source->kind == Source::Kind::Result)
      result[i] = computed[source->index];
    else
      result[i] = gradients[source->index];
  }
  return result;
}
