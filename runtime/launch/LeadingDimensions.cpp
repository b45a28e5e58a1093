//===- LeadingDimensions.cpp - The order and the merging of rows ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel goes through its rows by the sizes and strides that it is given. So
// the plan decides in which order, without another program: rows that lie side
// by side in memory follow each other, as in heads of [batch, sequence, head]
// of which PyTorch made a view [batch, head, sequence].
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/LaunchPlan.h"
#include "runtime/launch/DimensionOrder.h"

using namespace bastile::runtime;

/// Whether a step in a dimension of stride `outer` is the same as `size` steps
/// of stride `inner`.
static bool isMergeable(int64_t outer, int64_t inner, int64_t size) {
  int64_t distance;
  return !__builtin_mul_overflow(inner, size, &distance) && distance == outer;
}

/// The stride of a row operand, 0 where it repeats its rows.
int64_t LaunchPlan::leadingStride(const Operand &operand,
                                  unsigned dimension) const {
  if (function->isAlwaysOne(operand, dimension))
    return 0;
  return view(operand).strides[dimension];
}

/// By how many bytes of a row more the operands of `space` have their larger
/// stride in dimension `inner` than in `outer`. An operand that repeats its
/// rows along one of the two has no say.
int64_t LaunchPlan::preferExchange(const Launch &launch, unsigned space,
                                   unsigned outer, unsigned inner) const {
  int64_t bytes = 0;
  for (const Operand &operand : launch.operands) {
    if (!operand.rows || operand.space != space)
      continue;
    const int64_t first = leadingStride(operand, outer),
                  second = leadingStride(operand, inner);
    if (first == 0 || second == 0 || first == second)
      continue;
    const TensorView &tensor = view(operand);
    const int64_t row = tensor.sizes[launch.leading] * byteSize(tensor.type);
    bytes += first < second ? row : -row;
  }
  return bytes;
}

/// Finds the order in which the kernel goes through the leading dimensions of a
/// row space: theirs, where the kernel depends on it, or most of what the
/// operands have of a row lies in that order; else the order of memory.
Dimensions LaunchPlan::findOrder(const Launch &launch, unsigned space) const {
  const Dimensions &sizes = spaces[space].sizes;
  Dimensions order;
  for (unsigned d = 0; d != launch.leading; ++d)
    insert(order, d, [&](unsigned outer) {
      return launch.anyOrder && sizes[d] != 1 &&
             (sizes[outer] == 1 || preferExchange(launch, space, outer, d) > 0);
    });
  return order;
}

/// Merges the leading dimensions of a row space as far as the strides of all
/// its operands allow. The result does not depend on the order of merging.
void LaunchPlan::mergeSpace(const Launch &launch, unsigned space) {
  auto isMember = [&](const Operand &operand) {
    return operand.rows && operand.space == space;
  };
  const unsigned operandCount = launch.operands.size();
  const Dimensions &sizes = spaces[space].sizes;
  Dimensions &merged = spaces[space].merged;
  // The kernel treats dimensions that it combines and dimensions that are left
  // differently.
  if (space == 0 && !launch.combines.empty() && !launch.combinesAll()) {
    merged = sizes;
    for (unsigned k = 0; k != operandCount; ++k)
      for (unsigned d = 0; isMember(launch.operands[k]) && d != launch.leading;
           ++d)
        leadingStrides[k].push_back(leadingStride(launch.operands[k], d));
    return;
  }
  // The kernel goes through no rows, so strides do not matter.
  if (rows[space] == 0) {
    merged.push_back(0);
    for (unsigned k = 0; k != operandCount; ++k)
      if (isMember(launch.operands[k]))
        leadingStrides[k].push_back(0);
    return;
  }
  for (int64_t d : findOrder(launch, space)) {
    const int64_t size = sizes[d];
    if (size == 1)
      continue;
    bool merge = !merged.empty();
    for (unsigned k = 0; merge && k != operandCount; ++k)
      if (isMember(launch.operands[k]))
        merge = isMergeable(leadingStrides[k].back(),
                            leadingStride(launch.operands[k], d), size);
    if (merge)
      merged.back() *= size;
    else
      merged.push_back(size);
    for (unsigned k = 0; k != operandCount; ++k) {
      if (!isMember(launch.operands[k]))
        continue;
      const int64_t stride = leadingStride(launch.operands[k], d);
      if (merge)
        leadingStrides[k].back() = stride;
      else
        leadingStrides[k].push_back(stride);
    }
  }
}

void LaunchPlan::mergeLeading(const Launch &launch) {
  // The list never shrinks, so that the next call finds the memory.
  if (leadingStrides.size() < launch.operands.size())
    leadingStrides.resize(launch.operands.size());
  for (Dimensions &strides : leadingStrides)
    strides.clear();
  for (unsigned space = 0; space != launch.spaces; ++space)
    mergeSpace(launch, space);
}
