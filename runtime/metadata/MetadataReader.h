//===- MetadataReader.h - Metadata from JSON --------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_METADATAREADER_H
#define BASTILE_RUNTIME_METADATA_METADATAREADER_H

#include "bastile/runtime/Metadata.h"

#include <string_view>

namespace bastile::runtime {

/// Reads a JSON document.
Expected<Metadata> readMetadataDocument(std::string_view json);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_METADATAREADER_H
