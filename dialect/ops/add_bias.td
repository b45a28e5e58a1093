//===- add_bias.td - A bias for every row ------------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_AddBiasOp : Tile_ModelOp<"add_bias", [
    AllTypesMatch<["input", "result"]>]> {
  let summary = "adds a row vector to each row";
  let description = [{
    `result = x + bias`, computed in float32 (float64 for float64 operands) and
    rounded to x's type.

    Example:

    ```mlir
    %0 = tile.add_bias %x, %bias : tensor<?x5760xbf16>, tensor<5760xbf16>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input, Tile_RowVector:$bias);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input `,` $bias attr-dict `:` type($input) `,` type($bias)
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return verifyRowLength(*this, getBias(), "bias", getInput(), "input");
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput()), bias(builder, getBias());
      return {(x + bias).as(getType().getElementType())};
    }
  }];
}
