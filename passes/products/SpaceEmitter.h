//===- SpaceEmitter.h - Tiles of a program over dimensions ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_SPACEEMITTER_H
#define BASTILE_PASSES_PRODUCTS_SPACEEMITTER_H

#include "passes/analysis/MaskConditions.h"
#include "passes/analysis/PowersOf2.h"
#include "passes/building/LoopTiles.h"
#include "passes/products/ProgramOperands.h"
#include <functional>

namespace bastile {

/// How many elements of each dimension a tile has.
struct Extents {
  int64_t rows, columns, streamed;
  /// The rows of a box that is copied of a left factor.
  int64_t boxRows;
  /// How many neighbouring matrices of the batch the rows are of.
  int64_t matrices = 1;

  /// The rows of each matrix.
  int64_t getMatrixRows() const { return rows / matrices; }
};

/// Emits the tiles of values where they belong: what is streamed in the loop
/// over k, everything else ahead of that loop or behind it (LoopTiles.h).
class SpaceEmitter {
public:
  SpaceEmitter(mlir::ImplicitLocOpBuilder &builder, tile::KernelOp kernel,
               const KernelSpace &space, const ProgramOperands &operands,
               mlir::Attribute layout, const Extents &extents)
      : builder(builder), space(space), operands(operands), layout(layout),
        extents(extents) {
    if (mlir::isa<tile::MmaAttr>(layout))
      powersOf2 = PowersOf2(kernel.getBody().front());
  }

  /// Says where tiles are emitted.
  void setProgram(tile::ProgramOp newProgram) { program = newProgram; }

  /// The tile of `value`. `ofFactor` says whether the op that reads it computes
  /// a left factor, or reduces one.
  mlir::Value emit(mlir::Value value, bool ofFactor = false);
  /// Makes `tile` the tile of a statistic or a product, behind the loops.
  void map(mlir::Value value, mlir::Value tile) {
    tiles.map(value, tile, /*isInside=*/false);
  }
  /// Makes `tile` what streamed ops read of `value`, up to the end of a loop.
  void mapStreamed(mlir::Value value, mlir::Value tile) {
    tiles.map(value, tile, /*isInside=*/true);
  }
  /// The powers that are emitted as powers of 2. The tiles of scores that these
  /// are the powers of may lack a factor (PowersOf2.h).
  const PowersOf2 &getPowersOf2() const { return powersOf2; }
  /// The tile of exp(x - m), of scores `x`, where `exponent` is m log2 e.
  mlir::Value emitPower(mlir::Value x, mlir::Value exponent);
  /// Forgets, at its end, the tiles that were emitted meanwhile outside of the
  /// loop over k.
  class Scope : LoopTiles::Scope {
  public:
    explicit Scope(SpaceEmitter &emitter)
        : LoopTiles::Scope(emitter.tiles, /*isInside=*/false) {}
  };

  /// Emits, with the tile of the maximum given, the tile of a statistic that
  /// follows from it element by element.
  mlir::Value emitFrom(mlir::Value statistic, mlir::Value maximum,
                       mlir::Value tile);

  /// `tile`, of streamed elements that `kind` combines next, with the neutral
  /// element beyond the end of k, and with `masksRows` beyond that of m.
  mlir::Value maskEnd(mlir::Value tile, tile::ReduceKind kind,
                      bool masksRows = false);

  /// The type of the tile of a `type` that a left factor is computed of, or of
  /// one that is not.
  mlir::RankedTensorType getTileType(mlir::RankedTensorType type,
                                     bool ofFactor) const;
  mlir::Value getSize(llvm::StringRef name) {
    return program.getSize(builder.getStringAttr(name));
  }
  mlir::Value getMemory(unsigned operand) {
    return program.getArgument(program.getNumSizes() + operand);
  }
  /// Where `operand` has the tile in each of its dimensions.
  llvm::SmallVector<mlir::Value> getIndices(unsigned operand);
  /// Stores the tile of a result from registers.
  void emitStore(unsigned operand, mlir::Value tile);
  /// Adds to `sum` the product `dot` of two factors in memory, over the whole
  /// of the dimension that it sums over.
  mlir::Value emitLoadDot(tile::DotOp dot, mlir::Value sum);
  /// The tile `left`, of a computed left factor, in the type in which `dot`
  /// multiplies.
  mlir::Value roundLeft(tile::DotOp dot, mlir::Value left);
  mlir::Value constant(int64_t value);
  /// The integer that an operand of a left factor has for the whole matrix,
  /// read ahead of the loop.
  mlir::Value emitNumber(mlir::BlockArgument argument);
  /// The least and the greatest integer that an operand of a left factor has
  /// for a row of the tile, read ahead of the loop.
  std::pair<mlir::Value, mlir::Value>
  emitNumbersOfRows(mlir::BlockArgument argument);
  /// Makes `least` and `greatest` these integers.
  void setNumbersOfRows(mlir::BlockArgument argument, mlir::Value least,
                        mlir::Value greatest) {
    numbersOfRows[argument] = {least, greatest};
  }
  const Extents &getExtents() const { return extents; }
  /// Makes tiles along n as long as `columns`, from `first` on.
  void setColumns(mlir::Value first, int64_t columns) {
    column = first;
    extents.columns = columns;
  }

  /// The first row and column of the tile, the first streamed element, and the
  /// place in the batch, by the name of the dimension.
  mlir::Value row, column, stream;
  llvm::MapVector<mlir::Attribute, mlir::Value> batch;
  /// Enters the loop over k, or steps of it that begin with the op `loop`.
  void enterLoop(mlir::Operation *loop) { tiles.enter(loop); }
  void leaveLoop() {
    tiles.leave();
    stream = mlir::Value();
  }
  mlir::Operation *getLoop() const { return tiles.getLoop(); }
  /// Emits the product of an inner `tile.dot` in the loop.
  std::function<mlir::Value(tile::DotOp)> emitInner;
  /// Emits a streamed element of an operand in another way than by a load; null
  /// if there is none.
  std::function<mlir::Value(unsigned)> emitStaged;

private:
  mlir::Value emitLoad(mlir::BlockArgument argument, bool ofFactor);
  mlir::Value emitOp(mlir::OpResult result, bool ofFactor);
  mlir::Value emitExponentOf2(mlir::Value statistic, bool ofFactor);
  mlir::Value emitIota(tile::IotaOp iota, bool ofFactor);
  mlir::Value numberRows(mlir::RankedTensorType type, mlir::Value first);
  mlir::Value countOver(
      tile::IotaOp iota, llvm::StringRef rows,
      llvm::function_ref<mlir::Value(int64_t ahead, mlir::StringAttr name)>
          getPlace,
      llvm::function_ref<mlir::Value(mlir::Value size)> asPlace);
  mlir::Value emitIotaOfMatrices(tile::IotaOp iota,
                                 mlir::RankedTensorType type);
  mlir::Value emitMasked(mlir::OpResult result, const Mask &mask);
  mlir::Value numberColumns(mlir::RankedTensorType type, mlir::Value first);
  /// A tile of integers that all are `number`, which may be an index.
  mlir::Value spread(mlir::RankedTensorType type, mlir::Value number);
  /// Whether a tile with `length` elements of the dimension `name`, from
  /// `first` on, goes beyond its end.
  mlir::Value isCut(llvm::StringRef name, mlir::Value first, int64_t length);
  /// Which of the elements that `numbers` counts from `first` on the dimension
  /// has.
  mlir::Value isInside(llvm::StringRef name, mlir::Value first,
                       mlir::Value numbers);

  mlir::ImplicitLocOpBuilder &builder;
  const KernelSpace &space;
  const ProgramOperands &operands;
  tile::ProgramOp program;
  mlir::Attribute layout;
  Extents extents;
  PowersOf2 powersOf2;
  LoopTiles tiles;
  /// The last numbers of rows that were read, by argument.
  llvm::SmallDenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>>
      numbersOfRows;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_SPACEEMITTER_H
