//===- SharedTiles.cpp - Tiles that any thread may read -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/SharedTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bastile;

SharedTile::SharedTile(MemRefType type) {
  auto sizes = type.getShape().take_back(2);
  elementBytes = getElementBytes(type);
  rows = sizes[0];
  rowBytes = sizes[1] * elementBytes;
  swizzle = cast<tile::SharedAttr>(type.getMemorySpace()).getSwizzle();
}

Value bastile::advanceBytes(OpBuilder &builder, Location loc, Value address,
                            Value bytes) {
  bytes =
      arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), bytes);
  return LLVM::GEPOp::create(builder, loc, address.getType(),
                             builder.getI8Type(), address, ValueRange{bytes},
                             LLVM::GEPNoWrapFlags::none);
}

Value bastile::advanceBytes(OpBuilder &builder, Location loc, Value address,
                            int64_t bytes) {
  if (bytes == 0)
    return address;
  return LLVM::GEPOp::create(
      builder, loc, address.getType(), builder.getI8Type(), address,
      LLVM::GEPArg(static_cast<int32_t>(bytes)), LLVM::GEPNoWrapFlags::none);
}

Value bastile::getSlot(OpBuilder &builder, Location loc, MemRefType type,
                       Value buffer, Value slot) {
  Value bytes =
      arith::ConstantIndexOp::create(builder, loc, SharedTile(type).getBytes());
  return advanceBytes(builder, loc, buffer,
                      arith::MulIOp::create(builder, loc, slot, bytes));
}
