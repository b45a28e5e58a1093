//===- Program.cpp - Compiled functions, ready to call --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Program.h"
#include "runtime/Text.h"

#include <algorithm>

using namespace bastile::runtime;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<const CudaDriver>> CudaDevices::driver() {
  // An error is not kept: a driver may be installed while a process runs, and
  // the error costs little time.
  static std::mutex mutex;
  static std::shared_ptr<const CudaDriver> opened;
  std::lock_guard<std::mutex> lock(mutex);
  if (opened)
    return opened;
  Expected<std::shared_ptr<const CudaDriver>> driver = CudaDriver::open();
  if (driver)
    opened = *driver;
  return driver;
}

Expected<std::shared_ptr<const CudaDevice>> CudaDevices::get(int ordinal) {
  Expected<std::shared_ptr<const CudaDriver>> driver = CudaDevices::driver();
  if (!driver)
    return driver.takeError();
  static std::mutex mutex;
  // Devices are never released: their contexts outlive every static object of
  // frameworks.
  static auto &devices =
      *new std::map<int, std::shared_ptr<const CudaDevice>>();
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const CudaDevice> &device = devices[ordinal];
  if (!device) {
    Expected<std::shared_ptr<const CudaDevice>> opened =
        CudaDevice::open(*driver, ordinal);
    if (!opened)
      return opened.takeError();
    device = *opened;
  }
  return device;
}

int CudaDevices::count() {
  Expected<std::shared_ptr<const CudaDriver>> driver = CudaDevices::driver();
  int count = 0;
  if (!driver || (*driver)->init(0) != cuda::successResult ||
      (*driver)->deviceGetCount(&count) != cuda::successResult)
    return 0;
  return count;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Expected<std::string>
bastile::runtime::assembleWithDriver(const CudaDevice &device,
                                     const std::string &ptx) {
  CudaContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  const CudaDriver &driver = device.driver();
  RelaxedCaptureScope capture(driver);

  std::string log(8192, '\0');
  int options[] = {cuda::ErrorLogBuffer, cuda::ErrorLogBufferSize};
  // The driver takes sizes as values in place of pointers.
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  cuda::Linker linker = nullptr;
  if (Error error = driver.check(driver.linkCreate(2, options, values, &linker),
                                 "start the assembler of the driver"))
    return error;
  void *cubin = nullptr;
  size_t bytes = 0;
  // The text is passed with the zero that ends it, and is only read.
  cuda::Result status = driver.linkAddData(
      linker, cuda::PtxInput, const_cast<char *>(ptx.c_str()), ptx.size() + 1,
      "kernels", 0, nullptr, nullptr);
  if (status == cuda::successResult)
    status = driver.linkComplete(linker, &cubin, &bytes);
  Error error = driver.check(status, "assemble PTX for ", device.name());
  std::string result(static_cast<char *>(cubin), bytes);
  driver.linkDestroy(linker);
  if (!error)
    return result;
  if (log[0] == '\0')
    return error;
  return makeError(error.message(), "\n", log.c_str());
}

std::shared_ptr<Program> Program::forGpu(Metadata metadata, ImageSource image,
                                         RunSlow runSlow) {
  return std::shared_ptr<Program>(new Program(
      std::move(metadata), std::move(image), std::move(runSlow), nullptr));
}

std::shared_ptr<Program> Program::forHost(Metadata metadata,
                                          HostExecutor::SymbolLookup lookup) {
  return std::shared_ptr<Program>(
      new Program(std::move(metadata), nullptr, nullptr, std::move(lookup)));
}

Expected<std::shared_ptr<CudaModule>>
Program::loadModule(std::shared_ptr<const CudaDevice> device,
                    const std::string &entry) {
  Expected<std::string> code = image(*device, entry);
  if (!code)
    return code.takeError();
  RelaxedCaptureScope capture(device->driver());
  return CudaModule::load(std::move(device), *code);
}

Expected<std::shared_ptr<CudaModule>>
Program::module(std::shared_ptr<const CudaDevice> device,
                const std::string &entry) {
  const auto key = std::make_pair(device.get(), entry);
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = modules.find(key);
    if (found != modules.end())
      return found->second;
  }
  // The image is made without the lock, since this takes a while; if two
  // threads do so at once, the first one's module is kept.
  std::optional<Expected<std::shared_ptr<CudaModule>>> loaded;
  auto load = [&] { loaded.emplace(loadModule(std::move(device), entry)); };
  if (runSlow)
    runSlow(load);
  else
    load();
  if (!*loaded)
    return loaded->takeError();
  std::lock_guard<std::mutex> lock(mutex);
  return modules.emplace(key, **loaded).first->second;
}

Expected<KernelResources> bastile::runtime::getResources(const Launch &launch,
                                                         const Variant &variant,
                                                         CudaModule &module) {
  Expected<CudaKernelInfo> info = module.info(variant.entry);
  if (!info)
    return info.takeError();
  Expected<int> blocks = module.blocksPerMultiprocessor(
      variant.entry, {variant.cluster, variant.block, variant.cluster,
                      variant.sharedMemory, false});
  if (!blocks)
    return blocks.takeError();
  const int64_t limit = module.device().threadsPerMultiprocessor();
  KernelResources result;
  result.kernel = launch.kernel;
  result.threads = variant.block;
  result.cluster = variant.cluster;
  result.registers = info->registers;
  result.spilledBytes = info->localMemory;
  result.sharedMemory = info->staticSharedMemory + variant.sharedMemory;
  result.blocks = *blocks;
  result.occupancy = limit ? double(*blocks * variant.block) / limit : 0;
  return result;
}

Expected<std::vector<KernelResources>>
Program::resources(int device, const std::string &function) {
  std::vector<KernelResources> result;
  Error error = load(device, function,
                     [&](const Launch &launch, const Variant &variant,
                         CudaModule &module) -> Error {
                       auto found = getResources(launch, variant, module);
                       if (!found)
                         return found.takeError();
                       result.push_back(*found);
                       return Error::success();
                     });
  if (error)
    return error;
  return result;
}

Error Program::prepare(int device, const std::string &function) {
  return load(device, function,
              [](const Launch &, const Variant &, CudaModule &) {
                return Error::success();
              });
}

Error Program::load(int ordinal, const std::string &name,
                    const LoadedLaunch &use) {
  const Function *function = description.find(name);
  if (!function)
    return makeError("there is no function '", name, "'");
  Expected<std::shared_ptr<const CudaDevice>> device =
      CudaDevices::get(ordinal);
  if (!device)
    return device.takeError();
  for (const Launch &launch : function->launches) {
    const Variant *variant = findVariant(launch, (*device)->capacity());
    if (!variant)
      return makeError("no variant of kernel '", launch.kernel, "' runs on ",
                       (*device)->name(), ": ",
                       describeLeftOut(*function, (*device)->capacity())[0]);
    auto loaded = module(*device, variant->entry);
    if (!loaded)
      return loaded.takeError();
    if (Error error = use(launch, *variant, **loaded))
      return error;
  }
  return Error::success();
}

Expected<std::vector<std::string>> Program::leftOut(int ordinal) const {
  Expected<std::shared_ptr<const CudaDevice>> device =
      CudaDevices::get(ordinal);
  if (!device)
    return device.takeError();
  std::vector<std::string> lines;
  for (const Function &function : description.functions)
    for (std::string &line : describeLeftOut(function, (*device)->capacity()))
      lines.push_back(std::move(line));
  return lines;
}

namespace {
/// Launches kernels that lie in modules of their own.
class ModulesExecutor final : public Executor {
public:
  ModulesExecutor(Program &program, std::shared_ptr<const CudaDevice> gpu,
                  cuda::Stream stream)
      : program(program), gpu(std::move(gpu)), stream(stream) {}

  Error launch(const std::string &entry, const LaunchConfig &config,
               void **arguments) override {
    Expected<std::shared_ptr<CudaModule>> module = program.module(gpu, entry);
    if (!module)
      return module.takeError();
    return CudaExecutor(**module, stream).launch(entry, config, arguments);
  }
  Error zero(void *data, int64_t bytes) override {
    return fillWithZeros(*gpu, stream, data, bytes);
  }
  Error encode(const TensorMapSpec &spec, EncodedTensorMap &map) override {
    return encodeTensorMap(*gpu, spec, map);
  }
  Error replaceAddress(const TensorMapSpec &spec,
                       EncodedTensorMap &map) override {
    return replaceTensorAddress(*gpu, spec, map);
  }
  Capacity capacity() const override { return gpu->capacity(); }
  const void *device() const override { return gpu.get(); }

private:
  Program &program;
  std::shared_ptr<const CudaDevice> gpu;
  cuda::Stream stream;
};
} // namespace

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Lends a scratch for the length of a call of a function. A scratch is for one
/// function, whose tensor maps it keeps.
class Program::ScratchScope {
public:
  ScratchScope(Program &program, const Function &function) : program(program) {
    std::lock_guard<std::mutex> lock(program.mutex);
    auto found = std::find_if(
        program.scratches.rbegin(), program.scratches.rend(),
        [&](const auto &free) { return free->function == &function; });
    if (found == program.scratches.rend()) {
      scratch = std::make_unique<Scratch>();
      scratch->function = &function;
      return;
    }
    scratch = std::move(*found);
    program.scratches.erase(std::next(found).base());
  }
  ~ScratchScope() {
    std::lock_guard<std::mutex> lock(program.mutex);
    program.scratches.push_back(std::move(scratch));
  }
  ScratchScope(const ScratchScope &) = delete;
  ScratchScope &operator=(const ScratchScope &) = delete;

  Scratch &operator*() { return *scratch; }

private:
  Program &program;
  std::unique_ptr<Scratch> scratch;
};

Expected<Capacity> Program::capacity(const Place &place) {
  if (isHost())
    return Capacity(place.threads);
  Expected<std::shared_ptr<const CudaDevice>> device =
      CudaDevices::get(*place.device);
  if (!device)
    return device.takeError();
  return (*device)->capacity();
}

Error Program::runWith(Scratch &scratch, const Function &function,
                       const Buffers &buffers, const Place &place) {
  auto execute = [&](Executor &&executor) -> Error {
    if (Error error =
            scratch.plan.prepare(function, buffers, executor.capacity()))
      return error;
    return runtime::execute(scratch.plan, executor);
  };
  if (isHost())
    return execute(HostExecutor(lookup, place.threads));
  Expected<std::shared_ptr<const CudaDevice>> device =
      CudaDevices::get(*place.device);
  if (!device)
    return device.takeError();
  return execute(ModulesExecutor(*this, *device, place.stream));
}

Error Program::run(const Function &function, const Buffers &buffers,
                   const Place &place) {
  ScratchScope scope(*this, function);
  return runWith(*scope, function, buffers, place);
}

Error Program::call(const Function &function, Span<const TensorView> inputs,
                    const Place &place, const Allocate &allocate) {
  Expected<Capacity> here = capacity(place);
  if (!here)
    return here.takeError();
  ScratchScope scope(*this, function);
  Scratch &scratch = *scope;
  if (Error error = resolveShapes(function, inputs, *here, scratch.shapes))
    return error;

  scratch.outputs.clear();
  scratch.temporaries.clear();
  for (unsigned i = 0; i != function.outputs.size(); ++i) {
    Expected<TensorView> view =
        allocate(function.outputs[i], scratch.shapes.outputs[i], i);
    if (!view)
      return view.takeError();
    scratch.outputs.push_back(*view);
  }
  for (unsigned i = 0; i != function.temporaries.size(); ++i) {
    Expected<TensorView> view =
        allocate(function.temporaries[i], scratch.shapes.temporaries[i],
                 /*output=*/std::nullopt);
    if (!view)
      return view.takeError();
    scratch.temporaries.push_back(*view);
  }
  return runWith(scratch, function,
                 {inputs, scratch.outputs, scratch.temporaries}, place);
}
