//===- Dots.cpp - The computation of products -----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Operations.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

namespace {

/// The matrix of a tensor of `sizes` that belongs to the matrix `batch` of
/// tensors whose batch has `batchSizes`.
int64_t getMatrix(ArrayRef<int64_t> sizes, ArrayRef<int64_t> batchSizes,
                  int64_t batch) {
  int64_t matrix = 0, stride = 1;
  ArrayRef<int64_t> own = sizes.drop_back(2);
  for (size_t ahead = 0; ahead < batchSizes.size(); ++ahead) {
    const int64_t size = batchSizes[batchSizes.size() - 1 - ahead];
    const int64_t index = batch % size;
    batch /= size;
    if (ahead >= own.size())
      continue;
    const int64_t ownSize = own[own.size() - 1 - ahead];
    if (ownSize != 1)
      matrix += index * stride;
    stride *= ownSize;
  }
  return matrix;
}

/// The sizes of the batch of a product of tensors of the two `sizes`.
SmallVector<int64_t> getBatchSizes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> sizes(a.drop_back(2));
  for (size_t ahead = 3; ahead <= b.size(); ++ahead)
    if (int64_t &size = sizes[sizes.size() + 2 - ahead]; size == 1)
      size = b[b.size() - ahead];
  return sizes;
}

/// Calls `visit` for each product of two elements that `op` computes of tensors
/// of the sizes `a` and `b`: with the two elements, and that of the result, of
/// the sizes `result`, to whose sum the product belongs.
template <typename Visit>
void forEachProduct(tile::DotOp op, ArrayRef<int64_t> a, ArrayRef<int64_t> b,
                    ArrayRef<int64_t> result, const Visit &visit) {
  const int64_t rows = a[op.getFreeDimension(0)];
  const int64_t columns = b[op.getFreeDimension(1)];
  const int64_t depth = a[op.getContractedDimension(0)];
  auto getElement = [](int64_t contract, ArrayRef<int64_t> sizes, int64_t free,
                       int64_t contracted) {
    return contract == 1 ? free * sizes.back() + contracted
                         : contracted * sizes.back() + free;
  };
  const SmallVector<int64_t> batch = getBatchSizes(a, b);
  int64_t matrices = 1;
  for (int64_t size : batch)
    matrices *= size;
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    const int64_t firstA = getMatrix(a, batch, matrix) * rows * depth;
    const int64_t firstB = getMatrix(b, batch, matrix) * columns * depth;
    const int64_t first = getMatrix(result, batch, matrix) * rows * columns;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t k = 0; k < depth; ++k)
          visit(firstA + getElement(op.getContract()[0], a, row, k),
                firstB + getElement(op.getContract()[1], b, column, k),
                first + row * columns + column);
  }
}

/// The sizes of the result of `op`.
SmallVector<int64_t> getDotSizes(tile::DotOp op, const Array &a,
                                 const Array &b) {
  RankedTensorType type = op.getSumType();
  SmallVector<int64_t> sizes(type.getShape());
  const SmallVector<int64_t> batch = getBatchSizes(a.sizes(), b.sizes());
  for (size_t ahead = 3; ahead <= sizes.size(); ++ahead)
    if (int64_t &size = sizes[sizes.size() - ahead]; size != 1)
      size = batch[batch.size() + 2 - ahead];
  sizes[sizes.size() - 2] = a.sizes()[op.getFreeDimension(0)];
  sizes.back() = b.sizes()[op.getFreeDimension(1)];
  return sizes;
}

/// `number` as a kernel multiplies or adds it: rounded to a type whose unit
/// roundoff is `unit`.
Number roundTo(const Number &number, double unit) {
  Number rounded = number;
  if (unit == 0)
    return rounded;
  rounded.error += unit * std::fabs(number.value);
  return rounded;
}

/// The unit roundoff of operands of `type`, 0 if their gradients are not
/// rounded. Those of floats of 8 bits have bfloat16 for it.
double getFactorUnit(Type type) {
  if (type.isF32() || type.isF64())
    return 0;
  return type.isF16() ? 0x1p-11 : 0x1p-8;
}

/// What a product of factors of `type` may be off by, relative to its size,
/// where tensor cores add it to others: those of Hopper keep about 14 bits of
/// products of 8-bit floats.
double getProductUnit(Type type) {
  return type.getIntOrFloatBitWidth() == 8 ? 0x1p-12 : 0;
}

/// The unit roundoff of the type to which `op` rounds its operand `index`, 0 if
/// it multiplies the operand as it is.
double getOwnUnit(tile::DotOp op, unsigned index) {
  Type own = getElementTypeOrSelf(op.getOperand(index).getType());
  Type type = op.getFactorType(index);
  return own == type ? 0 : getFactorUnit(type);
}

} // namespace

Array bastile::reference::multiply(tile::DotOp op, const Array &a,
                                   const Array &b) {
  Array result(getElementTypeOrSelf(op.getType()), getDotSizes(op, a, b));
  std::vector<Sum> sums(result.count());
  const double unitA = getOwnUnit(op, 0), unitB = getOwnUnit(op, 1);
  const double unit = getProductUnit(op.getFactorType());
  forEachProduct(op, a.sizes(), b.sizes(), result.sizes(),
                 [&](int64_t i, int64_t j, int64_t to) {
                   sums[to].add(roundTo(roundTo(a.number(i), unitA) *
                                            roundTo(b.number(j), unitB),
                                        unit));
                 });
  for (auto [index, total] : llvm::enumerate(sums))
    result.set(static_cast<int64_t>(index), total.get());
  return result;
}

Array bastile::reference::propagateDot(tile::DotOp op, unsigned index,
                                       const Array &gradient, const Array &a,
                                       const Array &b) {
  const Array &own = index == 0 ? a : b, &other = index == 0 ? b : a;
  Array result(getGradientType(own.elementType()), own.sizes());
  const double unit = getFactorUnit(op.getFactorType());
  const double otherUnit = getOwnUnit(op, 1 - index);
  std::vector<Sum> sums(result.count());
  forEachProduct(op, a.sizes(), b.sizes(), gradient.sizes(),
                 [&](int64_t i, int64_t j, int64_t to) {
                   sums[index == 0 ? i : j].add(
                       roundTo(gradient.number(to), unit) *
                       roundTo(other.number(index == 0 ? j : i), otherUnit));
                 });
  for (auto [position, total] : llvm::enumerate(sums))
    result.set(static_cast<int64_t>(position), total.get());
  return result;
}
