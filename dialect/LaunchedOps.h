//===- LaunchedOps.h - What kernels and programs have in common -*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels on tensors, and the programs that they become, are functions that are
// launched: they are spelled alike, and so are the marks of their operands.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_LAUNCHEDOPS_H
#define BASTILE_DIALECT_LAUNCHEDOPS_H

#include "dialect/Tile.h"
#include "mlir/Interfaces/FunctionImplementation.h"

namespace bastile::tile {

template <typename Op>
mlir::ParseResult parseLaunched(mlir::OpAsmParser &parser,
                                mlir::OperationState &result) {
  auto buildType =
      [](mlir::Builder &builder, llvm::ArrayRef<mlir::Type> arguments,
         llvm::ArrayRef<mlir::Type> results,
         mlir::function_interface_impl::VariadicFlag,
         std::string &) { return builder.getFunctionType(arguments, results); };
  return mlir::function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      Op::getFunctionTypeAttrName(result.name), buildType,
      Op::getArgAttrsAttrName(result.name),
      Op::getResAttrsAttrName(result.name));
}

template <typename Op>
void printLaunched(mlir::OpAsmPrinter &printer, Op op) {
  mlir::function_interface_impl::printFunctionOp(
      printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
      op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

/// Checks that operands in memory have elements of whole bytes, and rows.
mlir::LogicalResult verifyElements(mlir::Operation *op, mlir::TypeRange types,
                                   llvm::StringRef what);

/// An attribute of this dialect that an argument or a result may have.
struct KnownAttribute {
  llvm::StringRef name;
  /// The least value of a number; none for an attribute that has no value.
  std::optional<int64_t> least;
  /// Whether the value is checked elsewhere.
  bool isOther = false;
};

/// Checks those of `attributes` that have this dialect's prefix: each is one of
/// `known`, so that a misspelled one does not go unnoticed. `what` and `index`
/// name the argument or result of `op` that has them.
mlir::LogicalResult verifyAttributes(mlir::Operation *op, llvm::StringRef what,
                                     unsigned index,
                                     mlir::DictionaryAttr attributes,
                                     llvm::ArrayRef<KnownAttribute> known);

} // namespace bastile::tile

#endif // BASTILE_DIALECT_LAUNCHEDOPS_H
