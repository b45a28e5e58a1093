//===- StructuralKeyTest.cpp - What formulas have in common ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/StructuralKey.h"
#include "bastile/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <set>

using namespace bastile;
using namespace mlir;

namespace {

class StructuralKeyTest : public testing::Test {
protected:
  StructuralKeyTest() : context(makeRegistry()) {}

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(bool(module)) << text;
    return module;
  }
  std::string key(const std::string &text) {
    return getStructuralKey(*parse(text));
  }

  MLIRContext context;
};

const char *const norm = R"(
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<64xbf16>) -> tensor<?x64xbf16> {
  %0 = tile.rms_norm %x, %w : tensor<?x64xbf16>, tensor<64xbf16>
  %1 = tile.silu %0 : tensor<?x64xbf16>
  return %1 : tensor<?x64xbf16>
})";

std::string replace(std::string text, const std::string &from,
                    const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST_F(StructuralKeyTest, DoesNotDependOnThePrinter) {
  OwningOpRef<ModuleOp> module = parse(norm);
  std::string generic;
  llvm::raw_string_ostream stream(generic);
  (*module)->print(
      stream, OpPrintingFlags().printGenericOpForm().enableDebugInfo(true));
  ASSERT_NE(generic.find("\"tile.rms_norm\""), std::string::npos) << generic;
  EXPECT_EQ(key(generic), key(norm));
}

TEST_F(StructuralKeyTest, DoesNotDependOnNamesOfValuesAndArguments) {
  std::string other = replace(replace(norm, "%x", "%input"), "%0", "%normed");
  other = replace(other, "xbf16>, %w", "xbf16> {tile.name = \"data\"}, %w");
  EXPECT_EQ(key(other), key(norm));
}

TEST_F(StructuralKeyTest, KnowsNumbersByTheirKind) {
  auto scaled = [&](const std::string &number) {
    return key("func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {\n"
               "  %c = arith.constant dense<" +
               number +
               "> : tensor<64xf32>\n"
               "  %b = tile.broadcast %c like %x : tensor<64xf32>, "
               "tensor<?x64xf32> -> tensor<?x64xf32>\n"
               "  %y = arith.mulf %x, %b : tensor<?x64xf32>\n"
               "  return %y : tensor<?x64xf32>\n}");
  };
  EXPECT_EQ(scaled("2.0"), scaled("3.5"));
  std::set<std::string> kinds;
  for (const char *number :
       {"2.0", "0.0", "-0.0", "1.0", "0x7F800000", "0xFF800000", "0x7FC00000"})
    kinds.insert(scaled(number));
  EXPECT_EQ(kinds.size(), 7u);
}

TEST_F(StructuralKeyTest, LeavesOutWhatIsTheDefault) {
  auto normed = [&](const std::string &attributes) {
    return key(replace(norm, "%x, %w :", "%x, %w " + attributes + " :"));
  };
  EXPECT_EQ(normed("{eps = 1.0e-6 : f64}"), key(norm));
  // Of the default's kind, if not the default.
  EXPECT_EQ(normed("{eps = 1.0e-2 : f64}"), key(norm));
  EXPECT_NE(normed("{eps = 0.0 : f64}"), key(norm));
}

TEST_F(StructuralKeyTest, TellsFormulasApart) {
  std::set<std::string> keys = {
      key(norm),
      key(replace(norm, "silu", "relu_squared")),
      key(replace(norm, "@f", "@g")),
      key(replace(norm, "64x", "65x")),
      key(replace(norm, "?x64", "1x64")),
      key(replace(norm, "?x64", "?x?x64")),
      key(replace(norm, "bf16", "f16")),
      key(replace(norm, "tile.silu %0", "tile.silu %x")),
      key(replace(norm, "return %1", "return %0")),
      key(replace(norm, "%x: tensor<?x64xbf16>",
                  "%x: tensor<?x64xbf16> {tile.factor}")),
  };
  EXPECT_EQ(keys.size(), 10u);
}

} // namespace
