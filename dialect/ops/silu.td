//===- silu.td - Sigmoid linear unit -----------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_SiluOp : Tile_ModelOp<"silu", [SameOperandsAndResultType]> {
  let summary = "x times its sigmoid";
  let description = [{
    `result = x / (1 + exp(-x))` (Elfwing et al., arXiv 1702.03118), computed in
    float32 (float64 for float64 operands) and rounded once.

    Example:

    ```mlir
    %0 = tile.silu %x : tensor<?x11008xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";

  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      return {silu(Expr(builder, getInput())).as(getType().getElementType())};
    }
  }];
}
