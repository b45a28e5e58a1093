//===- Differentiate.cpp - Derive backward functions ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The backward of a function begins as a copy of the function, to which the
// gradients are added from results to arguments. The ops that the copy shares
// with the forward are then cut off where the fewest bytes have to be moved: at
// arguments and results, which exist anyway, and at statistics of rows, which
// the forward is made to return.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Dimensions.h"
#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/ValueOrder.h"
#include "passes/analysis/StreamedFactors.h"
#include "passes/tensors/BackwardCut.h"
#include "passes/tensors/Derivatives.h"
#include "passes/tensors/FunctionVerifier.h"
#include "passes/tensors/Names.h"
#include "passes/tensors/ProductSums.h"
#include "passes/tensors/RoundFactors.h"
#include "llvm/ADT/StringSet.h"

namespace bastile {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;
using tile::Expr;

namespace {

void setInputName(func::FuncOp func, unsigned index, const Twine &name) {
  func.setArgAttr(index, tile::TileDialect::kNameAttrName,
                  StringAttr::get(func.getContext(), name));
}

void setResultName(func::FuncOp func, unsigned index, const Twine &name) {
  func.setResultAttr(index, tile::TileDialect::kNameAttrName,
                     StringAttr::get(func.getContext(), name));
}

/// The result of `func` that may take the place of `argument`, if one may.
std::optional<unsigned> findResultInPlace(func::FuncOp func,
                                          unsigned argument) {
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    auto taken = func.getResultAttrOfType<IntegerAttr>(
        index, tile::TileDialect::kInPlaceAttrName);
    if (taken && taken.getInt() == argument)
      return index;
  }
  return std::nullopt;
}

/// Makes `func` return `value` too, as a result called `name`. Returns which
/// one it is.
unsigned appendResult(func::FuncOp func, Value value, const Twine &name) {
  unsigned index = func.getNumResults();
  func.front().getTerminator()->insertOperands(index, value);
  LogicalResult inserted =
      func.insertResult(index, value.getType(), /*resultAttrs=*/nullptr);
  assert(succeeded(inserted) && "a function takes results of any type");
  (void)inserted;
  setResultName(func, index, name);
  return index;
}

/// The values of `func` that depend on `arguments` by differentiable ops.
DenseSet<Value> findActive(func::FuncOp func, ArrayRef<unsigned> arguments) {
  DenseSet<Value> active;
  for (unsigned index : arguments)
    active.insert(func.getArgument(index));
  for (Operation &op : func.front().without_terminator())
    if (!isa<tile::StopGradientOp>(op) && dependsOnAny(&op, active))
      for (Value result : op.getResults())
        if (isDifferentiable(result.getType()))
          active.insert(result);
  return active;
}

/// A value with the rows of `root`, a product: its left factor's. Null if there
/// is none.
Value getRowsOfProduct(Value root) {
  auto dot = root.getDefiningOp<tile::DotOp>();
  if (!dot || dot.getContract()[0] != 1)
    return {};
  auto left = cast<RankedTensorType>(dot.getA().getType());
  const bool hasRows =
      left.getShape().drop_back() == dot.getSumType().getShape().drop_back();
  return hasRows ? getSizeRoot(dot.getA()) : Value();
}

/// Replaces values of `func` that are only read for their sizes by arguments of
/// the same sizes, gradients of results where possible: no value should be kept
/// or computed for its sizes alone.
void takeSizesFromArguments(func::FuncOp func, ArrayRef<Value> seeds) {
  // Sources of rows, and those of columns that only a call knows, of which each
  // product of a chain has its own.
  DenseMap<Value, Value> sources, columnSources;
  for (auto [result, seed] :
       llvm::zip_equal(func.front().getTerminator()->getOperands(), seeds)) {
    auto type = cast<RankedTensorType>(result.getType());
    if (!seed || seed.use_empty() || type.getRank() < 2)
      continue;
    // A statistic says nothing of the number of columns, where only a call
    // knows that.
    Value root = getSizeRoot(result);
    if (ShapedType::isDynamic(
            cast<RankedTensorType>(root.getType()).getShape().back()) &&
        !ShapedType::isDynamic(type.getShape().back()))
      continue;
    columnSources.try_emplace(root, seed);
    for (; root; root = getRowsOfProduct(root))
      sources.try_emplace(root, seed);
  }
  replaceSizeSources(func.front(), [&](Value root, bool needsColumns) {
    if (needsColumns) {
      Value source = columnSources.lookup(root);
      return source || !isa<BlockArgument>(root) ? source : root;
    }
    for (Value next = root; next; next = getRowsOfProduct(next)) {
      if (Value source = sources.lookup(next))
        return source;
      if (isa<BlockArgument>(next))
        return next;
    }
    return root;
  });
}

/// Derives the gradients of one function with respect to some arguments.
class Differentiator {
public:
  Differentiator(func::FuncOp func, ArrayRef<unsigned> arguments)
      : func(func), arguments(arguments) {}

  /// Makes `func` return the gradients of its first result's sum as well or,
  /// with `dropValue`, in place of that result.
  LogicalResult addGradients(SymbolTable &symbols, bool inPlace,
                             bool dropValue);
  /// Creates the backward of `func`, which is made to return what it needs.
  LogicalResult createBackward(SymbolTable &symbols);

private:
  /// Creates the function that scales gradients of `func`, given as pairs of
  /// result and argument, by that of the first result.
  void createScale(SymbolTable &symbols,
                   ArrayRef<std::pair<unsigned, unsigned>> gradients);
  using Seeds = ArrayRef<Value>;
  /// Builds, at the end of `body`, the gradients of `arguments` from those of
  /// the results, which `seeds` gives (null for none).
  FailureOr<SmallVector<Value>> buildGradients(func::FuncOp body, Seeds seeds);
  bool hasGradient(unsigned result) {
    return isDifferentiable(func.getResultTypes()[result]);
  }

  func::FuncOp func;
  ArrayRef<unsigned> arguments;
};

FailureOr<SmallVector<Value>> Differentiator::buildGradients(func::FuncOp body,
                                                             Seeds seeds) {
  Operation *returnOp = body.front().getTerminator();
  ImplicitLocOpBuilder builder(body.getLoc(), returnOp);
  SmallVector<Operation *> ops;
  for (Operation &op : body.front().without_terminator())
    ops.push_back(&op);
  DenseSet<Value> active = findActive(body, arguments);
  Gradients gradients(builder, active);
  for (auto [result, seed] : llvm::zip_equal(returnOp->getOperands(), seeds))
    if (seed)
      gradients.add(result, seed);
  for (Operation *op : llvm::reverse(ops))
    if (failed(propagateGradients(op, gradients)))
      return failure();

  SmallVector<Value> results;
  builder.setLoc(body.getLoc());
  for (unsigned index : arguments) {
    BlockArgument argument = body.getArgument(index);
    Value gradient = gradients.lookup(argument);
    if (gradient)
      gradient =
          Expr(builder, gradient).as(getElementTypeOrSelf(argument.getType()));
    results.push_back(gradient);
  }
  return results;
}

LogicalResult Differentiator::addGradients(SymbolTable &symbols, bool inPlace,
                                           bool dropValue) {
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  if (!hasGradient(0))
    return func.emitOpError("first result of type ")
           << func.getResultTypes()[0] << " has no gradient";
  ImplicitLocOpBuilder builder(func.getLoc(), returnOp);
  SmallVector<Value> seeds(func.getNumResults());
  seeds.front() = Expr(builder, returnOp.getOperand(0)).constant(1).getValue();
  FailureOr<SmallVector<Value>> gradients = buildGradients(func, seeds);
  if (failed(gradients))
    return failure();
  SmallVector<std::pair<unsigned, unsigned>> added;
  for (auto [argument, gradient] : llvm::zip_equal(arguments, *gradients)) {
    if (!gradient)
      continue;
    unsigned result =
        appendResult(func, gradient, "grad_" + getInputName(func, argument));
    added.push_back({result, argument});
    auto type = cast<RankedTensorType>(gradient.getType());
    if (inPlace && type.getRank() >= 2 &&
        type == func.getArgumentTypes()[argument] &&
        !findResultInPlace(func, argument)) {
      func.setResultAttr(result, tile::TileDialect::kInPlaceAttrName,
                         builder.getIndexAttr(argument));
      func.setResultAttr(result, tile::TileDialect::kInPlaceIfPossibleAttrName,
                         builder.getUnitAttr());
    }
  }
  if (dropValue) {
    returnOp->eraseOperand(0);
    return func.eraseResult(0);
  }
  auto value = cast<RankedTensorType>(func.getResultTypes().front());
  if (value.getRank() == 1 && value.getDimSize(0) == 1 && !added.empty())
    createScale(symbols, added);
  return success();
}

void Differentiator::createScale(
    SymbolTable &symbols, ArrayRef<std::pair<unsigned, unsigned>> gradients) {
  OpBuilder attributes(func.getContext());
  auto refer = [&](StringRef kind, unsigned index) -> Attribute {
    return attributes.getDictionaryAttr(
        attributes.getNamedAttr(kind, attributes.getI64IntegerAttr(index)));
  };
  SmallVector<Type> inputTypes{func.getResultTypes().front()}, types;
  SmallVector<Attribute> inputs{refer("grad", 0)};
  NamedAttrList results;
  for (auto [result, argument] : gradients) {
    inputs.push_back(refer("output", result));
    results.set(getInputName(func, argument), refer("result", types.size()));
    types.push_back(func.getResultTypes()[result]);
  }
  llvm::append_range(inputTypes, types);
  auto scale =
      func::FuncOp::create(func.getLoc(), (func.getName() + "_scale").str(),
                           attributes.getFunctionType(inputTypes, types));
  symbols.insert(scale, ++Block::iterator(func));
  Block *body = scale.addEntryBlock();
  ImplicitLocOpBuilder builder(func.getLoc(), func.getContext());
  builder.setInsertionPointToStart(body);
  SmallVector<Value> scaled;
  for (BlockArgument argument : body->getArguments().drop_front()) {
    Expr product =
        Expr(builder, argument) * Expr(builder, body->getArgument(0));
    scaled.push_back(product.as(getElementTypeOrSelf(argument.getType())));
  }
  func::ReturnOp::create(builder, scaled);

  setInputName(scale, 0, "grad_" + getResultName(func, 0));
  scale.setArgAttr(0, tile::TileDialect::kFactorAttrName,
                   builder.getUnitAttr());
  for (auto [index, gradient] : llvm::enumerate(gradients)) {
    std::string name = getResultName(func, gradient.first);
    setInputName(scale, index + 1, name);
    setResultName(scale, index, name);
    scale.setResultAttr(index, tile::TileDialect::kInPlaceAttrName,
                        builder.getIndexAttr(index + 1));
  }
  NamedAttrList description;
  description.set("function", FlatSymbolRefAttr::get(scale.getSymNameAttr()));
  description.set("inputs", builder.getArrayAttr(inputs));
  description.set("gradients", results.getDictionary(func.getContext()));
  func->setAttr(tile::TileDialect::kBackwardAttrName,
                description.getDictionary(func.getContext()));
}

/// Whether two gradients are the same number. Those of a sum's terms are,
/// though each is rounded by an op of its own.
static bool isSame(Value lhs, Value rhs) {
  if (lhs == rhs)
    return true;
  Operation *one = lhs.getDefiningOp(), *other = rhs.getDefiningOp();
  return one && other && isPure(one) &&
         cast<OpResult>(lhs).getResultNumber() ==
             cast<OpResult>(rhs).getResultNumber() &&
         OperationEquivalence::isEquivalentTo(
             one, other, OperationEquivalence::IgnoreLocations);
}

/// Whether a gradient, if there is one, has 16 bits or fewer.
static bool isRounded(Value gradient) {
  return !gradient ||
         getElementTypeOrSelf(gradient.getType()).getIntOrFloatBitWidth() <= 16;
}

/// Names the dimensions of the arguments of `backward`, which stand for
/// `originals` of `forward` or are their gradients, where the ops of the
/// backward do not show that dimensions are one which are one in the forward.
static void nameDimensions(func::FuncOp forward, ArrayRef<Value> originals,
                           func::FuncOp backward) {
  const ValueDimensions all(forward.front()), shown(backward.front());
  using Dimension = ValueDimensions::Dimension;
  llvm::MapVector<Dimension, Dimension> found;
  bool isShown = true;
  Builder builder(forward.getContext());
  SmallVector<Attribute> names;
  for (auto [original, argument] :
       llvm::zip_equal(originals, backward.getArguments())) {
    SmallVector<Attribute> places;
    auto type = cast<RankedTensorType>(argument.getType());
    for (int64_t place = 0; place < type.getRank(); ++place) {
      std::optional<Dimension> dimension = all.get(original, place);
      if (!dimension) {
        places.push_back(builder.getI64IntegerAttr(1));
        continue;
      }
      Dimension own = *shown.get(argument, place);
      auto *it = found.try_emplace(*dimension, own).first;
      isShown &= it->second == own;
      places.push_back(builder.getStringAttr("d" + Twine(it - found.begin())));
    }
    names.push_back(builder.getArrayAttr(places));
  }
  if (isShown)
    return;
  for (auto [index, places] : llvm::enumerate(names))
    backward.setArgAttr(index, tile::ProgramOp::kDimensionsAttrName, places);
}

LogicalResult Differentiator::createBackward(SymbolTable &symbols) {
  const SmallVector<NormalizedPower> powers = addLogarithms(func);
  IRMapping copies;
  auto backward = cast<func::FuncOp>(func->clone(copies));
  backward.setName((func.getName() + "_backward").str());
  symbols.insert(backward, ++Block::iterator(func));
  Block &body = backward.front();
  Operation *returnOp = body.getTerminator();
  unsigned numArguments = func.getNumArguments();

  SmallVector<Value> seeds;
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    seeds.push_back(hasGradient(index)
                        ? body.addArgument(type, returnOp->getLoc())
                        : Value());
  // Streamed factors are computed again, where sums along their rows would take
  // another loop.
  const StreamedOps streamed = findStreamedOps(func);
  DenseSet<Operation *> products;
  for (auto [op, copied] : llvm::zip(func.front().without_terminator(), body))
    if (streamed.products.contains(&op))
      products.insert(&copied);
  // The forward's ops are all that stand before the gradients' ops.
  BackwardCut cut(func, backward, streamed);
  Operation *lastOfForward = returnOp->getPrevNode();
  FailureOr<SmallVector<Value>> gradients = buildGradients(backward, seeds);
  if (failed(gradients))
    return failure();
  if (lastOfForward) {
    shortenProductSums(lastOfForward->getNextNode(), products, *gradients);
    useLogarithms(powers, copies, lastOfForward->getNextNode());
    moveScales(lastOfForward->getNextNode(), *gradients);
  }

  takeSizesFromArguments(backward, seeds);
  for (Value gradient : *gradients)
    if (gradient)
      cut.require(gradient);
  cut.choose();

  // The backward takes the gradients of results, then arguments and results of
  // the forward, then the saved statistics.
  OpBuilder builder(func.getContext());
  SmallVector<Attribute> inputs;
  SmallVector<std::string> names;
  SmallVector<Value> sources, originals;
  auto addInput = [&](Value value, Value original, StringRef kind,
                      unsigned index, const Twine &name) {
    sources.push_back(value);
    originals.push_back(original);
    names.push_back(name.str());
    inputs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kind, builder.getI64IntegerAttr(index))));
  };
  Operation *forwardReturn = func.front().getTerminator();
  for (auto [index, seed] : llvm::enumerate(seeds))
    if (seed && cut.isRead(seed))
      addInput(seed, forwardReturn->getOperand(index), "grad", index,
               "grad_" + getResultName(func, index));
  for (unsigned index = 0; index < numArguments; ++index) {
    if (!cut.isRead(body.getArgument(index)))
      continue;
    addInput(body.getArgument(index), func.getArgument(index), "input", index,
             getInputName(func, index));
    // If a result took the argument's memory, the backward would find that
    // result there.
    if (std::optional<unsigned> result = findResultInPlace(func, index))
      func.removeResultAttr(*result, tile::TileDialect::kInPlaceAttrName);
  }
  for (unsigned index : cut.getResults())
    addInput(returnOp->getOperand(index), forwardReturn->getOperand(index),
             "output", index, getResultName(func, index));
  unsigned firstSaved = func.getNumResults();
  for (auto [number, saved] : llvm::enumerate(cut.getStatistics())) {
    std::string name = "saved" + std::to_string(number);
    addInput(saved, cut.getForward(saved), "output",
             appendResult(func, cut.getForward(saved), name), name);
  }

  // The backward has one result for each gradient that differs from the others.
  NamedAttrList gradientAttrs;
  SmallVector<Value> results;
  SmallVector<std::string> resultNames;
  for (auto [index, gradient] : llvm::zip_equal(arguments, *gradients)) {
    if (!gradient)
      continue;
    std::string name = getInputName(func, index);
    auto setGradient = [&](StringRef kind, unsigned number) {
      gradientAttrs.set(name, builder.getDictionaryAttr(builder.getNamedAttr(
                                  kind, builder.getI64IntegerAttr(number))));
    };
    if (auto *it = llvm::find(seeds, gradient); it != seeds.end()) {
      setGradient("grad", it - seeds.begin());
      continue;
    }
    auto *it = llvm::find_if(results, [&, gradient = gradient](Value result) {
      return isSame(result, gradient);
    });
    setGradient("result", it - results.begin());
    if (it != results.end())
      continue;
    results.push_back(gradient);
    resultNames.push_back("grad_" + name);
  }

  if (llvm::all_of(*gradients, isRounded))
    for (unsigned index = firstSaved; index < func.getNumResults(); ++index)
      func.setResultAttr(index, tile::TileDialect::kApproximateAttrName,
                         builder.getUnitAttr());

  builder.setInsertionPoint(returnOp);
  func::ReturnOp::create(builder, returnOp->getLoc(), results);
  returnOp->erase();
  SmallVector<Type> inputTypes = llvm::map_to_vector(
      sources, [](Value source) { return source.getType(); });
  unsigned oldArguments = body.getNumArguments();
  for (Value source : sources) {
    BlockArgument argument =
        body.addArgument(source.getType(), source.getLoc());
    source.replaceAllUsesWith(argument);
  }
  SmallVector<Operation *> ops = llvm::map_to_vector(
      body.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  body.eraseArguments(0, oldArguments);
  for (StringRef name : {"arg_attrs", "res_attrs"})
    backward->removeAttr(name);
  backward.setFunctionType(
      builder.getFunctionType(inputTypes, ValueRange(results).getTypes()));
  for (auto [index, name] : llvm::enumerate(names)) {
    setInputName(backward, index, name);
    if (!cast<DictionaryAttr>(inputs[index]).contains("grad"))
      noteAbove(backward, index, originals[index]);
  }
  for (auto [index, name] : llvm::enumerate(resultNames))
    setResultName(backward, index, name);
  nameDimensions(func, originals, backward);

  NamedAttrList description;
  if (results.empty())
    symbols.erase(backward);
  else
    description.set("function",
                    FlatSymbolRefAttr::get(backward.getSymNameAttr()));
  description.set("inputs", builder.getArrayAttr(inputs));
  description.set("gradients",
                  gradientAttrs.getDictionary(builder.getContext()));
  func->setAttr(tile::TileDialect::kBackwardAttrName,
                description.getDictionary(builder.getContext()));
  return success();
}

struct DifferentiatePass
    : public bastile::impl::DifferentiateBase<DifferentiatePass> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(verifyOrder(module)) ||
        (!gradients.empty() && failed(differentiate(module))))
      return signalPassFailure();
    module.walk([](tile::StopGradientOp op) {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
    // Values that are one by now may be compared with each other.
    repeatFoldedNumbers(module);
  }

  LogicalResult differentiate(ModuleOp module) {
    SymbolTable symbols(module);
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    bool isAll = llvm::is_contained(gradients, "all");
    llvm::StringSet<> found;
    for (func::FuncOp func : functions) {
      if (failed(verifySignature(func)))
        return failure();
      // A rounded factor is saved in fewer bytes than one that is not.
      roundFactors(func);
      SmallVector<unsigned> arguments;
      for (unsigned index = 0; index < func.getNumArguments(); ++index) {
        std::string name = getInputName(func, index);
        if (!isAll && !llvm::is_contained(gradients, name))
          continue;
        found.insert(name);
        if (isDifferentiable(func.getArgumentTypes()[index]))
          arguments.push_back(index);
        else if (!isAll)
          return func.emitOpError("argument '")
                 << name << "' of type " << func.getArgumentTypes()[index]
                 << " has no gradient";
      }
      if (arguments.empty())
        continue;
      Differentiator differentiator(func, arguments);
      if (failed(together
                     ? differentiator.addGradients(symbols, inPlace, dropValue)
                     : differentiator.createBackward(symbols)))
        return failure();
    }
    for (const std::string &name : gradients)
      if (!isAll && !found.contains(name))
        return emitError(module.getLoc())
               << "no function has an argument called '" << name
               << "' to compute a gradient for";
    return success();
  }
};

} // namespace
