//===- Capacity.h - What a machine offers -----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CAPACITY_H
#define BASTILE_RUNTIME_CAPACITY_H

#include <algorithm>
#include <cstdint>
#include <string>

namespace bastile::runtime {

/// What a variant may need that not every machine has.
enum class Feature : uint8_t {
  /// Products of warpgroups (wgmma), compiled without a known mistake.
  Wgmma,
  /// Copies of boxes of a tensor (TMA), and a driver that describes tensors
  /// for them.
  TensorMaps,
};

/// The feature's name in messages.
inline const char *name(Feature feature) {
  return feature == Feature::Wgmma ? "wgmma" : "tensor maps";
}

/// What only a GPU itself and its driver know.
class GpuTraits {
public:
  virtual ~GpuTraits() = default;

  /// How many clusters of `blocks` blocks run at once, with one block to a
  /// multiprocessor; at least 1.
  virtual int64_t countClusters(int64_t blocks) const = 0;

  virtual bool has(Feature feature) const = 0;

  /// Why the GPU lacks `feature`, as the end of a sentence.
  virtual std::string explainLack(Feature feature) const = 0;
};

/// How much runs side by side on a machine, on which the sizes of grids and
/// temporaries depend, and the features it has, on which the choice of variants
/// depends.
class Capacity {
public:
  /// Without `gpu`, clusters may lie anywhere, and the machine has no feature.
  /// `gpu` must outlive the capacity.
  Capacity(int64_t multiprocessors, const GpuTraits *gpu = nullptr)
      : count(multiprocessors), gpu(gpu) {}

  /// Blocks that run side by side: multiprocessors, or threads of the host.
  int64_t multiprocessors() const { return count; }

  /// Clusters of `blocks` blocks that run side by side, one block to a
  /// multiprocessor; at least 1.
  int64_t clusters(int64_t blocks) const {
    return gpu ? gpu->countClusters(blocks)
               : std::max<int64_t>(1, count / blocks);
  }

  bool has(Feature feature) const { return gpu && gpu->has(feature); }

  /// Why the machine lacks `feature`, as the end of a sentence.
  std::string explainLack(Feature feature) const {
    return gpu ? gpu->explainLack(feature) : "which only a GPU has";
  }

private:
  int64_t count;
  const GpuTraits *gpu;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CAPACITY_H
