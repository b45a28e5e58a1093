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

/// By how much rounding changes a number: by its size times `unit` or, if that
/// is less, by `least`, as subnormal numbers lie equally far apart. Without a
/// unit, nothing is rounded.
struct Rounding {
  double unit = 0, least = 0;
};

/// `number` as a kernel multiplies or adds it.
Number roundTo(const Number &number, const Rounding &rounding) {
  Number rounded = number;
  const bool isZero = number.value == 0 && number.error == 0;
  if (rounding.unit != 0 && !isZero)
    rounded.error +=
        std::max(rounding.unit * std::fabs(number.value), rounding.least);
  return rounded;
}

/// How operands of `type` are rounded, if their gradients are. Those of floats
/// of 8 bits are bfloat16, whose subnormal numbers are those of float32.
Rounding getFactorRounding(Type type) {
  if (type.isF32() || type.isF64())
    return {};
  return type.isF16() ? Rounding{0x1p-11, 0x1p-25} : Rounding{0x1p-8, 0};
}

/// What a product of factors of `type` may be off by where tensor cores add it
/// to others: those of Hopper keep about 14 bits of products of 8-bit floats.
Rounding getProductRounding(Type type) {
  return {type.getIntOrFloatBitWidth() == 8 ? 0x1p-12 : 0, 0};
}

/// How `op` rounds its operand `index`, if it does not multiply it as it is.
Rounding getOwnRounding(tile::DotOp op, unsigned index) {
  Type own = getElementTypeOrSelf(op.getOperand(index).getType());
  Type type = op.getFactorType(index);
  return own == type ? Rounding() : getFactorRounding(type);
}

} // namespace

Array bastile::reference::multiply(tile::DotOp op, const Array &a,
                                   const Array &b) {
  Array result(getElementTypeOrSelf(op.getType()), getDotSizes(op, a, b));
  std::vector<Sum> sums(result.count());
  const Rounding ofA = getOwnRounding(op, 0), ofB = getOwnRounding(op, 1);
  const Rounding ofProduct = getProductRounding(op.getFactorType());
  forEachProduct(op, a.sizes(), b.sizes(), result.sizes(),
                 [&](int64_t i, int64_t j, int64_t to) {
                   sums[to].add(roundTo(roundTo(a.number(i), ofA) *
                                            roundTo(b.number(j), ofB),
                                        ofProduct));
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
  const Rounding ofGradient = getFactorRounding(op.getFactorType());
  const Rounding ofOther = getOwnRounding(op, 1 - index);
  std::vector<Sum> sums(result.count());
  forEachProduct(op, a.sizes(), b.sizes(), gradient.sizes(),
                 [&](int64_t i, int64_t j, int64_t to) {
                   sums[index == 0 ? i : j].add(
                       roundTo(gradient.number(to), ofGradient) *
                       roundTo(other.number(index == 0 ? j : i), ofOther));
                 });
  for (auto [position, total] : llvm::enumerate(sums))
    result.set(static_cast<int64_t>(position), total.get());
  return result;
}
