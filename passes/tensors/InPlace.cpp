//===- InPlace.cpp - Results in the memory of operands --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/InPlace.h"

#include "dialect/Rows.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;
using namespace bastile;

/// The row length of `type`; the largest number for a dynamic one, which may be
/// longer than any static one. All dynamic row lengths of a kernel are the
/// same.
static int64_t getLength(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 1;
  int64_t length = tensor.getShape().back();
  return ShapedType::isDynamic(length) ? std::numeric_limits<int64_t>::max()
                                       : length;
}

/// The length of the rows that `op` goes through: of the pieces where it takes
/// rows apart or puts them together, as a kernel goes through all pieces at
/// once.
static int64_t getRowLength(Operation *op) {
  int64_t length = 1;
  if (!isa<tile::JoinOp>(op))
    for (Type type : op->getResultTypes())
      length = std::max(length, getLength(type));
  if (isa<tile::JoinOp, tile::ReduceOp, tile::ReduceRowsOp>(op))
    length = std::max(length, getLength(op->getOperand(0).getType()));
  return length;
}

/// Whether `broadcast` has one element for each of its source.
static bool keepsShape(tile::BroadcastOp broadcast) {
  auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
  return source && source.getShape() == broadcast.getType().getShape();
}

/// Finds an op that reads elements of `argument`, or of what is computed of
/// them element by element, for elements at other places.
static std::optional<PlaceConflict> findDistantRead(BlockArgument argument) {
  SetVector<Value> values;
  values.insert(argument);
  for (size_t next = 0; next < values.size(); ++next) {
    for (OpOperand &use : values[next].getUses()) {
      Operation *op = use.getOwner();
      if (&use == getSizeOperand(op) ||
          isa<tile::ReduceOp, tile::ReduceRowsOp, tile::ReturnOp>(op))
        continue;
      if (auto broadcast = dyn_cast<tile::BroadcastOp>(op);
          broadcast && !keepsShape(broadcast))
        return PlaceConflict{op, "an element of it is read for several here"};
      if (isa<tile::DotOp>(op))
        return PlaceConflict{op, "a product reads it here for other rows"};
      if (isa<tile::RepeatBandsOp, tile::ReduceBandsOp, tile::PackBandsOp>(op))
        return PlaceConflict{op, "a band of rows is read at once here"};
      values.insert_range(op->getResults());
    }
  }
  return std::nullopt;
}

/// Finds a `tile.split` of `argument` into other pieces than those that the
/// result `value` is put together of. Pieces that follow each other are read
/// and stored at the same columns of all pieces, but neighbours that are apart
/// in the one are elsewhere in the other.
static std::optional<PlaceConflict> findOtherPieces(BlockArgument argument,
                                                    Value value) {
  auto join = value.getDefiningOp<tile::JoinOp>();
  int64_t strands = join ? join.getStrands() : 1;
  size_t pieces = join ? join.getPieces().size() : 1;
  for (OpOperand &use : argument.getUses()) {
    Operation *user = use.getOwner();
    if (&use == getSizeOperand(user))
      continue;
    auto split = dyn_cast<tile::SplitOp>(user);
    int64_t ownStrands = split ? split.getStrands() : 1;
    size_t ownPieces = split ? split.getPieces().size() : 1;
    if (ownStrands != strands || (strands > 1 && ownPieces != pieces))
      return PlaceConflict{user, "its rows are taken apart here otherwise than "
                                 "those of the result are put together"};
  }
  return std::nullopt;
}

std::optional<PlaceConflict> bastile::findPlaceConflict(tile::KernelOp kernel,
                                                        BlockArgument argument,
                                                        unsigned index) {
  if (std::optional<PlaceConflict> conflict = findDistantRead(argument))
    return conflict;
  Block &body = kernel.getBody().front();
  Value value = body.getTerminator()->getOperand(index);
  if (std::optional<PlaceConflict> conflict = findOtherPieces(argument, value))
    return conflict;
  // What is shorter than the rows, such as a statistic, is read by all threads
  // of a row, and by several programs where each computes a part of the row.
  int64_t length = getLength(argument.getType());
  for (Operation *user : argument.getUsers())
    if (auto split = dyn_cast<tile::SplitOp>(user))
      length = getLength(split.getResultTypes().front());
  for (Operation &op : body.without_terminator())
    if (getRowLength(&op) > length)
      return PlaceConflict{&op, "longer rows are computed with it here"};
  return std::nullopt;
}
