//===- RecomputedFollowers.h - What rows compute of products ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_RECOMPUTEDFOLLOWERS_H
#define BASTILE_PASSES_TENSORS_RECOMPUTEDFOLLOWERS_H

#include "passes/tensors/Grouping.h"

namespace bastile {

/// Where a kernel on rows reads several values that the kernel of a product
/// computes, such as a softmax and its powers, it computes them again of the
/// product, if that leaves fewer bytes in memory.
void recomputeFollowers(llvm::MutableArrayRef<Group> groups);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_RECOMPUTEDFOLLOWERS_H
