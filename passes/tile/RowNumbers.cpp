//===- RowNumbers.cpp - The numbers of rows along dimensions --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A program counts its rows over all leading dimensions. How the runtime merges
// these changes their sizes, not the order of the rows, so the number of a row
// along a dimension follows from the sizes ahead of merging.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/RowNumbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <set>

using namespace mlir;
using namespace bastile;

namespace {

/// The leading dimensions from `first` to before `end`, of `leading`, along
/// which `iota` numbers rows.
struct NumberedRows {
  explicit NumberedRows(tile::IotaOp iota)
      : first(iota.getOver()->front()), end(iota.getOver()->back() + 1),
        leading(iota.getType().getRank() - 1) {}

  /// Whether there are dimensions behind these, all of whose rows have one
  /// number, and ahead of these, where the numbers begin again from 0.
  bool haveOthersBehind() const { return end < leading; }
  bool haveOthersAhead() const { return first > 0; }

  int64_t first, end, leading;
};

} // namespace

SmallVector<int64_t> bastile::getUnmergedSizes(const KernelTiling &tiling) {
  std::set<int64_t> asked;
  for (auto iota : tiling.getBody().getOps<tile::IotaOp>()) {
    if (!iota.getOver())
      continue;
    const NumberedRows rows(iota);
    for (int64_t dimension = rows.haveOthersAhead() ? rows.first : rows.end;
         dimension < rows.leading; ++dimension)
      if (iota.getType().isDynamicDim(dimension))
        asked.insert(dimension);
  }
  return llvm::to_vector(asked);
}

Value bastile::numberRows(ImplicitLocOpBuilder &builder,
                          const KernelTiling &tiling, tile::ProgramOp program,
                          tile::IotaOp iota, Value row) {
  const NumberedRows rows(iota);
  RankedTensorType type = tiling.getTileType(iota);
  if (!rows.haveOthersBehind() && !rows.haveOthersAhead())
    return tile::IotaRowsOp::create(builder, type, row);

  // All rows may be more than 32 bits count.
  RankedTensorType wide = type.clone(builder.getI64Type());
  auto getSize = [&](int64_t dimension) -> Value {
    if (iota.getType().isDynamicDim(dimension))
      return program.getUnmergedSize(dimension);
    return arith::ConstantIndexOp::create(builder,
                                          iota.getType().getDimSize(dimension));
  };
  auto getCount = [&](int64_t first, int64_t end) -> Value {
    Value count = getSize(first);
    for (int64_t dimension = first + 1; dimension < end; ++dimension)
      count = arith::MulIOp::create(builder, count, getSize(dimension));
    count = arith::IndexCastUIOp::create(builder, builder.getI64Type(), count);
    return tile::BroadcastOp::create(builder, wide, count, Value());
  };
  Value number = tile::IotaRowsOp::create(builder, wide, row);
  if (rows.haveOthersBehind())
    number = arith::DivUIOp::create(builder, number,
                                    getCount(rows.end, rows.leading));
  if (rows.haveOthersAhead())
    number =
        arith::RemUIOp::create(builder, number, getCount(rows.first, rows.end));
  return arith::TruncIOp::create(builder, type, number);
}
