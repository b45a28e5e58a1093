//===- Tensor.cpp - Tensors between guard bytes ---------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Tensor.h"

#include "bastile/runtime/HostTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <optional>
#include <random>
#include <unistd.h>

using namespace bastile;
using namespace bastile::run;
using runtime::Dimensions;
using runtime::ElementType;
using runtime::TensorView;

/// Guard bytes on either side: a multiple of every alignment in use.
static constexpr size_t kGuardBytes = 256;
static constexpr char kPoison = static_cast<char>(0xFF);

/// The bytes of a tensor with the gaps between and ahead of its rows; nothing
/// if the count exceeds 63 bits.
static std::optional<int64_t> countAll(ElementType type,
                                       const Dimensions &sizes,
                                       const Placement &placement) {
  int64_t elements = 0;
  bool overflows = false;
  auto add = [&](int64_t a) {
    overflows |= __builtin_add_overflow(elements, a, &elements);
  };
  auto multiply = [&](int64_t a) {
    overflows |= __builtin_mul_overflow(elements, a, &elements);
  };
  if (llvm::find(sizes, 0) == sizes.end()) {
    elements = 1;
    for (unsigned i = sizes.size(); i-- > 0;) {
      multiply(sizes[i]);
      add(placement.gap);
    }
  }
  add(placement.offset);
  multiply(runtime::byteSize(type));
  add(2 * kGuardBytes);
  if (overflows)
    return std::nullopt;
  return elements;
}

runtime::Error run::checkMemory(const std::string &what, ElementType type,
                                const Dimensions &sizes,
                                const Placement &placement) {
  const std::optional<int64_t> bytes = countAll(type, sizes, placement);
  const int64_t limit = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (bytes && *bytes <= limit)
    return runtime::Error::success();
  std::string shape;
  for (int64_t size : sizes)
    shape += (shape.empty() ? "" : "x") + std::to_string(size);
  return runtime::Error(
      what + " of shape " + shape + " takes " +
      (bytes ? std::to_string(*bytes) : "more than 9223372036854775807") +
      " bytes, but this machine has " + std::to_string(limit));
}

Tensor::Tensor(ElementType type, const Dimensions &sizes,
               const Placement &placement) {
  layout = TensorView::contiguous(nullptr, type, sizes);
  if (sizes.size() > 1) {
    int64_t stride = sizes.back() + placement.gap;
    const unsigned leading = sizes.size() - 1;
    for (unsigned i = leading; i-- > 0;) {
      const unsigned dimension = placement.isReversed ? leading - 1 - i : i;
      layout.strides[dimension] = stride;
      stride = stride * sizes[dimension] + placement.gap;
    }
  }
  int64_t span = layout.elementCount() == 0 ? 0 : 1;
  for (unsigned i = 0; span != 0 && i != sizes.size(); ++i)
    span += (sizes[i] - 1) * layout.strides[i];
  start = kGuardBytes + placement.offset * runtime::byteSize(type);
  bytes.assign(start + span * runtime::byteSize(type) + kGuardBytes, kPoison);
}

TensorView Tensor::view(void *base) const {
  TensorView result = layout;
  result.data = static_cast<char *>(base) + start;
  return result;
}

template <typename Visitor>
void Tensor::forEachRow(Visitor visit) const {
  const Dimensions &sizes = layout.sizes;
  if (layout.elementCount() == 0)
    return;
  const size_t elementBytes = runtime::byteSize(layout.type);
  const size_t rowBytes = (sizes.empty() ? 1 : sizes.back()) * elementBytes;
  const int64_t rows = layout.byteCount() / rowBytes;
  for (int64_t row = 0; row != rows; ++row) {
    int64_t offset = 0, remaining = row;
    for (unsigned i = sizes.empty() ? 0 : sizes.size() - 1; i-- > 0;) {
      offset += remaining % sizes[i] * layout.strides[i];
      remaining /= sizes[i];
    }
    visit(start + offset * elementBytes, rowBytes);
  }
}

void Tensor::setElements(const char *elements) {
  forEachRow([&](size_t row, size_t rowBytes) {
    std::memcpy(&bytes[row], elements, rowBytes);
    elements += rowBytes;
  });
}

std::vector<char> Tensor::getElements() const {
  std::vector<char> elements;
  elements.reserve(byteCount());
  forEachRow([&](size_t row, size_t rowBytes) {
    elements.insert(elements.end(), &bytes[row], &bytes[row] + rowBytes);
  });
  return elements;
}

template <typename T>
std::vector<T> Tensor::getValues(T (*load)(ElementType, const void *)) const {
  std::vector<T> values;
  values.reserve(elementCount());
  const size_t elementBytes = runtime::byteSize(type());
  forEachRow([&](size_t row, size_t rowBytes) {
    for (size_t offset = 0; offset != rowBytes; offset += elementBytes)
      values.push_back(load(type(), &bytes[row + offset]));
  });
  return values;
}

std::vector<double> Tensor::getNumbers() const {
  return getValues(runtime::loadElement);
}

std::vector<int64_t> Tensor::getIntegers() const {
  return getValues(runtime::loadInteger);
}

bool Tensor::isIntact() const {
  auto isPoison = [](char byte) { return byte == kPoison; };
  std::vector<std::pair<size_t, size_t>> rows;
  forEachRow([&](size_t row, size_t rowBytes) {
    rows.emplace_back(row, row + rowBytes);
  });
  // The bytes between one row and the next, in the order of memory.
  llvm::sort(rows);
  auto position = bytes.begin();
  for (auto [begin, end] : rows) {
    if (!std::all_of(position, bytes.begin() + begin, isPoison))
      return false;
    position = bytes.begin() + end;
  }
  return std::all_of(position, bytes.end(), isPoison);
}

/// Calls `store` on each element of a part of the result; the rest repeats that
/// part. Making and rounding every number would take longer than the kernels.
/// The size of the part is prime, so that no two rows are alike.
template <typename Store>
static std::vector<char> makeElements(ElementType type, int64_t count,
                                      Store store) {
  constexpr int64_t period = 1000003;
  const size_t elementBytes = runtime::byteSize(type);
  std::vector<char> elements(count * elementBytes);
  const size_t made = std::min(count, period) * elementBytes;
  for (size_t offset = 0; offset != made; offset += elementBytes)
    store(&elements[offset]);
  for (size_t offset = made; offset < elements.size(); offset += made)
    std::memcpy(&elements[offset], elements.data(),
                std::min(made, elements.size() - offset));
  return elements;
}

bool run::holds(ElementType type, const IntegerRange &range) {
  return llvm::all_of(llvm::ArrayRef({range.low, range.high - 1}),
                      [&](int64_t value) {
                        char element[sizeof(value)];
                        runtime::storeInteger(type, element, value);
                        return runtime::loadInteger(type, element) == value;
                      });
}

std::vector<char> run::makeRandomIntegers(ElementType type, int64_t count,
                                          const IntegerRange &range,
                                          uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<int64_t> uniform(range.low, range.high - 1);
  return makeElements(type, count, [&](char *element) {
    runtime::storeInteger(type, element, uniform(engine));
  });
}

std::vector<char> run::makeRandomElements(ElementType type, int64_t count,
                                          uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  return makeElements(type, count, [&](char *element) {
    runtime::storeElement(type, element, normal(engine));
  });
}
