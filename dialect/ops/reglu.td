//===- reglu.td - Gated ReLU -------------------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_RegluOp : Tile_ModelOp<"reglu", [SameOperandsAndResultType]> {
  let summary = "gated ReLU: the positive part of gate times up";
  let description = [{
    `result = max(gate, 0) * up` (Shazeer, arXiv 2002.05202), computed in
    float32 (float64 for float64 operands) and rounded once. The derivative at
    zero is zero.

    Example:

    ```mlir
    %0 = tile.reglu %gate, %up : tensor<?x11008xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$gate, Tile_RowTensor:$up);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($result)";

  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr gate(builder, getGate()), up(builder, getUp());
      return {(relu(gate) * up).as(getType().getElementType())};
    }
  }];
}
