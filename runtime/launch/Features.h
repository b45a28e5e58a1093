//===- Features.h - Variants that a machine can run -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_LAUNCH_FEATURES_H
#define BASTILE_RUNTIME_LAUNCH_FEATURES_H

#include "bastile/runtime/Metadata.h"

namespace bastile::runtime {

/// Whether a machine has all features that `variant` needs. If not, `reason`,
/// if given, receives which one it lacks, and why.
bool hasFeatures(const Variant &variant, const Capacity &capacity,
                 std::string *reason);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_LAUNCH_FEATURES_H
