//===- MatmulRoles.cpp - Schedules of products whose warps have roles -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"

#include "dialect/Dimensions.h"
#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "passes/analysis/FollowingSums.h"
#include "passes/schedule/RowsModel.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

/// Tensor cores add as many products of 8-bit floats, with fewer bits than a
/// float32 has, before these sums are added in float32: with Hopper's 14 bits,
/// the error of more would grow with each step. With fewer, warpgroups would
/// not have the time for their additions while another one multiplies.
static constexpr int64_t kMostSmallDepth = 128;

//===----------------------------------------------------------------------===//
// Which kernels
//===----------------------------------------------------------------------===//

/// Whether copies of boxes may take `type`: they take five dimensions, and rows
/// that lie 16 bytes apart or a multiple of them.
static bool fitsBoxes(Type type) {
  constexpr int64_t mostDimensions = 5, unit = 16;
  auto tensor = cast<RankedTensorType>(type);
  const int64_t size = tensor.getShape().back();
  return tensor.getRank() <= mostDimensions &&
         (ShapedType::isDynamic(size) || size == 1 ||
          size * getElementBytes(tensor) % unit == 0);
}

/// Whether boxes take the 16 rows of a warp where tiles have `matrixRows` rows
/// of each of several matrices.
static bool fitsWarps(int64_t matrixRows) {
  constexpr int64_t ofWarp = tile::MmaAttr::kWarpRows, least = ofWarp / 2;
  return matrixRows == least || matrixRows % ofWarp == 0;
}

/// Whether `factor` is the same for all matrices whose products a program adds
/// up.
static bool isOfOneMatrix(Value factor, const KernelSpace &space) {
  ArrayRef<Attribute> ofTile = space.getProjection(space.getDot());
  return llvm::all_of(
      space.getProjection(factor).drop_back(2), [&](Attribute place) {
        return !isa<StringAttr>(place) || llvm::is_contained(ofTile, place);
      });
}

bool bastile::fitsRoles(tile::KernelOp kernel, const KernelSpace &space) {
  Block &body = kernel.getBody().front();
  if (!space.getDot() || !llvm::all_of(kernel.getResultTypes(), fitsBoxes) ||
      llvm::any_of(body.getTerminator()->getOperands(),
                   [&](Value value) { return space.isStreamed(value); }))
    return false;
  const int64_t bytes = getElementBytes(space.getDot().getFactorType());
  DenseSet<Value> factors;
  for (auto dot : body.getOps<tile::DotOp>()) {
    const bool isComputed = KernelSpace::isLeftComputed(dot);
    // Nothing transposes elements of 8 bits, nor takes them from registers.
    const bool isSmall = bytes == 1 && !space.hasComputedLeft() &&
                         dot.getContract() == ArrayRef<int64_t>{1, 1};
    if (getElementBytes(dot.getFactorType()) != bytes ||
        (bytes != 2 && !isSmall))
      return false;
    for (Value factor : dot.getOperands().take_front(2))
      if (isa<BlockArgument>(factor)) {
        factors.insert(factor);
        if (!fitsBoxes(factor.getType()))
          return false;
      }
    const bool isInner = space.isInner(dot);
    // What is copied once for a tile is the left factor of inner products.
    const unsigned rowFactor = space.getRowFactor(dot);
    if (isInner && (dot.getContract()[rowFactor] != 1 ||
                    !isOfOneMatrix(dot.getOperand(rowFactor), space)))
      return false;
    if (isComputed && !space.isTransposed() &&
        (sumsOverBatch(dot) || dot.getContract()[0] != 1))
      return false;
    if (space.hasComputedLeft() && isInner == isComputed)
      return false;
  }
  ReductionDepths depths = FollowingSums(body).getDepths();
  for (Operation &op : body.without_terminator()) {
    if (isa<tile::DotOp>(op))
      continue;
    for (OpOperand &use : op.getOpOperands())
      if (factors.contains(use.get()) && getSizeOperand(&op) != &use &&
          space.readsStream(use))
        return false;
    if (!space.reducesStream(&op))
      continue;
    if (!space.hasComputedLeft() || depths.get(op.getResult(0)) > 1)
      return false;
  }
  return llvm::all_of(space.getDots(), [&](tile::DotOp dot) {
    return !KernelSpace::isLeftComputed(dot) ||
           depths.get(dot.getResult()) <= 1;
  });
}

//===----------------------------------------------------------------------===//
// What a block has
//===----------------------------------------------------------------------===//

bool bastile::mayShareStages(tile::DotOp dot, const KernelSpace &space) {
  if (dot.getContract()[1] != 0)
    return false;
  return llvm::any_of(dot.getB().getUsers(), [&](Operation *user) {
    auto inner = dyn_cast<tile::DotOp>(user);
    if (!inner || !space.isInner(inner))
      return false;
    const unsigned streamed = 1 - space.getRowFactor(inner);
    return inner.getOperand(streamed) == dot.getB() &&
           inner.getContract()[streamed] == 1;
  });
}

bool bastile::isNumberOfStream(BlockArgument argument,
                               const KernelSpace &space) {
  return !KernelSpace::hasColumns(argument) &&
         llvm::any_of(argument.getUses(), [&](OpOperand &use) {
           return space.readsStream(use) &&
                  getSizeOperand(use.getOwner()) != &use;
         });
}

SmallVector<BlockArgument>
bastile::getStreamedNumbers(Block &body, const KernelSpace &space) {
  SmallVector<BlockArgument> numbers;
  if (!space.isTransposed())
    return numbers;
  for (BlockArgument argument : body.getArguments())
    if (getElementTypeOrSelf(argument.getType()).isF32() &&
        isNumberOfStream(argument, space))
      numbers.push_back(argument);
  return numbers;
}

int64_t bastile::getWholeStages(const MatmulShape &shape) {
  constexpr int64_t wide = 128;
  return shape.whole * shape.numInner <= wide ? 2 : 1;
}

/// Bytes of the places for what each of the blocks that share a tile has of the
/// columns that this one completes.
static int64_t getSentBytes(const MatmulFields &fields,
                            const MatmulShape &shape) {
  constexpr int64_t sumBytes = 4;
  if (fields.split <= 1)
    return 0;
  const int64_t columns =
      std::max(fields.columns, fields.split * shape.leastPart) * shape.numDots;
  return fields.rows * columns * sumBytes;
}

int64_t bastile::getFirstStagedByte(const MatmulFields &fields,
                                    const MatmulShape &shape) {
  constexpr int64_t numberBytes = 4, barrierBytes = 512;
  const int64_t numbers =
      fields.depth * fields.stages * shape.numNumbers * numberBytes;
  return static_cast<int64_t>(llvm::alignTo(
      numbers + barrierBytes, tile::ProgramOp::kSwizzleAlignment));
}

/// Bytes of shared memory: the stages of the factors and of numbers, sums of
/// other blocks, two slots for results, whose rows have at most as many bytes,
/// and barriers, at least as many bytes for all.
static int64_t getSharedBytes(const MatmulFields &fields,
                              const MatmulShape &shape) {
  constexpr int64_t slots = 2, rowBytes = 128;
  return getStagedBytes(fields, shape) + getSentBytes(fields, shape) +
         slots * fields.rows * rowBytes + getFirstStagedByte(fields, shape);
}

/// The numbers of 32 bits that a thread holds: sums, what is streamed, and the
/// factors of the step before, of half as many bits. Where steps end before the
/// next one begins, there are the step's own instead, of which the last one
/// takes the place of what it is computed of.
static int64_t getHeld(const MatmulFields &fields, const MatmulShape &shape) {
  int64_t streamed = 0;
  if (shape.isStreaming) {
    const int64_t factors = shape.numDots - (fields.endsSteps() ? 1 : 0);
    streamed = fields.depth * shape.numInner + fields.depth / 2 * factors;
  }
  return (fields.columns * shape.numDots + streamed) * kRows / kWarpgroup;
}

static int64_t getWarpgroups(const MatmulFields &fields) {
  return fields.threads / kWarpgroup - 1;
}

/// Sums of two warpgroups may take most of the registers, where all that is
/// computed of them is streamed, and more of them where that is of one step.
static int64_t getMostHeld(const MatmulFields &fields,
                           const MatmulShape &shape) {
  constexpr int64_t half = 128, most = 176, mostOfStep = 208, mostOfTwo = 160,
                    mostOfThree = 96;
  if (getWarpgroups(fields) > 2 || !shape.isStreaming)
    return half;
  if (fields.resident > 1)
    return fields.resident > 2 ? mostOfThree : mostOfTwo;
  return fields.endsSteps() ? mostOfStep : most;
}

/// How many blocks share a multiprocessor.
static int64_t getBlocks(const MatmulFields &fields) {
  return std::max<int64_t>(1, fields.resident);
}

bool bastile::fitsSharedMemory(const MatmulFields &fields,
                               const MatmulShape &shape, const Target &target) {
  // Each block beyond the first takes what the system has of one's as well.
  constexpr int64_t systemBytes = 1024;
  const int64_t blocks = getBlocks(fields);
  return blocks * (getSharedBytes(fields, shape) + systemBytes) - systemBytes <=
         target.maxSharedBytesPerBlock;
}

/// Whether an instruction has registers for all sums of its product, where left
/// factors are computed. The assembler gives it those that each thread of the
/// blocks would have if none gave some of its own to others.
static bool fitsInstructions(const MatmulFields &fields,
                             const MatmulShape &shape) {
  // The most columns of an instruction, and what it needs beside its sums.
  constexpr int64_t widest = 256, others = 32;
  const int64_t columns =
      std::min(widest, std::max(fields.columns, fields.depth));
  return !shape.isStreaming ||
         columns * kRows / kWarpgroup + others <=
             getMostRegisters(fields.threads * getBlocks(fields));
}

static bool fitsRegisters(const MatmulFields &fields,
                          const MatmulShape &shape) {
  return getHeld(fields, shape) <= getMostHeld(fields, shape) &&
         fitsInstructions(fields, shape);
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

MatmulFields bastile::chooseForFactors(const MatmulShape &shape) {
  constexpr int64_t panel = 64, columns = 256, rows = 2 * kRows, rowBytes = 128;
  MatmulFields fields;
  tile::DotOp dot = shape.dot;
  ArrayRef<int64_t> matrix = dot.getSumType().getShape().take_back(2);
  auto getNeeded = [](int64_t size, int64_t unit, int64_t most) {
    return ShapedType::isDynamic(size)
               ? most
               : std::min<int64_t>(most, llvm::alignTo(size, unit));
  };
  fields.roles = 2;
  fields.rows = rows;
  fields.threads = 3 * kWarpgroup;
  fields.vector = 2;
  fields.depth = rowBytes / getElementBytes(dot.getFactorType());
  fields.columns =
      getNeeded(matrix[1], panel,
                std::max(panel, columns / shape.numDots / panel * panel));
  fields.cluster = getNeeded(matrix[0], rows, 2 * rows) / rows;
  fields.stages = 4;
  return fields;
}

/// How many steps of `depth` streamed rows have elements that masks show to the
/// rows of as many warpgroups. Masks show at most `shown` elements of each row.
static int64_t getShownSteps(int64_t warpgroups, int64_t depth, int64_t shown) {
  return llvm::divideCeil(warpgroups * kRows + shown - 1, depth);
}

/// Whether tiles of two warpgroups leave out more steps than those of three, by
/// masks that show few elements of each row: for 128 of them, steps of 128
/// cover the rows of two warpgroups twice, and of three three times.
static bool isNarrowBand(const MatmulShape &shape, int64_t depth) {
  // What a third warpgroup gains where masks show much.
  constexpr int64_t gainPercent = 10;
  if (!shape.mostShown)
    return false;
  return getShownSteps(2, depth, *shape.mostShown) * (100 + gainPercent) <
         getShownSteps(3, depth, *shape.mostShown) * 100;
}

/// The most matrices whose rows a tile of one warpgroup may have; 1 if it has
/// those of one.
static int64_t getMostMatrices(const MatmulShape &shape) {
  for (int64_t matrices = kRows; matrices > 1; --matrices)
    if (shape.matrices % matrices == 0 && kRows % matrices == 0 &&
        fitsWarps(kRows / matrices))
      return matrices;
  return 1;
}

/// What tiles of `matrices` matrices take where their steps begin with the
/// first element that masks show, in elements of a row. Each step takes as long
/// as some more elements. Two blocks of a multiprocessor take a bit longer than
/// three.
static int64_t getBandCost(const MatmulFields &fields, int64_t shown) {
  constexpr int64_t ofStep = 16, percentOfTwo = 108, percentOfThree = 100;
  const int64_t steps =
      llvm::divideCeil(fields.rows / fields.matrices + shown - 1, fields.depth);
  return steps * (fields.depth + ofStep) *
         (fields.resident > 2 ? percentOfThree : percentOfTwo);
}

/// The fields of tiles that end after a few steps, by masks that show few
/// elements of each row: one warpgroup has fewer steps than two that stream
/// together, and while a tile of one block begins or ends, other blocks of the
/// multiprocessor are amidst tiles of their own. Rows of several matrices stand
/// closer together, so that masks show fewer elements to some row of a tile:
/// best is one step that has all of them.
static std::optional<MatmulFields> chooseForBand(MatmulFields fields,
                                                 const MatmulShape &shape,
                                                 const Target &target) {
  constexpr int64_t depth = 64, leastGainPercent = 15, unit = 16;
  // A box has no more rows.
  constexpr int64_t least = 32, most = 256;
  if (!shape.mostShown ||
      getShownSteps(1, depth, *shape.mostShown) * 100 >
          getShownSteps(2, depth, *shape.mostShown) * (100 - leastGainPercent))
    return std::nullopt;
  fields.rows = kRows;
  fields.threads = 2 * kWarpgroup;
  fields.steps = 1;
  fields.matrices = getMostMatrices(shape);
  const bool isShared = fields.matrices > 1;
  std::optional<MatmulFields> best;
  for (int64_t blocks : {3, 2}) {
    fields.resident = blocks;
    for (fields.depth = isShared ? least : depth;
         fields.depth <= (isShared ? most : depth); fields.depth += unit)
      if (fitsRegisters(fields, shape) &&
          fitsSharedMemory(fields, shape, target) &&
          (!best || getBandCost(fields, *shape.mostShown) <
                        getBandCost(*best, *shape.mostShown)))
        best = fields;
  }
  if (!best)
    return std::nullopt;
  if (!isShared)
    best->matrices = 0;
  // Transposed factors have more than one step of the rows of each matrix, so
  // that inner products can begin a step ahead.
  if (MatmulFields ahead = *best; shape.isTransposed) {
    ahead.steps = 2;
    if (fitsRegisters(ahead, shape) && fitsSharedMemory(ahead, shape, target))
      return ahead;
  }
  return best;
}

/// The fields of steps that end before the next one begins, where another
/// warpgroup multiplies while one computes: steps can be as long as shared
/// memory allows, and an inner product of few columns reads its left factor
/// from there for longer than it multiplies. Transposed factors, which wait for
/// no maximum, need not be computed ahead; of others, two inner products read
/// two factors.
static std::optional<MatmulFields> chooseEndedSteps(MatmulFields fields,
                                                    const MatmulShape &shape,
                                                    const Target &target) {
  constexpr int64_t wide = 64, widest = 128, warpgroups = 2;
  if (getWarpgroups(fields) < warpgroups)
    return std::nullopt;
  if (!shape.isTransposed) {
    if (shape.numInner < 2 || isNarrowBand(shape, widest))
      return std::nullopt;
    fields.rows = warpgroups * kRows;
    fields.threads = (warpgroups + 1) * kWarpgroup;
    fields.depth = widest;
  } else {
    if (fields.depth >= wide)
      return std::nullopt;
    fields.depth = wide;
  }
  fields.steps = 1;
  if (fitsRegisters(fields, shape) && fitsSharedMemory(fields, shape, target))
    return fields;
  return std::nullopt;
}

/// One stage more than steps need, where there is room: warpgroups are not all
/// at the same step.
static MatmulFields addStage(MatmulFields fields, const MatmulShape &shape,
                             const Target &target) {
  MatmulFields more = fields;
  ++more.stages;
  return fitsSharedMemory(more, shape, target) ? more : fields;
}

/// The fields of products whose left factors are computed, if there is room. A
/// step's streamed values take registers beside the sums; where both are few,
/// three warpgroups have enough.
static std::optional<MatmulFields> chooseForStream(const MatmulShape &shape,
                                                   const Target &target) {
  constexpr int64_t unit = 16, narrow = 64, few = 16;
  MatmulFields fields;
  fields.roles = 2;
  fields.cluster = 1;
  fields.columns = shape.getAllColumns(unit);
  const int64_t sums = fields.columns * shape.numDots;
  const bool isSmall =
      sums <= narrow && shape.numStreamed <= few && !shape.isTransposed;
  constexpr int64_t longest = 128;
  const int64_t most = isSmall && !isNarrowBand(shape, longest) ? 3 : 2;
  fields.vector = 2;
  // Two steps of a transposed factor are computed at a time.
  fields.stages = shape.isTransposed ? 3 : 2;
  if (std::optional<MatmulFields> band = chooseForBand(fields, shape, target))
    return band;
  for (int64_t warpgroups = most; warpgroups > 0; --warpgroups) {
    fields.rows = warpgroups * kRows;
    fields.threads = (warpgroups + 1) * kWarpgroup;
    // A step is as long as leaves registers beside the sums.
    fields.depth = longest;
    while (fields.depth > unit && !fitsRegisters(fields, shape))
      fields.depth /= 2;
    if (std::optional<MatmulFields> ended =
            chooseEndedSteps(fields, shape, target))
      return addStage(*ended, shape, target);
    // Below that, fewer warpgroups are faster.
    constexpr int64_t least = 32;
    while (fields.depth > least && !fitsSharedMemory(fields, shape, target))
      fields.depth /= 2;
    if (fitsRegisters(fields, shape) && fitsSharedMemory(fields, shape, target))
      return addStage(fields, shape, target);
  }
  return std::nullopt;
}

std::optional<MatmulFields> bastile::chooseSpecialized(const MatmulShape &shape,
                                                       const Target &target) {
  // As many products share the sums of a warpgroup.
  constexpr int64_t mostDots = 4;
  if (!target.hasWarpgroupProducts() || shape.numDots > mostDots)
    return std::nullopt;
  if (shape.isStreaming)
    return chooseForStream(shape, target);
  return chooseForSizes(shape, target);
}

void bastile::completeSpecialized(MatmulFields &fields,
                                  const MatmulFields &chosen,
                                  const MatmulShape &shape,
                                  const Target &target) {
  const bool hasColumns = fields.columns > 0, hasStages = fields.stages > 0;
  if (!fields.rows)
    fields.rows = fields.threads
                      ? std::max<int64_t>(1, getWarpgroups(fields)) * kRows
                      : chosen.rows;
  if (!fields.threads)
    fields.threads = (fields.rows / kRows + 1) * kWarpgroup;
  auto choose = [&](auto field) {
    fields.*field = fields.*field ? fields.*field : chosen.*field;
  };
  choose(&MatmulFields::columns);
  choose(&MatmulFields::depth);
  choose(&MatmulFields::vector);
  choose(&MatmulFields::stages);
  choose(&MatmulFields::roles);
  choose(&MatmulFields::cluster);
  choose(&MatmulFields::split);
  choose(&MatmulFields::steps);
  // What was chosen for one warpgroup is no rule for more.
  if (getWarpgroups(fields) == 1)
    choose(&MatmulFields::resident);
  if (fields.rows == chosen.rows)
    choose(&MatmulFields::matrices);
  auto hasRoom = [&] { return fitsSharedMemory(fields, shape, target); };
  while (!hasStages && fields.stages > 2 && !hasRoom())
    --fields.stages;
  constexpr int64_t leastColumns = 64;
  while (!hasColumns && !shape.isStreaming && fields.columns > leastColumns &&
         !hasRoom())
    fields.columns /= 2;
}

LogicalResult
bastile::verifySpecialized(function_ref<InFlightDiagnostic()> error,
                           const MatmulFields &fields, const MatmulShape &shape,
                           const Target &target) {
  if (!chooseMatmul(shape, target, fields.roles).isSpecialized())
    return error() << "warps have roles, and blocks clusters, where products "
                      "of 16-bit matrices, or of 8-bit floats along their "
                      "rows, run on warpgroups and lie 16 bytes apart in "
                      "memory; leave out 'roles' and 'cluster'";
  if (fields.vector != 2)
    return error() << "tensor cores give each thread 2 neighbouring sums; "
                      "leave out 'vector'";
  if (fields.stages < (fields.endsSteps() ? 1 : 2))
    return error() << "warpgroups multiply what was copied ahead; use 2 or "
                      "more 'stages'";
  const int64_t warpgroups = getWarpgroups(fields);
  const int64_t mostWarpgroups = shape.isStreaming ? 3 : 2;
  if (fields.threads % kWarpgroup != 0 || warpgroups < 1 ||
      warpgroups > mostWarpgroups || fields.rows != warpgroups * kRows)
    return error() << fields.threads << " threads and " << fields.rows
                   << " rows are not 1 to " << mostWarpgroups
                   << " warpgroups of " << kWarpgroup << " threads with "
                   << kRows << " rows each, and " << kWarpgroup
                   << " threads that copy; use " << 2 * kRows
                   << " 'rows' and leave out 'threads'";
  if (shape.isStreaming && fields.cluster != 1)
    return error() << "a cluster of " << fields.cluster
                   << " blocks shares no factors where left factors are "
                      "computed; leave out 'cluster'";
  if (fields.cluster != 1 && fields.cluster != 2 && fields.cluster != 4)
    return error() << "'cluster' is " << fields.cluster
                   << ", not 1, 2 or 4 blocks";
  const int64_t split = std::max<int64_t>(1, fields.split);
  if (split > 1 && (shape.isStreaming || fields.cluster != 1))
    return error() << split << " blocks that sum parts of a tile share "
                   << (shape.isStreaming
                           ? "none where left factors are computed; leave out "
                             "'split'"
                           : "no factors; use a 'cluster' of 1");
  if (split > kMostSplit || !llvm::isPowerOf2_64(split))
    return error() << "'split' is " << split << ", not 1, 2, 4 or 8 blocks";
  if (split > 1 && !llvm::isPowerOf2_64(fields.columns))
    return error() << "blocks that sum parts of a tile complete as many of its "
                      "columns each, but 'columns' is "
                   << fields.columns << "; use a power of 2";
  if (fields.steps && !shape.isStreaming)
    return error() << "'steps' is " << fields.steps
                   << ", but no left factors are computed; leave it out";
  if (fields.resident > 1 && (!shape.isStreaming || warpgroups > 1))
    return error() << fields.resident << " blocks share a multiprocessor only "
                   << "where left factors are computed, by one warpgroup a "
                      "block; leave out 'resident'";
  if (fields.matrices > 1 && (shape.matrices % fields.matrices != 0 ||
                              !fitsWarps(fields.rows / fields.matrices)))
    return error() << "tiles have rows of " << fields.matrices
                   << " matrices only where they share streamed factors, "
                      "and 8 rows of each or a multiple of 16; leave out "
                      "'matrices'";
  const int64_t unit = shape.isStreaming ? 16 : 64;
  for (auto [name, size] :
       {std::pair("depth", fields.depth), std::pair("columns", fields.columns)})
    if (size % unit != 0)
      return error() << "'" << name << "' is " << size << ", no multiple of "
                     << unit << " elements, "
                     << (shape.isStreaming ? "as products sum them"
                                           : "a row in shared memory");
  if (shape.hasSmallFactors() && fields.depth > kMostSmallDepth)
    return error() << "'depth' is " << fields.depth << ", but tensor cores add "
                   << "products of 8-bit floats with fewer bits than a float "
                   << "has, and so only " << kMostSmallDepth << " of them";
  if (!fitsInstructions(fields, shape))
    return error() << "products of " << std::max(fields.columns, fields.depth)
                   << " columns have no registers for their sums with "
                   << fields.threads * getBlocks(fields)
                   << " threads on a multiprocessor; "
                   << (fields.resident > 1 ? "leave out 'resident'"
                       : fields.depth > fields.columns
                           ? "use less 'depth'"
                           : "use fewer 'rows' and leave out 'threads'");
  if (!fitsRegisters(fields, shape))
    return error() << getHeld(fields, shape)
                   << " numbers a thread are more than the "
                   << getMostHeld(fields, shape) << " that registers hold; use "
                   << (!shape.isStreaming   ? "fewer 'columns'"
                       : fields.endsSteps() ? "less 'depth'"
                                            : "less 'depth' or 1 of 'steps'");
  if (int64_t bytes = getSharedBytes(fields, shape);
      !fitsSharedMemory(fields, shape, target))
    return error() << bytes << " bytes of the factors in " << fields.stages
                   << " stages" << (split > 1 ? ", of sums" : "")
                   << " and of results"
                   << (fields.resident > 1
                           ? " in each of " + std::to_string(fields.resident) +
                                 " blocks of a multiprocessor"
                           : "")
                   << " are more than the " << target.maxSharedBytesPerBlock
                   << " of a block's shared memory; use fewer 'stages' or "
                      "'columns'";
  return success();
}
