//===- Graph.cpp - The values of a function under construction ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/frontend/Graph.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bastile;
using runtime::Error;
using runtime::Expected;
using tile::Expr;

std::string bastile::print(ArrayRef<int64_t> sizes) {
  std::string text = "(";
  llvm::ListSeparator separator;
  for (int64_t size : sizes) {
    text += StringRef(separator);
    text += size < 0 ? "?" : std::to_string(size);
  }
  return text + (sizes.size() == 1 ? ",)" : ")");
}

std::string Graph::describe(Id id) const {
  const GraphValue &value = values[id];
  if (value.isNumber())
    return "a number";
  std::string text = bastile::print(value.sizes) + " of ";
  llvm::raw_string_ostream(text)
      << (value.ownType ? value.ownType : value.getType().getElementType());
  return text;
}

static bool isCondition(Type element) { return element.isInteger(1); }

bool bastile::isInteger(Type element) {
  return isa<IntegerType>(element) && !isCondition(element);
}

/// Whether `type` is a type of floats that formulas compute with: of 16 bits or
/// more.
static bool isWideFloat(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() >= 16;
}

Graph::Graph(StringRef name)
    : context(makeDialectRegistry(), MLIRContext::Threading::DISABLED),
      messages(context), builder(UnknownLoc::get(&context), &context) {
  loadFunctionDialects(context);
  module = ModuleOp::create(builder.getLoc());
  function = func::FuncOp::create(builder.getLoc(), name,
                                  builder.getFunctionType({}, {}));
  module->push_back(function);
  builder.setInsertionPointToEnd(&function.getBody().emplaceBlock());
}

Graph::Id Graph::add(GraphValue value) {
  values.push_back(std::move(value));
  return values.size() - 1;
}

Graph::Id Graph::addArgument(StringRef name, RankedTensorType type,
                             ArrayRef<int64_t> sizes) {
  unsigned index = function.getNumArguments();
  NamedAttribute attribute(
      builder.getStringAttr(tile::TileDialect::kNameAttrName),
      builder.getStringAttr(name));
  (void)function.insertArgument(
      index, type, builder.getDictionaryAttr(attribute), builder.getLoc());
  if (!defaultType && isWideFloat(type.getElementType()))
    defaultType = type.getElementType();
  return add({function.getArgument(index), SmallVector<int64_t>(sizes),
              type.getElementType()});
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Value Graph::getRaw(Id id) {
  const GraphValue &value = values[id];
  if (!value.ownType || value.getType().getElementType() == value.ownType)
    return value.value;
  return Expr(builder, value.value).as(value.ownType);
}

Type Graph::getWideType(ArrayRef<Id> ids) {
  for (Id id : ids)
    if (!values[id].isNumber() && values[id].getType().getElementType().isF64())
      return builder.getF64Type();
  return builder.getF32Type();
}

Expected<Expr> Graph::getExpr(Id id) {
  if (values[id].isNumber())
    return Error("takes a tensor, but got a number");
  if (Error error = checkKinds(id, "n"))
    return error;
  return Expr(builder, values[id].value);
}

Expected<Expr> Graph::getConverted(Id id, bool isDouble) {
  const GraphValue &value = values[id];
  if (value.isNumber() || isa<FloatType>(value.getType().getElementType()))
    return getExpr(id);
  Type element = isDouble ? Type(builder.getF64Type()) : builder.getF32Type();
  if (isInteger(value.getType().getElementType()))
    return Expr(builder, widen(value.value, element));
  return Expr(builder,
              arith::UIToFPOp::create(builder, value.getType().clone(element),
                                      value.value));
}

Expected<Value> Graph::getIntegers(Id id, IntegerType type) {
  const GraphValue &value = values[id];
  auto own = value.isNumber()
                 ? IntegerType()
                 : dyn_cast<IntegerType>(value.getType().getElementType());
  if (!own) {
    Expected<Expr> expr = getExpr(id);
    if (!expr)
      return expr.takeError();
    return toNearestInteger(*expr, type);
  }
  RankedTensorType converted = value.getType().clone(type);
  if (isCondition(own))
    return arith::ExtUIOp::create(builder, converted, value.value).getResult();
  if (own.getWidth() > type.getWidth())
    return arith::TruncIOp::create(builder, converted, value.value).getResult();
  return widen(value.value, type);
}

Expected<SmallVector<Value>> Graph::getWide(ArrayRef<Id> ids) {
  Type type = getWideType(ids);
  SmallVector<Value> wide;
  for (Id id : ids) {
    Expected<Expr> expr = getExpr(id);
    if (!expr)
      return expr.takeError();
    wide.push_back(expr->as(type));
  }
  return wide;
}

Value Graph::getWideIfFloat(Id id, ArrayRef<Id> others) {
  Value value = getRaw(id);
  if (!isWideFloat(getElementTypeOrSelf(value.getType())))
    return value;
  return Expr(builder, value).as(getWideType(others));
}

bool Graph::haveSeveralFloatTypes(ArrayRef<Id> ids) {
  Type found;
  for (Id id : ids) {
    Type type = getElementTypeOrSelf(getRaw(id).getType());
    if (!isWideFloat(type))
      continue;
    if (found && found != type)
      return true;
    found = type;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Expected<IntegerType> Graph::getIntegerType(const Formula &formula,
                                            ArrayRef<Id> ids) {
  IntegerType widest;
  std::optional<Id> other;
  for (auto [id, kind] : llvm::zip_equal(ids, formula.operands)) {
    const GraphValue &value = values[id];
    if (kind == 'c')
      continue;
    if (value.isNumber() ? !value.integer
                         : !isInteger(value.getType().getElementType())) {
      other = id;
      continue;
    }
    if (value.isNumber())
      continue;
    auto type = cast<IntegerType>(value.getType().getElementType());
    if (!widest || type.getWidth() > widest.getWidth())
      widest = type;
  }
  if (other || !widest || !formula.buildIntegers) {
    if (formula.build)
      return IntegerType();
    return Error("takes integers, but got " +
                 (other ? describe(*other) : "a number"));
  }
  for (Id id : ids)
    if (const GraphValue &value = values[id];
        value.integer && !llvm::isIntN(widest.getWidth(), *value.integer))
      return Error("takes numbers that integers of " +
                   std::to_string(widest.getWidth()) + " bits hold, but got " +
                   std::to_string(*value.integer));
  return widest;
}

Error Graph::checkKinds(ArrayRef<Id> ids, StringRef kinds, bool takesIntegers) {
  for (auto [id, kind] : llvm::zip_equal(ids, kinds)) {
    const GraphValue &value = values[id];
    if (takesIntegers && kind != 'c' &&
        (value.isNumber() || isInteger(value.getType().getElementType())))
      continue;
    if (kind != 'n') {
      if (value.isNumber())
        return Error("takes a condition, but got a number");
      if (!value.getType().getElementType().isInteger(1))
        return Error("takes a condition, but got " + describe(id));
    } else if (!value.isNumber() &&
               !isa<FloatType>(value.getType().getElementType())) {
      return Error(value.getType().getElementType().isInteger(1)
                       ? "takes numbers, but got a condition of the shape " +
                             bastile::print(value.sizes)
                       : "takes floats, but got " + describe(id) +
                             ", which has to be converted");
    }
  }
  return Error::success();
}

/// The size that operands of sizes `a` and `b` are broadcast to, if there is
/// one.
static std::optional<int64_t> getCommonSize(int64_t a, int64_t b) {
  if (a == b || b == 1)
    return a;
  if (a == 1)
    return b;
  // A size that is not known is taken to equal the other.
  if (a < 0 || b < 0)
    return std::max(a, b);
  return std::nullopt;
}

Error Graph::findCommonSizes(ArrayRef<Id> ids,
                             SmallVectorImpl<int64_t> &sizes) {
  ArrayRef<int64_t> longest;
  for (Id id : ids) {
    ArrayRef<int64_t> mine = values[id].sizes;
    if (mine.empty())
      continue;
    auto fail = [&](StringRef advice) {
      return Error(("shapes " + bastile::print(longest) + " and " +
                    bastile::print(mine) + " do not fit" + advice)
                       .str());
    };
    if (longest.empty()) {
      longest = mine;
      sizes.assign(mine.begin(), mine.end());
      continue;
    }
    if (mine.size() != sizes.size() && mine.size() != 1 && sizes.size() != 1)
      return fail("; what has no leading size must be given one of 1");
    for (size_t i = 1; i <= std::min(mine.size(), sizes.size()); ++i) {
      int64_t &size = sizes[sizes.size() - i];
      std::optional<int64_t> common =
          getCommonSize(size, mine[mine.size() - i]);
      if (!common)
        return fail("");
      size = *common;
    }
    if (mine.size() > sizes.size()) {
      SmallVector<int64_t> longer(mine);
      longer.back() = sizes.back();
      sizes.assign(longer.begin(), longer.end());
      longest = mine;
    }
  }
  return Error::success();
}

const GraphValue *Graph::findLeader(ArrayRef<Id> ids, ArrayRef<int64_t> sizes) {
  const GraphValue *leader = nullptr;
  // Columns of a free size are known by one that has them. A leading size that
  // is free and 1 in this call is not repeated to one that is always 1.
  auto countFree = [](const GraphValue &value) {
    ArrayRef<int64_t> shape = value.getType().getShape();
    int64_t ones = 0;
    for (auto [size, fixed] : llvm::zip(value.sizes, shape.drop_back()))
      ones += size == 1 && ShapedType::isDynamic(fixed);
    return std::pair(ShapedType::isDynamic(shape.back()), ones);
  };
  for (Id id : ids) {
    ArrayRef<int64_t> mine = values[id].sizes;
    if (mine.size() != sizes.size() || mine.drop_back() != sizes.drop_back())
      continue;
    if (!leader || countFree(values[id]) > countFree(*leader))
      leader = &values[id];
  }
  return leader;
}

Error Graph::requireFixedColumns(Id id) {
  if (values[id].isNumber() ||
      !ShapedType::isDynamic(values[id].getType().getShape().back()))
    return Error::success();
  return Error("takes rows of a fixed length, but the columns of " +
               describe(id) + " are those of a product, whose size is free");
}

Value Graph::makeNumber(const GraphValue &value, RankedTensorType type,
                        Value like) {
  Type element = type.getElementType();
  TypedAttr number =
      isInteger(element)
          ? TypedAttr(builder.getIntegerAttr(element, *value.integer))
          : builder.getFloatAttr(element, value.number);
  Value scalar = arith::ConstantOp::create(builder, number);
  return tile::BroadcastOp::create(builder, type, scalar, like);
}

/// `value` in the precision of formulas; integers as those of `element`, a type
/// of floats or of wider integers.
Value Graph::widen(Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (isa<FloatType>(type.getElementType()))
    return Expr(builder, value).getValue();
  if (isCondition(type.getElementType()) || type.getElementType() == element)
    return value;
  if (isa<FloatType>(element))
    return arith::SIToFPOp::create(builder, type.clone(element), value);
  return arith::ExtSIOp::create(builder, type.clone(element), value);
}

Value Graph::expand(const GraphValue &value, RankedTensorType type,
                    Value like) {
  RankedTensorType own = value.getType();
  // Repeated rows are converted after the repetition: a conversion of the fewer
  // rows alone would be a kernel of its own.
  bool repeatsRows = own.getRank() == type.getRank() &&
                     own.getShape().drop_back() != type.getShape().drop_back();
  Value source = value.value;
  if (!repeatsRows)
    source = widen(source, type.getElementType());
  RankedTensorType expanded =
      type.clone(getElementTypeOrSelf(source.getType()));
  if (source.getType() != expanded)
    source = tile::BroadcastOp::create(builder, expanded, source, like);
  return isInteger(own.getElementType()) ? widen(source, type.getElementType())
                                         : source;
}

Expected<Value> Graph::apply(const Formula &formula, ArrayRef<Id> ids,
                             SmallVectorImpl<int64_t> &sizes) {
  Expected<IntegerType> integers = getIntegerType(formula, ids);
  if (!integers)
    return integers.takeError();
  const bool areIntegers = bool(*integers);
  if (Error error = checkKinds(ids, formula.operands,
                               areIntegers || formula.convertsIntegers))
    return error;
  Expected<SmallVector<Value>> operands =
      broadcast(ids, areIntegers ? Type(*integers) : getWideType(ids), sizes);
  if (!operands)
    return operands.takeError();
  return (areIntegers ? formula.buildIntegers : formula.build)(builder,
                                                               *operands);
}

Expected<SmallVector<Value>> Graph::broadcast(ArrayRef<Id> ids, Type wide,
                                              SmallVectorImpl<int64_t> &sizes) {
  if (Error error = findCommonSizes(ids, sizes))
    return error;
  Value like;
  RankedTensorType type;
  if (sizes.empty()) {
    // A combination of numbers alone is a vector that can be broadcast to
    // anything.
    sizes.push_back(1);
    type = RankedTensorType::get(
        1, defaultType && defaultType.isF64() ? defaultType : wide);
  } else {
    const GraphValue *leader = findLeader(ids, sizes);
    if (!leader)
      return Error("no operand has the leading sizes of the result, " +
                   bastile::print(sizes) +
                   "; repeat one of them by expand_as(x, like)");
    like = leader->value;
    SmallVector<int64_t> shape(leader->getType().getShape());
    if (!ShapedType::isDynamic(shape.back()))
      shape.back() = sizes.back();
    // Columns of a free size go with nothing but these and single ones.
    const bool areFree = ShapedType::isDynamic(shape.back());
    for (Id id : ids)
      if (!values[id].isNumber() && values[id].sizes.back() != 1 &&
          areFree !=
              ShapedType::isDynamic(values[id].getType().getShape().back()))
        return Error(
            "columns of a product, whose size is free, do not go with " +
            describe(id) + ", whose columns are fixed");
    type = RankedTensorType::get(shape, wide);
  }
  return llvm::map_to_vector(ids, [&](Id id) {
    const GraphValue &value = values[id];
    return value.isNumber() ? makeNumber(value, type, like)
                            : expand(value, type, like);
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

SmallVector<Type>
Graph::getOwnResultTypes(const ModelOpRequest &request, TypeRange actual,
                         ArrayRef<std::optional<Id>> operands) {
  // Types of results are inferred as if no formula had computed an operand.
  Block scratch;
  ModelOpRequest plain = request;
  for (auto [operand, id] : llvm::zip_equal(plain.operands, operands)) {
    if (!id)
      continue;
    const GraphValue &value = values[*id];
    Type element = value.ownType ? value.ownType : defaultType;
    RankedTensorType type = value.getType();
    operand = scratch.addArgument(element ? type.clone(element) : type,
                                  builder.getLoc());
  }
  auto own = inferModelOp(builder, messages, plain);
  SmallVector<Type> types;
  for (auto [index, type] : llvm::enumerate(actual)) {
    Type element = getElementTypeOrSelf(type);
    bool follows = own && getElementTypeOrSelf((*own)[index]) != element;
    types.push_back(follows ? Type() : element);
  }
  return types;
}

SmallVector<int64_t> Graph::getResultSizes(RankedTensorType type,
                                           ArrayRef<Id> operands) {
  SmallVector<int64_t> sizes(type.getRank(), 1);
  for (Id id : operands) {
    ArrayRef<int64_t> mine = values[id].sizes;
    if (mine.size() != sizes.size())
      continue;
    // A fixed size is that of the result, which has it in its type, or says
    // nothing of it, as the rows of a matrix do.
    for (size_t i = 0; i + 1 < sizes.size(); ++i)
      if (values[id].getType().isDynamicDim(i))
        sizes[i] = getCommonSize(sizes[i], mine[i]).value_or(-1);
  }
  for (auto [size, fixed] : llvm::zip_equal(sizes, type.getShape()))
    if (!ShapedType::isDynamic(fixed))
      size = fixed;
  return sizes;
}

Expected<Value> Graph::getResult(Id id) {
  const GraphValue &value = values[id];
  if (value.isNumber())
    return Error("the result is a number, and no tensor");
  if (value.ownType)
    return getRaw(id);
  if (value.getType().getElementType().isInteger(1))
    return Error("the result is a condition of the shape " +
                 bastile::print(value.sizes) + "; select numbers by it");
  return Expr(builder, value.value)
      .as(defaultType ? defaultType : value.getType().getElementType());
}

void Graph::eraseUnused() {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

Expected<std::string> Graph::print(ArrayRef<Value> results,
                                   ArrayRef<std::optional<unsigned>> places) {
  func::ReturnOp::create(builder, results);
  function.setFunctionType(builder.getFunctionType(
      function.getFunctionType().getInputs(), ValueRange(results).getTypes()));
  for (auto [index, place] : llvm::enumerate(places))
    if (place)
      function.setResultAttr(index, tile::TileDialect::kInPlaceAttrName,
                             builder.getIndexAttr(*place));
  eraseUnused();
  if (failed(verify(*module)))
    return messages.fail("the function is not valid");
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}
