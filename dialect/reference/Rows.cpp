//===- Rows.cpp - The computation of primitives on rows -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each primitive says for each element of one of its tensors which element of
// another one belongs to it. The values gather along these indices in one
// direction; the gradients are summed along them in the other.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Operations.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

namespace {

/// result[i] = source[from(row, column)], with i at that row and column.
template <typename Function>
Array gather(Type type, ArrayRef<int64_t> sizes, const Array &source,
             const Function &from) {
  Array result(type, sizes);
  const int64_t length = result.length();
  for (int64_t row = 0, rows = result.rows(); row != rows; ++row)
    for (int64_t column = 0; column != length; ++column)
      result.copy(row * length + column, source, from(row, column));
  return result;
}

/// The sum of all elements of `source` for which `to(row, column)` is the same
/// element of the result.
template <typename Function>
Array sum(Type type, ArrayRef<int64_t> sizes, const Array &source,
          const Function &to) {
  Array result(type, sizes);
  std::vector<Sum> sums(result.count());
  const int64_t length = source.length();
  for (int64_t row = 0, rows = source.rows(); row != rows; ++row)
    for (int64_t column = 0; column != length; ++column)
      sums[to(row, column)].add(source.number(row * length + column));
  for (auto [index, total] : llvm::enumerate(sums))
    result.set(static_cast<int64_t>(index), total.get());
  return result;
}

/// The largest or smallest of the elements that belong to an element of the
/// result.
template <typename Function>
Array findMost(bool isLargest, Type type, ArrayRef<int64_t> sizes,
               const Array &source, const Function &to) {
  Array result(type, sizes);
  const double sign = isLargest ? 1 : -1;
  // A maximum as found at the lower ends, the values and the upper ends of the
  // operands' errors.
  struct Most {
    double low = -kInfinity, value = -kInfinity, high = -kInfinity;
    double error = 0;
  };
  auto getLarger = [](double a, double b) {
    return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b);
  };
  std::vector<Most> all(result.count());
  const int64_t length = source.length();
  for (int64_t row = 0, rows = source.rows(); row != rows; ++row)
    for (int64_t column = 0; column != length; ++column) {
      Number x = source.number(row * length + column);
      Most &most = all[to(row, column)];
      most.value = getLarger(most.value, sign * x.value);
      most.error = std::max(most.error, x.error);
      // For an unknown number, only its being unknown is kept.
      const double error = x.error < kInfinity ? x.error : 0;
      most.low = getLarger(most.low, sign * x.value - error);
      most.high = getLarger(most.high, sign * x.value + error);
    }
  for (auto [index, most] : llvm::enumerate(all)) {
    Number number(sign * most.value, 0, result.format().unit());
    if (most.error == kInfinity)
      number = getUnknown(number.unit);
    else if (std::isfinite(number.value))
      number.error = std::max(most.high - most.value, most.value - most.low);
    result.set(static_cast<int64_t>(index), number);
  }
  return result;
}

/// The row of a source of `sizes` that each row of a result repeats.
std::vector<int64_t> getSourceRows(ArrayRef<int64_t> sizes,
                                   ArrayRef<int64_t> resultSizes,
                                   int64_t rows) {
  std::vector<int64_t> sources(rows);
  if (sizes.size() < 2)
    return sources;
  for (int64_t row = 0; row != rows; ++row) {
    int64_t rest = row, stride = 1;
    for (size_t i = sizes.size() - 1; i-- > 0;) {
      const int64_t index = rest % resultSizes[i];
      rest /= resultSizes[i];
      if (sizes[i] != 1)
        sources[row] += index * stride;
      stride *= sizes[i];
    }
  }
  return sources;
}

/// The element of a source that an element of the result repeats.
auto getRepeated(ArrayRef<int64_t> sizes, ArrayRef<int64_t> resultSizes,
                 int64_t rows) {
  const int64_t length = sizes.empty() ? 1 : sizes.back();
  // A source that a kernel does not read may be of any length, and rows without
  // elements are repeated as they are.
  const int64_t repetitions =
      length == 0 ? 1 : std::max<int64_t>(1, resultSizes.back() / length);
  return [=, sources = getSourceRows(sizes, resultSizes, rows)](
             int64_t row, int64_t column) {
    // The division is avoided where it can be: it takes longer than most of the
    // computation.
    return sources[row] * length + (repetitions == 1 ? column
                                    : length == 1    ? 0
                                                     : column / repetitions);
  };
}

/// The element of a row of groups to which a column of a row of `length`
/// belongs.
auto getGroup(int64_t length, int64_t groups) {
  const int64_t columns = length / groups;
  return [=](int64_t row, int64_t column) {
    return row * groups + (groups == 1 ? 0 : column / columns);
  };
}

/// The element of a row of `length` that is in piece `index` of `count`.
auto getPieceElement(int64_t length, int64_t count, int64_t strands,
                     int64_t index) {
  const int64_t parts = count / strands;
  const int64_t first = index / strands * (length / parts) + index % strands;
  return [=](int64_t row, int64_t column) {
    return row * length + first + column * strands;
  };
}

/// The element of a combination of rows to which an element of the rows goes.
auto getCombined(const Array &input, ArrayRef<int64_t> resultSizes) {
  return getRepeated(resultSizes, input.sizes(), input.rows());
}

/// The element in the same column in the row that stands for a band.
auto getBandRow(int64_t band, int64_t length) {
  return
      [=](int64_t row, int64_t column) { return row / band * length + column; };
}

/// The element in the same column in the first row of the band.
auto getFirstRow(int64_t band, int64_t length) {
  return
      [=](int64_t row, int64_t column) { return row * band * length + column; };
}

Type getElementType(Operation *op) {
  return getElementTypeOrSelf(op->getResult(0).getType());
}

/// The leading sizes of `like`, or those of a static type; the row length of
/// `type`.
SmallVector<int64_t> getSizes(RankedTensorType type, const Array *like) {
  SmallVector<int64_t> sizes(type.getShape());
  if (!like)
    return sizes;
  llvm::copy(like->sizes().drop_back(), sizes.begin());
  if (type.isDynamicDim(type.getRank() - 1))
    sizes.back() = like->sizes().back();
  return sizes;
}

/// The sizes of rows with another length.
SmallVector<int64_t> withLength(const Array &rows, int64_t length) {
  SmallVector<int64_t> sizes(rows.sizes());
  sizes.back() = length;
  return sizes;
}

Array broadcast(tile::BroadcastOp op, Operands operands) {
  const Array &source = *operands[0];
  SmallVector<int64_t> sizes = getSizes(cast<RankedTensorType>(op.getType()),
                                        op.getLike() ? operands[1] : nullptr);
  int64_t rows = 1;
  for (int64_t size : ArrayRef(sizes).drop_back())
    rows *= size;
  return gather(source.elementType(), sizes, source,
                getRepeated(source.sizes(), sizes, rows));
}

template <typename Function>
Array combine(tile::ReduceKind kind, ArrayRef<int64_t> sizes,
              const Array &input, const Function &to) {
  if (kind == tile::ReduceKind::Add)
    return sum(input.elementType(), sizes, input, to);
  return findMost(kind == tile::ReduceKind::Max, input.elementType(), sizes,
                  input, to);
}

/// The combination of the rows of each band of `input`, one row each.
Array combineBands(tile::ReduceKind kind, const Array &input, int64_t band) {
  SmallVector<int64_t> sizes(input.sizes());
  sizes.front() = tile::getNumBands(sizes.front(), band);
  return combine(kind, sizes, input, getBandRow(band, input.length()));
}

Array reduceBands(tile::ReduceKind kind, const Array &input, int64_t band) {
  return gather(input.elementType(), input.sizes(),
                combineBands(kind, input, band),
                getBandRow(band, input.length()));
}

/// The number of each element along neighbouring dimensions, the columns if no
/// others are given.
Array countElements(tile::IotaOp op, Operands operands) {
  Array result(getElementType(op),
               getSizes(cast<RankedTensorType>(op.getType()),
                        op.getLike() ? operands[0] : nullptr));
  ArrayRef<int64_t> sizes = result.sizes();
  const int64_t columns = static_cast<int64_t>(sizes.size()) - 1;
  const int64_t first = op.getOver() ? op.getOver()->front() : columns;
  const int64_t last = op.getOver() ? op.getOver()->back() : columns;
  int64_t numbers = 1, repeats = 1;
  for (int64_t dimension = first; dimension <= columns; ++dimension)
    (dimension <= last ? numbers : repeats) *= sizes[dimension];
  for (int64_t i = 0, count = result.count(); i != count; ++i)
    result.set(i, Integer{static_cast<int32_t>(i / repeats % numbers), 0});
  return result;
}

/// The gradient of the operand of minima or maxima: elements equal to a minimum
/// or maximum share its gradient.
template <typename Function>
Array shareAmongEqual(const Array &gradient, const Array &input,
                      const Array &result, const Function &to) {
  // How many elements are equal to it, and how many more may be.
  std::vector<int64_t> equal(result.count()), unsure(result.count());
  const int64_t length = input.length();
  auto forEach = [&](auto visit) {
    for (int64_t row = 0, rows = input.rows(); row != rows; ++row)
      for (int64_t column = 0; column != length; ++column) {
        const int64_t index = row * length + column, most = to(row, column);
        Number x = input.number(index), y = result.number(most);
        bool isEqual = x.value == y.value;
        // Without errors, it is sure which elements are equal.
        bool isUnsure = x.error != 0 || y.error != 0
                            ? std::fabs(x.value - y.value) <= x.error + y.error
                            : isEqual;
        visit(index, most, isEqual, isUnsure);
      }
  };
  forEach([&](int64_t, int64_t most, bool isEqual, bool isUnsure) {
    equal[most] += isEqual;
    unsure[most] += isUnsure && !isEqual;
  });
  Array shares(gradient.elementType(), input.sizes());
  forEach([&](int64_t index, int64_t most, bool isEqual, bool isUnsure) {
    Number g = gradient.number(most);
    Number share(0, 0, g.unit);
    if (isEqual)
      share = equal[most] == 1 ? g : g / static_cast<double>(equal[most]);
    if (isUnsure && unsure[most] != 0)
      share.error += std::fabs(g.value);
    shares.set(index, share);
  });
  return shares;
}

template <typename Function>
Array propagateReduction(tile::ReduceKind kind, const Array &gradient,
                         const Array &input, const Array &result,
                         const Function &to) {
  if (kind == tile::ReduceKind::Add)
    return gather(gradient.elementType(), input.sizes(), gradient, to);
  return shareAmongEqual(gradient, input, result, to);
}

/// The gradients of pieces, put together; a piece that nothing depends on has a
/// gradient of zero.
Array propagateSplit(tile::SplitOp split, ArrayRef<const Array *> gradients,
                     const Array &input) {
  Array result(getGradientType(input.elementType()), input.sizes());
  const auto count = static_cast<int64_t>(gradients.size());
  for (auto [number, gradient] : llvm::enumerate(gradients)) {
    if (!gradient)
      continue;
    auto to = getPieceElement(input.length(), count, split.getStrands(),
                              static_cast<int64_t>(number));
    const int64_t length = gradient->length();
    for (int64_t row = 0, rows = gradient->rows(); row != rows; ++row)
      for (int64_t column = 0; column != length; ++column)
        result.set(to(row, column), gradient->number(row * length + column));
  }
  return result;
}

Array joinPieces(tile::JoinOp join, Operands pieces) {
  const Array &first = *pieces.front();
  const auto count = static_cast<int64_t>(pieces.size());
  const int64_t length = first.length() * count;
  Array result(first.elementType(), withLength(first, length));
  for (auto [number, piece] : llvm::enumerate(pieces)) {
    auto to = getPieceElement(length, count, join.getStrands(),
                              static_cast<int64_t>(number));
    for (int64_t row = 0, rows = piece->rows(); row != rows; ++row)
      for (int64_t column = 0; column != piece->length(); ++column) {
        const int64_t index = row * piece->length() + column;
        result.copy(to(row, column), *piece, index);
      }
  }
  return result;
}

} // namespace

Type bastile::reference::getGradientType(Type type) {
  return type.isF64() ? type : Float32Type::get(type.getContext());
}

std::optional<SmallVector<Array>>
bastile::reference::evaluateRows(Operation *op, Operands operands) {
  using Results = std::optional<SmallVector<Array>>;
  return llvm::TypeSwitch<Operation *, Results>(op)
      .Case([&](tile::BroadcastOp op) -> Results {
        return SmallVector<Array>{broadcast(op, operands)};
      })
      .Case([&](tile::ReduceOp op) -> Results {
        const Array &input = *operands[0];
        const int64_t groups = op.getType().getShape().back();
        return SmallVector<Array>{combine(op.getKind(),
                                          withLength(input, groups), input,
                                          getGroup(input.length(), groups))};
      })
      .Case([&](tile::ReduceRowsOp op) -> Results {
        const Array &input = *operands[0];
        if (op.getPartial())
          return std::nullopt;
        SmallVector<int64_t> sizes(op.getType().getShape());
        if (op.keepsRows()) {
          sizes.assign(input.sizes().begin(), input.sizes().end());
          for (int64_t dimension : op.getCombinedDimensions())
            sizes[dimension] = 1;
        }
        return SmallVector<Array>{
            combine(op.getKind(), sizes, input, getCombined(input, sizes))};
      })
      .Case([&](tile::ReduceBandsOp op) -> Results {
        return SmallVector<Array>{
            reduceBands(op.getKind(), *operands[0], op.getBand())};
      })
      .Case([&](tile::PackBandsOp op) -> Results {
        const Array &input = *operands[0];
        SmallVector<int64_t> sizes(input.sizes());
        sizes.front() = tile::getNumBands(sizes.front(), op.getBand());
        return SmallVector<Array>{
            gather(input.elementType(), sizes, input,
                   getFirstRow(op.getBand(), input.length()))};
      })
      .Case([&](tile::RepeatBandsOp op) -> Results {
        const Array &source = *operands[0];
        return SmallVector<Array>{
            gather(source.elementType(),
                   getSizes(cast<RankedTensorType>(op.getType()), operands[1]),
                   source, getBandRow(op.getBand(), source.length()))};
      })
      .Case([&](tile::SplitOp op) -> Results {
        const Array &input = *operands[0];
        SmallVector<Array> pieces;
        const int64_t count = op.getPieces().size();
        for (int64_t index = 0; index != count; ++index)
          pieces.push_back(gather(
              input.elementType(), withLength(input, input.length() / count),
              input,
              getPieceElement(input.length(), count, op.getStrands(), index)));
        return pieces;
      })
      .Case([&](tile::JoinOp op) -> Results {
        return SmallVector<Array>{joinPieces(op, operands)};
      })
      .Case([&](tile::IotaOp op) -> Results {
        if (op.getColumn() || op.getMisalignment())
          return std::nullopt;
        return SmallVector<Array>{countElements(op, operands)};
      })
      .Case([&](tile::DotOp op) -> Results {
        if (!op.isOnTensors())
          return std::nullopt;
        return SmallVector<Array>{multiply(op, *operands[0], *operands[1])};
      })
      .Case<tile::CopyOp, tile::StopGradientOp>(
          [&](auto) -> Results { return SmallVector<Array>{*operands[0]}; })
      .Default(Results());
}

Array bastile::reference::propagateJoin(tile::JoinOp join, unsigned index,
                                        const Array &gradient,
                                        const Array &piece) {
  return gather(gradient.elementType(), piece.sizes(), gradient,
                getPieceElement(gradient.length(), join.getPieces().size(),
                                join.getStrands(), index));
}

std::optional<Array>
bastile::reference::propagateRows(Operation *op,
                                  ArrayRef<const Array *> gradients,
                                  Operands operands, const Array &result) {
  using Result = std::optional<Array>;
  const Array &input = *operands[0];
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return propagateSplit(split, gradients, input);
  const Array &gradient = *gradients.front();
  Type type = gradient.elementType();
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](tile::BroadcastOp) -> Result {
        return sum(
            type, input.sizes(), gradient,
            getRepeated(input.sizes(), gradient.sizes(), gradient.rows()));
      })
      .Case([&](tile::ReduceOp op) -> Result {
        return propagateReduction(op.getKind(), gradient, input, result,
                                  getGroup(input.length(), result.length()));
      })
      .Case([&](tile::ReduceRowsOp op) -> Result {
        return propagateReduction(op.getKind(), gradient, input, result,
                                  getCombined(input, result.sizes()));
      })
      .Case([&](tile::ReduceBandsOp op) -> Result {
        // Each row of a band contributes to all rows of the result for that
        // band.
        Array total =
            combineBands(tile::ReduceKind::Add, gradient, op.getBand());
        return propagateReduction(
            op.getKind(), total, input,
            combineBands(op.getKind(), input, op.getBand()),
            getBandRow(op.getBand(), input.length()));
      })
      .Case([&](tile::PackBandsOp op) -> Result {
        return sum(type, input.sizes(), gradient,
                   getFirstRow(op.getBand(), input.length()));
      })
      .Case([&](tile::RepeatBandsOp op) -> Result {
        return sum(type, input.sizes(), gradient,
                   getBandRow(op.getBand(), input.length()));
      })
      .Case([&](tile::CopyOp) -> Result { return gradient; })
      .Default(Result());
}
