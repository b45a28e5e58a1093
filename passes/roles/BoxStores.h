//===- BoxStores.h - Stores of results by copies of boxes -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_BOXSTORES_H
#define BASTILE_PASSES_ROLES_BOXSTORES_H

#include "dialect/ElementBytes.h"
#include "passes/products/ProgramFrame.h"
#include <map>

namespace bastile {

/// Writes tiles of results by copies of boxes, each warp the rows that it
/// holds. A slot of shared memory is written once the copy out of it has read
/// it.
class BoxStores {
public:
  /// Tiles have `columns` columns, and slots lie from byte `offset` on.
  BoxStores(ProgramFrame &frame, int64_t columns, int64_t offset);

  void store(unsigned result, mlir::Value tile);
  /// Waits until all stores of a role but the last `pending` have read their
  /// slots.
  static void wait(mlir::ImplicitLocOpBuilder &builder, int64_t pending) {
    tile::WaitStoresOp::create(builder, static_cast<uint64_t>(pending),
                               /*warp=*/true);
  }

private:
  /// A slot, and the number of the last store out of it.
  struct Slot {
    int64_t offset;
    std::optional<int64_t> last;
  };
  int64_t getRowBytes(mlir::Type element) const {
    return columns * getElementBytes(element);
  }

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const int64_t columns;
  /// By the bytes of a row: where rows have other lengths, warps have other
  /// bytes of a slot.
  std::map<int64_t, llvm::SmallVector<Slot, 2>> slots;
  int64_t count = 0;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_BOXSTORES_H
