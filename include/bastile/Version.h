//===- Version.h - This build's version -------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_VERSION_H
#define BASTILE_VERSION_H

#define BASTILE_VERSION "0.1.0"

#endif // BASTILE_VERSION_H
