//===- Record.cpp - The values of a function, op by op --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Record.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

FailureOr<OwningOpRef<func::FuncOp>>
bastile::reference::decompose(func::FuncOp func) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return func.emitOpError("is not one block, and has no meaning as tensors");
  OwningOpRef<func::FuncOp> copy = func.clone();
  Block &body = copy->front();
  // Ops may decompose into ops that decompose.
  for (Operation *op = &body.front(); op;) {
    auto model = dyn_cast<tile::DecomposableOpInterface>(op);
    if (!model) {
      op = op->getNextNode();
      continue;
    }
    Operation *previous = op->getPrevNode();
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    op->replaceAllUsesWith(model.decompose(builder));
    op->erase();
    op = previous ? previous->getNextNode() : &body.front();
  }
  return copy;
}

/// The operands on whose elements the results of `op` depend. Another operand
/// may only give sizes.
static ValueRange getValueOperands(Operation &op) {
  ValueRange operands = op.getOperands();
  if (isa<tile::IotaOp>(op))
    return operands.take_front(0);
  return isa<tile::BroadcastOp, tile::RepeatBandsOp>(op) ? operands.take_front()
                                                         : operands;
}

static Array getConstant(arith::ConstantOp op) {
  Attribute attribute = op.getValue();
  Type type = getElementTypeOrSelf(op.getType());
  auto toDouble = [](APFloat number) {
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return Number(number.convertToDouble());
  };
  auto toInteger = [](const APInt &bits) {
    return Integer{bits.sextOrTrunc(64).getSExtValue(), 0};
  };
  auto shaped = dyn_cast<ShapedType>(op.getType());
  Array result(type, shaped ? shaped.getShape() : ArrayRef<int64_t>());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    result.set(0, toDouble(number.getValue()));
  else if (auto integer = dyn_cast<IntegerAttr>(attribute))
    result.set(0, toInteger(integer.getValue()));
  else if (auto elements = dyn_cast<DenseFPElementsAttr>(attribute))
    for (auto [index, number] : llvm::enumerate(elements))
      result.set(static_cast<int64_t>(index), toDouble(number));
  else if (auto elements = dyn_cast<DenseIntElementsAttr>(attribute))
    for (auto [index, integer] : llvm::enumerate(elements))
      result.set(static_cast<int64_t>(index), toInteger(integer));
  return result;
}

SmallVector<const Array *> Record::getOperands(Operation &op) {
  return llvm::map_to_vector(op.getOperands(), [&](Value operand) {
    return const_cast<const Array *>(&values.find(operand)->second);
  });
}

/// Whether arrays that an op combines element by element have one shape.
static bool haveOneShape(Operation &op, Operands operands) {
  if (!OpTrait::hasElementwiseMappableTraits(&op))
    return true;
  const Array *first = nullptr;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    bool isCondition = isa<arith::SelectOp>(op) && index == 0;
    if (isCondition && operand->sizes().empty())
      continue;
    if (first && first->sizes() != operand->sizes())
      return false;
    first = operand;
  }
  return true;
}

LogicalResult Record::evaluate(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    values[constant.getResult()] = getConstant(constant);
    return success();
  }
  SmallVector<const Array *> operands = getOperands(op);
  if (!haveOneShape(op, operands))
    return op.emitOpError("combines tensors of different sizes");
  std::optional<SmallVector<Array>> results = evaluateRows(&op, operands);
  if (!results) {
    std::optional<Array> result = evaluateFloats(&op, operands);
    if (!result)
      result = evaluateIntegers(&op, operands);
    if (!result)
      return op.emitOpError("has no meaning to the reference");
    results = SmallVector<Array>{std::move(*result)};
  }
  for (auto [value, array] : llvm::zip_equal(op.getResults(), *results)) {
    bytes += array.bytes();
    values[value] = std::move(array);
  }
  return checkMemory(&op);
}

LogicalResult Record::checkMemory(Operation *op) {
  if (bytes <= kMaxBytes)
    return success();
  return op->emitOpError("is evaluated in float64, which takes more than ")
         << (kMaxBytes >> 30)
         << " GiB here, as rows depend on each other; take fewer rows";
}

/// Forgets values whose last use is `op`, if no gradients are asked for.
void Record::dropUnused(Operation &op) {
  if (keepsAll)
    return;
  for (Value operand : op.getOperands()) {
    bool isUsedLater = llvm::any_of(operand.getUsers(), [&](Operation *user) {
      return op.isBeforeInBlock(user);
    });
    auto it = values.find(operand);
    if (isUsedLater || it == values.end())
      continue;
    bytes -= it->second.bytes();
    values.erase(it);
  }
}

LogicalResult Record::run(ArrayRef<Array> inputs) {
  for (auto [argument, input] : llvm::zip_equal(func.getArguments(), inputs)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    bool fits = type && type.getElementType() == input.elementType() &&
                type.getRank() == static_cast<int64_t>(input.sizes().size());
    if (fits)
      for (auto [known, size] : llvm::zip(type.getShape(), input.sizes()))
        fits &= ShapedType::isDynamic(known) || known == size;
    if (!fits)
      return func.emitOpError("cannot be evaluated on the array given for its "
                              "argument ")
             << argument.getArgNumber() << " of type " << argument.getType();
    bytes += input.bytes();
    values[argument] = input;
  }
  for (Operation &op : func.front().without_terminator()) {
    if (failed(evaluate(op)))
      return failure();
    dropUnused(op);
  }
  return success();
}

SmallVector<Array> Record::getResults() {
  return llvm::map_to_vector(
      func.front().getTerminator()->getOperands(),
      [&](Value value) { return values.find(value)->second; });
}

void Record::findDependencies() {
  auto isFloat = [](Value value) {
    return isa<FloatType>(getElementTypeOrSelf(value.getType()));
  };
  for (BlockArgument argument : func.getArguments()) {
    dependent.insert(argument);
    if (isFloat(argument))
      active.insert(argument);
  }
  for (Operation &op : func.front().without_terminator()) {
    ValueRange operands = getValueOperands(op);
    auto isIn = [](const DenseSet<Value> &set) {
      return [&set](Value value) { return set.contains(value); };
    };
    if (llvm::any_of(operands, isIn(dependent)))
      dependent.insert_range(op.getResults());
    if (isa<tile::StopGradientOp>(op) || llvm::none_of(operands, isIn(active)))
      continue;
    for (Value result : op.getResults())
      if (isFloat(result))
        active.insert(result);
  }
}

void Record::addGradient(Value value, Array gradient) {
  Type type = getGradientType(getElementTypeOrSelf(value.getType()));
  if (gradient.elementType() != type)
    gradient = map(type, [](const Number &x) { return x; }, gradient);
  auto [it, isFirst] = gradients.try_emplace(value, std::move(gradient));
  if (!isFirst)
    it->second = map(
        type, [](const Number &a, const Number &b) { return a + b; },
        it->second, gradient);
}

LogicalResult Record::propagate(Operation &op) {
  ValueRange used = getValueOperands(op);
  if (isa<tile::StopGradientOp>(op) ||
      llvm::none_of(used, [&](Value v) { return active.contains(v); }))
    return success();
  SmallVector<const Array *> given;
  for (Value result : op.getResults()) {
    auto it = gradients.find(result);
    given.push_back(it == gradients.end() ? nullptr : &it->second);
  }
  if (llvm::none_of(given, [](const Array *array) { return array; }))
    return success();

  SmallVector<const Array *> operands = getOperands(op);
  const Array &result = values.find(op.getResult(0))->second;
  auto fail = [&] { return op.emitOpError("has no derivative"); };
  if (auto join = dyn_cast<tile::JoinOp>(op)) {
    for (auto [index, piece] : llvm::enumerate(join.getPieces()))
      if (active.contains(piece))
        addGradient(piece, propagateJoin(join, index, *given.front(),
                                         *operands[index]));
    return success();
  }
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    for (unsigned index : {0, 1})
      if (active.contains(op.getOperand(index)))
        addGradient(op.getOperand(index),
                    propagateDot(dot, index, *given.front(), *operands[0],
                                 *operands[1]));
    return success();
  }
  if (isa<tile::TileDialect>(op.getDialect())) {
    std::optional<Array> gradient = propagateRows(&op, given, operands, result);
    if (!gradient)
      return fail();
    addGradient(op.getOperand(0), std::move(*gradient));
    return success();
  }
  SmallVector<bool> constants =
      llvm::map_to_vector(op.getOperands(), [&](Value value) {
        return !dependent.contains(value);
      });
  ElementwiseGradient rule(&op, *given.front(), operands, result, constants);
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    if (!active.contains(operand))
      continue;
    std::optional<Array> gradient = rule.of(index);
    if (!gradient)
      return fail();
    if (gradient->elementType())
      addGradient(operand, std::move(*gradient));
  }
  return success();
}

LogicalResult Record::goBack(ArrayRef<std::optional<Array>> seeds) {
  findDependencies();
  Operation *returnOp = func.front().getTerminator();
  for (auto [result, seed] : llvm::zip_equal(returnOp->getOperands(), seeds))
    if (seed && active.contains(result))
      addGradient(result, *seed);
  for (Operation &op : llvm::reverse(func.front().without_terminator())) {
    if (failed(propagate(op)))
      return failure();
    for (Value result : op.getResults())
      gradients.erase(result);
  }
  return success();
}

SmallVector<std::optional<Array>> Record::getGradients() {
  return llvm::map_to_vector(
      func.getArguments(), [&](BlockArgument argument) -> std::optional<Array> {
        auto it = gradients.find(argument);
        if (it == gradients.end())
          return std::nullopt;
        return std::move(it->second);
      });
}
