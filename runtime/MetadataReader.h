//===- MetadataReader.h - Metadata from JSON --------------------*- C++ -*-===//

#ifndef BASTILE_RUNTIME_METADATAREADER_H
#define BASTILE_RUNTIME_METADATAREADER_H

#include "bastile/runtime/Metadata.h"

#include <string_view>

namespace bastile::runtime {

/// Reads a JSON document.
Expected<Metadata> readMetadataDocument(std::string_view json);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATAREADER_H
