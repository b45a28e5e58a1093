//===- TrialMemory.h - Memory of the host or of a GPU -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_PROGRAM_TRIALMEMORY_H
#define BASTILE_RUNTIME_PROGRAM_TRIALMEMORY_H

#include "bastile/runtime/CudaDevice.h"
#include "bastile/runtime/TensorView.h"

#include <memory>
#include <vector>

namespace bastile::runtime {

/// Tensors that live as long as this object.
class TrialMemory {
public:
  /// Puts tensors on `device`, or on the host if it is null.
  explicit TrialMemory(std::shared_ptr<const CudaDevice> device = nullptr)
      : device(std::move(device)) {}

  Expected<TensorView> allocate(ElementType type, const Dimensions &sizes);

  /// `write` and `read` copy from and to ordinary memory.
  Error write(void *target, const void *source, size_t bytes) const;
  Error read(void *target, const void *source, size_t bytes) const;

  /// Fills `tensor` with numbers that look random: floats around zero, integers
  /// from 0 on below `integerLimit`.
  Error randomize(const TensorView &tensor, unsigned seed,
                  int64_t integerLimit) const;

  /// Fills every byte with ones: NaN in each type of floats.
  Error poison(const TensorView &tensor) const;

  /// The beginning and the end of `tensor`, or all of it if it is small.
  Expected<std::vector<char>> readPart(const TensorView &tensor) const;

private:
  std::shared_ptr<const CudaDevice> device;
  std::vector<CudaBuffer> buffers;
  std::vector<std::unique_ptr<char[]>> arrays;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_PROGRAM_TRIALMEMORY_H
