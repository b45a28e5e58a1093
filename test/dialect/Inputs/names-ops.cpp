// Part of Bastile, under the MIT License. See LICENSE.

if (isa<tile::RopeOp>(op))
  return name == "rope";
#include "dialect/ops/rope.h"
bool isRope(Operation *op) { return text == "tile.rope"; }
if (isa<LayerNormOp>(op))
  return readProperties(op); // of a rope
