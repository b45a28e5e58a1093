//===- relu_squared.td - Squared ReLU ----------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_ReluSquaredOp : Tile_ModelOp<"relu_squared", [
    SameOperandsAndResultType]> {
  let summary = "the square of the positive part";
  let description = [{
    `result = max(x, 0)^2` (So et al., arXiv 2109.08668), computed in float32
    (float64 for float64 operands) and rounded once.

    Example:

    ```mlir
    %0 = tile.relu_squared %x : tensor<?x11008xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";

  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr positive = relu(Expr(builder, getInput()));
      return {(positive * positive).as(getType().getElementType())};
    }
  }];
}
