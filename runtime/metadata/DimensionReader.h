//===- DimensionReader.h - Named dimensions from JSON -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The fields of launches over named dimensions that launches over rows lack.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_DIMENSIONREADER_H
#define BASTILE_RUNTIME_METADATA_DIMENSIONREADER_H

#include "bastile/runtime/Metadata.h"
#include "runtime/metadata/JsonCursor.h"

namespace bastile::runtime {

/// Reads the names of a launch's dimensions.
std::vector<std::string> readDimensions(const JsonCursor &cursor);

/// Fails if there is a field of `keys`, which have a meaning over rows only.
void refuseRows(const JsonCursor &cursor,
                std::initializer_list<const char *> keys);

/// Reads the name of a dimension of `launch`.
unsigned readDimension(const JsonCursor &cursor, const Launch &launch);

/// Reads what the dimensions of each operand of `launch` are; `cursor` is at
/// the list of operands.
std::vector<std::vector<MappedDimension>> readMaps(const JsonCursor &cursor,
                                                   const Function &function,
                                                   const Launch &launch);

/// Reads an argument of a variant of `launch`. A tensor map is added to those
/// of `variant`.
Argument readDimensionArgument(const JsonCursor &cursor,
                               const Function &function, const Launch &launch,
                               Variant &variant);

/// Finds the strides that a variant of `launch` takes no argument for
/// (`Variant::packed`).
std::vector<uint8_t> findPacked(const Launch &launch, const Variant &variant);

/// Whether launches take any stride of the last dimension of a tensor of
/// `function` (`InputSpec::strided`).
bool isStrided(const Function &function, Operand::Kind kind, unsigned index);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_DIMENSIONREADER_H
