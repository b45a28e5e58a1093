//===- layer_norm.td - Layer normalization -----------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_LayerNormOp : Tile_ModelOp<"layer_norm", [
    AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "shifts and scales each row to mean 0 and variance 1";
  let description = [{
    ```
    c = x - mean(x)
    rstd = 1 / sqrt(mean(c^2) + eps)
    result = c * rstd * weight + bias
    ```

    (Ba et al., arXiv 1607.06450.) Without `weight` its factor is one, without
    `bias` nothing is added. Computed in float32 (float64 for float64 operands)
    and rounded once.

    Example:

    ```mlir
    %0 = tile.layer_norm %x, %weight bias(%bias) {eps = 1.0e-6}
        : tensor<?x1024xbf16>, tensor<1024xbf16>, tensor<1024xbf16>
    %1 = tile.layer_norm %x : tensor<?x1024xf32>
    %2 = tile.layer_norm %x bias(%bias) : tensor<?x1024xf32>, tensor<1024xf32>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input, Optional<Tile_RowVector>:$weight,
                       Optional<Tile_RowVector>:$bias,
                       DefaultValuedAttr<F64Attr, "1.0e-5">:$eps);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input (`,` $weight^)? (`bias` `(` $bias^ `)`)? attr-dict `:`
    custom<PresentTypes>(ref($weight), ref($bias), type($input), type($weight),
                         type($bias))
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      if (double eps = getEps().convertToDouble(); !(eps >= 0))
        return emitOpError("eps must not be negative, but is ") << eps;
      if (getWeight() && failed(verifyRowLength(*this, getWeight(), "weight",
                                                getInput(), "input")))
        return ::mlir::failure();
      if (!getBias())
        return ::mlir::success();
      return verifyRowLength(*this, getBias(), "bias", getInput(), "input");
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput());
      Expr centered = x - rowMean(x);
      Expr variance = rowMean(centered * centered);
      Expr result = centered * rsqrt(variance + getEps().convertToDouble());
      if (getWeight())
        result = result * Expr(builder, getWeight());
      if (getBias())
        result = result + Expr(builder, getBias());
      return {result.as(getType().getElementType())};
    }
  }];
}
