//===- BuildId.h - The identity of this build of the compiler ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_STORE_BUILDID_H
#define BASTILE_LIB_STORE_BUILDID_H

#include <string>

namespace bastile {

/// Hexadecimal digits that differ between any two builds of the program or
/// library that holds this compiler, and agree between its copies.
const std::string &getBuildId();

} // namespace bastile

#endif // BASTILE_LIB_STORE_BUILDID_H
