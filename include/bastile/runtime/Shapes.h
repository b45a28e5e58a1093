//===- Shapes.h - Checking inputs, resolving output shapes ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_SHAPES_H
#define BASTILE_RUNTIME_SHAPES_H

#include "bastile/runtime/Error.h"
#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/TensorView.h"

#include <vector>

namespace bastile::runtime {

/// Checks the number of inputs and each one's type, rank, static sizes and
/// innermost stride.
Error checkInputs(const Function &function, Span<const TensorView> inputs);

/// The shapes of the buffers that the caller of a function has to allocate.
struct ResolvedShapes {
  std::vector<Dimensions> outputs;
  std::vector<Dimensions> temporaries;
};

/// Checks the inputs and computes the shapes of all outputs and temporaries
/// from them. A `result` that is used again allocates nothing.
Error resolveShapes(const Function &function, Span<const TensorView> inputs,
                    const Capacity &capacity, ResolvedShapes &result);

/// The strides of a new output of these sizes: without gaps, its rows one after
/// another, and its leading dimensions in the order in which those of an input
/// lie in memory: the first one of the same sizes, else of the same leading
/// sizes, that repeats no rows. So what is computed of a view that puts heads
/// ahead of the sequence lies as they do. Single numbers for each row, which
/// other kernels read side by side, are row-major.
Dimensions chooseStrides(const Dimensions &sizes,
                         Span<const TensorView> inputs);

/// Checks the outputs against the shapes that follow from checked inputs.
/// Outputs may be strided, except in the last dimension.
Error checkOutputs(const Function &function, Span<const TensorView> inputs,
                   Span<const TensorView> outputs, const Capacity &capacity);

/// Checks the temporaries, which must be contiguous.
Error checkTemporaries(const Function &function, Span<const TensorView> inputs,
                       Span<const TensorView> temporaries,
                       const Capacity &capacity);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_SHAPES_H
