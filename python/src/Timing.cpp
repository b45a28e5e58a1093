//===- Timing.cpp - Measurements for the tuner ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Timing.h"
#include "bastile/runtime/Trial.h"

#include <pybind11/stl.h>

namespace py = pybind11;
using namespace bastile::runtime;
using namespace py::literals;

using ProgramPointer = std::shared_ptr<Program>;

/// The value, or RuntimeError; in any case without the interpreter's lock.
template <typename Function>
static auto unlocked(Function function) {
  py::gil_scoped_release lock;
  auto value = function();
  if (!value)
    throw std::runtime_error(value.takeError().message());
  return std::move(*value);
}

static std::unique_ptr<Trial>
makeTrial(const ProgramPointer &reference, const std::string &function,
          const std::vector<std::vector<int64_t>> &sizes,
          std::optional<int> device, unsigned threads) {
  std::vector<Dimensions> dimensions;
  for (const std::vector<int64_t> &tensor : sizes) {
    if (tensor.size() > maxRank)
      throw py::value_error(
          "a tensor has rank " + std::to_string(tensor.size()) +
          ", but kernels take at most " + std::to_string(maxRank));
    dimensions.emplace_back(tensor.data(), tensor.size());
  }
  Place place;
  place.device = device;
  place.threads = threads;
  return unlocked(
      [&] { return Trial::create(*reference, function, dimensions, place); });
}

void bastile::python::bindTiming(py::module_ &module) {
  py::class_<Trial>(module, "Trial")
      .def(py::init(&makeTrial), "reference"_a, "function"_a, "sizes"_a,
           "device"_a = py::none(), "threads"_a = 1)
      .def(
          "time",
          [](Trial &trial, const ProgramPointer &program, unsigned repeat) {
            return unlocked([&] { return trial.time(*program, repeat); });
          },
          "program"_a, "repeat"_a)
      .def(
          "compare",
          [](Trial &trial, const ProgramPointer &program) {
            return unlocked([&] { return trial.compare(*program); });
          },
          "program"_a);
}
