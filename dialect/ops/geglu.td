//===- geglu.td - Gated GELU --------------------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_GegluForm : I32EnumAttr<"GegluForm", "form of the gate's activation", [
    I32EnumAttrCase<"GptOss", 0, "gpt_oss">,
    I32EnumAttrCase<"Tanh", 1, "tanh">,
    I32EnumAttrCase<"Erf", 2, "erf">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_GegluOp : Tile_ModelOp<"geglu", [SameOperandsAndResultType]> {
  let summary = "gated GELU: an activation of `gate` times `up`";
  let description = [{
    With the form `gpt_oss` (the default), as GPT-OSS computes it:

    ```
    g = min(gate, limit)
    u = min(max(up, -limit), limit)
    result = (u + 1) * g * sigmoid(alpha * g)
    ```

    `unlimited` leaves out both clamps. With the form `tanh` or `erf`,
    `result = gelu(gate) * up`, where

    ```
    erf:  gelu(x) = 0.5 * x * (1 + erf(x / sqrt(2)))
    tanh: gelu(x) = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
    ```

    Computed in float32 (float64 for float64 operands) and rounded once.

    Example:

    ```mlir
    %0 = tile.geglu %gate, %up : tensor<?x2880xbf16>
    %1 = tile.geglu %gate, %up form(tanh) : tensor<?x11008xbf16>
    ```
  }];
  let arguments = (ins
    Tile_RowTensor:$gate, Tile_RowTensor:$up,
    DefaultValuedAttr<Tile_GegluForm, "GegluForm::GptOss">:$form,
    DefaultValuedOptionalAttr<F64Attr, "1.702">:$alpha,
    DefaultValuedOptionalAttr<F64Attr, "7.0">:$limit,
    UnitAttr:$unlimited);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $gate `,` $up (`form` `(` $form^ `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      if (getForm() != GegluForm::GptOss) {
        if (getAlphaAttr() || getLimitAttr() || getUnlimited())
          return emitOpError("takes 'alpha', 'limit' and 'unlimited' only with "
                             "the form 'gpt_oss', not with '")
                 << stringifyGegluForm(getForm()) << "'";
        return ::mlir::success();
      }
      if (getUnlimited() && getLimitAttr())
        return emitOpError("has both 'limit' and 'unlimited'");
      double limit = getLimit().convertToDouble();
      if (!(limit > 0))
        return emitOpError("limit must be positive, but is ")
               << limit << "; 'unlimited' leaves the clamps out";
      return ::mlir::success();
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr gate(builder, getGate()), up(builder, getUp());
      ::mlir::Type type = getType().getElementType();
      if (getForm() == GegluForm::Tanh)
        return {(geluTanh(gate) * up).as(type)};
      if (getForm() == GegluForm::Erf)
        return {(geluErf(gate) * up).as(type)};
      if (!getUnlimited()) {
        double limit = getLimit().convertToDouble();
        gate = min(gate, limit);
        up = min(max(up, -limit), limit);
      }
      double alpha = getAlpha().convertToDouble();
      return {((up + 1.0) * gate * sigmoid(gate * alpha)).as(type)};
    }
  }];
}
