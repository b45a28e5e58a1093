//===- add_rms_norm.td - Residual addition and normalization *- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

include "dialect/ops/rms_norm.td"

def Tile_AddRmsNormOp : Tile_ModelOp<"add_rms_norm", [
    AllTypesMatch<["input", "residual", "result", "sum"]>]> {
  let summary = "adds a residual, and divides each row by its root mean square";
  let description = [{
    ```
    sum = x + residual
    result = rms_norm(sum, weight)
    ```

    The sum is rounded to x's type and returned as well, as the next residual;
    attributes are those of `tile.rms_norm`.

    Example:

    ```mlir
    %result, %sum = tile.add_rms_norm %x, %residual, %weight {eps = 1.0e-5}
        : tensor<?x2880xbf16>, tensor<2880xbf16>
    ```
  }];
  let arguments = (ins
    Tile_RowTensor:$input, Tile_RowTensor:$residual, Tile_RowVector:$weight,
    DefaultValuedAttr<Tile_RmsNormCasting, "RmsNormCasting::Llama">:$casting,
    DefaultValuedAttr<F64Attr, "1.0e-6">:$eps,
    DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs Tile_RowTensor:$result, Tile_RowTensor:$sum);
  let assemblyFormat = [{
    $input `,` $residual `,` $weight (`casting` `(` $casting^ `)`)? attr-dict
    `:` type($input) `,` type($weight)
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      if (double eps = getEps().convertToDouble(); !(eps >= 0))
        return emitOpError("eps must not be negative, but is ") << eps;
      return verifyRowLength(*this, getWeight(), "weight", getInput(), "input");
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput()), residual(builder, getResidual());
      ::mlir::Value sum = (x + residual).as(getSum().getType().getElementType());
      ::mlir::Value result =
          RmsNormOp::create(builder, sum.getType(), sum, getWeight(),
                            getCasting(), getEps(), getOffset());
      return {result, sum};
    }
  }];
}
