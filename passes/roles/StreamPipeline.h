//===- StreamPipeline.h - Streamed values between products ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The left factors of a tile's products are computed, of products of rows that
// the tile has as a whole. In attention, the queries are copied once for a
// tile, the keys and the values in steps, each with stages of their own: a
// step's keys are free long before its values. While one warpgroup computes
// powers, the tensor cores multiply for another one.
//
// A warpgroup runs a step ahead: it begins the inner products of a step, and
// behind them the products of the step before. While these run, it computes the
// factors of the products that come next. Warpgroups take turns in beginning
// products, so that one computes while another one's products run.
//
// In its gradients of keys and values, factors are transposed: the keys and the
// values are copied once, and the queries in steps. Both kinds of products read
// these, and so find them in the same stages, of which a warpgroup holds two at
// a time.
//
// Where the schedule has one of the `steps` at a time, a warpgroup ends the
// products of a step before the next one. So it holds no factors beside the
// inner products of another step, whose registers more sums or longer steps
// have, and both kinds of products find what they need in the same stages. The
// tensor cores multiply for another warpgroup while it computes.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_STREAMPIPELINE_H
#define BASTILE_PASSES_ROLES_STREAMPIPELINE_H

#include "passes/products/MaskBounds.h"
#include "passes/products/StreamSums.h"
#include "passes/roles/AddedSums.h"
#include "passes/roles/BoxStages.h"
#include "passes/roles/NumberStages.h"
#include "passes/roles/TilePipeline.h"

namespace bastile {

struct MatmulShape;

class StreamPipeline : public TilePipeline {
public:
  /// Creates the stages ahead of the roles.
  explicit StreamPipeline(ProgramFrame &frame);

  int64_t getBytes() const override {
    return whole.getBytes() + inner.getBytes() +
           (outer ? outer->getBytes() : 0);
  }
  mlir::Value copy(mlir::Value at, mlir::Value turn) override;
  mlir::Value compute(mlir::Value at, mlir::Value turn) override;
  void findPlace(mlir::Value place, mlir::Value blockRow) override;
  llvm::ArrayRef<mlir::BlockArgument> getNumbersOfRows() const override {
    return numbersOfRows.getArrayRef();
  }
  int64_t getCopyThreads() const override;
  /// Lets steps give what they compute of a factor to `sums`, too.
  void setAddedSums(AddedSums &sums) { added = &sums; }
  /// In a role that does not compute, waits for what the first tile has as a
  /// whole, and returns the tile of operand `operand`.
  mlir::Value awaitWhole(unsigned operand);
  /// The steps of the tile.
  StepRange emitRange();
  /// Builds `body`, which carries values, for each step of the tile's matrices.
  llvm::SmallVector<mlir::Value> buildOverTile(mlir::ValueRange initial,
                                               ProgramFrame::Body body);
  /// The last row of a tile that has an element of the step where the emitter
  /// is.
  mlir::Value emitLastRow();

private:
  StreamPipeline(ProgramFrame &frame, const MatmulShape &shape);

  /// The rows of which a mask leaves most of k.
  enum class Longest { None, First, Last };

  Longest findLongest() const;
  mlir::Value fitsCache();
  void findNumbersOfRows();
  /// Whether products of both kinds read what is copied for inner ones.
  bool sharesInner() const { return !shared.empty(); }
  llvm::SmallVector<mlir::Value> buildOverSteps(const StepRange &range,
                                                mlir::ValueRange initial,
                                                ProgramFrame::Body body);
  void findRights();
  void beginInner(tile::DotOp dot);
  void loadNumbersOfRows();
  mlir::Value emitInner(tile::DotOp dot);
  void releaseNumbers();
  void awaitStep(mlir::Value newNumber);
  void beginStep();
  mlir::Value beginProduct(tile::DotOp dot, mlir::Value left, mlir::Value sum);
  void awaitProducts(mlir::Value last);
  llvm::SmallVector<mlir::Value> beginProducts(mlir::Value last,
                                               mlir::ValueRange before,
                                               mlir::ValueRange factors);
  void waitForProducts(llvm::ArrayRef<mlir::Value> products,
                       llvm::MutableArrayRef<mlir::Value> totals);
  void releaseProducts(mlir::Value last);
  llvm::SmallVector<mlir::Value>
  computeFactors(StreamSums &streamSums, mlir::ValueRange before,
                 llvm::ArrayRef<mlir::Value> products);
  mlir::Value waitForProduct(mlir::Value pending, mlir::ValueRange done);
  llvm::SmallVector<mlir::Value> computeSteps(StreamSums &streamSums,
                                              mlir::ValueRange initial);
  llvm::SmallVector<mlir::Value>
  buildUnlessEmpty(const StepRange &range, mlir::ValueRange initial,
                   llvm::function_ref<llvm::SmallVector<mlir::Value>()> body);
  llvm::SmallVector<mlir::Value> computeStepsAhead(StreamSums &streamSums,
                                                   const StepRange &range,
                                                   mlir::ValueRange initial);
  llvm::SmallVector<mlir::Value> computeStep(StreamSums &streamSums,
                                             mlir::ValueRange before);
  /// Whether warpgroups begin their inner products one after the other. Where
  /// each of them multiplies what all have computed, they wait for each other
  /// anyway.
  bool takesTurns() const {
    return frame.schedule.getDotWarps() > 4 &&
           (!added || added->hasMultiplier());
  }
  /// Whether the products of a step end before the next one begins.
  bool endsSteps() const { return frame.schedule.getSteps() == 1; }

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const FollowingSums following;
  /// What the loop over k sums up, and the elements for which it is.
  llvm::SmallVector<mlir::Operation *> sums;
  Visited visited;
  /// The operands that bound the steps by integers of rows, the same ones for
  /// all matrices that a program adds up.
  llvm::SmallSetVector<mlir::BlockArgument, 2> numbersOfRows;
  Longest longest = Longest::None;
  /// Whether the mask shows few neighbours of each row, from some place on.
  bool isBand = false;
  /// Whether the elements that it shows to the rows of a tile are those of one
  /// step.
  bool isOneStep = false;
  llvm::SmallVector<tile::DotOp> innerDots;
  /// The right factors of products that inner products copy as well, and the
  /// factors of these.
  llvm::SmallDenseMap<unsigned, unsigned> shared;
  /// The tiles of right factors that products which begin now read.
  llvm::SmallDenseMap<mlir::Operation *, mlir::Value> rights;
  /// The numbers of streamed rows, which the stages of inner products have.
  const NumberStages numbers;
  /// What is copied once for a tile; what inner products need of a step, and
  /// what only the others do.
  BoxStages whole, inner;
  std::optional<BoxStages> outer;
  /// What takes factors as well; null if nothing does.
  AddedSums *added = nullptr;
  /// The number of a streamed row that is read first, if there is one. It is
  /// taken ahead of the products: while these run, they read shared memory as
  /// fast as it can be read, and threads wait long for what they take. Others
  /// would occupy registers for longer.
  mlir::BlockArgument firstNumber;
  /// The step that is computed, its inner products, in the order in which they
  /// have begun, and how many of them are not there yet.
  mlir::Value number;
  llvm::MapVector<mlir::Operation *, mlir::Value> begun;
  size_t innerLeft = 0;
  /// How many products of the step before run behind the inner ones.
  size_t running = 0;
  /// How many groups of products the last wait of the step has left running.
  size_t pending = 0;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_STREAMPIPELINE_H
