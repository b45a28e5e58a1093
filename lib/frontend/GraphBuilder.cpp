//===- GraphBuilder.cpp - Functions built op by op ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/GraphBuilder.h"

#include "lib/frontend/Graph.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace bastile;
using runtime::Error;
using runtime::Expected;
using tile::Expr;

class GraphBuilder::Implementation : public Graph {
public:
  using Graph::Graph;
};

GraphBuilder::GraphBuilder(const std::string &name)
    : implementation(std::make_unique<Implementation>(name)) {}
GraphBuilder::~GraphBuilder() = default;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Expected<GraphBuilder::Id>
GraphBuilder::addArgument(const std::string &name, const std::string &text,
                          const std::vector<int64_t> &sizes) {
  Graph &graph = *implementation;
  auto type =
      dyn_cast_or_null<RankedTensorType>(parseType(text, &graph.context));
  if (!type || type.getRank() == 0)
    return graph.messages.fail("argument '" + name + "' of type '" + text +
                               "' is no tensor with rows");
  SmallVector<int64_t> example(sizes.begin(), sizes.end());
  if (example.empty())
    example = llvm::map_to_vector(type.getShape(), [](int64_t size) {
      return ShapedType::isDynamic(size) ? -1 : size;
    });
  return graph.addArgument(name, type, example);
}

GraphBuilder::Id GraphBuilder::addNumber(double number) {
  return implementation->add({Value(), {}, Type(), number});
}

GraphBuilder::Id GraphBuilder::addInteger(int64_t number) {
  return implementation->add(
      {Value(), {}, Type(), static_cast<double>(number), number});
}

GraphBuilder::Description GraphBuilder::describe(Id id) const {
  const GraphValue &value = implementation->values[id];
  Description description;
  if (value.isNumber())
    return description;
  description.sizes.assign(value.sizes.begin(), value.sizes.end());
  for (int64_t size : value.getType().getShape())
    description.isFixed.push_back(!ShapedType::isDynamic(size));
  Type element =
      value.ownType ? value.ownType : value.getType().getElementType();
  llvm::raw_string_ostream(description.element) << element;
  return description;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

Expected<GraphBuilder::Id>
GraphBuilder::apply(const std::string &name, const std::vector<Id> &operands) {
  Graph &graph = *implementation;
  const Formula *formula = findFormula(name);
  if (!formula)
    return Error("there is no function '" + name + "'");
  if (formula->operands.size() != operands.size())
    return Error("'" + name + "' takes " +
                 std::to_string(formula->operands.size()) +
                 " operands, but got " + std::to_string(operands.size()));
  SmallVector<int64_t> sizes;
  Expected<Value> value = graph.apply(*formula, operands, sizes);
  if (!value)
    return value.takeError();
  // Floats are in the precision of formulas, integers in a type of their own.
  Type element = getElementTypeOrSelf(value->getType());
  return graph.add({*value, sizes, isInteger(element) ? element : Type()});
}

Expected<GraphBuilder::Id> GraphBuilder::reduce(const std::string &name,
                                                Id operand, int64_t groups) {
  Graph &graph = *implementation;
  const Reduction *reduction = findReduction(name);
  if (!reduction)
    return Error("there is no reduction '" + name + "'");
  Expected<Expr> expr = graph.getExpr(operand);
  if (!expr)
    return expr.takeError();
  SmallVector<int64_t> sizes = graph.values[operand].sizes;
  if (sizes.size() < 2)
    return Error("takes rows, but the shape is " + print(sizes));
  int64_t length = sizes.back();
  if (groups > 1 || reduction->isOfRows)
    if (Error error = graph.requireFixedColumns(operand))
      return error;
  if (groups < 1 || length % groups != 0 || (groups == length && groups != 1))
    return Error("rows of the shape " + print(sizes) + " are not " +
                 std::to_string(groups) +
                 " groups of several columns of one size");
  if (reduction->isOfRows)
    sizes = {length};
  else
    sizes.back() = groups;
  return graph.add({reduction->build(*expr, groups).getValue(), sizes, Type()});
}

Expected<GraphBuilder::Id> GraphBuilder::numberColumns(Id like) {
  Graph &graph = *implementation;
  Expected<Expr> expr = graph.getExpr(like);
  if (!expr)
    return expr.takeError();
  const SmallVector<int64_t> sizes = graph.values[like].sizes;
  if (sizes.size() < 2)
    return Error("takes rows, but the shape is " + print(sizes));
  return graph.add({columnNumbers(*expr).getValue(), sizes, Type()});
}

/// Whether each of `dimensions` follows the one before.
static bool areNeighbours(ArrayRef<int64_t> dimensions) {
  for (size_t i = 1; i < dimensions.size(); ++i)
    if (dimensions[i] != dimensions[i - 1] + 1)
      return false;
  return true;
}

Expected<GraphBuilder::Id>
GraphBuilder::iota(Id like, const std::vector<int64_t> &dimensions) {
  Graph &graph = *implementation;
  const GraphValue value = graph.values[like];
  if (value.isNumber())
    return Error("takes a tensor, but got a number");
  SmallVector<int64_t> sizes = value.sizes;
  if (sizes.size() < 2)
    return Error("takes rows, but the shape is " + print(sizes));
  const int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  const bool isOfColumns = dimensions == std::vector<int64_t>{last};
  if (dimensions.empty() || dimensions.front() < 0 ||
      !areNeighbours(dimensions) || (!isOfColumns && dimensions.back() >= last))
    return Error("elements of the shape " + print(sizes) +
                 " cannot be numbered along the dimensions " +
                 print(dimensions) +
                 ", which are neither the last one nor leading ones that "
                 "follow each other");
  SmallVector<int64_t> shape(value.getType().getShape());
  if (!isOfColumns)
    shape.back() = sizes.back() = 1;
  Type element = graph.builder.getI32Type();
  Value numbers = tile::IotaOp::create(
      graph.builder, RankedTensorType::get(shape, element), value.value,
      isOfColumns ? ArrayRef<int64_t>() : ArrayRef(dimensions));
  return graph.add({numbers, sizes, element});
}

Expected<GraphBuilder::Id> GraphBuilder::expandAs(Id operand, Id like) {
  Graph &graph = *implementation;
  GraphValue value = graph.values[operand];
  const GraphValue &shape = graph.values[like];
  if (value.isNumber() || shape.isNumber())
    return Error("takes tensors, but got a number");
  const bool fits =
      value.sizes.size() == shape.sizes.size() &&
      llvm::all_of(llvm::zip_equal(value.sizes, shape.sizes), [](auto sizes) {
        auto [mine, wanted] = sizes;
        return mine == 1 || mine == wanted || mine < 0 || wanted < 0;
      });
  if (!fits)
    return Error("shape " + print(value.sizes) + " cannot be repeated to " +
                 print(shape.sizes));
  auto type = shape.getType().clone(value.getType().getElementType());
  if (type == value.getType())
    return operand;
  // Nothing has to number rows for the sake of their sizes.
  Value source = shape.value;
  if (auto iota = source.getDefiningOp<tile::IotaOp>())
    source = iota.getLike();
  value.value =
      tile::BroadcastOp::create(graph.builder, type, value.value, source);
  value.sizes = shape.sizes;
  return graph.add(std::move(value));
}

Expected<GraphBuilder::Id> GraphBuilder::repeatColumns(Id operand,
                                                       int64_t count) {
  Graph &graph = *implementation;
  GraphValue value = graph.values[operand];
  if (value.isNumber())
    return Error("takes a tensor, but got a number");
  if (count < 1)
    return Error("cannot repeat columns " + std::to_string(count) + " times");
  if (Error error = graph.requireFixedColumns(operand))
    return error;
  SmallVector<int64_t> shape(value.getType().getShape());
  if (shape.size() == 1 && shape.back() != 1)
    return Error("takes rows, but the shape is " + print(value.sizes));
  shape.back() *= count;
  value.sizes.back() *= count;
  value.value = tile::BroadcastOp::create(
      graph.builder, value.getType().clone(shape), value.value, value.value);
  return graph.add(std::move(value));
}

Expected<GraphBuilder::Id> GraphBuilder::convert(Id operand,
                                                 const std::string &element) {
  Graph &graph = *implementation;
  Type found = parseType(element, &graph.context);
  if (auto integer = dyn_cast_or_null<IntegerType>(found);
      integer && integer.isSignless() && integer.getWidth() > 1) {
    Expected<Value> integers = graph.getIntegers(operand, integer);
    if (!integers)
      return integers.takeError();
    return graph.add({*integers, graph.values[operand].sizes, integer});
  }
  auto type = dyn_cast_or_null<FloatType>(found);
  if (!type)
    return graph.messages.fail("cannot convert to '" + element +
                               "', which is no type of numbers");
  const bool isDouble = type.getWidth() > 32;
  Expected<Expr> expr = graph.getConverted(operand, isDouble);
  if (!expr)
    return expr.takeError();
  // Formulas go on in the precision that the value had, or in a higher one.
  Value value = isDouble ? expr->as(type) : expr->roundedTo(type).getValue();
  return graph.add({value, graph.values[operand].sizes, type});
}

Expected<GraphBuilder::Id> GraphBuilder::multiply(Id a, Id b, int64_t contractA,
                                                  int64_t contractB) {
  return implementation->multiply(a, b, contractA, contractB);
}

std::vector<std::pair<unsigned, unsigned>>
GraphBuilder::findFreeColumns(Id value, int64_t contract) {
  const GraphValue &factor = implementation->values[value];
  if (factor.isNumber() || factor.sizes.size() < 2)
    return {};
  const auto place = static_cast<unsigned>(factor.sizes.size() - 1 - contract);
  if (!factor.getType().isDynamicDim(place))
    return {};
  return implementation->findArguments(factor.value, place);
}

std::vector<std::pair<unsigned, unsigned>>
GraphBuilder::findFreeSizes(const std::vector<Id> &values) {
  return implementation->findFreeSizes(values);
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Expected<std::vector<GraphBuilder::Id>>
GraphBuilder::split(Id operand, int64_t count, bool interleaved) {
  Graph &graph = *implementation;
  GraphValue value = graph.values[operand];
  if (value.isNumber())
    return Error("takes a tensor, but got a number");
  if (Error error = graph.requireFixedColumns(operand))
    return error;
  if (count < 1 || value.sizes.back() % count != 0)
    return Error("rows of the shape " + print(value.sizes) +
                 " cannot be split into " + std::to_string(count) +
                 " pieces of one length");
  if (count == 1)
    return std::vector<Id>{operand};
  SmallVector<int64_t> sizes = value.sizes;
  sizes.back() /= count;
  // Of a value that was rounded, formulas go on in float64.
  Value moved = graph.getWideType({operand}).isF64() ? value.value
                                                     : graph.getRaw(operand);
  std::vector<Id> pieces;
  for (Value piece : tile::splitRows(graph.builder, moved, count,
                                     /*strands=*/interleaved ? count : 1))
    pieces.push_back(graph.add({piece, sizes, value.ownType}));
  return pieces;
}

Expected<GraphBuilder::Id> GraphBuilder::join(const std::vector<Id> &pieces,
                                              bool interleaved) {
  Graph &graph = *implementation;
  if (pieces.empty())
    return Error("there is nothing to concatenate");
  const GraphValue first = graph.values[pieces.front()];
  bool haveOneType = bool(first.ownType);
  for (Id id : pieces) {
    const GraphValue &piece = graph.values[id];
    if (piece.isNumber())
      return Error("takes tensors, but got a number");
    if (Error error = graph.requireFixedColumns(id))
      return error;
    if (piece.sizes != first.sizes)
      return Error("pieces must have one shape, but have " +
                   print(first.sizes) + " and " + print(piece.sizes));
    haveOneType &= piece.ownType == first.ownType;
  }
  if (pieces.size() == 1)
    return pieces.front();
  SmallVector<Value> values;
  if (haveOneType && !graph.getWideType(pieces).isF64()) {
    values =
        llvm::map_to_vector(pieces, [&](Id id) { return graph.getRaw(id); });
  } else {
    Expected<SmallVector<Value>> wide = graph.getWide(pieces);
    if (!wide)
      return wide.takeError();
    values = std::move(*wide);
  }
  SmallVector<int64_t> sizes = first.sizes;
  const int64_t count = static_cast<int64_t>(pieces.size());
  sizes.back() *= count;
  return graph.add({tile::joinRows(graph.builder, values,
                                   /*strands=*/interleaved ? count : 1),
                    sizes, haveOneType ? first.ownType : Type()});
}

//===----------------------------------------------------------------------===//
// Model ops
//===----------------------------------------------------------------------===//

Expected<std::vector<GraphBuilder::Id>> GraphBuilder::applyOp(
    const std::string &op, const std::vector<std::optional<Id>> &operands,
    const Attributes &attributes, const std::vector<std::string> &results) {
  Graph &graph = *implementation;
  std::vector<Id> present;
  for (std::optional<Id> operand : operands)
    if (operand)
      present.push_back(*operand);
  for (Id id : present)
    if (graph.values[id].isNumber())
      return Error("takes tensors, but got a number");

  ModelOpRequest request{op, {}, attributes, results};
  auto setOperands = [&](llvm::function_ref<Value(Id)> get) {
    request.operands = llvm::map_to_vector(operands, [&](std::optional<Id> id) {
      return id ? get(*id) : Value();
    });
  };
  setOperands([&](Id id) { return graph.getRaw(id); });
  Expected<Operation *> operation =
      createModelOp(graph.builder, graph.messages, request);
  if (!operation && graph.haveSeveralFloatTypes(present)) {
    setOperands([&](Id id) { return graph.getWideIfFloat(id, present); });
    operation = createModelOp(graph.builder, graph.messages, request);
  }
  if (!operation)
    return operation.takeError();

  SmallVector<Type> own = graph.getOwnResultTypes(
      request, (*operation)->getResultTypes(), operands);
  std::vector<Id> ids;
  for (auto [result, type] : llvm::zip((*operation)->getResults(), own))
    ids.push_back(
        graph.add({result,
                   graph.getResultSizes(
                       cast<RankedTensorType>(result.getType()), present),
                   type}));
  return ids;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

Expected<std::string>
GraphBuilder::finish(const std::vector<Id> &results,
                     const std::vector<std::optional<unsigned>> &places) {
  SmallVector<Value> values;
  for (Id id : results) {
    Expected<Value> value = implementation->getResult(id);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return implementation->print(values, places);
}
