//===- main.cpp - A compiled kernel without its compiler ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Loads the PTX that tilec made of examples/rms_norm.mlir, runs it on random
// rows on the first GPU, compares with a loop and prints the time of a call.
// It links the runtime alone: no MLIR, no CUDA toolkit, no Python.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Files.h"
#include "bastile/runtime/Program.h"
#include "bastile/runtime/Shapes.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace bastile::runtime;

/// What test harnesses take for "skipped".
static constexpr int skippedStatus = 77;
static constexpr int timedCalls = 200;

[[noreturn]] static void fail(const std::string &message) {
  std::fprintf(stderr, "standalone: error: %s\n", message.c_str());
  std::exit(1);
}

static void check(const Error &error) {
  if (error)
    fail(error.message());
}

template <typename T>
static T take(Expected<T> value) {
  check(value.takeError());
  return std::move(*value);
}

static uint16_t toBFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float fromBFloat(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

static std::vector<uint16_t> makeRandom(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values)
    value = toBFloat(normal(generator));
  return values;
}

namespace {
/// Tensors in the memory of a GPU.
class DeviceTensors {
public:
  explicit DeviceTensors(std::shared_ptr<const CudaDevice> device)
      : device(std::move(device)) {}

  void add(ElementType type, const Dimensions &sizes) {
    TensorView view = TensorView::contiguous(nullptr, type, sizes);
    buffers.push_back(take(
        CudaBuffer::allocate(device, static_cast<size_t>(view.byteCount()))));
    view.data = buffers.back().data();
    views.push_back(view);
  }

  void add(const std::vector<uint16_t> &values, const Dimensions &sizes) {
    add(ElementType::BF16, sizes);
    check(device->copyToDevice(views.back().data, values.data(),
                               values.size() * sizeof(uint16_t)));
  }

  const std::vector<TensorView> &get() const { return views; }

private:
  std::shared_ptr<const CudaDevice> device;
  std::vector<CudaBuffer> buffers;
  std::vector<TensorView> views;
};

/// A call of a function, repeated.
class Call {
public:
  Call(Program &program, const Function &function, const Buffers &buffers)
      : program(program), function(function), buffers(buffers) {}

  void run() {
    Place place;
    place.device = 0;
    check(program.run(function, buffers, place));
  }

  /// The mean time of a call in microseconds, as the GPU sees it.
  float measure(const CudaDevice &device) {
    const CudaDriver &driver = device.driver();
    CudaContextScope scope(device);
    check(scope.takeError());
    cuda::Event begin = nullptr, end = nullptr;
    check(driver.check(driver.eventCreate(&begin, 0), "create an event"));
    check(driver.check(driver.eventCreate(&end, 0), "create an event"));
    check(driver.check(driver.eventRecord(begin, nullptr), "record an event"));
    for (int i = 0; i != timedCalls; ++i)
      run();
    check(driver.check(driver.eventRecord(end, nullptr), "record an event"));
    check(driver.check(driver.eventSynchronize(end), "wait for the GPU"));
    float milliseconds = 0;
    check(driver.check(driver.eventElapsedTime(&milliseconds, begin, end),
                       "read the time"));
    driver.eventDestroy(begin);
    driver.eventDestroy(end);
    return milliseconds * 1e3f / timedCalls;
  }

private:
  Program &program;
  const Function &function;
  Buffers buffers;
};
} // namespace

/// The largest error relative to what a loop in double precision computes.
static double compare(const std::vector<uint16_t> &x,
                      const std::vector<uint16_t> &weight,
                      const std::vector<uint16_t> &result) {
  size_t length = weight.size();
  double worst = 0;
  for (size_t row = 0; row != x.size(); row += length) {
    double squares = 0;
    for (size_t i = 0; i != length; ++i)
      squares += std::pow(fromBFloat(x[row + i]), 2);
    double scale = 1 / std::sqrt(squares / static_cast<double>(length) + 1e-5);
    for (size_t i = 0; i != length; ++i) {
      double expected = fromBFloat(x[row + i]) * scale * fromBFloat(weight[i]);
      double error = std::abs(fromBFloat(result[row + i]) - expected);
      if (expected != 0)
        error /= std::abs(expected);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

static bool isRmsNorm(const Function &function) {
  const auto &inputs = function.inputs;
  return inputs.size() == 2 && function.outputs.size() == 1 &&
         inputs[0].shape.size() == 2 && inputs[1].shape.size() == 1 &&
         inputs[0].type == ElementType::BF16 &&
         inputs[1].type == ElementType::BF16 && inputs[1].shape[0];
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: standalone rms_norm.ptx [rows]\n");
    return 2;
  }
  long rows = argc == 3 ? std::atol(argv[2]) : 8192;
  if (rows <= 0)
    fail("the number of rows must be positive, but is '" +
         std::string(argv[2]) + "'");
  Metadata metadata = take(loadMetadata(argv[1]));
  std::string ptx = take(readFile(argv[1]));
  if (metadata.functions.empty() || !isRmsNorm(metadata.functions.front()))
    fail(std::string(argv[1]) + " is not made of examples/rms_norm.mlir");

  Expected<std::shared_ptr<const CudaDevice>> opened = CudaDevices::get(0);
  if (!opened) {
    std::printf("skipped, no GPU: %s\n", opened.takeError().message().c_str());
    return skippedStatus;
  }
  std::shared_ptr<const CudaDevice> device = *opened;
  std::shared_ptr<Program> program = Program::forGpu(
      std::move(metadata),
      [ptx](const CudaDevice &, const std::string &) -> Expected<std::string> {
        return ptx;
      });
  const Function &function = program->metadata().functions.front();

  int64_t length = *function.inputs[1].shape[0];
  std::vector<uint16_t> x = makeRandom(static_cast<size_t>(rows * length), 0);
  std::vector<uint16_t> weight = makeRandom(static_cast<size_t>(length), 1);
  DeviceTensors inputs(device);
  inputs.add(x, {rows, length});
  inputs.add(weight, {length});

  // The metadata says what else a call needs, whatever the function.
  ResolvedShapes shapes;
  check(resolveShapes(function, inputs.get(), device->capacity(), shapes));
  DeviceTensors outputs(device), temporaries(device);
  for (size_t i = 0; i != shapes.outputs.size(); ++i)
    outputs.add(function.outputs[i].type, shapes.outputs[i]);
  for (size_t i = 0; i != shapes.temporaries.size(); ++i)
    temporaries.add(function.temporaries[i].type, shapes.temporaries[i]);

  Call call(*program, function,
            {inputs.get(), outputs.get(), temporaries.get()});
  call.run();
  std::vector<uint16_t> result(x.size());
  check(device->copyToHost(result.data(), outputs.get()[0].data,
                           result.size() * sizeof(uint16_t)));

  // Two roundings to bfloat16, each of up to 1/256, and a little for float32.
  double worst = compare(x, weight, result), limit = 2.1 / 256;
  std::printf("%s on %s: %ld x %ld, largest error %.5f, %.1f us a call\n",
              function.name.c_str(), device->name().c_str(), rows,
              static_cast<long>(length), worst, call.measure(*device));
  if (!(worst <= limit))
    fail("the error is above " + std::to_string(limit));
  return 0;
}
