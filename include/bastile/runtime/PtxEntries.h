//===- PtxEntries.h - One kernel out of a PTX text --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_PTXENTRIES_H
#define BASTILE_RUNTIME_PTXENTRIES_H

#include <optional>
#include <string>
#include <string_view>

namespace bastile::runtime {

/// `ptx`, as `tilec` writes it, with entry `entry` alone and without comments;
/// nothing if it has no such entry. Most calls run one variant of a kernel, and
/// the driver takes time to assemble each.
std::optional<std::string> selectPtxEntry(std::string_view ptx,
                                          std::string_view entry);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_PTXENTRIES_H
