//===- TileTypes.td - Types of programs that wait -----------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILETYPES_TD
#define BASTILE_DIALECT_TILETYPES_TD

include "dialect/TileAttributes.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypes.td"

class Tile_Type<string name, string typeMnemonic>
    : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_BarriersType : Tile_Type<"Barriers", "barriers"> {
  let summary = "barriers in shared memory that count arrivals and bytes";
  let description = [{
    `!tile.barriers<4>` are four barriers, each with phases of its own. A phase
    ends when as many arrivals have come as the barrier waits for, and all bytes
    that were announced.
  }];
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Tile_PendingType : Tile_Type<"Pending", "pending"> {
  let summary = "a tile that products still add to";
  let description = [{
    No thread can read the tile before a `tile.wait_dots` has waited for the
    products. A further product may add to it.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $tile `>`";
}

def Tile_TensorMapType : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "an operand in memory that is copied by boxes";
  let description = [{
    An operand of type `memory`, described in the form that copies of tensors
    take: `box` is what one copy moves, in the order of the operand's
    dimensions, `swizzle` the number of bytes of a panel in shared memory (0 for
    rows without a swizzle). The runtime makes the description for each call.

    `!tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [128, 64],
    swizzle = 128>`
  }];
  let parameters = (ins "::mlir::MemRefType":$memory,
                        ArrayRefParameter<"int64_t">:$box, "int64_t":$swizzle);
  let assemblyFormat = [{
    `<` $memory `,` `box` `=` `[` $box `]` `,` `swizzle` `=` $swizzle `>`
  }];
  let genVerifyDecl = 1;
}

#endif // BASTILE_DIALECT_TILETYPES_TD
