//===- LoopTiles.h - Tiles inside and outside of a loop ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_BUILDING_LOOPTILES_H
#define BASTILE_PASSES_BUILDING_LOOPTILES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace bastile {

/// The tiles of a kernel's values in a program that is being built.
///
/// There is one rule of placement for all programs: a tile is built in the
/// innermost loop along whose dimensions its value has elements, once for each
/// turn of that loop. A program goes along a row, or along k, in one loop at a
/// time. A value that has elements along it is built inside of that loop, where
/// the builder stands, and any other value ahead of it.
class LoopTiles {
public:
  /// The tile of `value`. If it has none yet, `build` makes it with `builder`
  /// where it belongs.
  mlir::Value get(mlir::OpBuilder &builder, mlir::Value value, bool isInside,
                  llvm::function_ref<mlir::Value()> build);
  /// Makes `tile` that of `value`.
  void map(mlir::Value value, mlir::Value tile, bool isInside) {
    (isInside ? inside : outside).map(value, tile);
  }

  /// Enters `loop`, or steps of a loop that begin with the op `loop`.
  void enter(mlir::Operation *newLoop) {
    loop = newLoop;
    inside.clear();
  }
  void leave() { enter(nullptr); }
  /// The loop that the program is in; null outside of loops.
  mlir::Operation *getLoop() const { return loop; }

  /// Forgets all tiles, because the program goes on to others.
  void clear() {
    inside.clear();
    outside.clear();
  }

  /// Forgets, at its end, the tiles that were built meanwhile outside of loops,
  /// or inside of one.
  class Scope {
  public:
    Scope(LoopTiles &tiles, bool isInside)
        : tiles(isInside ? tiles.inside : tiles.outside), before(this->tiles) {}
    ~Scope() { tiles = std::move(before); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    mlir::IRMapping &tiles;
    mlir::IRMapping before;
  };

private:
  mlir::IRMapping inside, outside;
  mlir::Operation *loop = nullptr;
};

} // namespace bastile

#endif // BASTILE_PASSES_BUILDING_LOOPTILES_H
