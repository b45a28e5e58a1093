//===- MatmulTiles.cpp - The tiles of products whose warps have roles -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"

#include "dialect/ElementBytes.h"

using namespace mlir;
using namespace bastile;

/// How many elements a product sums over, where only a call knows it: as many
/// as a step of training has tokens, which the gradient of a weight sums over.
static constexpr int64_t kUsualLength = 8192;

namespace {

/// The sizes of a product, as far as its schedule depends on them.
struct ProductSizes {
  int64_t rows = 0, columns = 0, length = 0;
  /// How many matrices the batch has.
  int64_t batch = 1;
};

} // namespace

/// The rows and columns of the product.
static ArrayRef<int64_t> getMatrix(const MatmulShape &shape) {
  return tile::DotOp(shape.dot).getSumType().getShape().take_back(2);
}

/// How many matrices the product of `shape` has; nothing if only a call knows.
static std::optional<int64_t> getBatch(const MatmulShape &shape) {
  int64_t batch = 1;
  for (int64_t size :
       tile::DotOp(shape.dot).getSumType().getShape().drop_back(2)) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    batch *= size;
  }
  return batch;
}

static int64_t getLength(const MatmulShape &shape) {
  tile::DotOp dot = shape.dot;
  const int64_t length = cast<RankedTensorType>(dot.getA().getType())
                             .getDimSize(dot.getContractedDimension(0));
  return ShapedType::isDynamic(length) ? kUsualLength : length;
}

//===----------------------------------------------------------------------===//
// The time of a product
//===----------------------------------------------------------------------===//

/// How many clusters of `blocks` blocks run at once. A cluster lies within one
/// group of multiprocessors, which leaves some of each without one: an H100
/// runs 66 of 2 blocks, but 30 of 4 and 15 of 8.
static int64_t countClusters(int64_t blocks, const Target &target) {
  constexpr int64_t pair = 2, group = 11;
  const int64_t left = blocks > pair ? target.multiprocessors / group : 0;
  return (target.multiprocessors - left) / blocks;
}

/// Bytes of the pieces of a factor's rows that a step goes along, which are as
/// long as the lines of the cache.
static constexpr int64_t kLineBytes = 128;

/// Whether the rows of a factor do not all begin with a line of the cache, so
/// that each of their pieces lies in two lines.
static bool crossesLines(const MatmulShape &shape) {
  tile::DotOp dot = shape.dot;
  const int64_t bytes = getElementBytes(dot.getFactorType());
  return llvm::any_of(ValueRange{dot.getA(), dot.getB()}, [&](Value factor) {
    const int64_t length =
        cast<RankedTensorType>(factor.getType()).getShape().back();
    return !ShapedType::isDynamic(length) && length * bytes % kLineBytes != 0;
  });
}

/// The clocks of a step of one block: those of its tensor cores, those in which
/// shared memory is read by products and written by copies, or, where rows
/// cross the cache's lines, those in which the cache gives one of all
/// multiprocessors what it copies. A warpgroup reads the left factor of its own
/// rows and all of the right one; the blocks of a cluster share the columns
/// that they copy.
static double getStepClocks(const MatmulFields &fields,
                            const MatmulShape &shape) {
  constexpr double sums = 32, sharedBytes = 128, acrossLines = 26;
  const auto rows = static_cast<double>(fields.rows);
  const auto columns = static_cast<double>(fields.columns * shape.numDots);
  const auto warpgroups = static_cast<double>(fields.rows / kRows);
  const double read = rows + warpgroups * columns, written = rows + columns;
  const double clocks = std::max(rows * columns / sums,
                                 (read + written) * kLineBytes / sharedBytes);
  if (!crossesLines(shape))
    return clocks;
  const double copied = rows + columns / static_cast<double>(fields.cluster);
  return std::max(clocks, copied * kLineBytes / acrossLines);
}

/// The clocks of a product of `sizes` by `fields`. The numbers are those of an
/// H100 at 1.7 GHz; docs/design.md says how far they hold.
static double getClocks(const MatmulFields &fields, const MatmulShape &shape,
                        const ProductSizes &sizes, const Target &target) {
  // To start and to end; behind the steps of a tile, for what follows them; of
  // blocks that add up parts of a tile, and for each byte of its sums.
  constexpr double ends = 6000, behind = 2200, exchange = 2500, ofByte = 0.12;
  constexpr double clocksPerSecond = 1.7e9, sumBytes = 4;
  const int64_t columns = fields.columns * shape.numDots;
  const int64_t split = std::max<int64_t>(1, fields.split);
  const int64_t blocks = split * fields.cluster;
  const int64_t tiles =
      sizes.batch * llvm::divideCeil(sizes.rows, fields.rows * fields.cluster) *
      llvm::divideCeil(sizes.columns, fields.columns);
  const auto waves = static_cast<double>(
      llvm::divideCeil(tiles, countClusters(blocks, target)));
  const auto steps =
      static_cast<double>(llvm::divideCeil(sizes.length, fields.depth * split));
  double clocks = steps * getStepClocks(fields, shape) + behind;
  if (split > 1)
    clocks += exchange + ofByte * sumBytes * fields.rows * columns;
  const int64_t bytes = getElementBytes(tile::DotOp(shape.dot).getFactorType());
  const double moved = static_cast<double>(
      bytes * sizes.batch *
      (sizes.length * (sizes.rows + sizes.columns * shape.numDots) +
       sizes.rows * sizes.columns));
  return ends + std::max(waves * clocks,
                         moved * clocksPerSecond / target.memoryBytesPerSecond);
}

//===----------------------------------------------------------------------===//
// Few tiles
//===----------------------------------------------------------------------===//

/// How many blocks may sum parts of a product over `length` elements: each has
/// a few steps, so that it is worth adding up the sums.
static int64_t getMostSplit(int64_t length, int64_t depth) {
  constexpr int64_t steps = 4;
  return std::clamp<int64_t>(length / (steps * depth), 1, kMostSplit);
}

/// As many stages as there is room for, so that as many bytes are on their way.
static void fillStages(MatmulFields &fields, const MatmulShape &shape,
                       const Target &target) {
  constexpr int64_t mostStages = 8;
  fields.stages = mostStages;
  while (fields.stages > 2 && !fitsSharedMemory(fields, shape, target))
    --fields.stages;
}

/// Whether there is room for as many stages that products need not wait for
/// copies, beside what blocks send to each other. No time tells of that.
static bool hasStages(MatmulFields fields, const MatmulShape &shape,
                      const Target &target) {
  constexpr int64_t least = 3;
  fields.stages = least;
  return fitsSharedMemory(fields, shape, target);
}

/// Calls `visit` with each smaller tile that may be faster than the one of
/// `chooseForFactors`, for more rows than a warpgroup multiplies; also with
/// those of blocks that share columns, which read less of them from the cache,
/// if `sharesColumns`.
static void visitTiles(const MatmulShape &shape, const Target &target,
                       bool sharesColumns,
                       function_ref<void(const MatmulFields &)> visit) {
  constexpr int64_t panel = 64, mostColumns = 256;
  const auto needed =
      static_cast<int64_t>(llvm::alignTo(getMatrix(shape).back(), panel));
  auto visitIfItFits = [&](MatmulFields fields) {
    if (!hasStages(fields, shape, target))
      return;
    fillStages(fields, shape, target);
    visit(fields);
  };
  const MatmulFields many = chooseForFactors(shape);
  const int64_t mostSplit =
      getBatch(shape) == 1 ? getMostSplit(getLength(shape), many.depth) : 1;
  for (int64_t columns = panel;
       columns <= std::min(needed, mostColumns / shape.numDots);
       columns += panel) {
    MatmulFields fields = many;
    fields.columns = columns;
    if (sharesColumns)
      visitIfItFits(fields);
    fields.cluster = 1;
    // The blocks of a cluster complete as many columns each.
    const int64_t most = llvm::isPowerOf2_64(columns) ? mostSplit : 1;
    for (fields.split = 1; fields.split <= most; fields.split *= 2)
      visitIfItFits(fields);
  }
}

/// The tiles of a product of at most as many rows as a warpgroup multiplies,
/// and of columns that are known: those that keep the most blocks busy, which
/// read the weight, and of these the fastest.
static MatmulFields chooseForOneWarpgroup(const MatmulShape &shape,
                                          const Target &target) {
  constexpr int64_t panel = 64;
  const int64_t columns = getMatrix(shape).back();
  const bool isOne = getBatch(shape) == 1;
  MatmulFields fields = chooseForFactors(shape), best;
  fields.rows = kRows;
  fields.threads = 2 * kWarpgroup;
  fields.cluster = 1;
  const int64_t mostSplit = getMostSplit(getLength(shape), fields.depth);
  const auto needed = static_cast<int64_t>(llvm::alignTo(columns, panel));
  int64_t most = 0;
  ProductSizes sizes;
  sizes.rows = kRows;
  sizes.columns = columns;
  sizes.length = getLength(shape);
  for (int64_t wide = std::min(2 * kRows / shape.numDots, needed);; wide /= 2) {
    fields.columns = std::max(panel, wide / panel * panel);
    const auto tiles =
        static_cast<int64_t>(llvm::divideCeil(columns, fields.columns));
    fields.split = 1;
    for (int64_t split = 2; isOne && split <= mostSplit; split *= 2) {
      MatmulFields more = fields;
      more.split = split;
      if (tiles > countClusters(split, target) ||
          !hasStages(more, shape, target))
        break;
      fields = more;
    }
    fillStages(fields, shape, target);
    const int64_t blocks =
        std::min(tiles, countClusters(fields.split, target)) * fields.split;
    if (blocks > most ||
        (blocks == most && getClocks(fields, shape, sizes, target) <
                               getClocks(best, shape, sizes, target))) {
      most = blocks;
      best = fields;
    }
    if (fields.columns == panel)
      return best;
  }
}

/// Of the tiles for more rows, those by which a product of `rows` rows takes
/// the least time; `fields` if they gain too little.
static MatmulFields chooseForCount(const MatmulShape &shape,
                                   const Target &target,
                                   const MatmulFields &fields, int64_t rows) {
  // What the times are known to.
  constexpr double error = 0.08;
  ProductSizes sizes;
  sizes.rows = rows;
  sizes.columns = getMatrix(shape).back();
  sizes.length = getLength(shape);
  sizes.batch = getBatch(shape).value_or(1);
  MatmulFields best = fields;
  double least = (1 - error) * getClocks(fields, shape, sizes, target);
  // A cluster of few rows would leave one of its blocks idle.
  const bool sharesColumns =
      crossesLines(shape) && rows > fields.cluster * fields.rows;
  visitTiles(shape, target, sharesColumns, [&](const MatmulFields &other) {
    const double clocks = getClocks(other, shape, sizes, target);
    if (clocks < least) {
      least = clocks;
      best = other;
    }
  });
  return best;
}

SmallVector<FewRows> bastile::chooseForFewRows(const MatmulShape &shape,
                                               const Target &target) {
  ArrayRef<int64_t> matrix = getMatrix(shape);
  if (shape.isStreaming || !ShapedType::isDynamic(matrix[0]) ||
      ShapedType::isDynamic(matrix[1]))
    return {};
  // Half of a warpgroup's rows have boxes of their own (`ProgramFrame`).
  const MatmulFields one = chooseForOneWarpgroup(shape, target);
  SmallVector<FewRows> few{{kRows / 2, one}, {kRows, one}};
  // A batch that only a call knows may have tiles for all blocks.
  if (getBatch(shape) != 1)
    return few;
  // Tiles of 128 rows waste little of these counts, and what is the fastest
  // changes from one to the next: with the number of waves of tiles.
  const MatmulFields many = chooseForFactors(shape);
  for (int64_t rows : {128, 256, 384, 512, 640, 768, 1024}) {
    const MatmulFields fields = chooseForCount(shape, target, many, rows);
    if (fields == few.back().fields)
      few.back().most = rows;
    else
      few.push_back({rows, fields});
  }
  if (few.back().fields == many)
    few.pop_back();
  return few;
}

MatmulFields bastile::chooseForSizes(const MatmulShape &shape,
                                     const Target &target) {
  const MatmulFields fields = chooseForFactors(shape);
  ArrayRef<int64_t> matrix = getMatrix(shape);
  if (ShapedType::isDynamicShape(matrix))
    return fields;
  if (matrix[0] <= kRows)
    return chooseForOneWarpgroup(shape, target);
  if (!getBatch(shape))
    return fields;
  return chooseForCount(shape, target, fields, matrix[0]);
}
