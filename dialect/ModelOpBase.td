//===- ModelOpBase.td - The base class of model ops -----------------------===//
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

/// Each model op has one file in dialect/ops/, with its `decompose`, written
/// with the expressions of dialect/Expression.h. An op that has more to check
/// than its types has its `verify` there too.
class Tile_ModelOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<Tile_DecomposableOpInterface>])>;

#endif // BASTILE_DIALECT_MODELOPBASE_TD
