//===- ScheduleProduct.cpp - The tiles of products ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"

#include "dialect/Dimensions.h"
#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "passes/analysis/FollowingSums.h"
#include "passes/analysis/MaskConditions.h"
#include "passes/analysis/RowMatrices.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

static constexpr int64_t kThreadRows = 16;

/// How many neighbouring elements masks show of a streamed row of `body`: those
/// between two bounds that go along with the number of the row.
static std::optional<int64_t> findMostShown(Block &body,
                                            const KernelSpace &space) {
  std::optional<int64_t> behind, ahead;
  auto narrow = [](std::optional<int64_t> &bound, int64_t constant) {
    bound = std::min(bound.value_or(constant), constant);
  };
  for (const MaskCondition &condition : findVisited(body, space).conditions)
    if (condition.numbers.empty() && condition.row == -condition.column &&
        std::abs(condition.row) == 1)
      narrow(condition.column < 0 ? ahead : behind, condition.constant);
  if (!behind || !ahead)
    return std::nullopt;
  return std::max<int64_t>(0, *behind + *ahead + 1);
}

MatmulShape::MatmulShape(tile::KernelOp kernel, const KernelSpace &space) {
  dot = space.getDot();
  numDots = static_cast<int64_t>(space.getDots().size());
  isStreaming = space.hasComputedLeft();
  isTransposed = space.isTransposed();
  if (isStreaming)
    columns = dot.getSumType().getShape().back();
  numShared = llvm::count_if(space.getDots(), [&](tile::DotOp dot) {
    return mayShareStages(dot, space);
  });
  numNumbers = static_cast<int64_t>(
      getStreamedNumbers(kernel.getBody().front(), space).size());
  mayHaveRoles = fitsRoles(kernel, space);
  constexpr int64_t rowBytes = 32;
  if (llvm::any_of(kernel.getResultTypes(), [](Type type) {
        return isSmallFloat(getElementTypeOrSelf(type));
      }))
    leastPart = rowBytes;
  if (isStreaming)
    mostShown = findMostShown(kernel.getBody().front(), space);
  matrices = countRowMatrices(kernel, space);
  for (Operation &op : kernel.getBody().front()) {
    for (Type type : op.getResultTypes())
      usesFloat64 |= getElementTypeOrSelf(type).isF64();
    auto product = dyn_cast<tile::DotOp>(op);
    numStreamed += op.getNumResults() == 1 && !product &&
                   space.isStreamed(op.getResult(0));
    if (!product || !space.isInner(product))
      continue;
    ++numInner;
    for (unsigned index : {0, 1})
      whole = std::max(
          whole, cast<RankedTensorType>(product.getOperand(index).getType())
                     .getDimSize(product.getContractedDimension(index)));
  }
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

/// Rows that a step of the host computes, of what is streamed.
static void chooseStreamedForHost(MatmulFields &fields,
                                  const MatmulShape &shape,
                                  const Target &target) {
  constexpr int64_t floatBytes = 4, vectors = 4, mostVectors = 32;
  fields.threads = 1;
  fields.vector = target.vectorBytes / floatBytes;
  fields.depth = vectors * fields.vector;
  fields.rows = 1;
  fields.columns = 1;
  if (!shape.dot)
    return;
  fields.columns = shape.getAllColumns(fields.vector);
  fields.rows = std::clamp<int64_t>(
      mostVectors * fields.vector / fields.columns, 1, vectors);
}

/// The tile of a program on the host, whose sums are to stay in registers.
static void chooseForHost(MatmulFields &fields, const MatmulShape &shape,
                          const Target &target) {
  if (!shape.dot || shape.isStreaming)
    return chooseStreamedForHost(fields, shape, target);
  tile::DotOp dot = shape.dot;
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

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

/// Whether the warps of a block can multiply on tensor cores: tiles with more
/// than one row and column, of elements of 16 bits. Those of 8 bits are summed
/// along their rows, as nothing transposes them in shared memory.
static bool fitsTensorCores(tile::DotOp dot, const Target &target) {
  Type element = dot.getFactorType();
  ArrayRef<int64_t> matrix = dot.getSumType().getShape().take_back(2);
  const bool isSmall = isSmallFloat(element) && target.hasSmallProducts() &&
                       dot.getContract() == ArrayRef<int64_t>{1, 1};
  return (element.isBF16() || element.isF16() || isSmall) &&
         !llvm::is_contained(matrix, 1);
}

static void chooseForGPU(MatmulFields &fields, const MatmulShape &shape,
                         const Target &target) {
  if (!shape.dot) {
    // A warp has a row at a time.
    fields.threads = 256;
    fields.vector = 1;
    fields.rows = fields.threads / kWarp;
    fields.columns = 1;
    fields.depth = 512;
    return;
  }
  if (fitsTensorCores(shape.dot, target) && shape.isStreaming) {
    // A warp has 16 rows. A step is as long as leaves registers beside its
    // sums, inner ones among them.
    constexpr int64_t unit = 16;
    fields.threads = 256;
    fields.vector = 2;
    fields.rows = 128;
    fields.columns = shape.getAllColumns(unit);
    fields.depth = unit;
    for (auto [depth, most] : {std::pair(64, 192), std::pair(32, 256)})
      if (fields.columns * shape.numDots + depth * shape.numInner <= most) {
        fields.depth = depth;
        break;
      }
    fields.stages = 2;
    return;
  }
  if (fitsTensorCores(shape.dot, target)) {
    // Two such blocks run on a multiprocessor: one multiplies while the other
    // one waits for copies, or stores. Two products share the registers that
    // hold sums. Beside those of 8-bit floats there are the products of a step,
    // which are added to them.
    fields.threads = 128;
    fields.vector = 2;
    fields.rows = 128;
    fields.columns =
        (shape.hasSmallFactors() ? 64 : 128) / (shape.numDots == 1 ? 1 : 2);
    constexpr int64_t bytes = 64;
    fields.depth =
        bytes / getElementBytes(tile::DotOp(shape.dot).getFactorType());
    fields.stages = 4;
    return;
  }
  // Each thread computes 4 x 4 sums, and neighbours read neighbouring columns.
  fields.threads = 256;
  fields.vector = 1;
  fields.rows = 64;
  fields.columns = 64;
  if (!shape.isStreaming)
    return;
  fields.columns = shape.getAllColumns(fields.threads / kThreadRows);
  fields.depth = 64;
  while (fields.rows > kThreadRows &&
         fields.getSumsPerThread(shape) > kMostOwnSums)
    fields.rows /= 2;
}

MatmulFields bastile::chooseMatmul(const MatmulShape &shape,
                                   const Target &target, int64_t roles) {
  MatmulFields fields;
  if (target.isHost()) {
    chooseForHost(fields, shape, target);
    return fields;
  }
  std::optional<MatmulFields> specialized;
  if (shape.mayHaveRoles && fitsTensorCores(shape.dot, target))
    specialized = chooseSpecialized(shape, target);
  if (specialized && roles != 1)
    return *specialized;
  chooseForGPU(fields, shape, target);
  // The rows that inner products multiply lie in shared memory as a whole.
  constexpr int64_t fewest = 2 * tile::MmaAttr::kWarpRows;
  while (shape.isStreaming && fields.rows > fewest &&
         getStagedBytes(fields, shape) > target.maxSharedBytesPerBlock) {
    fields.rows /= 2;
    fields.threads /= 2;
  }
  if (specialized)
    fields.roles = fields.cluster = 1;
  return fields;
}

Attribute bastile::getSpaceLayout(tile::KernelOp kernel,
                                  tile::MatmulAttr schedule, bool onHost) {
  MLIRContext *context = kernel.getContext();
  if (schedule.isStaged())
    return tile::MmaAttr::get(context, schedule.getDotWarps());
  if (onHost)
    return tile::BlockedAttr::get(context, schedule.getVector(), 1, 1,
                                  /*blocks=*/1);
  const int64_t rows =
      getDot(kernel) ? kThreadRows : schedule.getThreads() / kWarp;
  return tile::BlockedAttr::get(context, schedule.getVector(), rows,
                                schedule.getThreads() / rows, /*blocks=*/1);
}
