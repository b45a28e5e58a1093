//===- Capacity.h - How much runs side by side ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CAPACITY_H
#define BASTILE_RUNTIME_CAPACITY_H

#include <algorithm>
#include <cstdint>

namespace bastile::runtime {

/// Knows how many clusters the groups of a GPU's multiprocessors hold.
class ClusterCounter {
public:
  virtual ~ClusterCounter() = default;

  /// How many clusters of `blocks` blocks run at once, with one block to a
  /// multiprocessor; at least 1.
  virtual int64_t countClusters(int64_t blocks) const = 0;
};

/// How much runs side by side, on which the sizes of grids and temporaries
/// depend.
class Capacity {
public:
  /// Without a `counter`, clusters may lie anywhere. The `counter` must outlive
  /// the capacity.
  Capacity(int64_t multiprocessors, const ClusterCounter *counter = nullptr)
      : count(multiprocessors), counter(counter) {}

  /// Blocks that run side by side: multiprocessors, or threads of the host.
  int64_t multiprocessors() const { return count; }

  /// Clusters of `blocks` blocks that run side by side, one block to a
  /// multiprocessor; at least 1.
  int64_t clusters(int64_t blocks) const {
    return counter ? counter->countClusters(blocks)
                   : std::max<int64_t>(1, count / blocks);
  }

private:
  int64_t count;
  const ClusterCounter *counter;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CAPACITY_H
