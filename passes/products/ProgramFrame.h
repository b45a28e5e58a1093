//===- ProgramFrame.h - What all programs over dimensions have --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_PROGRAMFRAME_H
#define BASTILE_PASSES_PRODUCTS_PROGRAMFRAME_H

#include "passes/products/SpaceEmitter.h"

namespace bastile {

/// The program of a kernel over dimensions as it is ahead of its loops: what it
/// takes, and where the tile is that it computes.
class ProgramFrame {
public:
  /// The frame of a program for at most `mostRows` rows, or for any number if
  /// these are 0.
  ProgramFrame(tile::KernelOp kernel, tile::MatmulAttr schedule, bool onHost,
               int64_t mostRows = 0);

  /// Creates the program `name`, without ops, in front of the kernel.
  tile::ProgramOp create(llvm::StringRef name);
  /// Counts the tiles of a matrix.
  void countTiles();
  /// The number of tiles of all matrices of the batch.
  mlir::Value getAllTiles();
  /// Lets the emitter compute tile `number`; in a cluster, the block whose rows
  /// begin `blockRow` behind the cluster's. Tiles are numbered in bands of
  /// several rows of tiles, one column of a band after the other: programs that
  /// run at the same time, or one after the other, share what they read of both
  /// operands in the cache.
  void findPlace(mlir::Value number, mlir::Value blockRow = mlir::Value());
  /// The same where a program has all columns, and tiles of the first rows of a
  /// matrix, or of the last ones, take the longest: tiles 2 i and 2 i + 1 are
  /// the i-th ones from both ends of a matrix, the longer one first.
  void findPlaceOfPairs(mlir::Value number, bool lastFirst);
  /// The same where a program has all columns, and tiles of all matrices that
  /// have the same rows come one after the other, the last rows first if
  /// `lastFirst`. Matrices beside each other in memory are read together.
  void findPlaceOfRows(mlir::Value number, bool lastFirst);
  /// Lets the emitter compute tile `rowTile` of matrix `matrix`, all of its
  /// columns.
  void setTile(mlir::Value rowTile, mlir::Value matrix);
  /// How many tiles of rows a matrix has.
  mlir::Value getRowTiles() const { return rowTiles; }
  /// The number of matrices of the batch, or of groups of as many matrices as a
  /// tile has rows of.
  mlir::Value countMatrices();
  /// The number of matrices of the batch in which some of `inputs` differ.
  mlir::Value countMatrices(llvm::ArrayRef<unsigned> inputs);
  /// The numbers that say which tile the emitter computes.
  llvm::SmallVector<mlir::Value> getPlace();
  int64_t countPlace();
  /// Lets the emitter compute the tile of which the first numbers of `place`
  /// are these. Returns the others.
  llvm::ArrayRef<mlir::Value> setPlace(llvm::ArrayRef<mlir::Value> place);

  /// The dimensions of the batch over which products are added up.
  llvm::SmallVector<mlir::StringAttr> getSummedBatch();
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::ValueRange before)>;
  /// Builds `body`, which carries values, in loops over the dimensions `summed`
  /// of the batch.
  llvm::SmallVector<mlir::Value>
  buildOverBatch(llvm::ArrayRef<mlir::StringAttr> summed,
                 mlir::ValueRange initial, Body body);

  /// Builds `body`, which carries values, for the steps along k from `first` to
  /// `end`, without the first `ahead` ones. Step 0 begins at `origin`, or at 0
  /// if that is null.
  llvm::SmallVector<mlir::Value>
  buildOverSteps(mlir::Value first, mlir::Value end, mlir::ValueRange initial,
                 Body body, mlir::Value origin = mlir::Value(),
                 int64_t ahead = 0);
  /// The step that a loop from `first` to `end` comes to at `place`.
  mlir::Value mirror(mlir::Value place, mlir::Value first, mlir::Value end);

  /// Builds the one step `number` along k, whose values are the result.
  llvm::SmallVector<mlir::Value>
  buildStep(mlir::Value number,
            llvm::function_ref<llvm::SmallVector<mlir::Value>()> body,
            mlir::Value origin = mlir::Value());

  mlir::Value constant(int64_t value) { return emitter.constant(value); }
  mlir::Block &getBody() const {
    return tile::KernelOp(kernel).getBody().front();
  }
  /// Whether `operand` is a result whose tiles go through shared memory.
  bool isStoredStaged(const Operand &operand) const;

  tile::KernelOp kernel;
  const tile::MatmulAttr schedule;
  const KernelSpace space;
  mlir::ImplicitLocOpBuilder builder;
  const mlir::Attribute layout;
  const Extents extents;
  const ProgramOperands operands;
  tile::ProgramOp program;
  SpaceEmitter emitter;
  /// Whether loops over the summed batch and over steps go from the last to the
  /// first; null if none does.
  mlir::Value reversed;

private:
  int64_t getAlignment(const Operand &operand) const;
  void addOperandType(const Operand &operand);
  mlir::DictionaryAttr getParts();
  llvm::SmallVector<mlir::StringAttr> getBatch();
  /// Whether tiles have some of the columns. Those of products whose left
  /// factors are computed have all.
  bool hasColumnTiles() const { return !space.hasComputedLeft(); }
  void findMatrix(mlir::Value number);
  mlir::Value getStream(mlir::Value step, mlir::Value origin);
  int64_t getPlaces(mlir::StringAttr name);
  mlir::Value countParts(mlir::StringAttr name);

  const llvm::SetVector<mlir::Attribute> names;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Attribute> attributes;
  mlir::Value rowTiles, columnTiles, matrixTiles;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_PROGRAMFRAME_H
