//===- Module.cpp - The extension module ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Operator.h"
#include "bastile/TextCompiler.h"
#include "bastile/Version.h"

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
                                  std::vector<std::string> gradients,
                                  bool together, bool inPlace) {
  return {std::move(source),
          std::move(name),
          std::move(target),
          std::move(schedule),
          std::move(gradients),
          together,
          inPlace};
}

/// How many times this process compiled something.
static std::atomic<int64_t> compilations{0};

static void bindCompiler(py::module_ &module) {
  py::register_exception<CompileError>(module, "CompileError",
                                       PyExc_ValueError);
  py::class_<CompileRequest>(module, "Request")
      .def(py::init(&makeRequest), "source"_a, "target"_a, py::kw_only(),
           "name"_a = "source", "schedule"_a = "",
           "gradients"_a = std::vector<std::string>(), "together"_a = false,
           "in_place"_a = false)
      .def_readonly("source", &CompileRequest::source)
      .def_readonly("target", &CompileRequest::target);

  module.def("compilations", [] { return compilations.load(); });
  module.def(
      "compile_text",
      [](const CompileRequest &request) {
        CompiledText result;
        {
          py::gil_scoped_release unlocked;
          ++compilations;
          result = take<CompileError>(compileText(request));
        }
        return py::make_tuple(py::bytes(result.code), result.metadata);
      },
      "request"_a);
  module.def(
      "describe_text",
      [](const CompileRequest &request) {
        py::gil_scoped_release unlocked;
        return take<CompileError>(describeText(request));
      },
      "request"_a);
  module.def(
      "lower_text",
      [](const CompileRequest &request, const std::string &stage) {
        py::gil_scoped_release unlocked;
        return take<CompileError>(lowerText(request, stage));
      },
      "request"_a, "stage"_a);
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
              "passes"_a = kernel.passes, "seconds"_a = kernel.seconds));
        return result;
      },
      "request"_a, "rows"_a);
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

static runtime::Metadata readMetadata(const std::string &text) {
  return take<std::runtime_error>(runtime::parseMetadata(text));
}

/// Loads PTX (or a cubin) for GPUs, each when it is first used.
static ProgramPointer loadGpuProgram(const std::string &metadata,
                                     const py::bytes &code) {
  std::string image = code;
  return runtime::Program::forGpu(
      readMetadata(metadata),
      [image](const runtime::CudaDevice &) -> runtime::Expected<std::string> {
        return image;
      });
}

static ProgramPointer loadHostProgram(const std::string &metadata,
                                      const py::bytes &object) {
  auto code = take<std::runtime_error>(HostCode::load(object));
  return runtime::Program::forHost(
      readMetadata(metadata),
      [code](const std::string &name) { return code->find(name); });
}

static const runtime::Function &findFunction(const runtime::Program &program,
                                             const std::string &name) {
  const runtime::Function *function = program.metadata().find(name);
  if (!function)
    throw py::key_error("there is no function '" + name + "'");
  return *function;
}

static void bindKernels(py::module_ &module) {
  py::class_<runtime::Program, ProgramPointer>(module, "Program")
      .def_static("for_gpu", &loadGpuProgram, "metadata"_a, "code"_a)
      .def_static("for_host", &loadHostProgram, "metadata"_a, "object"_a)
      .def_property_readonly("is_host", &runtime::Program::isHost)
      .def(
          "load",
          [](runtime::Program &program, int device) {
            take<std::runtime_error>(program.module(device));
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
          "inputs_with_gradient",
          [](const Kernel &kernel) { return kernel.inputsWithGradient(); })
      .def_property_readonly(
          "name", [](const Kernel &kernel) { return kernel.function().name; })
      .def_property_readonly("result_count", &Kernel::resultCount)
      .def("run", &Kernel::run, "inputs"_a, "in_place"_a = false)
      .def("call", &Kernel::call, "inputs"_a, "in_place"_a = false)
      .def("forward", &Kernel::forward, "inputs"_a)
      .def("keep", &Kernel::keep, "inputs"_a, "outputs"_a)
      .def("backward", &Kernel::backward, "kept"_a, "gradients"_a);

  py::class_<Operator>(module, "Operator")
      .def(py::init<py::object, std::string, std::vector<std::string>>(),
           "specialize"_a, "name"_a, "operands"_a)
      .def(
          "__call__",
          [](const py::object &self, const py::tuple &operands,
             const py::object &attributes) {
            return call(self, self.cast<Operator &>(), operands, attributes);
          },
          "operands"_a, "attributes"_a)
      .def("find", &Operator::find, "operands"_a, "attributes"_a,
           "gradients"_a = py::none())
      .def("run", &Operator::run, "operands"_a, "attributes"_a,
           "in_place"_a = false)
      .def("forward", &Operator::forward, "operands"_a, "attributes"_a,
           "gradients"_a)
      .def("clear", &Operator::clear);
  module.def(
      "set_hooks",
      [](py::object classify, py::object recordsGradients,
         std::vector<py::object> watchers, py::object differentiate,
         py::object dispatch) {
        setHooks({std::move(classify), std::move(recordsGradients),
                  std::move(watchers), std::move(differentiate),
                  std::move(dispatch)});
      },
      "classify"_a, "records_gradients"_a = py::none(),
      "watchers"_a = std::vector<py::object>(), "differentiate"_a = py::none(),
      "dispatch"_a = py::none());

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
  module.def("set_tensor_adapter", &setTensorAdapter, "adapter"_a);
  module.def("set_thread_count", &setThreadCount, "threads"_a);
  module.def("follow_thread_count", &followThreadCount, "follow"_a);
  module.def("get_thread_count", &getThreadCount);
}

static void bindDevices(py::module_ &module) {
  module.def("gpu_count", &runtime::CudaDevices::count);
  module.def(
      "describe_gpu",
      [](int ordinal) {
        auto device =
            take<std::runtime_error>(runtime::CudaDevices::get(ordinal));
        return py::dict("name"_a = device->name(),
                        "compute_capability"_a = device->computeCapability(),
                        "multiprocessors"_a = device->multiprocessors());
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
  bindCompiler(module);
  bindKernels(module);
  bindArrays(module);
  bindDevices(module);
}
