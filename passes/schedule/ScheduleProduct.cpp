//===- ScheduleProduct.cpp - The tiles of products ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"

#include "dialect/ElementBytes.h"

using namespace mlir;
using namespace bastile;

/// The tile of a program on the host, whose sums are to stay in registers.
static void chooseForHost(MatmulFields &fields, tile::DotOp dot,
                          const Target &target) {
  const int64_t bytes = getElementBytes(dot.getSumType());
  // Processors with vectors of 64 bytes have 32 registers for them, others 16.
  // Three quarters of them hold sums.
  constexpr int64_t wide = 64;
  const int64_t sums = target.vectorBytes >= wide ? 24 : 12;
  fields.threads = 1;
  if (dot.getContract()[1] == 0) {
    // Vectors along the columns of `b` are multiplied by a number of each row.
    constexpr int64_t vectors = 2;
    fields.vector = target.vectorBytes / bytes;
    fields.columns = vectors * fields.vector;
    fields.rows = sums / vectors;
    return;
  }
  // Rows of both operands are multiplied, a vector at a time.
  fields.vector = 4;
  fields.columns = fields.vector;
  fields.rows = sums / fields.columns;
}

/// Whether the warps of a block can multiply on tensor cores: tiles with more
/// than one row and column, of elements of 16 bits.
static bool fitsTensorCores(tile::DotOp dot) {
  Type element = getElementTypeOrSelf(dot.getA().getType());
  ArrayRef<int64_t> matrix = dot.getSumType().getShape().take_back(2);
  return (element.isBF16() || element.isF16()) &&
         !llvm::is_contained(matrix, 1);
}

static void chooseForGPU(MatmulFields &fields, tile::DotOp dot) {
  if (fitsTensorCores(dot)) {
    // Two such blocks run on a multiprocessor: one multiplies while the other
    // one waits for copies, or stores.
    fields.threads = 128;
    fields.vector = 2;
    fields.rows = 128;
    fields.columns = 128;
    fields.depth = 32;
    fields.stages = 4;
    return;
  }
  // Each thread computes 4 x 4 sums, and neighbours read neighbouring columns.
  fields.threads = 256;
  fields.vector = 1;
  fields.rows = 64;
  fields.columns = 64;
}

MatmulFields bastile::chooseMatmul(tile::DotOp dot, const Target &target) {
  MatmulFields fields;
  if (target.isHost())
    chooseForHost(fields, dot, target);
  else
    chooseForGPU(fields, dot);
  return fields;
}
