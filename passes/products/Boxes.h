//===- Boxes.h - Boxes of operands that are copied --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_BOXES_H
#define BASTILE_PASSES_PRODUCTS_BOXES_H

#include "passes/products/ProgramFrame.h"

namespace bastile {

/// Rows and columns of a tile, or of a box of one, as they lie in memory.
struct BoxShape {
  int64_t rows, columns;
};

/// The part of the factor `operand` that a step multiplies.
BoxShape getFactorTile(const Operand &operand, const Extents &extents);

/// What one copy moves of it. The blocks of a cluster copy as many rows each of
/// what all of them multiply.
BoxShape getFactorBox(const Operand &operand, const Extents &extents,
                      tile::MatmulAttr schedule);

/// What one copy moves of a result: the rows of a warp, and the columns that
/// are computed at a time.
BoxShape getResultBox(const ProgramFrame &frame);

/// The type of an operand in `memory` that is copied by boxes of `shape`, whose
/// rows are `matrixRows` of each matrix, or all of one matrix if that is 0.
tile::TensorMapType getMapType(mlir::MemRefType memory, const BoxShape &shape,
                               int64_t matrixRows);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_BOXES_H
