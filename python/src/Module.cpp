//===- Module.cpp - The extension module ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Graph.h"
#include "Native.h"
#include "Operator.h"
#include "Timing.h"
#include "TorchKernels.h"
#include "TorchShim.h"
#include "bastile/KernelStore.h"
#include "bastile/Version.h"
#include "bastile/runtime/PrivateFile.h"

#include <pybind11/stl.h>

namespace py = pybind11;
using namespace bastile;
using namespace bastile::python;
using namespace py::literals;

namespace {
/// What the compiler says about a source that it rejects.
class CompileError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};
} // namespace

/// The value, or an exception of type `Exception`.
template <typename Exception, typename T>
static T take(runtime::Expected<T> value) {
  if (!value)
    throw Exception(value.takeError().message());
  return std::move(*value);
}

static CompileRequest makeRequest(std::string source, std::string target,
                                  std::string name, std::string schedule,
                                  std::vector<std::string> arguments,
                                  bool together, bool inPlace, bool dropValue) {
  return {std::move(source),
          std::move(name),
          std::move(target),
          std::move(schedule),
          {std::move(arguments), together, inPlace, dropValue},
          KernelSelection()};
}

static void bindCompiler(py::module_ &module) {
  py::register_exception<CompileError>(module, "CompileError",
                                       PyExc_ValueError);
  py::class_<CompileRequest>(module, "Request")
      .def(py::init(&makeRequest), "source"_a, "target"_a, py::kw_only(),
           "name"_a = "source", "schedule"_a = "",
           "gradients"_a = std::vector<std::string>(), "together"_a = false,
           "in_place"_a = false, "drop_value"_a = false)
      .def_readonly("source", &CompileRequest::source)
      .def_readonly("target", &CompileRequest::target);

  module.def(
      "describe_source",
      [](const std::string &source, const std::string &name) {
        py::gil_scoped_release unlocked;
        return take<CompileError>(describeSource(source, name));
      },
      "source"_a, "name"_a = "source");
  module.def(
      "describe_text",
      [](const CompileRequest &request) {
        py::gil_scoped_release unlocked;
        return take<CompileError>(describeText(request));
      },
      "request"_a);
  module.def(
      "describe_sharing",
      [](const CompileRequest &request) {
        py::gil_scoped_release unlocked;
        return take<CompileError>(describeSharing(request));
      },
      "request"_a);
  module.def(
      "lower_text",
      [](const CompileRequest &request, const std::string &level) {
        py::gil_scoped_release unlocked;
        return take<CompileError>(lowerText(request, level));
      },
      "request"_a, "level"_a);
  module.def(
      "explain_text",
      [](const CompileRequest &request, int64_t rows) {
        py::list result;
        for (const KernelReport &kernel :
             take<CompileError>(explainText(request, rows)))
          result.append(py::dict(
              "kernel"_a = kernel.name, "schedule"_a = kernel.schedule,
              "bytes_per_row"_a = kernel.bytesPerRow,
              "bytes_shared"_a = kernel.bytesShared,
              "operations_per_row"_a = kernel.operationsPerRow,
              "sweeps"_a = kernel.sweeps, "seconds"_a = kernel.seconds));
        return result;
      },
      "request"_a, "rows"_a);
  module.def(
      "enumerate_schedules",
      [](const CompileRequest &request) {
        std::vector<LaunchCandidates> launches;
        {
          py::gil_scoped_release unlocked;
          launches = take<CompileError>(enumerateSchedules(request));
        }
        py::list result;
        for (const LaunchCandidates &launch : launches) {
          py::list candidates;
          for (const ScheduleCandidate &candidate : launch.candidates)
            candidates.append(py::make_tuple(candidate.pins, candidate.fields));
          result.append(py::dict("function"_a = launch.function,
                                 "kernel"_a = launch.kernel,
                                 "candidates"_a = candidates));
        }
        return result;
      },
      "request"_a);
  module.def(
      "build_op_text",
      [](const std::string &op,
         const std::vector<std::pair<std::string, std::optional<std::string>>>
             &operands,
         const std::vector<std::pair<std::string, std::string>> &attributes,
         const std::vector<std::string> &results,
         const std::vector<unsigned> &returned) {
        std::vector<OperandType> types;
        for (const auto &[name, type] : operands)
          types.push_back({name, type});
        return take<CompileError>(
            buildOpText(op, types, attributes, results, returned));
      },
      "op"_a, "operands"_a, "attributes"_a,
      "results"_a = std::vector<std::string>(),
      "returned"_a = std::vector<unsigned>());
  module.def("targets", &getTargetNames);
  module.def("find_target", &findTarget, "compute_capability"_a);
  module.def("describe_host", &describeHost);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

using ProgramPointer = std::shared_ptr<runtime::Program>;

/// What receives warnings; never destroyed, as the interpreter may be gone.
static py::object &warningHandler() {
  static auto &handler = *new py::object();
  return handler;
}

static void warn(const std::string &message) {
  py::gil_scoped_acquire lock;
  // The name of a folder need not be UTF-8.
  if (warningHandler())
    warningHandler()(
        py::bytes(message).attr("decode")("utf-8", "backslashreplace"));
  else
    runtime::CacheOptions::warnOnStderr(message);
}

/// Gives up the interpreter's lock, if this thread holds it, while code is
/// made: another thread may be making it, and need the lock for a warning.
static void runUnlocked(const std::function<void()> &work) {
  if (!PyGILState_Check())
    return work();
  py::gil_scoped_release unlocked;
  work();
}

/// The store of compiled code, opened when the first kernel is wanted. It is
/// never destroyed, since programs may outlive it.
static KernelStore &getStore() {
  static auto &store = *new KernelStore(
      runtime::CacheOptions::fromEnvironment(warn), runUnlocked);
  return store;
}

static StoredProgram loadProgram(const CompileRequest &request) {
  py::gil_scoped_release unlocked;
  return take<CompileError>(getStore().load(request));
}

static py::bytes getSection(const StoredProgram &stored, const char *name) {
  return *stored.entry->find(name);
}

static const runtime::Function &findFunction(const runtime::Program &program,
                                             const std::string &name) {
  const runtime::Function *function = program.metadata().find(name);
  if (!function)
    throw py::key_error("there is no function '" + name + "'");
  return *function;
}

static void bindKernels(py::module_ &module) {
  module.def("load", &loadProgram, "request"_a);
  module.def(
      "compile",
      [](const CompileRequest &request) {
        auto entry = [&] {
          py::gil_scoped_release unlocked;
          return take<CompileError>(getStore().compile(request));
        }();
        return py::bytes(*entry->find("code"));
      },
      "request"_a);
  module.def("compilations", [] { return getStore().compilations(); });
  module.def(
      "set_warning_handler",
      [](py::object handler) { warningHandler() = std::move(handler); },
      "handler"_a);
  py::class_<StoredProgram>(module, "StoredProgram")
      .def_readonly("program", &StoredProgram::program)
      .def_readonly("is_new", &StoredProgram::isNew)
      .def_property_readonly("code",
                             [](const StoredProgram &stored) {
                               return getSection(stored, "code");
                             })
      .def_property_readonly("metadata", [](const StoredProgram &stored) {
        return py::str(getSection(stored, "metadata"));
      });

  py::class_<runtime::Program, ProgramPointer>(module, "Program")
      .def_property_readonly("is_host", &runtime::Program::isHost)
      .def(
          "prepare",
          [](runtime::Program &program, int device,
             const std::string &function) {
            // The driver compiles now, which takes a while.
            py::gil_scoped_release unlocked;
            if (runtime::Error error = program.prepare(device, function))
              throw std::runtime_error(error.message());
          },
          "device"_a, "function"_a)
      .def(
          "resources",
          [](runtime::Program &program, int device,
             const std::string &function) {
            auto load = [&] {
              py::gil_scoped_release unlocked;
              return take<std::runtime_error>(
                  program.resources(device, function));
            };
            py::list described;
            for (const runtime::KernelResources &one : load())
              described.append(py::dict(
                  "kernel"_a = one.kernel, "threads"_a = one.threads,
                  "cluster"_a = one.cluster, "registers"_a = one.registers,
                  "shared_bytes"_a = one.sharedMemory,
                  "spilled_bytes"_a = one.spilledBytes, "blocks"_a = one.blocks,
                  "occupancy"_a = one.occupancy));
            return described;
          },
          "device"_a, "function"_a)
      .def(
          "left_out",
          [](const runtime::Program &program, int device) {
            return take<std::runtime_error>(program.leftOut(device));
          },
          "device"_a)
      .def_property_readonly("functions", [](const runtime::Program &program) {
        std::vector<std::string> names;
        for (const runtime::Function &function : program.metadata().functions)
          names.push_back(function.name);
        return names;
      });

  py::class_<Kernel>(module, "Kernel")
      .def(py::init([](ProgramPointer program, const std::string &name,
                       bool together, bool inPlace) {
             const runtime::Function &function = findFunction(*program, name);
             return Kernel(std::move(program), function, together, inPlace);
           }),
           "program"_a, "function"_a, "together"_a = false,
           "in_place"_a = false)
      .def_property_readonly("is_together", &Kernel::isTogether)
      .def_property_readonly("consumed_inputs", &Kernel::consumedInputs)
      .def_property_readonly(
          "name", [](const Kernel &kernel) { return kernel.function().name; })
      .def_property_readonly("result_count", &Kernel::resultCount)
      .def("run", &Kernel::run, "inputs"_a, "in_place"_a = false)
      .def("call", &Kernel::call, "inputs"_a)
      .def("forward", &Kernel::forward, "inputs"_a)
      .def("keep", &Kernel::keep, "inputs"_a, "outputs"_a)
      .def("backward", &Kernel::backward, "kept"_a, "gradients"_a,
           "in_place"_a = false);

  module.def(
      "as_method",
      [](const py::object &function) {
        return steal(PyInstanceMethod_New(function.ptr()));
      },
      "function"_a);
  py::class_<Operator>(module, "Operator")
      .def(py::init<py::object, std::string, std::vector<std::string>, bool>(),
           "specialize"_a, "name"_a, "operands"_a, "gradients"_a = true)
      .def("caller", &makeCaller)
      .def(
          "find",
          [](Operator &self, const py::tuple &operands,
             const py::object &attributes, const py::object &gradients) {
            return self.find(operands, attributes, gradients)->kernel;
          },
          "operands"_a, "attributes"_a, "gradients"_a = py::none())
      .def("run", &Operator::run, "operands"_a, "attributes"_a)
      .def("record", &Operator::record, "operands"_a, "attributes"_a,
           "gradients"_a)
      .def("clear", &Operator::clear);
  py::class_<FixedOperator, Operator>(module, "FixedOperator")
      .def(py::init<py::object, std::string, std::vector<std::string>, bool>(),
           "specialize"_a, "name"_a, "operands"_a, "gradients"_a);
  module.def(
      "set_hooks",
      [](py::object classify, py::object recordsGradients,
         std::vector<py::object> watchers, std::vector<py::object> casters,
         py::object makeNode, py::object keepGradients,
         py::object isLastBackward, py::object refuseTwice,
         py::object dispatch) {
        setHooks({std::move(classify), std::move(recordsGradients),
                  std::move(watchers), std::move(casters), std::move(makeNode),
                  std::move(keepGradients), std::move(isLastBackward),
                  std::move(refuseTwice), std::move(dispatch)});
      },
      "classify"_a, "records_gradients"_a = py::none(),
      "watchers"_a = std::vector<py::object>(),
      "casters"_a = std::vector<py::object>(), "make_node"_a = py::none(),
      "keep_gradients"_a = py::none(), "is_last_backward"_a = py::none(),
      "refuse_twice"_a = py::none(), "dispatch"_a = py::none());

  module.def(
      "locate",
      [](py::handle tensor) -> std::optional<int> {
        Location location;
        py::object keepAlive;
        Library::of(tensor).read(tensor, location, keepAlive);
        if (!location.isCuda)
          return std::nullopt;
        return location.index;
      },
      "tensor"_a);
  module.def("register_torch_kernels", &registerTorchKernels, "load"_a);
  module.def("shortcut_torch_kernels", &shortcutTorchKernels, "load"_a,
             "operator"_a);
  module.def("keeps_order", [] {
    const torch::Shim *shim = torch::Shim::get();
    return shim && shim->keepsOrder();
  });
  module.def("set_tensor_adapter", &setTensorAdapter, "adapter"_a);
  module.def("set_thread_count", &setThreadCount, "threads"_a);
  module.def("follow_thread_count", &followThreadCount, "follow"_a);
  module.def("get_thread_count", &getThreadCount);
}

//===----------------------------------------------------------------------===//
// The cache on disk
//===----------------------------------------------------------------------===//

static py::dict describeListing(const runtime::CacheListing &listing) {
  py::dict parts;
  for (const runtime::CacheKeyPart &part : listing.parts)
    parts[py::str(part.name)] = part.value;
  return py::dict("file"_a = listing.file, "name"_a = listing.name,
                  "bytes"_a = listing.bytes, "last_used"_a = listing.lastUsed,
                  "problem"_a = listing.problem, "parts"_a = parts);
}

static void bindCache(py::module_ &module) {
  auto cache = []() -> runtime::DiskCache & { return getStore().cache(); };
  module.def("cache_folder", [cache] { return cache().options().folder; });
  // The folder that the environment names now; the cache chooses its own once.
  module.def("find_cache_folder", [] {
    return runtime::CacheOptions::fromEnvironment([](const std::string &) {})
        .folder;
  });
  module.def(
      "open_private_file",
      [](const std::vector<std::string> &folders, const std::string &name,
         int flags) {
        return take<std::runtime_error>(
            runtime::openPrivateFile(folders, name, flags));
      },
      "folders"_a, "name"_a, "flags"_a);
  module.def("cache_list", [cache] {
    py::list result;
    for (const runtime::CacheListing &listing :
         take<std::runtime_error>(cache().list()))
      result.append(describeListing(listing));
    return result;
  });
  module.def("cache_clear", [cache] {
    runtime::CacheCount count = take<std::runtime_error>(cache().clear());
    return py::make_tuple(count.entries, count.bytes);
  });
  module.def("cache_verify", [cache] {
    runtime::CacheCheck check = take<std::runtime_error>(cache().verify());
    py::list damaged;
    for (const runtime::CacheDamage &damage : check.damaged)
      damaged.append(
          py::make_tuple(damage.file, damage.problem, damage.removed));
    return py::make_tuple(check.intact.entries, damaged);
  });
  module.def(
      "cache_export",
      [cache](const std::string &file) {
        return py::bytes(take<std::runtime_error>(cache().exportEntry(file)));
      },
      "file"_a);
  module.def(
      "cache_import",
      [cache](const std::string &file, const std::string &bytes) {
        return take<std::runtime_error>(cache().importEntry(file, bytes));
      },
      "file"_a, "bytes"_a);
}

static void bindDevices(py::module_ &module) {
  module.def("gpu_count", &runtime::CudaDevices::count);
  module.def(
      "describe_gpu",
      [](int ordinal) {
        auto device =
            take<std::runtime_error>(runtime::CudaDevices::get(ordinal));
        std::vector<std::string> lacks;
        for (auto feature :
             {runtime::Feature::Wgmma, runtime::Feature::TensorMaps})
          if (!device->has(feature))
            lacks.push_back(std::string(runtime::name(feature)) + ", " +
                            device->explainLack(feature));
        return py::dict("name"_a = device->name(),
                        "compute_capability"_a = device->computeCapability(),
                        "multiprocessors"_a = device->multiprocessors(),
                        "lacks"_a = lacks);
      },
      "ordinal"_a);
  module.def(
      "assemble",
      [](const std::string &ptx, int ordinal) {
        auto device =
            take<std::runtime_error>(runtime::CudaDevices::get(ordinal));
        return py::bytes(take<std::runtime_error>(
            runtime::assembleWithDriver(*device, ptx)));
      },
      "ptx"_a, "device"_a);
  module.def("driver_version", [] {
    auto driver = take<std::runtime_error>(runtime::CudaDevices::driver());
    int version = 0;
    (void)driver->driverGetVersion(&version);
    return version;
  });
}

PYBIND11_MODULE(_bastile, module) {
  module.doc() = "The compiler and the runtime of Bastile, in C++.";
  module.attr("__version__") = BASTILE_VERSION;
  module.attr("llvm_version") = getLlvmVersion();
  bindCompiler(module);
  bindGraph(module);
  bindKernels(module);
  bindArrays(module);
  bindTiming(module);
  bindCache(module);
  bindDevices(module);
}
