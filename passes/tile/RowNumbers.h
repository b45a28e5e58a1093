//===- RowNumbers.h - The numbers of rows along dimensions ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_ROWNUMBERS_H
#define BASTILE_PASSES_TILE_ROWNUMBERS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/tile/KernelTiling.h"

namespace bastile {

/// The leading dimensions of the kernel whose sizes the numbers of its rows
/// follow from, and which only a call knows.
llvm::SmallVector<int64_t> getUnmergedSizes(const KernelTiling &tiling);

/// Builds the tile of `iota`, which numbers rows, for the rows from `row` on,
/// the number of the tile's first row among all rows of the program.
mlir::Value numberRows(mlir::ImplicitLocOpBuilder &builder,
                       const KernelTiling &tiling, tile::ProgramOp program,
                       tile::IotaOp iota, mlir::Value row);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_ROWNUMBERS_H
