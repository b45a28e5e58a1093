//===- ProgramOperands.h - What a program over dimensions takes -*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_PROGRAMOPERANDS_H
#define BASTILE_PASSES_PRODUCTS_PROGRAMOPERANDS_H

#include "dialect/KernelSpace.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {

/// A dimension of the kernel's space: along the rows of results, along their
/// columns, streamed, or the one that an inner product sums over, which a
/// program has as a whole. None stands for columns of which only the number is
/// of use.
enum class Axis { Rows, Columns, Streamed, Whole, None };

/// A tensor in memory that the program reads or writes, and the axes of its
/// last two dimensions. One argument of the kernel may be several operands:
/// both factors of a product, say.
struct Operand {
  mlir::RankedTensorType type;
  Axis row, column;
  /// The argument or result of the kernel.
  unsigned index;
  bool isResult = false;
  /// Whether it is a factor of a product.
  bool isFactor = false;
  /// What the kernel's space says of its dimensions.
  mlir::ArrayAttr projection;

  bool isOf(Axis axis) const { return row == axis || column == axis; }
};

/// The operands of a kernel's program: inputs, those of the kernel first, and
/// then results.
class ProgramOperands {
public:
  ProgramOperands(tile::KernelOp kernel, const KernelSpace &space);

  llvm::ArrayRef<Operand> getAll() const { return operands; }
  llvm::ArrayRef<Operand> getInputs() const {
    return getAll().take_front(numInputs);
  }
  unsigned getResult(unsigned index) const { return numInputs + index; }
  /// The number of the operand that is `argument` as an op reads it element by
  /// element, for a left factor or for what follows the products.
  unsigned find(mlir::Value argument, bool ofFactor) const;
  /// The same for a factor of `dot`: 0 is the left one.
  unsigned findFactor(tile::DotOp dot, unsigned index) const;

  /// The arguments that operands behind the kernel's own stand for.
  llvm::ArrayRef<mlir::BlockArgument> getRepeated() const { return repeated; }

  /// The name of the dimension of `operand` at `place`, or its size.
  mlir::Attribute getDimension(const Operand &operand, unsigned place) const;
  /// The names of all dimensions, in the order in which they are found.
  llvm::SetVector<mlir::Attribute> getNames() const;

private:
  using Axes = std::pair<Axis, Axis>;
  unsigned find(mlir::Value argument, Axes axes) const;
  Axes getAxes(tile::DotOp dot, unsigned index) const;
  Axes getAxes(mlir::Value value, bool ofFactor) const;

  tile::KernelOp kernel;
  const KernelSpace &space;
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<mlir::BlockArgument> repeated;
  size_t numInputs = 0;
};

/// The name of the dimension of a batch that is `ahead` places ahead of the
/// matrices, 0 for the last one.
std::string getBatchName(unsigned ahead);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_PROGRAMOPERANDS_H
