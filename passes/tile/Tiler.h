//===- Tiler.h - The program of one variant of a kernel ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_TILER_H
#define BASTILE_PASSES_TILE_TILER_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/schedule/KernelShape.h"
#include "passes/schedule/ThreadGrid.h"

namespace bastile {

/// One way in which a kernel's operands may lie in memory.
struct TileVariant {
  std::string name;
  /// Leading dimensions of the rows that the program goes through.
  int64_t leading;
  /// Whether addresses are aligned to the vector width.
  bool aligned;
  /// Whether sums of rows are compensated for what each addition rounds off.
  bool compensated;
  /// The schedule of the program.
  tile::ScheduleAttr schedule;
  /// The threads that share a program's tiles; none on the host, whose programs
  /// are single threads whatever the schedule says.
  std::optional<ThreadGrid> grid;
};

/// Builds the program of one variant of a kernel on tensors.
class Tiler {
public:
  Tiler(tile::KernelOp kernel, const TileVariant &variant);

  tile::ProgramOp run();

private:
  /// The columns of a row of `type`.
  static int64_t getLength(mlir::Type type);
  void createProgram();
  void addOperand(mlir::RankedTensorType type, bool isWithoutGaps,
                  mlir::NamedAttrList marks);
  int64_t getAlignment(mlir::RankedTensorType type) const;
  int64_t getAccessAlignment(mlir::RankedTensorType type) const;
  mlir::RankedTensorType getTileType(mlir::RankedTensorType type) const;
  bool isRow(mlir::Value value) const;

  /// Whether rows are misaligned: the columns of tiles count from an aligned
  /// address ahead of each row.
  bool isMisaligned() const { return shape.isMisaligned(schedule.getVector()); }
  /// The columns that tiles cover.
  int64_t getSpan() const { return shape.getSpan(schedule.getVector()); }
  bool isMisaligned(mlir::RankedTensorType type) const;
  bool hasPhase(mlir::Value value) const;
  void setRow(mlir::Value newRow);

  /// Builds the loop of a program that goes through several groups of rows.
  void buildPersistentRows(mlir::Value id);
  llvm::SmallVector<mlir::Value>
  buildStagedLoop(mlir::Value first, mlir::Value last, mlir::Value step);
  mlir::Value buildCombinedRows();
  mlir::Value getFirstRow(mlir::Value group);
  bool isLoadedAhead(mlir::BlockArgument argument) const;
  llvm::SmallVector<mlir::Value> emitRowLoads(mlir::Value group);
  llvm::SmallVector<mlir::Value>
  buildLoopOverRows(mlir::Value first, mlir::Value last, mlir::Value step);
  mlir::scf::IfOp buildGuard();
  void buildRows(mlir::Value group);
  void buildWholeRow();
  void buildBand(mlir::Value number);
  mlir::scf::ForOp buildBandLoop(mlir::Value first, mlir::Value end,
                                 mlir::ValueRange initial);
  int64_t getBandDepth(mlir::Value value);
  void buildSweeps();
  int64_t findLastSweep();
  int64_t getSweep(mlir::Value value);
  int64_t getSweep(tile::ReduceOp reduce);
  void buildSweep(int64_t depth);

  /// Whether threads fold columns: in a loop over the columns of a row, each
  /// thread first combines what it loads itself. A sum of powers may then be
  /// relative to the maximum so far and needs no sweep of its own.
  bool isFolded() const { return variant.grid.has_value(); }
  /// Blocks that share a row; the host has no clusters.
  int64_t getBlocks() const { return isFolded() ? variant.grid->blocks : 1; }
  tile::ReduceOp getFollowedMaximum(tile::ReduceOp reduce) const;
  mlir::RankedTensorType getFoldedType(tile::ReduceOp reduce) const;
  mlir::Value fold(tile::ReduceOp reduce, mlir::Value tile);
  llvm::SmallVector<mlir::Value>
  combineColumns(llvm::ArrayRef<tile::ReduceOp> reductions,
                 mlir::ValueRange partials);
  mlir::Value combineFollowing(tile::ReduceOp sum, mlir::Value partial,
                               mlir::Value oldMaximum, mlir::Value newMaximum);
  mlir::Value getScale(mlir::Location loc, mlir::Value from, mlir::Value to);
  mlir::Value getBase(mlir::Location loc, mlir::Value maximum);
  llvm::SmallVector<mlir::Value>
  combineThreads(llvm::ArrayRef<tile::ReduceOp> reductions,
                 mlir::ValueRange partials);
  mlir::ValueRange exchange(mlir::Location loc, mlir::ValueRange parts);
  mlir::Value combineAll(tile::ReduceOp reduce, mlir::ValueRange values);
  mlir::Value emitReduction(tile::ReduceOp reduce);
  llvm::SmallVector<mlir::Value>
  combineBlocks(llvm::ArrayRef<tile::ReduceOp> reductions,
                mlir::ValueRange parts);
  void finishColumns(llvm::ArrayRef<tile::ReduceOp> reductions,
                     mlir::ValueRange partials);

  /// Whether the accumulator of `reduce` is in registers. Where a row does not
  /// fit those, it is in memory, in the program's row of the partial results.
  bool isInRegisters(tile::ReduceRowsOp reduce) const;
  bool isCompensated(tile::ReduceRowsOp reduce) const;
  llvm::SmallVector<mlir::Value> createAccumulators();
  llvm::SmallVector<mlir::Value>
  buildBlocksOfRows(mlir::Value first, mlir::Value last, mlir::Value step);
  mlir::Value addLostPart(mlir::Location loc, mlir::Value sum,
                          mlir::Value lost);
  void accumulate();
  mlir::Value getAccumulatorMemory(tile::ReduceRowsOp reduce);
  void clearInMemory(tile::ReduceRowsOp reduce);
  void accumulateInMemory(tile::ReduceRowsOp reduce);
  void finishAccumulators(mlir::ValueRange sums);

  mlir::Value emitRowMasked(mlir::Value value, tile::ReduceKind kind);
  mlir::Value combineTileRows(mlir::Value tile, tile::ReduceKind kind);
  mlir::Value emitBandReduction(tile::ReduceBandsOp reduce);
  mlir::Value repeatForRows(mlir::Value tile, mlir::RankedTensorType type);

  /// Loads the arguments that the kernel reads.
  void emitArguments();
  /// Returns the tile of `value`, building what it needs.
  mlir::Value emit(mlir::Value value);
  mlir::Value emitOp(mlir::Operation *op, mlir::OpResult result);
  mlir::Value emitMasked(tile::ReduceOp reduce);
  mlir::Value emitLoad(mlir::BlockArgument argument, int64_t piece = 0,
                       int64_t pieces = 1,
                       std::optional<int64_t> band = std::nullopt);
  mlir::Value createLoad(mlir::BlockArgument argument, int64_t piece,
                         int64_t pieces, std::optional<int64_t> band);
  mlir::Value emitSplit(tile::SplitOp split, int64_t piece);
  void emitResult(unsigned resultIndex);
  void emitStore(unsigned resultIndex);
  void emitStore(mlir::Value tile, mlir::Value memory, mlir::Value firstRow,
                 mlir::RankedTensorType type, int64_t piece = 0,
                 int64_t pieces = 1,
                 std::optional<int64_t> band = std::nullopt);

  mlir::Value getMemory(unsigned operand) {
    return program.getArgument(program.getNumSizes() + operand);
  }
  mlir::Value getResultMemory(unsigned result) {
    return getMemory(kernel.getNumArguments() + result);
  }
  mlir::Operation *getReturn() {
    return kernel.getBody().front().getTerminator();
  }
  mlir::Value getColumn(int64_t width);
  mlir::Value constantIndex(int64_t value);
  mlir::Value getNeutralTile(mlir::RankedTensorType type,
                             tile::ReduceKind kind);
  mlir::Value getRowCount();
  /// The row space of an access to rows of `type`, as an attribute.
  mlir::IntegerAttr getSpace(mlir::RankedTensorType type) {
    return shape.isKept(type) ? builder.getI64IntegerAttr(1) : nullptr;
  }

  tile::KernelOp kernel;
  const TileVariant &variant;
  KernelShape shape;
  tile::ScheduleAttr schedule;
  mlir::ImplicitLocOpBuilder builder;

  tile::ProgramOp program;
  llvm::SmallVector<mlir::Type> operandTypes;
  llvm::SmallVector<mlir::Attribute> operandMarks;
  int64_t columnBlocks = 1;
  /// The first row and column of the current tile, and the number of the
  /// program among those down the rows.
  mlir::Value row, column, rowProgram;
  /// The misalignment of each of the tile's rows; null where rows are aligned.
  mlir::Value misalignment;
  /// Where rows are combined over some dimensions: the first of the rows that
  /// the program combines to one, and the row behind the last.
  mlir::Value firstCombined, endCombined;
  /// The combinations of rows, and their accumulators in registers: as they
  /// come into the loop over rows, and as they leave it.
  llvm::SmallVector<tile::ReduceRowsOp> rowReductions;
  mlir::ValueRange accumulators;
  llvm::SmallVector<mlir::Value> accumulated;

  /// Tiles of values that are the same in every column of the row, and the
  /// place to build more of them while a loop over columns is being built.
  mlir::IRMapping rowScope;
  mlir::Operation *columnLoop = nullptr;
  /// Tiles of the results of the current band's reductions.
  mlir::IRMapping bandScope;
  /// Tiles of the values of the current columns.
  mlir::IRMapping columnScope;
  llvm::DenseMap<mlir::Value, int64_t> depths;
  /// The number of the last sweep over the row, counted from 0.
  int64_t lastSweep = 0;

  /// Loads of a group of rows, in the order in which the program makes them.
  /// `collected` receives the loads that are made ahead; `ahead` holds those
  /// that were made before the current group was reached and are still to be
  /// used.
  llvm::SmallVector<mlir::Value> *collected = nullptr;
  mlir::ValueRange ahead;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_TILER_H
