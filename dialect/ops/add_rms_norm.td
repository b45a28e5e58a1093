//===- add_rms_norm.td - Residual addition and normalization *- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

include "dialect/ops/rms_norm.td"

def Tile_AddRmsNormOp : Tile_ModelOp<"add_rms_norm", [
    AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>,
    AllTypesMatch<["residual", "sum"]>]> {
  let summary = "adds a residual, and divides each row by its root mean square";
  let description = [{
    ```
    sum = x + residual
    result = rms_norm(sum, weight, bias)
    ```

    The sum is rounded to the residual's type and returned as well, as the next
    residual. `rms_norm` computes in the residual's type, and the result is
    rounded to x's; so a model of bfloat16 may keep its residuals in float32.
    Attributes are those of `tile.rms_norm`.

    Example:

    ```mlir
    %result, %sum = tile.add_rms_norm %x, %residual, %weight {eps = 1.0e-5}
        : tensor<?x2880xbf16>, tensor<2880xbf16>
    ```

    Where the residual's type is another, it stands behind a plus:
    `tensor<?x2880xbf16> + tensor<?x2880xf32>, tensor<2880xbf16>`.
  }];
  let arguments = (ins
    Tile_RowTensor:$input, Tile_RowTensor:$residual,
    Optional<Tile_RowVector>:$weight, Optional<Tile_RowVector>:$bias,
    DefaultValuedAttr<Tile_RmsNormCasting, "RmsNormCasting::Llama">:$casting,
    DefaultValuedAttr<F64Attr, "1.0e-6">:$eps,
    DefaultValuedAttr<F64Attr, "0.0">:$offset,
    DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Tile_RowTensor:$result, Tile_RowTensor:$sum);
  let assemblyFormat = [{
    $input `,` $residual (`,` $weight^)? (`bias` `(` $bias^ `)`)?
    (`casting` `(` $casting^ `)`)? attr-dict `:`
    custom<SumTypes>(ref($weight), ref($bias), type($input), type($residual),
                     type($weight), type($bias))
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      if (double eps = getEps().convertToDouble(); !(eps >= 0))
        return emitOpError("eps must not be negative, but is ") << eps;
      auto input = ::mlir::cast<::mlir::RankedTensorType>(getInput().getType());
      auto residual =
          ::mlir::cast<::mlir::RankedTensorType>(getResidual().getType());
      if (input.getShape() != residual.getShape())
        return emitOpError("residual of type ")
               << residual << " does not have the shape of the input of type "
               << input;
      if (input.getElementType().isF64() != residual.getElementType().isF64())
        return emitOpError("residual of type ")
               << residual << " is not computed in the precision of the input "
               << "of type " << input;
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
      Expr x(builder, getInput()), residual(builder, getResidual());
      ::mlir::Value sum = (x + residual).as(getSum().getType().getElementType());
      ::mlir::Value result = RmsNormOp::create(
          builder, sum.getType(), sum, getWeight(), getBias(), getCasting(),
          getEps(), getOffset(), getGroups());
      if (sum.getType() != getResult().getType())
        result = Expr(builder, result)
                     .as(getResult().getType().getElementType());
      return {result, sum};
    }
  }];
}
