//===- softmax.td - Softmax --------------------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_SoftmaxOp : Tile_ModelOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "each row's exponentials, scaled to the sum 1";
  let description = [{
    `result = exp(x - max(x)) / sum(exp(x - max(x)))`, computed in float32
    (float64 for float64 operands) and rounded once. Entries of -inf count as
    absent; a row of nothing else is NaN, as in PyTorch.

    The derivative takes the maximum for a constant: subtracting it changes
    rounding and overflow, not the value.

    Example:

    ```mlir
    %0 = tile.softmax %x : tensor<?x4096xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";

  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput());
      Expr shifted = exp(x - stopGradient(rowMax(x)));
      return {(shifted * (1.0 / rowSum(shifted)))
                  .as(getType().getElementType())};
    }
  }];
}
