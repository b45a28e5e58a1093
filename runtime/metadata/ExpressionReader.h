//===- ExpressionReader.h - Expressions from JSON ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_EXPRESSIONREADER_H
#define BASTILE_RUNTIME_METADATA_EXPRESSIONREADER_H

#include "bastile/runtime/Metadata.h"
#include "runtime/metadata/JsonCursor.h"

namespace bastile::runtime {

/// Reads an expression over the inputs of `function`. Within `launch`, if there
/// is one, it may also name the rows or the dimensions of that launch.
Expression readExpression(const JsonCursor &cursor, const Function &function,
                          const Launch *launch);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_EXPRESSIONREADER_H
