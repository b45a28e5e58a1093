//===- Oracle.cpp - The expected results of calls -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"

#include "dialect/reference/Evaluate.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::run;
using reference::Array;
using runtime::Error;
using runtime::Expected;
using runtime::Function;

Oracle::~Oracle() = default;

static Array toArray(const Tensor &tensor, Type elementType) {
  const runtime::Dimensions &sizes = tensor.sizes();
  Array array(elementType, ArrayRef(sizes.begin(), sizes.size()));
  if (array.isFloat())
    array.numbers = tensor.getNumbers();
  else
    array.integers = tensor.getIntegers();
  return array;
}

static Expectation toExpectation(Array &&array) {
  return {std::move(array.numbers), std::move(array.integers),
          std::move(array.errors)};
}

namespace {

/// Lets threads share the work of a context while this object lives.
class SharedWork {
public:
  explicit SharedWork(MLIRContext *context) : context(context) {
    context->enableMultithreading();
  }
  ~SharedWork() { context->disableMultithreading(); }
  SharedWork(const SharedWork &) = delete;
  SharedWork &operator=(const SharedWork &) = delete;

private:
  MLIRContext *context;
};

class ModuleOracle final : public Oracle {
public:
  ModuleOracle(ModuleOp module, const GradientOptions &gradients)
      : module(module.clone()), gradients(gradients) {}

  unsigned countResults(const Function &function) const override {
    return find(function).getNumResults();
  }

  bool returnsGradients() const override {
    return gradients.together && !gradients.arguments.empty();
  }

  bool isGradientOf(const std::string &name) const override {
    return llvm::is_contained(gradients.arguments, "all") ||
           llvm::is_contained(gradients.arguments, name);
  }

  Expected<Expectations>
  evaluate(const Function &function,
           const std::vector<Tensor> &inputs) const override {
    func::FuncOp func = find(function);
    SharedWork work(func.getContext());
    SmallVector<Array> arrays = toArrays(func, inputs);
    if (!returnsGradients()) {
      auto results = reference::evaluate(func, arrays);
      if (failed(results))
        return fail(function);
      return align(function, std::move(*results));
    }
    auto differentiated = reference::differentiateSum(func, arrays);
    if (failed(differentiated))
      return fail(function);
    SmallVector<Array> &results = differentiated->results;
    if (gradients.dropValue)
      results.erase(results.begin());
    const size_t count = results.size();
    Expectations expected = align(function, std::move(results));
    // Gradients go by the names of their inputs.
    for (auto [input, gradient] :
         llvm::zip_equal(function.inputs, differentiated->gradients))
      for (size_t i = count; gradient && i != expected.size(); ++i)
        if (function.outputs[i].name == "grad_" + input.name)
          expected[i] = toExpectation(Array(*gradient));
    return expected;
  }

  Expected<Expectations> differentiate(
      const Function &function, const std::vector<Tensor> &inputs,
      const std::vector<std::optional<Tensor>> &seeds) const override {
    func::FuncOp func = find(function);
    SharedWork work(func.getContext());
    SmallVector<std::optional<Array>> arrays;
    for (auto [type, seed] : llvm::zip(func.getResultTypes(), seeds))
      arrays.push_back(
          seed ? std::optional(toArray(*seed, getElementTypeOrSelf(type)))
               : std::nullopt);
    auto differentiated =
        reference::differentiate(func, toArrays(func, inputs), arrays);
    if (failed(differentiated))
      return fail(function);
    Expectations expected;
    for (std::optional<Array> &gradient : differentiated->gradients)
      expected.push_back(
          gradient ? std::optional(toExpectation(std::move(*gradient)))
                   : std::nullopt);
    return expected;
  }

private:
  func::FuncOp find(const Function &function) const {
    return (*module).lookupSymbol<func::FuncOp>(function.name);
  }

  /// An op that cannot be evaluated has been reported in its place.
  static Error fail(const Function &function) {
    return Error("function '" + function.name + "' cannot be checked");
  }

  static SmallVector<Array> toArrays(func::FuncOp func,
                                     const std::vector<Tensor> &inputs) {
    SmallVector<Array> arrays;
    for (auto [type, input] : llvm::zip_equal(func.getArgumentTypes(), inputs))
      arrays.push_back(toArray(input, getElementTypeOrSelf(type)));
    return arrays;
  }

  /// The expectations for the first outputs of `function`.
  static Expectations align(const Function &function,
                            SmallVector<Array> &&results) {
    Expectations expected(function.outputs.size());
    for (auto [index, result] : llvm::enumerate(results))
      expected[index] = toExpectation(std::move(result));
    return expected;
  }

  OwningOpRef<ModuleOp> module;
  GradientOptions gradients;
};

} // namespace

std::unique_ptr<Oracle> run::makeOracle(ModuleOp module,
                                        const GradientOptions &gradients) {
  return std::make_unique<ModuleOracle>(module, gradients);
}
