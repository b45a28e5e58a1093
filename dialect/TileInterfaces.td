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

def Tile_ScheduleInterface : AttrInterface<"ScheduleInterface"> {
  let cppNamespace = "::bastile::tile";
  let description = [{
    How a kernel or a program runs. This is what every launch needs to know; each
    kind of schedule has fields of its own beside it. A field that is 0 has not
    been chosen.
  }];
  let methods = [
    InterfaceMethod<"Threads of a block.", "int64_t", "getThreads">,
    InterfaceMethod<"Blocks of a cluster; 1 where there are no clusters.",
      "int64_t", "getBlocks">,
    InterfaceMethod<[{
        The most blocks for each multiprocessor, which go through all of the
        work; 0 launches as many as there is work for.
      }],
      "int64_t", "getPersistent">,
    InterfaceMethod<[{
        Whether a program can be made by it: no field is left to be chosen whose
        0 means nothing.
      }],
      "bool", "isComplete">
  ];
}

#endif // BASTILE_DIALECT_TILEINTERFACES_TD
