//===- OperandName.cpp - The name of an operand in messages ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/OperandName.h"

#include "runtime/Text.h"

using namespace bastile::runtime;

std::string bastile::runtime::describe(const Function &function,
                                       const Operand &operand) {
  switch (operand.kind) {
  case Operand::Kind::Input:
    return concat("input '", function.inputs[operand.index].name, "'");
  case Operand::Kind::Output:
    return concat("output '", function.outputs[operand.index].name, "'");
  case Operand::Kind::Piece: {
    const PieceSpec &piece = function.pieces[operand.index];
    return concat("piece ", piece.index, " of ",
                  describe(function, piece.whole));
  }
  case Operand::Kind::Temporary:
    break;
  }
  return concat("temporary ", operand.index);
}
