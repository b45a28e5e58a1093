//===- Products.cpp - Products of functions built op by op ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dimensions.h"
#include "lib/frontend/Graph.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace bastile;
using runtime::Error;
using runtime::Expected;
using tile::Expr;

std::vector<std::pair<unsigned, unsigned>>
Graph::findArguments(Value value, unsigned place) {
  Block &block = function.front();
  const ValueDimensions dimensions(block);
  auto wanted = dimensions.get(value, place);
  std::vector<std::pair<unsigned, unsigned>> found;
  if (!wanted)
    return found;
  for (BlockArgument argument : block.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    for (unsigned own = 0; own < type.getRank(); ++own)
      if (dimensions.get(argument, own) == wanted && type.isDynamicDim(own))
        found.emplace_back(argument.getArgNumber(), own);
  }
  return found;
}

std::vector<std::pair<unsigned, unsigned>>
Graph::findFreeSizes(ArrayRef<Id> ids) {
  // Leading dimensions are counted from the last one.
  llvm::SmallBitVector isFixed;
  auto visit = [&](llvm::function_ref<void(Value, unsigned, unsigned)> act) {
    for (Id id : ids) {
      Value value = values[id].value;
      const unsigned rank = value ? values[id].getType().getRank() : 0;
      for (unsigned place = 0; place + 1 < rank; ++place)
        act(value, place, rank - 2 - place);
    }
  };
  auto getSize = [](Value value, unsigned place) {
    return cast<RankedTensorType>(value.getType()).getDimSize(place);
  };
  visit([&](Value value, unsigned place, unsigned ahead) {
    isFixed.resize(std::max<unsigned>(isFixed.size(), ahead + 1));
    if (int64_t size = getSize(value, place);
        size != 1 && !ShapedType::isDynamic(size))
      isFixed.set(ahead);
  });
  std::vector<std::pair<unsigned, unsigned>> found;
  if (isFixed.none())
    return found;
  visit([&](Value value, unsigned place, unsigned ahead) {
    if (isFixed[ahead] && ShapedType::isDynamic(getSize(value, place)))
      llvm::append_range(found, findArguments(value, place));
  });
  return found;
}

static bool isSmall(Type type) {
  return type && type.getIntOrFloatBitWidth() == 8;
}

/// The type in which factors of the types `a` and `b` are multiplied, those
/// that they have outside of formulas; null for one that a formula computed,
/// which is of `wide`. Null if they have none in common. Two types of 8 bits
/// may meet: it is the first one then.
static Type getFactorType(Type a, Type b, Type wide) {
  if (!a || !b)
    return a ? a : b;
  if (a == b || (isSmall(a) && isSmall(b)))
    return a;
  if (isSmall(a) || isSmall(b))
    return {};
  return wide;
}

Expected<std::pair<Value, Value>> Graph::getFactors(Id a, Id b) {
  const Id ids[] = {a, b};
  Expected<SmallVector<Value>> wide = getWide(ids);
  if (!wide)
    return wide.takeError();
  Type computed = getElementTypeOrSelf(wide->front().getType());
  Type left = values[a].ownType, right = values[b].ownType;
  Type type = getFactorType(left, right, computed);
  if (!type && left)
    return Error("cannot multiply " + describe(a) + " by " + describe(b) +
                 "; convert one of them");
  if (!type)
    type = defaultType ? defaultType : computed;
  // A number of float64 is not multiplied in a narrower type because of the
  // other factor.
  if (computed.isF64())
    type = computed;
  auto getFactor = [&](Id id) {
    Type own = values[id].ownType;
    return own == type || (isSmall(own) && isSmall(type))
               ? getRaw(id)
               : Expr(builder, values[id].value).as(type);
  };
  // The product itself rounds a left factor that a formula computed, as its
  // kernel may compute it as well.
  const bool isRounded =
      !left && computed.isF32() && (type.isBF16() || type.isF16());
  Value first = isRounded ? wide->front() : getFactor(a);
  return std::pair(first, getFactor(b));
}

/// The sizes of the batch of two tensors of such sizes, from the first
/// dimension on; nothing if they do not fit.
static std::optional<SmallVector<int64_t>> getBatch(ArrayRef<int64_t> a,
                                                    ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> sizes(a.drop_back(2));
  for (size_t ahead = 3; ahead <= b.size(); ++ahead) {
    int64_t &size = sizes[a.size() - ahead];
    const int64_t other = b[b.size() - ahead];
    if (size == 1)
      size = other;
    // A size that is not known is taken to equal the other.
    else if (size < 0 && other != 1)
      size = other;
    else if (other != 1 && other >= 0 && other != size)
      return std::nullopt;
  }
  return sizes;
}

Expected<Graph::Id> Graph::multiply(Id a, Id b, int64_t contractA,
                                    int64_t contractB) {
  for (Id id : {a, b})
    if (values[id].isNumber() || values[id].sizes.size() < 2)
      return Error("takes matrices, but got " + describe(id));
  Expected<std::pair<Value, Value>> factors = getFactors(a, b);
  if (!factors)
    return factors.takeError();
  const SmallVector<int64_t> left = values[a].sizes, right = values[b].sizes;
  const size_t freeA = left.size() - 1 - contractA;
  const size_t freeB = right.size() - 1 - contractB;
  const int64_t depthA = left[left.size() - 2 + contractA];
  const int64_t depthB = right[right.size() - 2 + contractB];
  std::optional<SmallVector<int64_t>> sizes = getBatch(left, right);
  // Sizes of examples say nothing of dimensions that are free in one factor
  // alone.
  const bool isFixedA =
      !values[a].getType().isDynamicDim(left.size() - 2 + contractA);
  const bool isFixedB =
      !values[b].getType().isDynamicDim(right.size() - 2 + contractB);
  if (!sizes ||
      (isFixedA == isFixedB && depthA >= 0 && depthB >= 0 && depthA != depthB))
    return Error("shapes " + bastile::print(left) + " and " +
                 bastile::print(right) +
                 " do not fit: products are summed over sizes of " +
                 std::to_string(depthA) + " and " + std::to_string(depthB));
  sizes->append({left[freeA], right[freeB]});
  return add({tile::dot(builder, factors->first, factors->second,
                        {contractA, contractB})
                  .getValue(),
              *sizes, Type()});
}
