//===- TileInterfaces.td - Interfaces of the tile dialect ---*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILEINTERFACES_TD
#define BASTILE_DIALECT_TILEINTERFACES_TD

include "mlir/IR/Interfaces.td"
include "mlir/IR/OpBase.td"

def Tile_DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::bastile::tile";
  let description = [{
    An op whose meaning is a graph of simpler ops. `decompose` is the op's only
    definition: every target and every derivative follows from it.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the graph that computes this op's results and returns its values,
        one for each result and of its type. The op itself is left in place.
      }],
      "::llvm::SmallVector<::mlir::Value>", "decompose",
      (ins "::mlir::ImplicitLocOpBuilder &":$builder)>
  ];
}

def Tile_LayoutInterface : AttrInterface<"LayoutInterface"> {
  let cppNamespace = "::bastile::tile";
  let description = [{
    Which thread holds which element of a tile. A thread holds a tile in pieces
    of neighbouring elements of a row.
  }];
  let methods = [
    InterfaceMethod<"Number of pieces of a tile with `shape` that a thread holds.",
      "int64_t", "getNumPieces", (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<"Elements of each piece of a tile with `shape`.",
      "int64_t", "getPieceElements", (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<[{
        Row and column, in a tile with `shape`, of the first element of `piece`
        as `thread` of `block` holds it.
      }],
      "std::pair<int64_t, int64_t>", "getElement",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "int64_t":$block,
           "int64_t":$thread, "int64_t":$piece)>
  ];
}

#endif // BASTILE_DIALECT_TILEINTERFACES_TD
