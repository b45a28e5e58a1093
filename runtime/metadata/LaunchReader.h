//===- LaunchReader.h - Launches from JSON ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_LAUNCHREADER_H
#define BASTILE_RUNTIME_METADATA_LAUNCHREADER_H

#include "bastile/runtime/Metadata.h"
#include "runtime/metadata/JsonCursor.h"

namespace bastile::runtime {

/// Reads which tensor of `function` an object names.
Operand readOperand(const JsonCursor &cursor, const Function &function);
/// Reads a launch of `function`, whose tensors have been read.
Launch readLaunch(const JsonCursor &cursor, const Function &function);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_LAUNCHREADER_H
