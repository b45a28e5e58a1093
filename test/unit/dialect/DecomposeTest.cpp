//===- DecomposeTest.cpp - Formulas that do not fit their op --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Expression.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "gtest/gtest.h"

using namespace bastile;
using namespace mlir;

namespace {

/// Gives an op a formula by the attribute `formula`, as nobody would write it
/// on purpose.
struct Formula
    : tile::DecomposableOpInterface::ExternalModel<Formula, math::CbrtOp> {
  static SmallVector<Value> decompose(Operation *op,
                                      ImplicitLocOpBuilder &builder) {
    tile::Expr x(builder, op->getOperand(0));
    auto formula = op->getAttrOfType<StringAttr>("formula").getValue();
    if (formula == "sizes")
      return {
          (x + tile::Expr(builder,
                          op->getParentOfType<func::FuncOp>().getArgument(1)))
              .getValue()};
    if (formula == "none")
      return {};
    if (formula == "type")
      return {x.as(builder.getBF16Type())};
    return {exp(x).getValue()};
  }
};

class DecomposeTest : public testing::Test {
protected:
  DecomposeTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        math::MathDialect, tile::TileDialect>();
    math::CbrtOp::attachInterface<Formula>(context);
  }

  /// The errors of `decompose` for an op with each of `formulas`.
  std::string run(ArrayRef<StringRef> formulas) {
    const std::string type = "tensor<?x4xf32>";
    std::string text, values, types;
    for (auto [index, formula] : llvm::enumerate(formulas)) {
      const std::string value = "%" + std::to_string(index);
      text += value + " = math.cbrt %x {formula = \"" + formula.str() +
              "\"} : " + type + "\n";
      values += (index ? ", " : "") + value;
      types += (index ? ", " : "") + type;
    }
    text = "func.func @f(%x: " + type + ", %w: tensor<3xf32>) -> (" + types +
           ") {\n" + text + "return " + values + " : " + types + "\n}\n";
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        said += diagnostic.str() + "\n";
    });
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(bool(module)) << said;
    // The pass alone has to find it.
    PassManager passes(&context);
    passes.enableVerifier(false);
    passes.addPass(createDecompose());
    EXPECT_EQ(failed(passes.run(*module)), !said.empty());
    return said;
  }

  MLIRContext context;
};

TEST_F(DecomposeTest, AFormulaThatFits) { EXPECT_EQ(run({"exp"}), ""); }

TEST_F(DecomposeTest, OperandsOfOtherSizes) {
  EXPECT_EQ(run({"sizes"}),
            "'math.cbrt' op has operands that its formula does not fit: "
            "'tile.broadcast' op cannot repeat a source of type "
            "'tensor<3xf32>' to a result of type 'tensor<?x4xf32>'\n");
}

TEST_F(DecomposeTest, AMissingResult) {
  EXPECT_EQ(run({"none"}),
            "'math.cbrt' op has a formula of 0 results, but 1 are defined; "
            "'decompose' returns one value for each\n");
}

TEST_F(DecomposeTest, AResultOfAnotherType) {
  EXPECT_EQ(run({"type"}),
            "'math.cbrt' op result #0 is of type 'tensor<?x4xf32>', but its "
            "formula of type 'tensor<?x4xbf16>'\n");
}

TEST_F(DecomposeTest, TheFirstErrorAlone) {
  EXPECT_EQ(StringRef(run({"exp", "none", "exp", "none"})).count("\n"), 1u);
}

} // namespace
