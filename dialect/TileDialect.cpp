//===- TileDialect.cpp - The tile dialect ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"

#include "dialect/Expression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;

#include "dialect/TileDialect.cpp.inc"
#include "dialect/TileEnums.cpp.inc"
#include "dialect/TileInterfaces.cpp.inc"

#include "dialect/TileAttrInterfaces.cpp.inc"

namespace {

/// Constants stay in their role: a tile belongs to the role's threads.
struct TileFolds : public DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  bool shouldMaterializeInto(Region *region) const override {
    return isa<bastile::tile::RolesOp>(region->getParentOp());
  }
};

} // namespace

void bastile::tile::TileDialect::initialize() {
  addInterfaces<TileFolds>();
  registerAttributes();
  registerTypes();
  registerModelOps();
  addOperations<
#define GET_OP_LIST
#include "dialect/TileOps.cpp.inc"
      >();
}

/// Parses the regions of a `tile.roles`. If one has a mistake, those before it
/// are destroyed, and nothing may be left that reads their values: an op ahead
/// of the `tile.roles` may, as the parser does not check dominance.
static ParseResult parseRoles(OpAsmParser &parser,
                              SmallVectorImpl<std::unique_ptr<Region>> &roles) {
  auto parseRole = [&] {
    roles.push_back(std::make_unique<Region>());
    ParseResult parsed = parser.parseRegion(*roles.back());
    if (roles.back()->empty())
      roles.back()->emplaceBlock();
    return parsed;
  };
  if (succeeded(parser.parseCommaSeparatedList(parseRole)))
    return success();
  for (const std::unique_ptr<Region> &role : roles)
    for (Block &block : *role)
      block.dropAllDefinedValueUses();
  return failure();
}

static void printRoles(OpAsmPrinter &printer, Operation *,
                       MutableArrayRef<Region> roles) {
  llvm::interleaveComma(roles, printer,
                        [&](Region &role) { printer.printRegion(role); });
}

#define GET_OP_CLASSES
#include "dialect/TileOps.cpp.inc"
