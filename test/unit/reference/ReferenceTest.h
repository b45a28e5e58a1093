//===- ReferenceTest.h - Evaluating functions on numbers --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_REFERENCE_REFERENCETEST_H
#define BASTILE_TEST_UNIT_REFERENCE_REFERENCETEST_H

#include "bastile/Compiler.h"
#include "bastile/Registration.h"
#include "bastile/Source.h"
#include "dialect/reference/Evaluate.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"

namespace bastile::test {

using reference::Array;
using reference::kInfinity;
using reference::kNaN;
using Numbers = std::vector<double>;

/// The sizes and the numbers of an argument.
struct Given {
  std::vector<int64_t> sizes;
  Numbers numbers;
};

class ReferenceTest : public testing::Test {
protected:
  ReferenceTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Parses `text`; returns its only function.
  mlir::func::FuncOp parse(const std::string &text) {
    llvm::SourceMgr source;
    source.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(text, "test.mlir"), llvm::SMLoc());
    modules.push_back(parseSource(source, context));
    EXPECT_TRUE(modules.back()) << text;
    return modules.back()
               ? *modules.back()->getOps<mlir::func::FuncOp>().begin()
               : nullptr;
  }

  /// An array of the element type of `type` with these numbers.
  static Array toArray(mlir::Type type, const Given &given) {
    Array array(mlir::getElementTypeOrSelf(type), given.sizes);
    EXPECT_EQ(array.count(), static_cast<int64_t>(given.numbers.size()));
    for (size_t i = 0; i != given.numbers.size(); ++i)
      if (array.isFloat())
        array.numbers[i] = given.numbers[i];
      else
        array.integers[i] = static_cast<int64_t>(given.numbers[i]);
    return array;
  }
  static llvm::SmallVector<Array> toArrays(mlir::func::FuncOp func,
                                           const std::vector<Given> &given) {
    llvm::SmallVector<Array> arrays;
    for (auto [type, one] : llvm::zip_equal(func.getArgumentTypes(), given))
      arrays.push_back(toArray(type, one));
    return arrays;
  }
  static Numbers toNumbers(const Array &array) {
    if (array.isFloat())
      return array.numbers;
    return Numbers(array.integers.begin(), array.integers.end());
  }

  llvm::SmallVector<Array> evaluate(const std::string &text,
                                    const std::vector<Given> &inputs) {
    mlir::func::FuncOp func = parse(text);
    if (!func)
      return {};
    auto results = reference::evaluate(func, toArrays(func, inputs));
    EXPECT_TRUE(succeeded(results)) << text;
    return succeeded(results) ? std::move(*results)
                              : llvm::SmallVector<Array>();
  }
  /// The numbers of the first result.
  Numbers get(const std::string &text, const std::vector<Given> &inputs) {
    auto results = evaluate(text, inputs);
    return results.empty() ? Numbers() : toNumbers(results.front());
  }
  /// The gradients of all arguments, given that of the first result.
  std::vector<std::optional<Array>>
  differentiate(const std::string &text, const std::vector<Given> &inputs,
                const Given &seed) {
    mlir::func::FuncOp func = parse(text);
    if (!func)
      return {};
    llvm::SmallVector<std::optional<Array>> seeds(func.getNumResults());
    seeds.front() = toArray(func.getResultTypes().front(), seed);
    auto all = reference::differentiate(func, toArrays(func, inputs), seeds);
    EXPECT_TRUE(succeeded(all)) << text;
    if (failed(all))
      return {};
    return {all->gradients.begin(), all->gradients.end()};
  }
  /// The gradients that exist, without the absent ones.
  std::vector<Numbers> getGradients(const std::string &text,
                                    const std::vector<Given> &inputs,
                                    const Given &seed) {
    std::vector<Numbers> numbers;
    for (auto &gradient : differentiate(text, inputs, seed))
      if (gradient)
        numbers.push_back(toNumbers(*gradient));
    return numbers;
  }

  /// The message of the error with which an evaluation stops.
  std::string getError(const std::string &text,
                       const std::vector<Given> &inputs) {
    std::string message;
    mlir::func::FuncOp func = parse(text);
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            message += diagnostic.str();
                                            return mlir::success();
                                          });
    EXPECT_TRUE(failed(reference::evaluate(func, toArrays(func, inputs))));
    return message;
  }

  static void expectNear(const Numbers &got, const Numbers &wanted,
                         const std::string &what) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (size_t i = 0; i != got.size(); ++i) {
      if (std::isnan(wanted[i]))
        EXPECT_TRUE(std::isnan(got[i])) << what << " has " << got[i];
      else if (std::isinf(wanted[i]))
        EXPECT_EQ(got[i], wanted[i]) << what;
      else
        EXPECT_NEAR(got[i], wanted[i], 1e-12 * (1 + std::fabs(wanted[i])))
            << what << " at " << i;
    }
  }

  mlir::MLIRContext context;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

} // namespace bastile::test

#endif // BASTILE_TEST_UNIT_REFERENCE_REFERENCETEST_H
