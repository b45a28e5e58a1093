//===- StructuralKey.h - What formulas have in common -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_STRUCTURALKEY_H
#define BASTILE_LIB_DRIVER_STRUCTURALKEY_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace bastile {

/// Hexadecimal digits that are equal for modules that the same schedules suit:
/// those with the same functions of the same ops, on values of the same types.
///
/// The key is made by walking the ops, so that neither the printer, nor
/// locations, nor the names of values and arguments are part of it. The names
/// of functions are, because a schedule is pinned in a kernel by the kernel's
/// name, which is its function's. A float in an attribute, such as an epsilon,
/// counts by its kind alone: 0 and 1 take a part of a formula away and differ
/// from other numbers, as do infinities and NaN. An attribute of the kind that
/// the op's default has is left out, so that an op may be given another
/// attribute with a default, and keeps its key.
std::string getStructuralKey(mlir::ModuleOp module);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_STRUCTURALKEY_H
