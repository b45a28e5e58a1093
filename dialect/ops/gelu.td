//===- gelu.td - Gaussian error linear unit ----------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_GeluForm : I32EnumAttr<"GeluForm", "how the normal distribution is computed", [
    I32EnumAttrCase<"Erf", 0, "erf">,
    I32EnumAttrCase<"Tanh", 1, "tanh">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_GeluOp : Tile_ModelOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "x times the normal cumulative distribution at x";
  let description = [{
    ```
    erf:  result = 0.5 * x * (1 + erf(x / sqrt(2)))
    tanh: result = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
    ```

    (Hendrycks and Gimpel, arXiv 1606.08415.) The form is `erf` by default.
    Computed in float32 (float64 for float64 operands) and rounded once.

    Example:

    ```mlir
    %0 = tile.gelu %x : tensor<?x3072xbf16>
    %1 = tile.gelu %x form(tanh) : tensor<?x3072xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input,
                       DefaultValuedAttr<Tile_GeluForm, "GeluForm::Erf">:$form);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input (`form` `(` $form^ `)`)? attr-dict `:` type($result)
  }];

  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput());
      Expr result = getForm() == GeluForm::Erf ? geluErf(x) : geluTanh(x);
      return {result.as(getType().getElementType())};
    }
  }];
}
