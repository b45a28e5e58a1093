//===- rms_norm.td - Root mean square normalization ---------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_OPS_RMS_NORM_TD
#define BASTILE_DIALECT_OPS_RMS_NORM_TD

include "dialect/ModelOpBase.td"

def Tile_RmsNormCasting : I32EnumAttr<"RmsNormCasting",
    "where a norm rounds to the element type", [
    I32EnumAttrCase<"Llama", 0, "llama">,
    I32EnumAttrCase<"Gemma", 1, "gemma">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_RmsNormOp : Tile_ModelOp<"rms_norm", [
    AllTypesMatch<["input", "result"]>]> {
  let summary = "divides each row by its root mean square";
  let description = [{
    ```
    rstd = 1 / sqrt(mean(x^2) + eps)
    result = x * rstd * (offset + weight)
    ```

    (Zhang and Sennrich, arXiv 1910.07467.) Without `weight`, the last factor is
    one, whatever the `offset`. An `offset` of 1 is for models that store the
    weight less one, as Gemma does.

    Computed in float32 (float64 for float64 operands). With the casting order
    `llama` (the default) `x * rstd` is rounded to x's type before the weight
    multiplies it, as Llama, Qwen and Mistral do; with `gemma` there is one
    rounding at the end, as in Gemma and GPT-OSS. The two are the same function
    where there is no weight.

    Example:

    ```mlir
    %0 = tile.rms_norm %x, %weight {eps = 1.0e-5}
        : tensor<?x2880xbf16>, tensor<2880xbf16>
    %1 = tile.rms_norm %x, %weight casting(gemma) {offset = 1.0}
        : tensor<?x2880xbf16>, tensor<2880xf32>
    %2 = tile.rms_norm %x : tensor<?x?x128xf16>
    ```
  }];
  let arguments = (ins
    Tile_RowTensor:$input, Optional<Tile_RowVector>:$weight,
    DefaultValuedAttr<Tile_RmsNormCasting, "RmsNormCasting::Llama">:$casting,
    DefaultValuedAttr<F64Attr, "1.0e-6">:$eps,
    DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input (`,` $weight^)? (`casting` `(` $casting^ `)`)? attr-dict `:`
    type($input) (`,` type($weight)^)?
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      if (double eps = getEps().convertToDouble(); !(eps >= 0))
        return emitOpError("eps must not be negative, but is ") << eps;
      if (!getWeight())
        return ::mlir::success();
      return verifyRowLength(*this, getWeight(), "weight", getInput(), "input");
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput());
      ::mlir::Type type = getType().getElementType();
      Expr rstd = rsqrt(rowMean(x * x) + getEps().convertToDouble());
      Expr normalized = x * rstd;
      if (!getWeight())
        return {normalized.as(type)};
      Expr weight(builder, getWeight());
      if (!getOffset().isZero())
        weight = weight + getOffset().convertToDouble();
      if (getCasting() == RmsNormCasting::Llama)
        normalized = normalized.roundedTo(type);
      return {(normalized * weight).as(type)};
    }
  }];
}

#endif // BASTILE_DIALECT_OPS_RMS_NORM_TD
