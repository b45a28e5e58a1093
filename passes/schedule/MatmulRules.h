//===- MatmulRules.h - The schedules of products ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_MATMULRULES_H
#define BASTILE_PASSES_SCHEDULE_MATMULRULES_H

#include "bastile/Target.h"
#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "passes/schedule/KernelSchedule.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/Support/MathExtras.h"

namespace bastile {

/// Past this, the sums of a thread that multiplies by itself leave no registers
/// for what it multiplies.
inline constexpr int64_t kMostOwnSums = 64;

/// The rows that a warpgroup multiplies.
inline constexpr int64_t kRows = 64;

/// As many blocks sum parts of the same tile.
inline constexpr int64_t kMostSplit = 8;

/// What the rules of a `#tile.matmul` know of a kernel over named dimensions.
/// It is an analysis of the kernel.
struct MatmulShape {
  MatmulShape(tile::KernelOp kernel, const KernelSpace &space);
  MatmulShape(tile::KernelOp kernel, mlir::AnalysisManager &analyses)
      : MatmulShape(kernel,
                    analyses.getAnalysis<KernelSpace, tile::KernelOp>()) {}

  /// The first product, null if the kernel only reduces, and how many there are
  /// of its shape.
  tile::DotOp dot;
  int64_t numDots = 0;
  /// Whether the kernel computes left factors: then a program has all columns
  /// of the products, `columns` of them.
  bool isStreaming = false;
  int64_t columns = 1;
  /// Whether these factors are transposed: threads hold numbers of streamed
  /// rows as well then.
  bool isTransposed = false;
  /// How many inner products there are, and how many elements they sum over.
  int64_t numInner = 0, whole = 0;
  /// How many of the products may share what is copied for inner ones.
  int64_t numShared = 0;
  /// How many operands have numbers of streamed rows that are copied.
  int64_t numNumbers = 0;
  bool usesFloat64 = false;
  /// Whether warps may have roles: copies of boxes take all factors and
  /// results, as far as static sizes tell, and one loop over k is enough.
  bool mayHaveRoles = false;
  /// How many ops compute what is streamed.
  int64_t numStreamed = 0;
  /// How many columns a block completes at a time, at least, of sums of which
  /// several blocks have parts: rows of results take 32 bytes.
  int64_t leastPart = 16;
  /// How many neighbouring elements of a streamed row masks show at most, where
  /// that is known.
  std::optional<int64_t> mostShown;
  /// How many neighbouring matrices of a batch may have rows in the same tile.
  int64_t matrices = 1;

  /// All columns of the products, in whole `unit`s.
  int64_t getAllColumns(int64_t unit) const {
    return static_cast<int64_t>(llvm::alignTo(columns, unit));
  }
  /// Whether factors are 8-bit floats.
  bool hasSmallFactors() const {
    return isSmallFloat(tile::DotOp(dot).getFactorType());
  }
  /// Whether the program goes along k, `depth` elements at a time. Otherwise
  /// each product takes its factors whole.
  bool isLoop(bool isStaged) const { return !dot || isStreaming || isStaged; }
};

/// The fields of a `#tile.matmul` while they are chosen; 0 for those that are
/// not yet.
struct MatmulFields {
  int64_t rows = 0, columns = 0, depth = 0, threads = 0, vector = 0, stages = 0,
          roles = 0, cluster = 0, split = 0, steps = 0, resident = 0,
          matrices = 0;

  MatmulFields() = default;
  explicit MatmulFields(tile::MatmulAttr pinned)
      : rows(pinned.getRows()), columns(pinned.getColumns()),
        depth(pinned.getDepth()), threads(pinned.getThreads()),
        vector(pinned.getVector()), stages(pinned.getStages()),
        roles(pinned.getRoles()), cluster(pinned.getCluster()),
        split(pinned.getSplit()), steps(pinned.getSteps()),
        resident(pinned.getResident()), matrices(pinned.getMatrices()) {}

  tile::MatmulAttr getAttr(mlir::MLIRContext *context) const {
    return tile::MatmulAttr::get(context, rows, columns, depth, threads, vector,
                                 stages, roles, cluster, split, steps, resident,
                                 matrices);
  }

  bool operator==(const MatmulFields &other) const {
    auto tie = [](const MatmulFields &x) {
      return std::tie(x.rows, x.columns, x.depth, x.threads, x.vector, x.stages,
                      x.roles, x.cluster, x.split, x.steps, x.resident,
                      x.matrices);
    };
    return tie(*this) == tie(other);
  }

  /// Whether tensor cores multiply parts of both factors in shared memory.
  bool isStaged() const { return stages > 1 || isSpecialized(); }
  /// Whether some warps only copy, by boxes.
  bool isSpecialized() const { return roles == 2; }
  /// Whether the products of a step end before the next one begins.
  bool endsSteps() const { return steps == 1; }
  /// Whether products find what is copied for inner ones in the same stages.
  /// They do so where factors are transposed or steps end: there, each step's
  /// inner products and sums take turns. Elsewhere a copy for the former alone
  /// makes room for the next one earlier.
  bool sharesStages(const MatmulShape &shape) const {
    return shape.isTransposed || endsSteps();
  }
  /// How many sums each thread holds.
  int64_t getSumsPerThread(const MatmulShape &shape) const {
    return rows * (columns * shape.numDots + depth * shape.numInner) / threads;
  }
};

/// What the heuristic chooses for a kernel of `shape`, where nothing is pinned
/// but whether warps have `roles`.
MatmulFields chooseMatmul(const MatmulShape &shape, const Target &target,
                          int64_t roles = 0);

/// The layout of the tiles of `kernel` by `schedule`.
mlir::Attribute getSpaceLayout(tile::KernelOp kernel, tile::MatmulAttr schedule,
                               bool onHost);

/// The schedule that has the fields of `pinned` that are not 0. Each of the
/// others is what the heuristic chooses, or what it has to be beside those that
/// are pinned.
MatmulFields completeMatmul(MatmulFields pinned, const MatmulShape &shape,
                            const Target &target);

/// Whether `target` can run a kernel of `shape` by complete `fields`; if not,
/// `error` begins the diagnostic that says why.
mlir::LogicalResult
verifyMatmul(llvm::function_ref<mlir::InFlightDiagnostic()> error,
             const MatmulFields &fields, const MatmulShape &shape,
             const Target &target);

/// Whether the warps of a block of `kernel`, of space `space`, may have roles:
/// boxes take its factors and results, the program makes one loop over k, and
/// nothing but products reads the factors there. Factors of 8-bit floats lie in
/// memory, and are summed along their rows.
bool fitsRoles(tile::KernelOp kernel, const KernelSpace &space);

/// What the heuristic chooses of schedules in which warps have roles, for a
/// kernel whose warps may; none where `target` has no such products or no room.
std::optional<MatmulFields> chooseSpecialized(const MatmulShape &shape,
                                              const Target &target);

/// A tile for which warps have roles: two warpgroups multiply, each with as
/// many sums as leave registers for all else, and the blocks of a cluster share
/// what they copy of the right factors.
MatmulFields chooseForFactors(const MatmulShape &shape);

/// The same, or tiles by which a product whose sizes are known is faster.
MatmulFields chooseForSizes(const MatmulShape &shape, const Target &target);

/// Whether the stages of the factors and the slots for results have room.
bool fitsSharedMemory(const MatmulFields &fields, const MatmulShape &shape,
                      const Target &target);

/// A schedule for calls of at most `most` rows.
struct FewRows {
  int64_t most = 0;
  MatmulFields fields;
};

/// The schedules for calls of few rows, the fewest first, where the schedule
/// chosen gives warps roles: none if the number of rows is known, or that of
/// columns is not.
llvm::SmallVector<FewRows> chooseForFewRows(const MatmulShape &shape,
                                            const Target &target);

/// The rules of schedules in which warps have roles: the fields that `fields`
/// leaves open, and what a target can run.
void completeSpecialized(MatmulFields &fields, const MatmulFields &chosen,
                         const MatmulShape &shape, const Target &target);
mlir::LogicalResult
verifySpecialized(llvm::function_ref<mlir::InFlightDiagnostic()> error,
                  const MatmulFields &fields, const MatmulShape &shape,
                  const Target &target);

/// Whether the right factor of `dot`, no inner product, is a streamed factor of
/// an inner one as well, whole rows of it, so that both may find it in the same
/// stages where warps have roles.
bool mayShareStages(tile::DotOp dot, const KernelSpace &space);

/// Whether `argument` of a kernel has a number for each row of transposed
/// factors, which other ops than those of its size read.
bool isNumberOfStream(mlir::BlockArgument argument, const KernelSpace &space);

/// The operands of a kernel, whose body is `body`, that have a float32 for each
/// row of transposed factors. Where warps have roles, they are copied as
/// factors are: threads hold numbers of so many rows that loads of their own
/// would take registers and instructions in each step.
llvm::SmallVector<mlir::BlockArgument>
getStreamedNumbers(mlir::Block &body, const KernelSpace &space);

/// How many tiles of rows that inner products have as a whole are there at once
/// where warps have roles: with two, those of the next tile come ahead of time.
int64_t getWholeStages(const MatmulShape &shape);

/// Bytes of the parts of factors that a block has in shared memory.
int64_t getStagedBytes(const MatmulFields &fields, const MatmulShape &shape);

/// The byte where these parts begin where warps have roles: behind the numbers
/// of streamed rows and the barriers, at least as many bytes for all.
int64_t getFirstStagedByte(const MatmulFields &fields,
                           const MatmulShape &shape);

/// Complete schedules of `kernel` worth timing: the heuristic's choice, then
/// its neighbours, which differ in one field, and theirs.
ScheduleCandidates getMatmulCandidates(tile::KernelOp kernel,
                                       const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_MATMULRULES_H
