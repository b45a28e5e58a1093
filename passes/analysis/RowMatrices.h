//===- RowMatrices.h - Matrices that may share a tile -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where the streamed factors of products are the same for some neighbouring
// matrices of a batch, a tile may have rows of all of these: in attention,
// where several heads of queries share their keys and values, those of each
// head. Rows of one number stand in the same place of a mask, so that of a
// narrow band such a tile visits less than as many neighbouring rows of one
// matrix.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_ROWMATRICES_H
#define BASTILE_PASSES_ANALYSIS_ROWMATRICES_H

#include "dialect/KernelSpace.h"

namespace bastile {

/// How many neighbouring matrices, along the last dimension of the batch, have
/// the same streamed factors in `kernel`; 1 if that is unknown, or where
/// factors and results have not a row of their own for each of them.
int64_t countRowMatrices(tile::KernelOp kernel, const KernelSpace &space);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_ROWMATRICES_H
