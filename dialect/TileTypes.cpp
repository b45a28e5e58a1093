//===- TileTypes.cpp - Types of programs that wait ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/ElementBytes.h"
#include "dialect/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile::tile;

#define GET_TYPEDEF_CLASSES
#include "dialect/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/TileTypes.cpp.inc"
      >();
}

LogicalResult BarriersType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t count) {
  constexpr int64_t most = 1024;
  if (count < 1 || count > most)
    return emitError() << "there are 1 to " << most << " barriers, not "
                       << count;
  return success();
}

LogicalResult
TensorMapType::verify(function_ref<InFlightDiagnostic()> emitError,
                      MemRefType memory, ArrayRef<int64_t> box,
                      int64_t swizzle) {
  constexpr int64_t mostDimensions = 5, mostElements = 256;
  int64_t rank = memory.getRank();
  if (rank < 1 || rank > mostDimensions)
    return emitError() << "copies take 1 to " << mostDimensions
                       << " dimensions, not those of " << memory;
  if (static_cast<int64_t>(box.size()) != rank)
    return emitError() << "a box of " << box.size()
                       << " dimensions is no part of " << memory;
  for (int64_t size : box)
    if (size < 1 || size > mostElements)
      return emitError() << "a box has 1 to " << mostElements
                         << " elements along each dimension, not " << size;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "a swizzle has 0, 32, 64 or 128 bytes, not "
                       << swizzle;
  if (!memory.getElementType().isIntOrFloat())
    return emitError() << memory << " has neither integers nor floats";
  int64_t bytes = box.back() * bastile::getElementBytes(memory);
  if (bytes % 16 != 0 || (swizzle != 0 && bytes > swizzle))
    return emitError() << "rows of a box have a multiple of 16 bytes, at most "
                          "those of the swizzle, not "
                       << bytes;
  return success();
}
