//===- ModelOpBase.td - What model ops share ----------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_MODELOPBASE_TD
#define BASTILE_DIALECT_MODELOPBASE_TD

include "dialect/RowTypes.td"
include "dialect/TileInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// A model op stands in one file of dialect/ops/, its `decompose` and, where it
/// has more to check than its types, its `verify` among it, written with the
/// expressions of dialect/Expression.h.
class Tile_ModelOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<Tile_DecomposableOpInterface>])>;

#endif // BASTILE_DIALECT_MODELOPBASE_TD
