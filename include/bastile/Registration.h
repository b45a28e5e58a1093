//===- Registration.h - What the compiler needs of MLIR ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_REGISTRATION_H
#define BASTILE_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace bastile {

/// Registers the dialects that Bastile reads and writes.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers Bastile's passes and the upstream ones that go with them, for
/// pass pipelines given as text.
void registerPasses();

} // namespace bastile

#endif // BASTILE_REGISTRATION_H
