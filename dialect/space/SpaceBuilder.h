//===- SpaceBuilder.h - The space of a kernel -------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_SPACE_SPACEBUILDER_H
#define BASTILE_DIALECT_SPACE_SPACEBUILDER_H

#include "dialect/Dimensions.h"
#include "mlir/IR/BuiltinOps.h"

namespace bastile {

/// What is known of the dimensions of a kernel's arguments and results beyond
/// what its ops show.
struct KnownDimensions {
  /// The number elsewhere of each dimension of the arguments, and then of the
  /// results; empty if nothing is known.
  llvm::SmallVector<ValueDimensions::Numbers> numbers;
  /// The names of such numbers, where they have any.
  llvm::DenseMap<ValueDimensions::Dimension, mlir::StringAttr> names;
};

/// The space of `kernel`, which has none yet: its ops and what is `known` say
/// which dimensions are one. Reports it if `kernel` goes along two dimensions
/// of columns.
llvm::FailureOr<tile::SpaceAttr>
findSpace(tile::KernelOp kernel,
          const KnownDimensions &known = KnownDimensions());

/// Gives the kernels of `module` that were written without a space the one that
/// their ops show.
mlir::LogicalResult completeSpaces(mlir::ModuleOp module);

/// Gives `kernel`, which has lost some of its ops, the space that the others
/// show, given what its space says of its arguments and results.
mlir::LogicalResult updateSpace(tile::KernelOp kernel);

/// Checks that the space of `kernel`, if it has one, is what its ops show,
/// given the names of dimensions of its arguments and results; and that its
/// programs can compute it.
mlir::LogicalResult verifySpace(tile::KernelOp kernel);

} // namespace bastile

#endif // BASTILE_DIALECT_SPACE_SPACEBUILDER_H
