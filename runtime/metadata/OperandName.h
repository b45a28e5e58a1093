//===- OperandName.h - The name of an operand in messages -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_OPERANDNAME_H
#define BASTILE_RUNTIME_METADATA_OPERANDNAME_H

#include "bastile/runtime/Metadata.h"

#include <string>

namespace bastile::runtime {

/// Names an operand for messages: "input 'gate'", "output 'result0'" or
/// "temporary 1".
std::string describe(const Function &function, const Operand &operand);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_OPERANDNAME_H
