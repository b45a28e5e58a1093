//===- OperandPlaces.cpp - Which tensors launches take --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/OperandPlaces.h"

using namespace mlir;
using namespace bastile;
namespace json = llvm::json;

OperandPlaces::OperandPlaces(func::FuncOp func) {
  for (auto whole : func.front().getOps<tile::JoinOp>())
    for (Value piece : whole.getPieces())
      joined[piece] = whole;
}

unsigned OperandPlaces::addOutput(Value value) {
  unsigned number = outputs.size();
  outputs[value] = number;
  return number;
}

bool OperandPlaces::addTemporary(Value value) {
  if (outputs.contains(value) || joined.contains(value))
    return false;
  temporaries.try_emplace(value, temporaries.size());
  return true;
}

/// The number of the piece `value` of the tensor that `whole` describes.
int64_t OperandPlaces::describePiece(Value value, json::Object whole,
                                     int64_t dimension, int64_t index,
                                     int64_t count, bool isInterleaved) {
  auto [it, isNew] = pieces.try_emplace(value, pieceList.size());
  if (!isNew)
    return it->second;
  whole["dimension"] = dimension;
  whole["index"] = index;
  whole["count"] = count;
  if (isInterleaved)
    whole["interleaved"] = true;
  pieceList.push_back(std::move(whole));
  return it->second;
}

json::Object OperandPlaces::describe(Value value) {
  json::Object operand;
  if (auto piece = value.getDefiningOp<tile::PieceOp>()) {
    operand["piece"] = describePiece(value, describe(piece.getSource()),
                                     piece.getDimension(), piece.getIndex(),
                                     piece.getCount(), piece.getInterleaved());
  } else if (tile::JoinOp whole = joined.lookup(value)) {
    auto given = whole.getPieces();
    operand["piece"] =
        describePiece(value, describe(whole.getResult()),
                      cast<RankedTensorType>(value.getType()).getRank() - 1,
                      llvm::find(given, value) - given.begin(), given.size(),
                      /*isInterleaved=*/false);
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    operand["input"] = argument.getArgNumber();
  } else if (auto it = outputs.find(value); it != outputs.end()) {
    operand["output"] = it->second;
  } else {
    operand["temporary"] = temporaries.lookup(value);
  }
  return operand;
}
