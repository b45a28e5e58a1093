//===- rope.td - Rotary position embedding -----------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "dialect/ModelOpBase.td"

def Tile_RopeOp : Tile_ModelOp<"rope", [AllTypesMatch<["input", "result"]>,
                                        AllTypesMatch<["cosine", "sine"]>]> {
  let summary = "rotates pairs of elements by angles of their position";
  let description = [{
    The first `rotary` elements of each row (all of them if absent) form pairs:
    element i with element i + rotary / 2, or with `interleaved` element 2 i with
    element 2 i + 1 (of whole rows only). With (a, b) a pair, c and s its cosine
    and sine,

    ```
    result = (a * c_a - b * s_a, b * c_b + a * s_b)
    ```

    (Su et al., arXiv 2104.09864.) The rows of `cosine` and `sine` are as long as
    `rotary`, element by element, or half as long, one for each pair (c_a = c_b,
    s_a = s_b). Leading sizes of the static size 1 are shared: by all heads, by
    the whole batch. The other elements are copied. Computed in float32 (float64
    for float64 operands) and rounded once.

    Layouts (batch, sequence, heads, size) and (batch, heads, sequence, size)
    differ only in where the angles have their size 1.

    Example:

    ```mlir
    %0 = tile.rope %q, %cos, %sin
        : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
    %1 = tile.rope %k, %cos, %sin interleaved
        : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
    ```
  }];
  let arguments = (ins Tile_RowTensor:$input, Tile_RowTensor:$cosine,
                       Tile_RowTensor:$sine, UnitAttr:$interleaved,
                       OptionalAttr<I64Attr>:$rotary);
  let results = (outs Tile_RowTensor:$result);
  let assemblyFormat = [{
    $input `,` $cosine `,` $sine (`interleaved` $interleaved^)? attr-dict `:`
    type($input) `,` type($cosine)
  }];
  let hasVerifier = 1;

  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      int64_t size = getType().getShape().back();
      int64_t rotary = getRotary().value_or(size);
      if (rotary < 2 || rotary > size || size % (rotary / 2) != 0 || rotary % 2)
        return emitOpError("rotary size of ")
               << rotary << " must be even, and half of it divide the row "
               << "length of the input of type " << getType();
      if (getInterleaved() && rotary != size)
        return emitOpError("rotary size of ")
               << rotary << " must be the row length of the input of type "
               << getType() << " where pairs are interleaved";
      auto angles = ::mlir::cast<::mlir::RankedTensorType>(getCosine().getType());
      int64_t length = angles.getShape().back();
      if (length != rotary && length != rotary / 2)
        return emitOpError("cosine of type ")
               << angles << " must have rows of the rotary size, " << rotary
               << ", or of its half";
      if (angles.getRank() != getType().getRank())
        return emitOpError("cosine of type ")
               << angles << " does not have the rank of the input of type "
               << getType() << "; shared leading dimensions have the size 1";
      for (auto [mine, its] : ::llvm::zip(getType().getShape().drop_back(),
                                          angles.getShape().drop_back()))
        if (its != mine && its != 1)
          return emitOpError("cosine of type ")
                 << angles << " does not have the leading sizes of the input of "
                 << "type " << getType() << ", nor 1 where they are shared";
      return ::mlir::success();
    }

    ::llvm::SmallVector<::mlir::Value>
    $cppClass::decompose(::mlir::ImplicitLocOpBuilder &builder) {
      int64_t size = getType().getShape().back();
      int64_t rotary = getRotary().value_or(size);
      bool interleaved = getInterleaved();
      ::llvm::SmallVector<::mlir::Value> pieces =
          splitRows(builder, getInput(), size / (rotary / 2), interleaved);
      Expr a(builder, pieces[0]), b(builder, pieces[1]);
      // Repeated before it is converted: what is computed of angles alone would
      // be a kernel of its own.
      auto repeat = [&](::mlir::Value angles, const Expr &like) {
        ::mlir::Type type = like.getType().clone(
            ::mlir::getElementTypeOrSelf(angles.getType()));
        return Expr(builder, builder.createOrFold<BroadcastOp>(
                                 type, angles, like.getValue()));
      };
      // One angle for both elements of a pair, or one for each.
      auto getAngles = [&](::mlir::Value angles) {
        int64_t length = ::mlir::cast<::mlir::RankedTensorType>(angles.getType())
                             .getShape().back();
        if (length != rotary)
          return ::std::make_pair(repeat(angles, a), repeat(angles, b));
        auto halves = splitRows(builder, angles, 2, interleaved);
        return ::std::make_pair(repeat(halves[0], a), repeat(halves[1], b));
      };
      auto [cosA, cosB] = getAngles(getCosine());
      auto [sinA, sinB] = getAngles(getSine());
      ::mlir::Type type = getType().getElementType();
      pieces[0] = (a * cosA - b * sinA).as(type);
      pieces[1] = (b * cosB + a * sinB).as(type);
      return {joinRows(builder, pieces, interleaved)};
    }
  }];
}
