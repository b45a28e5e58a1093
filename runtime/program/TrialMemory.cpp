//===- TrialMemory.cpp - Memory of the host or of a GPU -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/TrialMemory.h"
#include "bastile/runtime/HostTypes.h"

#include <cstring>
#include <random>

using namespace bastile::runtime;

Expected<TensorView> TrialMemory::allocate(ElementType type,
                                           const Dimensions &sizes) {
  TensorView view = TensorView::contiguous(nullptr, type, sizes);
  const size_t bytes = std::max<size_t>(1, view.byteCount());
  if (!device) {
    arrays.push_back(std::make_unique<char[]>(bytes));
    view.data = arrays.back().get();
    return view;
  }
  Expected<CudaBuffer> buffer = CudaBuffer::allocate(device, bytes);
  if (!buffer)
    return buffer.takeError();
  buffers.push_back(std::move(*buffer));
  view.data = buffers.back().data();
  return view;
}

Error TrialMemory::write(void *target, const void *source, size_t bytes) const {
  if (device)
    return device->copyToDevice(target, source, bytes);
  std::memcpy(target, source, bytes);
  return Error::success();
}

Error TrialMemory::read(void *target, const void *source, size_t bytes) const {
  if (device)
    return device->copyToHost(target, source, bytes);
  std::memcpy(target, source, bytes);
  return Error::success();
}

Error TrialMemory::randomize(const TensorView &tensor, unsigned seed,
                             int64_t integerLimit) const {
  // The numbers repeat, but with a period that usual lengths of rows do not
  // divide.
  constexpr int64_t kPeriod = 1000003;
  const int64_t count = tensor.elementCount();
  const int64_t size = byteSize(tensor.type);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<char> pattern(std::min(count, kPeriod) * size);
  for (size_t at = 0; at != pattern.size(); at += size) {
    if (isFloat(tensor.type))
      storeElement(tensor.type, &pattern[at], normal(random));
    else
      storeInteger(tensor.type, &pattern[at],
                   tensor.type == ElementType::I1 ? random() % 2
                                                  : random() % integerLimit);
  }
  char *data = static_cast<char *>(tensor.data);
  for (int64_t at = 0; at < count * size; at += pattern.size())
    if (Error error =
            write(data + at, pattern.data(),
                  std::min<int64_t>(pattern.size(), count * size - at)))
      return error;
  return Error::success();
}

Error TrialMemory::poison(const TensorView &tensor) const {
  constexpr int kByte = 0xff;
  const size_t bytes = tensor.byteCount();
  if (!device) {
    std::memset(tensor.data, kByte, bytes);
    return Error::success();
  }
  if (bytes == 0)
    return Error::success();
  CudaContextScope scope(*device);
  if (Error error = scope.takeError())
    return error;
  const CudaDriver &driver = device->driver();
  return driver.check(
      driver.memsetD8Async(reinterpret_cast<cuda::Address>(tensor.data), kByte,
                           bytes, /*stream=*/nullptr),
      "fill memory of the GPU");
}

Expected<std::vector<char>>
TrialMemory::readPart(const TensorView &tensor) const {
  // This is a multiple of the size of every element.
  constexpr int64_t kPart = 512 << 10;
  const char *data = static_cast<const char *>(tensor.data);
  const int64_t bytes = tensor.byteCount();
  std::vector<char> part(std::min(bytes, 2 * kPart));
  const int64_t first = std::min(bytes, kPart);
  if (Error error = read(part.data(), data, first))
    return error;
  const int64_t last = part.size() - first;
  if (Error error = read(part.data() + first, data + bytes - last, last))
    return error;
  return part;
}
