//===- Primitives.cpp - What arith and math lack on rows ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile::tile;

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
  } else if (!result.hasStaticShape()) {
    return emitOpError("result of type ")
           << result << " has dynamic sizes; name a tensor that has them with "
           << "'like'";
  }

  auto tensor = dyn_cast<RankedTensorType>(source);
  if (!tensor)
    return success();
  bool isVector = tensor.getRank() == 1;
  bool rowMatches = tensor.getShape().back() == result.getShape().back() ||
                    (!isVector && tensor.getShape().back() == 1);
  ArrayRef<int64_t> leading = tensor.getShape().drop_back();
  // A row vector that was loaded is a tile of one row.
  bool isVectorTile = !getLike() && llvm::all_equal(leading) &&
                      !leading.empty() && leading.front() == 1;
  bool leadingMatches =
      isVector || (tensor.getRank() == result.getRank() &&
                   (isVectorTile || leading == result.getShape().drop_back()));
  if (!rowMatches || !leadingMatches)
    return emitOpError("cannot repeat a source of type ")
           << tensor << " to a result of type " << result;
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType input = getInput().getType();
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = 1;
  RankedTensorType expected = input.clone(shape);
  if (getType() != expected)
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
