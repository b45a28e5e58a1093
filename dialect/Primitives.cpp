//===- Primitives.cpp - Ops on rows that arith and math lack --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile::tile;

/// Whether each element of `narrow` stands for a group of neighbouring columns
/// of a row of `length`, all groups being equally long. In a tile, the layout
/// gives the size of groups, and the last one may have fewer columns.
static bool areGroups(RankedTensorType narrow, int64_t length) {
  const int64_t groups = narrow.getShape().back();
  if (groups < 1 || (groups != 1 && ShapedType::isDynamic(length)))
    return false;
  auto layout = dyn_cast_or_null<BlockedAttr>(narrow.getEncoding());
  if (layout && layout.getColumns())
    return layout.getColumns() == length;
  return length % groups == 0;
}

LogicalResult BroadcastOp::verify() {
  auto result = cast<RankedTensorType>(getResult().getType());
  Type source = getSource().getType();
  if (getElementTypeOrSelf(source) != result.getElementType())
    return emitOpError("source of type ")
           << source << " and result of type " << result
           << " have different element types";

  if (auto like = getLike()) {
    auto likeType = cast<RankedTensorType>(like.getType());
    if (likeType.getRank() != result.getRank() ||
        likeType.getShape().drop_back() != result.getShape().drop_back())
      return emitOpError("result of type ")
             << result << " does not have the leading sizes of 'like' of type "
             << likeType;
    if (ShapedType::isDynamic(result.getShape().back()) &&
        !ShapedType::isDynamic(likeType.getShape().back()))
      return emitOpError("result of type ")
             << result << " has rows of unknown length, and 'like' of type "
             << likeType << " has not; name a tensor that has them";
  } else if (!result.hasStaticShape()) {
    return emitOpError("result of type ")
           << result << " has dynamic sizes; name a tensor that has them with "
           << "'like'";
  }

  auto tensor = dyn_cast<RankedTensorType>(source);
  if (!tensor)
    return success();
  int64_t length = tensor.getShape().back();
  bool fits = length == 1 || length == result.getShape().back();
  if (tensor.getRank() != 1) {
    fits = (length == result.getShape().back() ||
            areGroups(tensor, result.getShape().back())) &&
           tensor.getRank() == result.getRank();
    for (auto [from, to] : llvm::zip(tensor.getShape().drop_back(),
                                     result.getShape().drop_back()))
      fits &= from == to || from == 1;
  }
  if (!fits)
    return emitOpError("cannot repeat a source of type ")
           << tensor << " to a result of type " << result;
  return success();
}

/// What an op folds to that leaves `operand` as it is where the types are
/// equal. Where order means nothing, at a module's top, an op may be its own
/// operand, which to fold to would never end.
static Value foldToOperand(Value operand, Value result) {
  return operand.getType() == result.getType() && operand != result ? operand
                                                                    : Value();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  // A static shape follows from the type alone, so `like` would say nothing.
  if (getLike() && cast<RankedTensorType>(getType()).hasStaticShape()) {
    getLikeMutable().clear();
    return getResult();
  }
  return foldToOperand(getSource(), getResult());
}

bool BroadcastOp::repeatsRows() {
  auto source = dyn_cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  return source && source.getRank() == result.getRank() &&
         source.getShape().drop_back() != result.getShape().drop_back();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  return foldToOperand(getInput(), getResult());
}

LogicalResult ReduceOp::verify() {
  RankedTensorType input = getInput().getType();
  int64_t length = input.getShape().back();
  int64_t groups = getType().getShape().back();
  if (groups != 1 && (groups == length || !areGroups(getType(), length)))
    return emitOpError("cannot reduce ")
           << input << " to " << groups << " groups of columns of one size";
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = groups;
  RankedTensorType expected = input.clone(shape);
  // The types may differ in their layouts, which say where elements are, not
  // what they are.
  if (getType().getShape() != expected.getShape() ||
      getType().getElementType() != expected.getElementType())
    return emitOpError("reduces ")
           << input << " to " << expected << ", not to " << getType();
  return success();
}

TypedAttr ReduceOp::getNeutral(ReduceKind kind, Type type) {
  auto floatType = cast<FloatType>(type);
  const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
  switch (kind) {
  case ReduceKind::Add:
    return FloatAttr::get(type, APFloat::getZero(semantics));
  case ReduceKind::Max:
    return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
  case ReduceKind::Min:
    return FloatAttr::get(type, APFloat::getInf(semantics));
  }
  llvm_unreachable("unknown reduce kind");
}

Value ReduceOp::combine(OpBuilder &builder, Location loc, ReduceKind kind,
                        Value lhs, Value rhs) {
  switch (kind) {
  case ReduceKind::Add:
    return arith::AddFOp::create(builder, loc, lhs, rhs);
  case ReduceKind::Max:
    return arith::MaximumFOp::create(builder, loc, lhs, rhs);
  case ReduceKind::Min:
    return arith::MinimumFOp::create(builder, loc, lhs, rhs);
  }
  llvm_unreachable("unknown reduce kind");
}

SmallVector<int64_t> ReduceRowsOp::getCombinedDimensions() {
  SmallVector<int64_t> dimensions;
  RankedTensorType input = getInput().getType();
  for (int64_t dim = 0; dim < input.getRank() - 1; ++dim)
    if (!keepsRows() || input.getDimSize(dim) != getType().getDimSize(dim))
      dimensions.push_back(dim);
  return dimensions;
}

OpFoldResult ReduceRowsOp::fold(FoldAdaptor) {
  // Over dimensions of size 1 alone, there is nothing to combine.
  return getPartial() ? Value() : foldToOperand(getInput(), getResult());
}

LogicalResult ReduceRowsOp::verify() {
  RankedTensorType input = getInput().getType();
  int64_t length = input.getShape().back();
  RankedTensorType expected = input.clone(ArrayRef(length));
  if (getPartial())
    expected = input.clone({ShapedType::kDynamic, length});
  else if (keepsRows() && getType().getRank() == input.getRank()) {
    SmallVector<int64_t> sizes(input.getShape());
    for (auto [size, kept] : llvm::zip(sizes, getType().getShape().drop_back()))
      if (kept == 1)
        size = 1;
    if (!llvm::is_contained(getType().getShape().drop_back(), 1))
      return emitOpError("combines no rows of ")
             << input << ": some leading size of the result is to be 1";
    expected = input.clone(sizes);
  }
  if (getType().clone(expected.getElementType()).getShape() !=
          expected.getShape() ||
      getType().getElementType() != expected.getElementType())
    return emitOpError("combines the rows of ")
           << input << " to " << expected << ", not to " << getType();
  return success();
}

/// Checks that `rows` have one leading dimension, and that `packed` has one row
/// for each band of them.
static LogicalResult verifyBands(Operation *op, RankedTensorType rows,
                                 RankedTensorType packed, int64_t band) {
  if (band < 1)
    return op->emitOpError("has bands of ")
           << band << " rows; one is the least";
  if (rows.getRank() != 2)
    return op->emitOpError("counts bands of rows with one leading dimension, "
                           "which ")
           << rows << " does not have";
  RankedTensorType expected =
      packed.clone({getNumBands(rows.getDimSize(0), band), rows.getDimSize(1)});
  if (packed.getShape() == expected.getShape())
    return success();
  return op->emitOpError("needs ")
         << expected << " for bands of " << band << " rows of " << rows
         << ", but has " << packed;
}

int64_t bastile::tile::getNumBands(int64_t rows, int64_t band) {
  return ShapedType::isDynamic(rows) ? rows : llvm::divideCeil(rows, band);
}

LogicalResult ReduceBandsOp::verify() {
  SmallVector<int64_t> shape(getType().getShape());
  if (getBand() > 0)
    shape.front() = getNumBands(shape.front(), getBand());
  return verifyBands(*this, getType(), getType().clone(shape), getBand());
}

LogicalResult PackBandsOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getType());
  if (input.getElementType() != result.getElementType())
    return emitOpError("turns ")
           << input << " into " << result << ", whose element types differ";
  return verifyBands(*this, input, result, getBand());
}

LogicalResult RepeatBandsOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  auto like = cast<RankedTensorType>(getLike().getType());
  if (source.getElementType() != result.getElementType())
    return emitOpError("turns ")
           << source << " into " << result << ", whose element types differ";
  if (like.getRank() != result.getRank() ||
      like.getShape().drop_back() != result.getShape().drop_back())
    return emitOpError("result of type ")
           << result << " does not have the leading sizes of 'like' of type "
           << like;
  return verifyBands(*this, result, source, getBand());
}

/// Checks that the pieces of `op`, which have one type, make up rows of type
/// `row`.
template <typename Op>
static LogicalResult verifyPieces(Op op, RankedTensorType row) {
  ValueRange pieces = op.getPieces();
  if (pieces.size() < 2)
    return op.emitOpError("needs two pieces or more, but has ")
           << pieces.size();
  auto type = cast<RankedTensorType>(pieces.front().getType());
  if (type.getRank() == 0 || type.getShape().back() < 1)
    return op.emitOpError("has pieces of type ")
           << type << "; rows and pieces have a static length of at least 1";
  for (Value piece : pieces)
    if (piece.getType() != type)
      return op.emitOpError("has pieces of different types: ")
             << type << " and " << piece.getType();
  int64_t count = pieces.size(), parts = op.getParts();
  int64_t length = row.getShape().back();
  if (type.getElementType() != row.getElementType() ||
      type.getShape().drop_back() != row.getShape().drop_back() ||
      length % count != 0 || length / count != type.getShape().back())
    return op.emitOpError() << count << " pieces of type " << type
                            << " are not a row of type " << row;
  if (parts == 1)
    return success();
  if (!op.getInterleaved())
    return op.emitOpError("has ")
           << parts << " parts of contiguous pieces; only "
           << "interleaved pieces are those of a part";
  if (parts < 1 || count % parts != 0 || count == parts)
    return op.emitOpError() << count << " pieces are not " << parts
                            << " parts of as many interleaved pieces, two or "
                            << "more";
  return success();
}

/// Reads and prints the attributes of a split or a join that say how its pieces
/// lie.
template <typename Op>
static void setStrands(OpBuilder &builder, OperationState &state,
                       int64_t strands, int64_t count) {
  if (strands == 1)
    return;
  state.getOrAddProperties<typename Op::Properties>().interleaved =
      builder.getUnitAttr();
  if (strands != count)
    state.getOrAddProperties<typename Op::Properties>().parts =
        builder.getI64IntegerAttr(count / strands);
}

void SplitOp::build(OpBuilder &builder, OperationState &state, TypeRange types,
                    int64_t strands, Value input) {
  setStrands<SplitOp>(builder, state, strands, types.size());
  state.addOperands(input);
  state.addTypes(types);
}

void JoinOp::build(OpBuilder &builder, OperationState &state, Type type,
                   int64_t strands, ValueRange pieces) {
  setStrands<JoinOp>(builder, state, strands, pieces.size());
  state.addOperands(pieces);
  state.addTypes(type);
}

LogicalResult SplitOp::verify() {
  return verifyPieces(*this, cast<RankedTensorType>(getInput().getType()));
}

LogicalResult JoinOp::verify() {
  return verifyPieces(*this, cast<RankedTensorType>(getType()));
}

void PieceOp::build(OpBuilder &builder, OperationState &state, Value source,
                    int64_t dimension, int64_t index, int64_t count,
                    bool interleaved) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] /= count;
  build(builder, state, type.clone(shape), source, dimension, index, count,
        interleaved);
}

LogicalResult PieceOp::verify() {
  auto type = cast<RankedTensorType>(getSource().getType());
  const int64_t dimension = getDimension(), index = getIndex(),
                count = getCount();
  if (dimension < 0 || dimension >= type.getRank() || count < 2 || index < 0 ||
      index >= count)
    return emitOpError("takes piece ")
           << index << " of " << count << " along dimension " << dimension
           << " of " << type << ", which has none";
  SmallVector<int64_t> shape(type.getShape());
  if (ShapedType::isDynamic(shape[dimension]) || shape[dimension] % count != 0)
    return emitOpError("cuts dimension ")
           << dimension << " of " << type << " into " << count
           << " pieces; its size must be static and a multiple of that";
  if (getInterleaved() && dimension == type.getRank() - 1)
    return emitOpError("interleaves pieces along the last dimension of ")
           << type << ", whose elements must stay neighbours";
  shape[dimension] /= count;
  if (getType() != type.clone(shape))
    return emitOpError("of ")
           << type << " is a " << type.clone(shape) << ", not a " << getType();
  return success();
}

void IotaOp::build(OpBuilder &builder, OperationState &state, Type type,
                   Value like, ArrayRef<int64_t> over) {
  build(builder, state, type, like, /*column=*/Value(),
        /*misalignment=*/Value(),
        over.empty() ? nullptr : builder.getDenseI64ArrayAttr(over));
}

/// Checks the dimensions along which `iota` numbers rows.
static LogicalResult verifyNumberedRows(IotaOp iota) {
  RankedTensorType type = iota.getType();
  ArrayRef<int64_t> dimensions = *iota.getOver();
  const int64_t leading = type.getRank() - 1;
  bool fits = !dimensions.empty() && dimensions.front() >= 0 &&
              dimensions.back() < leading;
  for (auto [index, dimension] : llvm::enumerate(dimensions))
    fits &= dimension == dimensions.front() + static_cast<int64_t>(index);
  if (!fits)
    return iota.emitOpError("numbers rows over [")
           << dimensions << "], which are not leading dimensions of " << type
           << " that follow each other";
  if (type.getShape().back() != 1)
    return iota.emitOpError("gives each row one number, so its result has rows "
                            "of length 1, not ")
           << type << "; 'tile.broadcast' repeats it";
  if (iota.getColumn() || iota->getParentOfType<ProgramOp>())
    return iota.emitOpError("numbers the rows of tensors; 'tile.iota_rows' "
                            "numbers those of a tile");
  return success();
}

LogicalResult IotaOp::verify() {
  if (getOver() && failed(verifyNumberedRows(*this)))
    return failure();
  auto like = getLike();
  if (!like && !getType().hasStaticShape())
    return emitOpError("result of type ")
           << getType() << " has dynamic sizes; name a tensor that has them "
           << "with 'like'";
  if (!like)
    return success();
  auto type = cast<RankedTensorType>(like.getType());
  if (type.getShape().drop_back() != getType().getShape().drop_back())
    return emitOpError("result of type ")
           << getType() << " does not have the leading sizes of 'like' of type "
           << type;
  return success();
}
