//===- TileOps.td - All ops of the tile dialect -------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILEOPS_TD
#define BASTILE_DIALECT_TILEOPS_TD

include "dialect/Primitives.td"
include "dialect/KernelOps.td"
// This file is written at configure time: it includes every file of
// dialect/ops/.
include "dialect/ModelOps.td"

#endif // BASTILE_DIALECT_TILEOPS_TD
