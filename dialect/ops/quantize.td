//===- quantize.td - Rows in 8-bit floats, and scales --------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_SmallFormat : I32EnumAttr<"SmallFormat", "a format of 8-bit floats", [
    I32EnumAttrCase<"E4M3", 0, "e4m3">,
    I32EnumAttrCase<"E5M2", 1, "e5m2">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_QuantizeOp : Tile_ModelOp<"quantize"> {
  let summary = "rounds numbers to 8-bit floats, with scales to multiply them by";
  let description = [{
    For all numbers x that share a scale:

    ```
    amax = max(max|x|, min_amax)
    scale = amax / limit     (1 where amax is 0)
    result = x / scale       (rounded to the nearest, ties to even)
    ```

    with the largest number of the format as `limit`: 448 for `e4m3` (the
    default, f8E4M3FN), 57344 for `e5m2` (f8E5M2). So no number exceeds the
    format, and `result * scale` is near x. With `power_of_two`, the scale is
    rounded up to a power of two, exactly.

    The type of `scale` says which numbers share a scale. For rows of length n:

    | scale | one scale for |
    |---|---|
    | `tensor<?x1xf32>` | each row |
    | `tensor<?xkxf32>` | each n / k neighbouring columns of a row |
    | `tensor<1xf32>` | all rows; takes more launches, and reads rows twice |

    With `band(m)`, a row of the scale is for m neighbouring rows, or for fewer
    at the end: `band(128)` and n / 128 columns make blocks of 128 x 128. There
    must be one leading dimension.

    Where all numbers are 0, or there are none, the scale is 1, as in
    Transformer Engine. DeepSeek's kernels have a `min_amax` of 1e-4 instead,
    torchao's one of 1e-12; the default is 0. A scale is at least 2^-126, so
    that its reciprocal is finite. Numbers that share a scale with a NaN or an
    infinity become NaN, and such a scale is NaN or infinity.

    Computed in float32 (float64 for float64 operands, whose scales are
    float64). Quotients are those of a division, as in PyTorch's `x / scale`:
    multiplying by a rounded reciprocal would now and then give another 8-bit
    float.

    Derivatives take scales for constants: the gradient of x is that of the
    result, divided by the scale.

    Results of float64 stand for 8-bit floats not yet rounded, in references.

    Example:

    ```mlir
    %result, %scale = tile.quantize %x
        : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
    %r, %blocks = tile.quantize %x power_of_two {min_amax = 1.0e-4}
        : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
    %squares, %grid = tile.quantize %x band(128)
        : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
    %all, %one = tile.quantize %x format(e5m2)
        : tensor<?x4096xbf16> -> tensor<?x4096xf8E5M2>, tensor<1xf32>
    ```
  }];
  let arguments = (ins
    Tile_RowTensor:$input,
    DefaultValuedAttr<Tile_SmallFormat, "SmallFormat::E4M3">:$format,
    UnitAttr:$power_of_two,
    OptionalAttr<I64Attr>:$band,
    DefaultValuedAttr<F64Attr, "0.0">:$min_amax);
  let results = (outs Tile_SmallRows:$result, Tile_ComputeRows:$scale);
  let assemblyFormat = [{
    $input (`format` `(` $format^ `)`)? (`power_of_two` $power_of_two^)?
    (`band` `(` $band^ `)`)? attr-dict `:` type($input) `->` type($result) `,` type($scale)
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
      ::mlir::Type element = result.getElementType();
      bool fits = getFormat() == SmallFormat::E4M3
                      ? ::mlir::isa<::mlir::Float8E4M3FNType>(element)
                      : ::mlir::isa<::mlir::Float8E5M2Type>(element);
      if (!fits && !element.isF64())
        return emitOpError("result of type ")
               << result << " does not have the format "
               << stringifySmallFormat(getFormat()) << "; name it by 'format'";
      if (double least = getMinAmax().convertToDouble(); !(least >= 0))
        return emitOpError("min_amax must not be negative, but is ") << least;
      auto scale = ::mlir::cast<::mlir::RankedTensorType>(getScale().getType());
      if (scale.getElementType().isF64() != input.getElementType().isF64())
        return emitOpError("scale of type ")
               << scale << " does not have the precision that an input of type "
               << input << " is computed in";
      return verifyScale(*this, getScale(), getInput(), getBand());
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      Expr x(builder, getInput());
      auto scaleType =
          ::mlir::cast<::mlir::RankedTensorType>(getScale().getType());
      double limit = getFormat() == SmallFormat::E4M3 ? 448 : 57344;
      double least = getMinAmax().convertToDouble();

      Expr amax = rowMax(abs(x), scaleType.getShape().back());
      if (scaleType.getRank() == 1)
        amax = maxOfRows(amax);
      if (getBand())
        amax = maxOfBands(amax, *getBand());
      amax = stopGradient(amax);
      if (least > 0)
        amax = max(amax, least);
      Expr scale = max(amax / limit, 0x1p-126);
      if (getPowerOfTwo())
        scale = roundUpToPowerOfTwo(scale);
      ::mlir::Value isZero =
          compare(::mlir::arith::CmpFPredicate::OLE, amax, 0.0);
      scale = select(isZero, scale.constant(1), scale);

      // All numbers that share a scale share one reciprocal. The remainder's
      // part (Markstein), two operations more than a product with the
      // reciprocal, makes the quotient right even if the reciprocal is a unit
      // off, as a GPU's may be. A product alone would round 2 in 1000 bfloat16
      // numbers to another float of 8 bits, and with an exact reciprocal still
      // 2 in 10000: quotients of so few digits often lie next to a tie. No
      // quotient exceeds the limit by enough to be rounded beyond it.
      Expr reciprocal = 1.0 / scale;
      Expr quotient = x * reciprocal;
      // With the negated remainder, a quotient of zero keeps its sign.
      Expr negative = fma(quotient, scale.like(x), -x);
      quotient = fma(negative, (-reciprocal).like(x), quotient);
      ::mlir::Type type =
          ::mlir::cast<::mlir::RankedTensorType>(getResult().getType())
              .getElementType();
      if (getBand())
        scale = packBands(scale, *getBand());
      return {quotient.as(type), scale.getValue()};
    }
  }];
}
