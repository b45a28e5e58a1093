//===- Kernel.cpp - Calling compiled functions on Python's tensors --------===//

#include "Kernel.h"
#include "bastile/runtime/Shapes.h"

#include <atomic>

namespace py = pybind11;
using namespace bastile::python;
using namespace bastile::runtime;

[[noreturn]] void bastile::python::raise(const Error &error) {
  throw py::value_error(error.message());
}

static std::atomic<unsigned> threadCount{1};

void bastile::python::setThreadCount(unsigned threads) {
  threadCount = std::max(threads, 1u);
}
unsigned bastile::python::getThreadCount() { return threadCount; }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Outputs that are only there for the backward are called saved0, saved1, ...
static bool isSaved(const BufferSpec &output) {
  return output.name.rfind("saved", 0) == 0;
}

Kernel::Kernel(std::shared_ptr<Program> program, const Function &function)
    : owner(std::move(program)), forwardFunction(&function) {
  for (const BufferSpec &output : function.outputs)
    results += !isSaved(output);
  if (function.backward && !function.backward->function.empty())
    backwardFunction = owner->metadata().find(function.backward->function);
}

namespace {
/// The tensors of one call.
struct CallTensors {
  std::vector<TensorView> inputs, outputs, temporaries;
  std::vector<py::object> alive;
  ResolvedShapes shapes;
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
    tensors->inputs.clear();
    tensors->outputs.clear();
    tensors->temporaries.clear();
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
    if (!hasContiguousRows(view)) {
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

py::list Kernel::runFunction(const Function &function,
                             const py::sequence &inputs, bool inPlace) const {
  CallScope scope;
  CallTensors &tensors = *scope;
  const Location location = readInputs(function, inputs, tensors);
  if (location.isCuda == owner->isHost())
    throw py::value_error("'" + function.name + "' was compiled for " +
                          (owner->isHost() ? "the CPU" : "GPUs") +
                          ", but its tensors are on " + print(location));
  py::object first = inputs[0];
  const Library &library = Library::of(first);
  Place place;
  if (location.isCuda) {
    place.device = location.index;
    place.stream = library.currentStream(location.index);
  } else {
    place.threads = getThreadCount();
  }

  Expected<int64_t> multiprocessors = owner->multiprocessors(place);
  if (!multiprocessors)
    throw std::runtime_error(multiprocessors.takeError().message());
  if (Error error = resolveShapes(function, tensors.inputs, *multiprocessors,
                                  tensors.shapes))
    raise(error);

  py::list outputs(function.outputs.size());
  for (size_t i = 0; i != function.outputs.size(); ++i) {
    const BufferSpec &spec = function.outputs[i];
    if (inPlace && spec.mayAlias) {
      outputs[i] = inputs[*spec.mayAlias];
      tensors.outputs.push_back(tensors.inputs[*spec.mayAlias]);
      continue;
    }
    TensorView view;
    outputs[i] = library.allocate(spec.type, tensors.shapes.outputs[i],
                                  location, first, view);
    tensors.outputs.push_back(view);
  }
  for (size_t i = 0; i != function.temporaries.size(); ++i) {
    TensorView view;
    tensors.alive.push_back(library.allocate(function.temporaries[i].type,
                                             tensors.shapes.temporaries[i],
                                             location, first, view));
    tensors.temporaries.push_back(view);
  }

  const Buffers buffers = {tensors.inputs, tensors.outputs,
                           tensors.temporaries};
  Error error;
  if (location.isCuda) {
    // A launch takes less time than handing the interpreter's lock over.
    error = owner->run(function, buffers, place);
  } else {
    py::gil_scoped_release unlocked;
    error = owner->run(function, buffers, place);
  }
  if (error)
    raise(error);
  return outputs;
}

py::list Kernel::run(const py::sequence &inputs, bool inPlace) const {
  return runFunction(*forwardFunction, inputs, inPlace);
}

py::object Kernel::unwrap(const py::list &outputs) const {
  if (results == 1)
    return outputs[0];
  py::tuple tuple(results);
  for (unsigned i = 0; i != results; ++i)
    tuple[i] = outputs[i];
  return std::move(tuple);
}

py::object Kernel::call(const py::sequence &inputs, bool inPlace) const {
  return unwrap(run(inputs, inPlace));
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
  py::list outputs = run(inputs, /*inPlace=*/false);
  return py::make_tuple(unwrap(outputs), keep(inputs, outputs));
}

py::tuple Kernel::backward(const py::sequence &kept,
                           const py::sequence &gradients) const {
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
    computed = runFunction(*backwardFunction, inputs, /*inPlace=*/false);
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
