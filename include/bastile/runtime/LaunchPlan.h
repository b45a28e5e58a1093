//===- LaunchPlan.h - From tensors to packed launches -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_LAUNCHPLAN_H
#define BASTILE_RUNTIME_LAUNCHPLAN_H

#include "bastile/runtime/Error.h"
#include "bastile/runtime/Executor.h"
#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/TensorView.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bastile::runtime {

/// The tensors of one call, in the order of the metadata.
struct Buffers {
  Span<const TensorView> inputs;
  Span<const TensorView> outputs;
  Span<const TensorView> temporaries;
};

/// A tensor map among the arguments of a launch. `execute` makes it.
struct PlannedTensorMap {
  TensorMapSpec spec;
  EncodedTensorMap encoded;
  /// What `encoded` says and where, if there is anything in it.
  std::optional<TensorMapSpec> made;
  const void *device = nullptr;
};

/// A launch ready to be handed to an executor.
struct PlannedLaunch {
  const Variant *variant = nullptr;
  LaunchConfig config;
  /// The values of the arguments; 0 for tensor maps.
  std::vector<int64_t> values;
  std::vector<PlannedTensorMap> maps;
  /// Points to the value or the map that is encoded of each argument.
  std::vector<void *> arguments;
};

/// The first variant of `launch` that a machine can run; null if there is none.
/// The operands decide whether it is taken.
const Variant *findVariant(const Launch &launch, const Capacity &capacity);

/// Says of each variant of `function` that a machine cannot run which feature
/// it lacks.
std::vector<std::string> describeLeftOut(const Function &function,
                                         const Capacity &capacity);

/// Memory that is filled with zeros before the launches.
struct ZeroFill {
  void *data = nullptr;
  int64_t bytes = 0;
};

/// The launches of one call of a function. Planning is pure: it touches no
/// tensor and no device. A plan that is prepared again for the same function
/// takes no memory from the heap, so a caller keeps one for each function and
/// thread.
class LaunchPlan {
public:
  LaunchPlan() = default;
  // `PlannedLaunch::arguments` points into the plan.
  LaunchPlan(const LaunchPlan &) = delete;
  LaunchPlan &operator=(const LaunchPlan &) = delete;

  /// Checks the tensors and plans the launches of `function`, which must
  /// outlive the plan. Fails where the tensors do not suit the function or each
  /// other; the plan is then empty.
  Error prepare(const Function &function, const Buffers &buffers,
                const Capacity &capacity);

  Span<const ZeroFill> zeroFills() const { return fills; }
  Span<PlannedLaunch> launches() { return {planned.data(), plannedCount}; }

private:
  /// Whether a temporary has been written.
  enum class Contents : uint8_t {
    /// No launch before writes it.
    None,
    Defined,
    /// The launch that would have written it was skipped.
    Missing,
  };

  /// The leading dimensions of a row space's operands.
  struct Space {
    Dimensions sizes;
    /// The sizes that are left after merging, in the order in which the kernel
    /// goes through them.
    Dimensions merged;
  };

  Error checkBuffers() const;
  Error prepareTemporaries();
  Error prepareLaunches();
  Error prepareLaunch(const Launch &launch);
  Error findRows(const Launch &launch);
  Error checkShared(const Launch &launch) const;
  Error findSizes(const Launch &launch);
  Error findSize(const Launch &launch, unsigned space, unsigned dimension);
  Error checkCombined(const Launch &launch) const;
  Error countRows(const Launch &launch);
  Error checkBands(const Launch &launch) const;
  Error checkPointers(const Launch &launch) const;
  Error chooseVariant(const Launch &launch, const Variant *&choice,
                      int64_t &grid) const;
  Error computeGrid(const Launch &launch, const Variant &variant,
                    int64_t &grid) const;
  bool admits(const Launch &launch, const Variant &variant,
              std::string *reason) const;
  bool admitsRows(const Launch &launch, const Variant &variant,
                  std::string *reason) const;
  const Operand *findOtherPhase(const Launch &launch,
                                const Variant &variant) const;
  int64_t preferExchange(const Launch &launch, unsigned space, unsigned outer,
                         unsigned inner) const;
  Dimensions findOrder(const Launch &launch, unsigned space) const;
  void mergeLeading(const Launch &launch);
  void mergeSpace(const Launch &launch, unsigned space);
  int64_t leadingStride(const Operand &operand, unsigned dimension) const;
  void pack(const Launch &launch, const Variant &variant,
            PlannedLaunch &result) const;
  void packRows(const Launch &launch, const Variant &variant,
                PlannedLaunch &result) const;
  bool lacksContents(const Launch &launch) const;
  Error skip(const Launch &launch);
  Error addFill(const Operand &operand);
  void findPieces();
  const TensorView &view(const Operand &operand) const;
  std::string prefix(const Launch &launch) const;

  // For launches over named dimensions.
  Error findNamedSizes(const Launch &launch);
  Error reportSize(const Launch &launch, unsigned operand,
                   unsigned dimension) const;
  bool admitsOperands(const Launch &launch, const Variant &variant,
                      std::string *reason) const;
  bool admitsStrides(const Launch &launch, const Variant &variant,
                     unsigned operand, std::string *reason) const;
  void packNamed(const Launch &launch, const Variant &variant,
                 PlannedLaunch &result) const;

  // The call being prepared.
  const Function *function = nullptr;
  Buffers buffers;
  Capacity capacity = 1;
  std::vector<Contents> temporaryContents;
  std::vector<TensorView> pieces;

  // The launch being prepared, over rows: the leading dimensions and the rows
  // of each of its row spaces, and the strides that each operand has in the
  // dimensions that are left after merging (none if all rows share the
  // operand).
  std::vector<Space> spaces;
  std::vector<int64_t> rows;
  std::vector<Dimensions> leadingStrides;
  // Over named dimensions: the size of each.
  std::vector<int64_t> namedSizes;

  // The result.
  std::vector<ZeroFill> fills;
  /// Only the first `plannedCount` count; the others keep their memory for the
  /// next call.
  std::vector<PlannedLaunch> planned;
  size_t plannedCount = 0;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_LAUNCHPLAN_H
