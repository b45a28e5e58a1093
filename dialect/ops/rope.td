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
    element i with element i + rotary / 2, or with `interleaved` element 2 i
    with element 2 i + 1. With (a, b) a pair, c and s its cosine and sine,

    ```
    result = (a * c_a - b * s_a, b * c_b + a * s_b)
    ```

    (Su et al., arXiv 2104.09864.) The rows of `cosine` and `sine` are as long
    as `rotary`, with an angle for each element, or half as long, with one for
    each pair (c_a = c_b, s_a = s_b). In a leading dimension of the static size
    1, angles are shared: by all heads, or by the whole batch. Elements of the
    row past `rotary` are copied. Computed in float32 (float64 for float64
    operands) and rounded once.

    Layouts (batch, sequence, heads, size) and (batch, heads, sequence, size)
    differ only in where the angles have their size 1.

    Example:

    ```mlir
    %0 = tile.rope %q, %cos, %sin
        : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
    %1 = tile.rope %k, %cos, %sin interleaved
        : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
    %2 = tile.rope %x, %cos, %sin interleaved {rotary = 64}
        : tensor<?x?x?x256xbf16>, tensor<1x?x1x32xf32>
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

  let extraClassDeclaration = [{
    /// The length of the pieces into which rows are taken apart.
    int64_t getPieceLength();
  }];
  let extraClassDefinition = [{
    int64_t $cppClass::getPieceLength() {
      // The length divides both the row and its rotated part. Interleaved pairs
      // lie in parts of the row, each of two pieces, and so do the elements
      // behind them; otherwise the two elements of a pair lie half of the
      // rotated part apart.
      int64_t size = getType().getShape().back();
      return std::gcd(getInterleaved() ? size / 2 : size,
                      getRotary().value_or(size) / 2);
    }

    ::llvm::LogicalResult $cppClass::verify() {
      int64_t size = getType().getShape().back();
      int64_t rotary = getRotary().value_or(size);
      if (rotary < 2 || rotary > size || rotary % 2)
        return emitOpError("rotary size of ")
               << rotary << " must be even, and no larger than the rows of the "
               << "input of type " << getType();
      if (getInterleaved() && size % 2)
        return emitOpError("interleaved pairs of the input of type ")
               << getType() << " need rows of an even length";
      // This is beyond any model, and more pieces would take too long to
      // compile.
      constexpr int64_t mostPieces = 1024;
      int64_t pieces = size / getPieceLength();
      if (pieces > mostPieces)
        return emitOpError("turns ")
               << rotary << " elements of rows of " << size
               << ", which takes these apart into " << pieces
               << " pieces; " << mostPieces << " are the most";
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
      int64_t strands = getInterleaved() ? 2 : 1;
      int64_t length = getPieceLength();
      int64_t pairs = rotary / 2 / length;
      ::mlir::SmallVector<::mlir::Value> pieces =
          splitRows(builder, getInput(), size / length, strands);
      // One angle for both elements of a pair, or one for each.
      auto angleType =
          ::mlir::cast<::mlir::RankedTensorType>(getCosine().getType());
      int64_t angles = angleType.getShape().back();
      bool isForEach = angles == rotary;
      auto split = [&](::mlir::Value rows) {
        return splitRows(builder, rows, angles / length, isForEach ? strands : 1);
      };
      auto cosines = split(getCosine()), sines = split(getSine());
      // Angles are repeated before they are converted: a conversion of the
      // angles alone would be a kernel of its own.
      auto repeat = [&](::mlir::ArrayRef<::mlir::Value> angles, int64_t pair,
                        int64_t piece) {
        ::mlir::Value angle = angles[isForEach ? piece : pair];
        auto like =
            ::mlir::cast<::mlir::RankedTensorType>(pieces[piece].getType());
        return Expr(builder,
                    builder.createOrFold<BroadcastOp>(
                        like.clone(angleType.getElementType()), angle,
                        pieces[piece]));
      };
      ::mlir::Type type = getType().getElementType();
      for (int64_t pair = 0; pair < pairs; ++pair) {
        int64_t first = pair * strands;
        int64_t second = first + (getInterleaved() ? 1 : pairs);
        Expr cosA = repeat(cosines, pair, first);
        Expr cosB = repeat(cosines, pair, second);
        Expr sinA = repeat(sines, pair, first);
        Expr sinB = repeat(sines, pair, second);
        Expr a(builder, pieces[first]), b(builder, pieces[second]);
        pieces[first] = (a * cosA - b * sinA).as(type);
        pieces[second] = (b * cosB + a * sinB).as(type);
      }
      return {joinRows(builder, pieces, strands)};
    }
  }];
}
