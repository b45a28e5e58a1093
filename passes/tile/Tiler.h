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
  /// Leading dimensions that the program walks.
  int64_t leading;
  /// Whether addresses are aligned to the vector width.
  bool aligned;
  /// Whether sums of rows make up for what each addition rounds off.
  bool compensated;
  /// What its program follows.
  tile::ScheduleAttr schedule;
  /// The threads that share a program's tiles; none on the host, whose programs
  /// are single threads whatever the schedule says.
  std::optional<ThreadGrid> grid;
};

/// Builds the program of one variant of a kernel on tensors.
class Tiler {
public:
  Tiler(tile::KernelOp kernel, const TileVariant &variant);

  tile::KernelOp run();

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

  /// Whether the columns of tiles count from an aligned address ahead of each
  /// row.
  bool isMisaligned() const { return shape.isMisaligned(schedule.getVector()); }
  /// The columns that tiles cover.
  int64_t getSpan() const { return shape.getSpan(schedule.getVector()); }
  bool isMisaligned(mlir::RankedTensorType type) const;
  bool hasPhase(mlir::Value value) const;
  void setRow(mlir::Value newRow);

  /// Builds the loop of a program that walks several groups of rows.
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
  int64_t findSweeps();
  int64_t getPass(mlir::Value value);
  int64_t getPass(tile::ReduceOp reduce);
  void buildPass(int64_t depth);

  /// What the threads of a program combine, each by itself, in a loop over the
  /// columns; a sum of powers may follow the maximum that it is relative to.
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

  /// A program combines rows in registers, or if a row does not fit those, in
  /// memory, in its row of the partial results.
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
  /// The attribute of an access to rows of `type`.
  mlir::IntegerAttr getSpace(mlir::RankedTensorType type) {
    return shape.isKept(type) ? builder.getI64IntegerAttr(1) : nullptr;
  }

  tile::KernelOp kernel;
  const TileVariant &variant;
  KernelShape shape;
  tile::ScheduleAttr schedule;
  mlir::ImplicitLocOpBuilder builder;

  tile::KernelOp program;
  llvm::SmallVector<mlir::Type> operandTypes;
  llvm::SmallVector<mlir::Attribute> operandMarks;
  int64_t columnBlocks = 1;
  /// The first row and column of the current tile, and the number of the
  /// program among those down the rows.
  mlir::Value row, column, rowProgram;
  /// How far the tile's rows begin behind its columns, if it is misaligned.
  mlir::Value misalignment;
  /// Where rows are combined and others left, the first of those that are
  /// combined to one, and what comes after the last.
  mlir::Value firstCombined, endCombined;
  /// What combines rows, and the tiles in which it does, those in registers, as
  /// they come into the loop over rows and as they leave it.
  llvm::SmallVector<tile::ReduceRowsOp> rowReductions;
  mlir::ValueRange accumulators;
  llvm::SmallVector<mlir::Value> accumulated;

  /// Tiles of the values that are the same in every column of the row, and
  /// where to build more of them while a loop over columns is being built.
  mlir::IRMapping rowScope;
  mlir::Operation *columnLoop = nullptr;
  /// Tiles of what the rows of the current band combine to.
  mlir::IRMapping bandScope;
  /// Tiles of the values of the current columns.
  mlir::IRMapping columnScope;
  llvm::DenseMap<mlir::Value, int64_t> depths;
  /// The last walk over the row, counted from 0.
  int64_t lastSweep = 0;

  /// The loads of a group of rows, in the order in which the program makes
  /// them: while they are collected, those made so far, and while there are
  /// some `ahead`, those that were made for the group before it was reached.
  llvm::SmallVector<mlir::Value> *collected = nullptr;
  mlir::ValueRange ahead;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_TILER_H
