//===- Trial.cpp - Timing one function of several programs ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Trial.h"
#include "bastile/runtime/CudaStopwatch.h"
#include "bastile/runtime/HostTypes.h"
#include "bastile/runtime/Shapes.h"
#include "runtime/Text.h"
#include "runtime/program/TrialMemory.h"

#include <chrono>
#include <cmath>

using namespace bastile::runtime;

/// The bytes that are overwritten between calls: five times the largest
/// second-level cache of an H100, twice that of any GPU so far.
static constexpr int64_t flushBytes = int64_t(256) << 20;

Trial::~Trial() = default;

namespace {

class ProgramTrial final : public Trial {
public:
  explicit ProgramTrial(const Place &place) : place(place) {}

  Error open(Program &reference, const std::string &function,
             const std::vector<Dimensions> &sizes);
  Expected<std::vector<double>> time(Program &program,
                                     unsigned repeat) override;
  Expected<double> compare(Program &program) override;

private:
  /// The tensors that a function is called on.
  struct Tensors {
    std::vector<TensorView> inputs, outputs;
  };

  Expected<Tensors> makeForward(Program &program, const Function &function,
                                const std::vector<Dimensions> &sizes);
  Expected<Tensors> makeBackward(Program &program, const Function &forward,
                                 const Tensors &before);
  Error makeOutputs(Program &program, const Function &function,
                    Tensors &tensors);
  Expected<std::vector<TensorView>> makeTemporaries(Program &program,
                                                    const Function &function,
                                                    const Tensors &tensors,
                                                    TrialMemory &memory);
  Error callOnce(Program &program, const Function &function,
                 const Tensors &tensors);
  Expected<std::vector<std::vector<char>>> readResults();
  Expected<std::vector<double>> timeOnHost(Program &program,
                                           const Function &function,
                                           const Buffers &buffers,
                                           unsigned repeat) const;
  Expected<std::vector<double>> timeOnGpu(Program &program,
                                          const Function &function,
                                          const Buffers &buffers,
                                          unsigned repeat);

  Place place;
  /// Null on the host.
  std::shared_ptr<const CudaDevice> device;
  TrialMemory memory;
  std::string name;
  Tensors tensors;
  /// The memory that is overwritten between calls.
  TensorView flushed;
  /// Parts of the results of the reference.
  std::vector<std::vector<char>> expected;
  int64_t integerLimit = 128;
};

} // namespace

static Expected<const Function *> find(const Program &program,
                                       const std::string &name) {
  if (const Function *function = program.metadata().find(name))
    return function;
  return makeError("there is no function '", name, "'");
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Error ProgramTrial::makeOutputs(Program &program, const Function &function,
                                Tensors &made) {
  Expected<Capacity> capacity = program.capacity(place);
  if (!capacity)
    return capacity.takeError();
  ResolvedShapes shapes;
  if (Error error = resolveShapes(function, made.inputs, *capacity, shapes))
    return error;
  for (size_t i = 0; i != function.outputs.size(); ++i) {
    Expected<TensorView> output =
        memory.allocate(function.outputs[i].type, shapes.outputs[i]);
    if (!output)
      return output.takeError();
    made.outputs.push_back(*output);
  }
  return Error::success();
}

Expected<std::vector<TensorView>>
ProgramTrial::makeTemporaries(Program &program, const Function &function,
                              const Tensors &given, TrialMemory &owner) {
  Expected<Capacity> capacity = program.capacity(place);
  if (!capacity)
    return capacity.takeError();
  ResolvedShapes shapes;
  if (Error error = resolveShapes(function, given.inputs, *capacity, shapes))
    return error;
  std::vector<TensorView> temporaries;
  for (size_t i = 0; i != function.temporaries.size(); ++i) {
    Expected<TensorView> temporary =
        owner.allocate(function.temporaries[i].type, shapes.temporaries[i]);
    if (!temporary)
      return temporary.takeError();
    temporaries.push_back(*temporary);
  }
  return temporaries;
}

Expected<ProgramTrial::Tensors>
ProgramTrial::makeForward(Program &program, const Function &function,
                          const std::vector<Dimensions> &sizes) {
  if (sizes.size() != function.inputs.size())
    return makeError("'", function.name, "' takes ", function.inputs.size(),
                     " tensors, but got the sizes of ", sizes.size());
  // An integer may index elements of any row, so it stays below the length of
  // the shortest.
  for (const Dimensions &input : sizes)
    if (!input.empty() && input.back() > 1)
      integerLimit = std::min(integerLimit, input.back());
  Tensors made;
  for (size_t i = 0; i != sizes.size(); ++i) {
    Expected<TensorView> input =
        memory.allocate(function.inputs[i].type, sizes[i]);
    if (!input)
      return input.takeError();
    if (Error error = memory.randomize(*input, i + 1, integerLimit))
      return error;
    made.inputs.push_back(*input);
  }
  if (Error error = makeOutputs(program, function, made))
    return error;
  return made;
}

Expected<ProgramTrial::Tensors>
ProgramTrial::makeBackward(Program &program, const Function &forward,
                           const Tensors &before) {
  if (Error error = callOnce(program, forward, before))
    return error;
  using Kind = Backward::Source::Kind;
  Tensors made;
  for (const Backward::Source &source : forward.backward->inputs) {
    if (source.kind == Kind::Input) {
      made.inputs.push_back(before.inputs[source.index]);
      continue;
    }
    const TensorView &output = before.outputs[source.index];
    if (source.kind == Kind::Output) {
      made.inputs.push_back(output);
      continue;
    }
    Expected<TensorView> gradient = memory.allocate(output.type, output.sizes);
    if (!gradient)
      return gradient.takeError();
    if (Error error =
            memory.randomize(*gradient, 1000 + source.index, integerLimit))
      return error;
    made.inputs.push_back(*gradient);
  }
  Expected<const Function *> backward =
      find(program, forward.backward->function);
  if (!backward)
    return backward.takeError();
  if (Error error = makeOutputs(program, **backward, made))
    return error;
  return made;
}

Error ProgramTrial::open(Program &reference, const std::string &function,
                         const std::vector<Dimensions> &sizes) {
  if (place.device) {
    auto opened = CudaDevices::get(*place.device);
    if (!opened)
      return opened.takeError();
    device = *opened;
    memory = TrialMemory(device);
    Expected<TensorView> flush = memory.allocate(ElementType::I8, {flushBytes});
    if (!flush)
      return flush.takeError();
    flushed = *flush;
  }
  name = function;
  const Function &forward = reference.metadata().functions.front();
  Expected<Tensors> made = makeForward(reference, forward, sizes);
  if (made && function != forward.name) {
    if (!forward.backward || forward.backward->function != function)
      return makeError("'", function, "' is neither the first function nor '",
                       forward.name, "''s backward");
    made = makeBackward(reference, forward, *made);
  }
  if (!made)
    return made.takeError();
  tensors = std::move(*made);
  Expected<const Function *> called = find(reference, name);
  if (!called)
    return called.takeError();
  if (Error error = callOnce(reference, **called, tensors))
    return error;
  auto results = readResults();
  if (!results)
    return results.takeError();
  expected = std::move(*results);
  return Error::success();
}

Error ProgramTrial::callOnce(Program &program, const Function &function,
                             const Tensors &given) {
  TrialMemory scratch(device);
  auto temporaries = makeTemporaries(program, function, given, scratch);
  if (!temporaries)
    return temporaries.takeError();
  if (Error error = program.run(
          function, {given.inputs, given.outputs, *temporaries}, place))
    return error;
  return device ? device->synchronize(place.stream) : Error::success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Expected<std::vector<std::vector<char>>> ProgramTrial::readResults() {
  std::vector<std::vector<char>> results;
  for (const TensorView &output : tensors.outputs) {
    Expected<std::vector<char>> part = memory.readPart(output);
    if (!part)
      return part.takeError();
    results.push_back(std::move(*part));
  }
  return results;
}

/// Units in the last place that another order of the same operations excuses.
/// Rounding to few bits hides all differences but ties; a long sum in float32
/// has as many roundings as terms, which mostly cancel.
static double getExcused(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::F32:
    return 256;
  case ElementType::F16:
    return 4;
  case ElementType::BF16:
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
    return 2;
  default:
    return 0;
  }
}

/// The greatest difference of elements as a part of what is excused. A number
/// that is small because larger ones cancelled may be as far off as the larger
/// ones.
static double compareElements(ElementType type, const std::vector<char> &actual,
                              const std::vector<char> &expected) {
  const size_t size = byteSize(type);
  if (!isFloat(type))
    return actual == expected ? 0 : std::numeric_limits<double>::infinity();
  double squares = 0;
  size_t finite = 0;
  for (size_t at = 0; at != expected.size(); at += size) {
    const double value = loadElement(type, &expected[at]);
    if (std::isfinite(value)) {
      squares += value * value;
      ++finite;
    }
  }
  const double usual = finite ? std::sqrt(squares / finite) : 0;
  double worst = 0;
  for (size_t at = 0; at != expected.size(); at += size) {
    const double wanted = loadElement(type, &expected[at]);
    const double got = loadElement(type, &actual[at]);
    if (wanted == got || (std::isnan(wanted) && std::isnan(got)))
      continue;
    if (!std::isfinite(wanted) || !std::isfinite(got))
      return std::numeric_limits<double>::infinity();
    const double unit = ulp(type, std::max(std::fabs(wanted), usual));
    worst =
        std::max(worst, std::fabs(got - wanted) / (unit * getExcused(type)));
  }
  return worst;
}

Expected<double> ProgramTrial::compare(Program &program) {
  Expected<const Function *> function = find(program, name);
  if (!function)
    return function.takeError();
  // An element that a program leaves out must not be found from an earlier run.
  for (const TensorView &output : tensors.outputs)
    if (Error error = memory.poison(output))
      return error;
  if (Error error = callOnce(program, **function, tensors))
    return error;
  auto results = readResults();
  if (!results)
    return results.takeError();
  double worst = 0;
  for (size_t i = 0; i != results->size(); ++i)
    worst = std::max(worst, compareElements(tensors.outputs[i].type,
                                            (*results)[i], expected[i]));
  return worst;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

Expected<std::vector<double>> ProgramTrial::timeOnHost(Program &program,
                                                       const Function &function,
                                                       const Buffers &buffers,
                                                       unsigned repeat) const {
  using Clock = std::chrono::steady_clock;
  std::vector<double> samples;
  while (samples.size() != repeat) {
    const Clock::time_point start = Clock::now();
    if (Error error = program.run(function, buffers, place))
      return error;
    const std::chrono::duration<double> seconds = Clock::now() - start;
    samples.push_back(seconds.count());
  }
  return samples;
}

Expected<std::vector<double>> ProgramTrial::timeOnGpu(Program &program,
                                                      const Function &function,
                                                      const Buffers &buffers,
                                                      unsigned repeat) {
  CudaStopwatch stopwatch(*device, place.stream);
  if (Error error = stopwatch.reserve(repeat))
    return error;
  const CudaDriver &driver = device->driver();
  for (unsigned lap = 0; lap != repeat; ++lap) {
    // Overwriting the cache also hides the time that the host takes to launch.
    if (Error error = driver.check(
            driver.memsetD8Async(reinterpret_cast<cuda::Address>(flushed.data),
                                 0, flushBytes, place.stream),
            "flush the cache"))
      return error;
    if (Error error = stopwatch.start(lap))
      return error;
    if (Error error = program.run(function, buffers, place))
      return error;
    if (Error error = stopwatch.stop(lap))
      return error;
  }
  std::vector<double> samples;
  for (unsigned lap = 0; lap != repeat; ++lap) {
    Expected<double> seconds = stopwatch.seconds(lap);
    if (!seconds)
      return seconds.takeError();
    samples.push_back(*seconds);
  }
  return samples;
}

Expected<std::vector<double>> ProgramTrial::time(Program &program,
                                                 unsigned repeat) {
  Expected<const Function *> function = find(program, name);
  if (!function)
    return function.takeError();
  TrialMemory scratch(device);
  auto temporaries = makeTemporaries(program, **function, tensors, scratch);
  if (!temporaries)
    return temporaries.takeError();
  const Buffers buffers = {tensors.inputs, tensors.outputs, *temporaries};
  return device ? timeOnGpu(program, **function, buffers, repeat)
                : timeOnHost(program, **function, buffers, repeat);
}

Expected<std::unique_ptr<Trial>>
Trial::create(Program &reference, const std::string &function,
              const std::vector<Dimensions> &sizes, const Place &place) {
  auto trial = std::make_unique<ProgramTrial>(place);
  if (Error error = trial->open(reference, function, sizes))
    return error;
  return std::unique_ptr<Trial>(std::move(trial));
}
