//===- Evaluate.cpp - The meaning of functions, computed ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Rows mostly do not depend on each other. Functions of such rows are evaluated
// in slices, so that only a slice needs memory, and gradients of arguments that
// rows share are summed over the slices.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Evaluate.h"

#include "dialect/Tile.h"
#include "dialect/reference/Record.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

namespace {

/// About how many elements of a tensor a slice has, so that slices fit in
/// caches.
constexpr int64_t kSliceElements = int64_t(1) << 14;
/// How many slices are evaluated before their results are put together.
constexpr int64_t kBatch = 64;

/// A dimension to cut tensors along, its size, and that of a slice.
struct Slicing {
  size_t dimension;
  int64_t size, step;
};

/// An array seen as sizes[0] times sizes[1] times sizes[2] elements, of which
/// the middle dimension is cut.
struct Cut {
  Cut(ArrayRef<int64_t> sizes, size_t dimension) {
    for (int64_t size : sizes.take_front(dimension))
      outer *= size;
    for (int64_t size : sizes.drop_front(dimension + 1))
      inner *= size;
  }
  int64_t outer = 1, inner = 1;
};

/// Copies `count` steps of the cut dimension: from step `from` on, of
/// `fromSize`, to step `to` on, of `toSize`.
template <typename T>
void copySteps(const Cut &cut, const std::vector<T> &source, int64_t fromSize,
               int64_t from, std::vector<T> &target, int64_t toSize, int64_t to,
               int64_t count) {
  if (source.empty())
    return;
  target.resize(cut.outer * toSize * cut.inner);
  for (int64_t i = 0; i != cut.outer; ++i)
    std::copy_n(source.begin() + (i * fromSize + from) * cut.inner,
                count * cut.inner,
                target.begin() + (i * toSize + to) * cut.inner);
}

void copySteps(const Slicing &slicing, const Array &source, int64_t from,
               Array &target, int64_t to, int64_t count) {
  const size_t dimension = slicing.dimension;
  const Cut cut(source.sizes(), dimension);
  const int64_t fromSize = source.sizes()[dimension];
  const int64_t toSize = target.sizes()[dimension];
  auto copy = [&](const auto &from0, auto &to0) {
    copySteps(cut, from0, fromSize, from, to0, toSize, to, count);
  };
  copy(source.numbers, target.numbers);
  copy(source.integers, target.integers);
  copy(source.errors, target.errors);
}

/// Whether `array` is cut, and not the same for all slices.
bool isCut(const Array &array, const Slicing &slicing) {
  return array.sizes().size() >= 2 &&
         array.sizes()[slicing.dimension] == slicing.size;
}

Array resize(const Array &array, const Slicing &slicing, int64_t size) {
  SmallVector<int64_t> sizes(array.sizes());
  sizes[slicing.dimension] = size;
  return Array(array.elementType(), sizes);
}

/// The part of `array` that belongs to a slice.
Array getSlice(const Array &array, const Slicing &slicing, int64_t begin,
               int64_t count) {
  if (!isCut(array, slicing))
    return array;
  Array part = resize(array, slicing, count);
  copySteps(slicing, array, begin, part, 0, count);
  return part;
}

/// How to cut the tensors of `func`, which is decomposed, along a dimension
/// that all of them have or are repeated over, and along which no rows are
/// numbered. Nothing if there is no such dimension, or the tensors are small.
std::optional<Slicing> findSlicing(func::FuncOp func, ArrayRef<Array> inputs) {
  // The rank of all tensors that have rows, and how large they are.
  std::optional<int64_t> rank;
  SmallVector<RankedTensorType> types;
  auto isFit = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() < 2)
      return true;
    types.push_back(tensor);
    bool fits = !rank || *rank == tensor.getRank();
    rank = tensor.getRank();
    return fits;
  };
  if (!llvm::all_of(func.getArgumentTypes(), isFit))
    return std::nullopt;
  for (Operation &op : func.front().without_terminator())
    if (isa<tile::ReduceRowsOp, tile::ReduceBandsOp, tile::PackBandsOp,
            tile::RepeatBandsOp, tile::DotOp>(op) ||
        !llvm::all_of(op.getResultTypes(), isFit))
      return std::nullopt;
  int64_t most = 0;
  for (const Array &input : inputs)
    most = std::max(most, input.count());
  if (!rank || most <= kSliceElements)
    return std::nullopt;

  std::optional<Slicing> best;
  for (int64_t dimension = 0; dimension + 1 < *rank; ++dimension) {
    int64_t size = 0;
    bool fits = llvm::all_of(types, [&](RankedTensorType type) {
      return type.isDynamicDim(dimension) || type.getDimSize(dimension) == 1;
    });
    for (auto iota : func.front().getOps<tile::IotaOp>())
      fits &=
          !iota.getOver() || !llvm::is_contained(*iota.getOver(), dimension);
    for (Type type : func.getResultTypes()) {
      auto tensor = cast<RankedTensorType>(type);
      fits &= tensor.getRank() >= 2 && tensor.isDynamicDim(dimension);
    }
    for (auto [type, input] :
         llvm::zip_equal(func.getArgumentTypes(), inputs)) {
      auto tensor = cast<RankedTensorType>(type);
      if (!fits || tensor.getRank() < 2 || !tensor.isDynamicDim(dimension))
        continue;
      fits &= size == 0 || size == input.sizes()[dimension];
      size = input.sizes()[dimension];
    }
    if (!fits || size < 2 || (best && best->size >= size))
      continue;
    int64_t step = std::max<int64_t>(1, kSliceElements / (most / size));
    best = Slicing{static_cast<size_t>(dimension), size, step};
  }
  return best;
}

/// Where differentiation begins, if it is asked for.
enum class Back { None, Seeds, SumOfFirst };

/// Evaluates the slices of a function and puts their results together.
class SlicedEvaluation {
public:
  SlicedEvaluation(func::FuncOp func, ArrayRef<Array> inputs, Back back,
                   ArrayRef<std::optional<Array>> seeds = {})
      : func(func), inputs(inputs), back(back), seeds(seeds) {}

  FailureOr<Differentiated> run() {
    if (std::optional<Slicing> slicing = findSlicing(func, inputs)) {
      if (failed(runSlices(*slicing)))
        return failure();
    } else {
      FailureOr<Differentiated> whole = runOn(inputs, seeds);
      if (failed(whole))
        return failure();
      all = std::move(*whole);
    }
    for (auto [gradient, input] : llvm::zip(all.gradients, inputs))
      if (gradient && gradient->elementType() != input.elementType())
        gradient = map(
            input.elementType(), [](const Number &x) { return x; }, *gradient);
    return std::move(all);
  }

private:
  /// Runs a batch of slices side by side, and adds their results one after the
  /// other, so that sums have the order of the slices.
  LogicalResult runSlices(const Slicing &slicing) {
    // All threads ask for this order, which would otherwise be computed on
    // demand.
    func.front().recomputeOpOrder();
    const int64_t slices = llvm::divideCeil(slicing.size, slicing.step);
    for (int64_t first = 0; first < slices; first += kBatch) {
      const int64_t count = std::min(kBatch, slices - first);
      std::vector<FailureOr<Differentiated>> parts(count);
      parallelFor(func.getContext(), 0, count, [&](size_t index) {
        parts[index] = runSlice(slicing, first + static_cast<int64_t>(index));
      });
      for (auto [index, part] : llvm::enumerate(parts)) {
        if (failed(part))
          return failure();
        const int64_t slice = first + static_cast<int64_t>(index);
        add(slicing, slice * slicing.step, getCount(slicing, slice),
            std::move(*part));
      }
    }
    for (auto [index, sums] : shared)
      for (auto [element, sum] : llvm::enumerate(sums))
        all.gradients[index]->set(static_cast<int64_t>(element), sum.get());
    return success();
  }

  static int64_t getCount(const Slicing &slicing, int64_t slice) {
    return std::min(slicing.step, slicing.size - slice * slicing.step);
  }

  FailureOr<Differentiated> runSlice(const Slicing &slicing,
                                     int64_t slice) const {
    const int64_t begin = slice * slicing.step;
    const int64_t count = getCount(slicing, slice);
    SmallVector<Array> parts;
    for (const Array &input : inputs)
      parts.push_back(getSlice(input, slicing, begin, count));
    SmallVector<std::optional<Array>> seedParts;
    for (const std::optional<Array> &seed : seeds)
      seedParts.push_back(
          seed ? std::optional(getSlice(*seed, slicing, begin, count))
               : std::nullopt);
    return runOn(parts, seedParts);
  }

  FailureOr<Differentiated> runOn(ArrayRef<Array> inputs,
                                  ArrayRef<std::optional<Array>> seeds) const {
    Record record(func, /*keepsAll=*/back != Back::None);
    if (failed(record.run(inputs)))
      return failure();
    Differentiated result{record.getResults(), {}};
    if (back == Back::None)
      return result;
    SmallVector<std::optional<Array>> ones(result.results.size());
    if (back == Back::SumOfFirst)
      ones.front() = map(
          getGradientType(result.results.front().elementType()),
          [](const Number &) { return Number(1); }, result.results.front());
    if (failed(record.goBack(back == Back::Seeds ? seeds : ones)))
      return failure();
    result.gradients = record.getGradients();
    return result;
  }

  /// Adds the results of a slice.
  void add(const Slicing &slicing, int64_t begin, int64_t count,
           Differentiated part) {
    const bool isFirst = begin == 0;
    for (auto [index, array] : llvm::enumerate(part.results)) {
      if (isFirst)
        all.results.push_back(resize(array, slicing, slicing.size));
      copySteps(slicing, array, 0, all.results[index], begin, count);
    }
    for (auto [index, array] : llvm::enumerate(part.gradients)) {
      if (isFirst)
        all.gradients.push_back(
            !array ? std::nullopt
            : isCut(inputs[index], slicing)
                ? std::optional(resize(*array, slicing, slicing.size))
                : std::optional(Array(array->elementType(), array->sizes())));
      if (!array)
        continue;
      if (isCut(inputs[index], slicing)) {
        copySteps(slicing, *array, 0, *all.gradients[index], begin, count);
        continue;
      }
      std::vector<Sum> &sums = shared[index];
      sums.resize(array->count());
      for (int64_t i = 0; i != array->count(); ++i)
        sums[i].add(array->number(i));
    }
  }

  func::FuncOp func;
  ArrayRef<Array> inputs;
  Back back;
  ArrayRef<std::optional<Array>> seeds;
  Differentiated all;
  /// The gradients of arguments that all slices share.
  llvm::DenseMap<unsigned, std::vector<Sum>> shared;
};

} // namespace

static FailureOr<Differentiated>
evaluateDecomposed(func::FuncOp func, ArrayRef<Array> inputs, Back back,
                   ArrayRef<std::optional<Array>> seeds = {}) {
  auto decomposed = decompose(func);
  if (failed(decomposed))
    return failure();
  return SlicedEvaluation(**decomposed, inputs, back, seeds).run();
}

FailureOr<SmallVector<Array>>
bastile::reference::evaluate(func::FuncOp func, ArrayRef<Array> inputs) {
  auto result = evaluateDecomposed(func, inputs, Back::None);
  if (failed(result))
    return failure();
  return std::move(result->results);
}

FailureOr<Differentiated>
bastile::reference::differentiate(func::FuncOp func, ArrayRef<Array> inputs,
                                  ArrayRef<std::optional<Array>> seeds) {
  return evaluateDecomposed(func, inputs, Back::Seeds, seeds);
}

FailureOr<Differentiated>
bastile::reference::differentiateSum(func::FuncOp func,
                                     ArrayRef<Array> inputs) {
  if (func.getNumResults() == 0 ||
      !isa<FloatType>(getElementTypeOrSelf(func.getResultTypes().front())))
    return func.emitOpError("has no first result of floats to differentiate");
  return evaluateDecomposed(func, inputs, Back::SumOfFirst);
}
