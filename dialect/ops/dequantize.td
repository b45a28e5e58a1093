//===- dequantize.td - 8-bit floats times their scales ------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_DequantizeOp : Tile_ModelOp<"dequantize"> {
  let summary = "multiplies 8-bit floats by their scales";
  let description = [{
    ```
    result = x * scale
    ```

    The inverse of `tile.quantize`, up to its rounding. The type of `scale` and
    `band` say which numbers share a scale, as they do there. Computed in
    float32 (float64 if the scale is) and rounded once.

    Example:

    ```mlir
    %0 = tile.dequantize %x, %scale
        : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32> -> tensor<?x4096xbf16>
    %1 = tile.dequantize %x, %blocks
        : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
    %2 = tile.dequantize %x, %grid band(128)
        : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
    ```
  }];
  let arguments = (ins Tile_SmallRows:$input, Tile_ComputeRows:$scale,
                       OptionalAttr<I64Attr>:$band);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input `,` $scale (`band` `(` $band^ `)`)? attr-dict `:` type($input) `,`
    type($scale) `->` type($result)
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      auto input = ::mlir::cast<::mlir::RankedTensorType>(getInput().getType());
      auto result =
          ::mlir::cast<::mlir::RankedTensorType>(getResult().getType());
      if (input.getShape() != result.getShape())
        return emitOpError("result of type ")
               << result << " does not have the shape of the input of type "
               << input;
      return verifyScale(*this, getScale(), getInput(), getBand());
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr scale(builder, getScale());
      if (getBand())
        scale = repeatBands(scale, *getBand(), getInput());
      Expr x(builder, getInput());
      x = Expr(builder, x.as(scale.getType().getElementType()));
      ::mlir::Type type =
          ::mlir::cast<::mlir::RankedTensorType>(getResult().getType())
              .getElementType();
      return {(x * scale).as(type)};
    }
  }];
}
