//===- TileInterfaces.td - Interfaces of the tile dialect ---*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILEINTERFACES_TD
#define BASTILE_DIALECT_TILEINTERFACES_TD

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

#endif // BASTILE_DIALECT_TILEINTERFACES_TD
