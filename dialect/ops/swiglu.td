//===- swiglu.td - Gated SiLU ------------------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_SwigluOp : Tile_ModelOp<"swiglu", [SameOperandsAndResultType]> {
  let summary = "gated SiLU: silu(gate) times up";
  let description = [{
    ```
    g = gate_scale * gate
    result = output_scale * g * sigmoid(g) * up
    ```

    (Shazeer, arXiv 2002.05202.) The scales, 1 by default, are the multipliers
    that some models have, such as Falcon-H1. Computed in float32 (float64 for
    float64 operands) and rounded once.

    Example:

    ```mlir
    %0 = tile.swiglu %gate, %up : tensor<?x14336xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$gate, Tile_RowTensor:$up,
                       DefaultValuedAttr<F64Attr, "1.0">:$gate_scale,
                       DefaultValuedAttr<F64Attr, "1.0">:$output_scale);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($result)";

  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr gate(builder, getGate()), up(builder, getUp());
      if (!getGateScale().isExactlyValue(1.0))
        gate = gate * getGateScale().convertToDouble();
      Expr result = silu(gate) * up;
      if (!getOutputScale().isExactlyValue(1.0))
        result = result * getOutputScale().convertToDouble();
      return {result.as(getType().getElementType())};
    }
  }];
}
