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
    I32EnumAttrCase<"None", 2, "none">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_RmsNormOp : Tile_ModelOp<"rms_norm", [
    AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "divides each row by its root mean square";
  let description = [{
    ```
    rstd = 1 / sqrt(mean(x^2) + eps)
    result = x * rstd * (offset + weight) + bias
    ```

    (Zhang and Sennrich, arXiv 1910.07467.) Without `weight`, its factor is one,
    whatever the `offset`; without `bias`, nothing is added. An `offset` of 1 is
    for models that store the weight less one, as Gemma does. With `groups`, the
    mean is that of each of so many groups of neighbouring elements of the row:
    heads that lie in one row, with a weight for each, are normalized one by one.

    Computed in float32 (float64 for float64 operands). With the casting order
    `llama` (the default) `x * rstd` is rounded to x's type before the weight
    multiplies it, as Llama, Qwen and Mistral do; with `gemma` there is one
    rounding at the end, as in Gemma and GPT-OSS. The two are the same function
    where there is neither weight nor bias. With `none`, every step is rounded
    to x's type, the row's statistics too, as PyTorch does where a model casts
    nothing.

    Example:

    ```mlir
    %0 = tile.rms_norm %x, %weight {eps = 1.0e-5}
        : tensor<?x2880xbf16>, tensor<2880xbf16>
    %1 = tile.rms_norm %x, %weight casting(gemma) {offset = 1.0}
        : tensor<?x2880xbf16>, tensor<2880xf32>
    %2 = tile.rms_norm %x : tensor<?x?x128xf16>
    %3 = tile.rms_norm %heads, %weights bias(%bias) {groups = 8}
        : tensor<?x?x1024xbf16>, tensor<1024xf32>, tensor<1024xf32>
    ```
  }];
  let arguments = (ins
    Tile_RowTensor:$input, Optional<Tile_RowVector>:$weight,
    Optional<Tile_RowVector>:$bias,
    DefaultValuedAttr<Tile_RmsNormCasting, "RmsNormCasting::Llama">:$casting,
    DefaultValuedAttr<F64Attr, "1.0e-6">:$eps,
    DefaultValuedAttr<F64Attr, "0.0">:$offset,
    DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input (`,` $weight^)? (`bias` `(` $bias^ `)`)?
    (`casting` `(` $casting^ `)`)? attr-dict `:`
    custom<PresentTypes>(ref($weight), ref($bias), type($input), type($weight),
                         type($bias))
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      if (double eps = getEps().convertToDouble(); !(eps >= 0))
        return emitOpError("eps must not be negative, but is ") << eps;
      if (failed(verifyGroups(*this, getGroups(), getInput(), "input")))
        return ::mlir::failure();
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
      ::mlir::Type type = getType().getElementType();
      RmsNormCasting casting = getCasting();
      auto step = [&](const Expr &value) {
        return casting == RmsNormCasting::None ? value.roundedTo(type) : value;
      };
      Expr mean = step(rowMean(step(x * x), getGroups()));
      Expr rstd = step(rsqrt(step(mean + getEps().convertToDouble())));
      Expr result = step(x * rstd);
      if (getWeight()) {
        Expr weight(builder, getWeight());
        if (!getOffset().isZero())
          weight = step(weight + getOffset().convertToDouble());
        if (casting == RmsNormCasting::Llama)
          result = result.roundedTo(type);
        result = result * weight;
      }
      if (getBias())
        result = step(result) + Expr(builder, getBias());
      return {result.as(type)};
    }
  }];
}

#endif // BASTILE_DIALECT_OPS_RMS_NORM_TD
