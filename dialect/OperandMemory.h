//===- OperandMemory.h - How a program's operand lies in memory -*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_OPERANDMEMORY_H
#define BASTILE_DIALECT_OPERANDMEMORY_H

#include "dialect/Tile.h"

namespace bastile::tile {

/// The type in memory of an operand of a program: null if it has none.
inline mlir::MemRefType getMemoryType(mlir::Type operand) {
  if (auto map = mlir::dyn_cast<TensorMapType>(operand))
    return map.getMemory();
  return mlir::dyn_cast<mlir::MemRefType>(operand);
}

/// The type of an operand with `sizes`: its rows are contiguous, and may lie
/// any strides apart.
inline mlir::MemRefType getStridedType(llvm::ArrayRef<int64_t> sizes,
                                       mlir::Type element) {
  if (sizes.size() < 2)
    return mlir::MemRefType::get(sizes, element);
  llvm::SmallVector<int64_t> strides(sizes.size(), mlir::ShapedType::kDynamic);
  strides.back() = 1;
  return mlir::MemRefType::get(
      sizes, element,
      mlir::StridedLayoutAttr::get(element.getContext(), 0, strides));
}

/// The swizzle of a buffer or tile in shared memory; none elsewhere.
inline std::optional<int64_t> getSwizzle(mlir::Type type) {
  auto memory = mlir::dyn_cast<mlir::MemRefType>(type);
  auto shared =
      memory ? mlir::dyn_cast_or_null<SharedAttr>(memory.getMemorySpace())
             : SharedAttr();
  return shared ? std::optional(shared.getSwizzle()) : std::nullopt;
}

/// Whether `op` says where operands or results of launches lie: pieces of a
/// tensor, or what results are pieces of.
inline bool isPlaceOfOperands(mlir::Operation *op) {
  if (mlir::isa<PieceOp>(op))
    return true;
  return mlir::isa<JoinOp>(op) &&
         llvm::all_of(op->getOperands(), [](mlir::Value piece) {
           return piece.getDefiningOp<LaunchOp>();
         });
}

} // namespace bastile::tile

#endif // BASTILE_DIALECT_OPERANDMEMORY_H
