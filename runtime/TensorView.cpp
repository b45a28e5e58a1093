//===- TensorView.cpp - Strided views of memory ---------------------------===//

#include "bastile/runtime/TensorView.h"

using namespace bastile::runtime;

TensorView TensorView::contiguous(void *data, ElementType type,
                                  const Dimensions &sizes) {
  Dimensions strides = sizes;
  if (!strides.empty())
    strides.back() = 1;
  for (unsigned i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * sizes[i];
  return {data, type, sizes, strides};
}

int64_t TensorView::elementCount() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

bool TensorView::isContiguous() const {
  int64_t expected = 1;
  for (unsigned i = sizes.size(); i-- != 0;) {
    if (sizes[i] == 0)
      return true;
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}
