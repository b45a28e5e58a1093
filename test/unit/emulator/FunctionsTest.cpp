//===- FunctionsTest.cpp - Functions and casts as the GPU has them --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Compiles one function at a time for the GPU and runs it with approximations
// as bad as their documentation allows.
//
//===----------------------------------------------------------------------===//

#include "bastile/Compiler.h"
#include "bastile/EmulatorExecutor.h"
#include "bastile/Registration.h"
#include "bastile/Source.h"
#include "bastile/runtime/HostTypes.h"
#include "bastile/runtime/LaunchPlan.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace bastile;
using runtime::ElementType;

namespace {

constexpr int64_t kColumns = 1024;

struct Elements {
  Elements(ElementType type, int64_t rows)
      : type(type), rows(rows),
        bytes(rows * kColumns * runtime::byteSize(type) + 16) {
    size_t misaligned = reinterpret_cast<uintptr_t>(bytes.data()) % 16;
    base = bytes.data() + (misaligned ? 16 - misaligned : 0);
  }
  char *at(int64_t index) { return base + index * runtime::byteSize(type); }
  double get(int64_t index) { return runtime::loadElement(type, at(index)); }
  void set(int64_t index, double value) {
    runtime::storeElement(type, at(index), value);
  }
  int64_t count() const { return rows * kColumns; }
  runtime::TensorView view() {
    runtime::TensorView view;
    view.data = base;
    view.type = type;
    view.sizes = runtime::Dimensions{rows, kColumns};
    view.strides = runtime::Dimensions{kColumns, 1};
    return view;
  }
  ElementType type;
  int64_t rows;
  std::vector<char> bytes;
  char *base;
};

class FunctionsTest : public testing::Test {
protected:
  FunctionsTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Runs `text`, a function @f, for `target`.
  void run(const std::string &text, const char *targetName,
           std::vector<Elements *> inputs, Elements &output) {
    llvm::SourceMgr source;
    source.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(text, "f.mlir"), llvm::SMLoc());
    mlir::OwningOpRef<mlir::ModuleOp> module = parseSource(source, context);
    ASSERT_TRUE(module);
    auto target = Target::lookup(targetName);
    ASSERT_TRUE(static_cast<bool>(target));
    CompileOptions options;
    options.target = &*target;
    llvm::json::Value json = nullptr;
    ASSERT_TRUE(succeeded(lower(*module, Level::NVVM, options, &json)));
    auto metadata = runtime::parseMetadata(llvm::formatv("{0}", json).str());
    ASSERT_TRUE(static_cast<bool>(metadata));
    auto emulator = Emulator::create(*module);
    if (!emulator)
      FAIL() << llvm::toString(emulator.takeError());
    (*emulator)->setWorstApproximations(true);
    std::vector<runtime::TensorView> views, outputs{output.view()};
    for (Elements *input : inputs) {
      views.push_back(input->view());
      (*emulator)->registerBuffer(
          input->base, input->count() * runtime::byteSize(input->type), "input",
          /*isWritable=*/false);
    }
    (*emulator)->registerBuffer(
        output.base, output.count() * runtime::byteSize(output.type), "output",
        /*isWritable=*/true);
    EmulatorExecutor executor(**emulator);
    runtime::LaunchPlan plan;
    runtime::Error error = plan.prepare(
        metadata->functions.front(), {views, outputs, {}}, executor.capacity());
    ASSERT_FALSE(error) << error.message();
    error = runtime::execute(plan, executor);
    ASSERT_FALSE(error) << error.message();
  }

  mlir::MLIRContext context;
};

struct Function {
  const char *name;
  double (*reference)(double, double);
  bool isBinary;
  /// Units in the last place of float32, and of bfloat16 where the result is
  /// rounded to that.
  double wideBound;
  double narrowBound;
};

// The documented worst of ex2 and rcp counts fully in exp, tanh and erfc,
// though no GPU is that bad.
const Function kFunctions[] = {
    {"math.exp", [](double x, double) { return std::exp(x); }, false, 5, 0.51},
    {"math.exp2", [](double x, double) { return std::exp2(x); }, false, 4.5,
     0.51},
    {"math.expm1", [](double x, double) { return std::expm1(x); }, false, 2.5,
     0.51},
    {"math.log", [](double x, double) { return std::log(x); }, false, 2.5,
     0.51},
    {"math.log2", [](double x, double) { return std::log2(x); }, false, 2.5,
     0.51},
    {"math.log1p", [](double x, double) { return std::log1p(x); }, false, 2.5,
     0.51},
    {"math.tanh", [](double x, double) { return std::tanh(x); }, false, 4,
     0.51},
    {"math.erf", [](double x, double) { return std::erf(x); }, false, 4, 0.51},
    {"math.erfc", [](double x, double) { return std::erfc(x); }, false, 6.5,
     0.51},
    {"math.sin", [](double x, double) { return std::sin(x); }, false, 1.5,
     0.51},
    {"math.cos", [](double x, double) { return std::cos(x); }, false, 1.5,
     0.51},
    {"math.log10", [](double x, double) { return std::log10(x); }, false, 2,
     0.51},
    {"math.tan", [](double x, double) { return std::tan(x); }, false, 2.5,
     0.51},
    {"math.asin", [](double x, double) { return std::asin(x); }, false, 2,
     0.51},
    {"math.acos", [](double x, double) { return std::acos(x); }, false, 2,
     0.51},
    {"math.atan", [](double x, double) { return std::atan(x); }, false, 2,
     0.51},
    {"math.atan2", [](double x, double y) { return std::atan2(x, y); }, true, 2,
     0.51},
    {"math.sinh", [](double x, double) { return std::sinh(x); }, false, 2,
     0.51},
    {"math.cosh", [](double x, double) { return std::cosh(x); }, false, 2,
     0.51},
    {"math.asinh", [](double x, double) { return std::asinh(x); }, false, 2.5,
     0.51},
    {"math.acosh", [](double x, double) { return std::acosh(x); }, false, 2.5,
     0.51},
    {"math.atanh", [](double x, double) { return std::atanh(x); }, false, 2,
     0.51},
    {"math.cbrt", [](double x, double) { return std::cbrt(x); }, false, 1,
     0.51},
    {"math.sqrt", [](double x, double) { return std::sqrt(x); }, false, 0.51,
     0.51},
    {"math.rsqrt", [](double x, double) { return 1 / std::sqrt(x); }, false, 2,
     0.51},
    {"math.powf", [](double x, double y) { return std::pow(x, y); }, true, 2.5,
     0.52},
    {"arith.divf", [](double x, double y) { return x / y; }, true, 0.51, 0.51},
    {"arith.maxnumf", [](double x, double y) { return std::fmax(x, y); }, true,
     0, 0.51},
    {"arith.minimumf",
     [](double x, double y) {
       return std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y);
     },
     true, 0, 0.51},
    {"arith.remf", [](double x, double y) { return std::fmod(x, y); }, true, 0,
     0.51},
};

/// Whether `x` and `y` are both NaN or the same number, with its sign.
bool isSame(double x, double y) {
  return (std::isnan(x) && std::isnan(y)) || x == y;
}

TEST_F(FunctionsTest, AreNearToTheReference) {
  Elements x(ElementType::F32, 16), y(ElementType::F32, 16);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-149, 128), moderate(-90, 90),
      small(-4, 4);
  const double inf = INFINITY;
  const double special[] = {0.0, -0.0, 1.0, -1.0, inf, -inf, NAN, 2.0, -2.5};
  for (int64_t i = 0; i < x.count(); ++i) {
    auto draw = [&](int64_t kind) {
      double value = kind % 3 == 0   ? std::exp2(exponent(random))
                     : kind % 3 == 1 ? moderate(random)
                                     : small(random);
      return static_cast<double>(static_cast<float>(value));
    };
    x.set(i, i < 81 ? special[i / 9] : draw(i));
    y.set(i, i < 81 ? special[i % 9] : draw(i / 3));
  }
  for (const Function &function : kFunctions)
    for (bool isNarrow : {false, true}) {
      std::string text = llvm::formatv(
          "func.func @f(%x: tensor<?x{0}xf32>, %y: tensor<?x{0}xf32>) -> "
          "tensor<?x{0}x{3}> {{\n  %0 = {1} %x{2} : tensor<?x{0}xf32>\n",
          kColumns, function.name, function.isBinary ? ", %y" : "",
          isNarrow ? "bf16" : "f32");
      text += isNarrow ? llvm::formatv("  %1 = arith.truncf %0 : "
                                       "tensor<?x{0}xf32> to "
                                       "tensor<?x{0}xbf16>\n  return %1 : "
                                       "tensor<?x{0}xbf16>\n}\n",
                                       kColumns)
                             .str()
                       : llvm::formatv("  return %0 : tensor<?x{0}xf32>\n}\n",
                                       kColumns)
                             .str();
      ElementType type = isNarrow ? ElementType::BF16 : ElementType::F32;
      Elements out(type, x.rows);
      run(text, "sm_90", {&x, &y}, out);
      if (HasFatalFailure())
        return;
      double worst = 0, whereX = 0, whereY = 0;
      for (int64_t i = 0; i < x.count(); ++i) {
        // This is the documented limit of the quotient.
        bool isRemainder = llvm::StringRef(function.name) == "arith.remf";
        if (isRemainder && std::abs(x.get(i) / y.get(i)) >= 0x1p24 &&
            std::isfinite(x.get(i)) && y.get(i) != 0)
          continue;
        // For so small a y, 1 / y is infinite.
        bool isDivision = llvm::StringRef(function.name) == "arith.divf";
        if (isDivision && isNarrow && std::abs(y.get(i)) < 0x1p-127)
          continue;
        double expected = function.reference(x.get(i), y.get(i));
        double got = out.get(i);
        Elements rounded(type, 1);
        rounded.set(0, expected);
        if (isSame(got, expected) || isSame(got, rounded.get(0)))
          continue;
        double error = runtime::ulpDistance(type, got, expected);
        if (!(error <= worst)) {
          worst = error;
          whereX = x.get(i);
          whereY = y.get(i);
        }
      }
      EXPECT_LE(worst, isNarrow ? function.narrowBound : function.wideBound)
          << function.name << (isNarrow ? " narrow at " : " at ") << whereX
          << ", " << whereY;
    }
}

/// Each GPU is tested both with the instruction and without. Ops after an
/// exponential in float32 add little to its error.
TEST_F(FunctionsTest, SiluIsNearToTheReference) {
  Elements x(ElementType::F32, 64), out(ElementType::F32, 64);
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 2);
  for (int64_t i = 0; i < x.count(); ++i)
    x.set(i, normal(random));
  run(llvm::formatv("func.func @f(%x: tensor<?x{0}xf32>) -> "
                    "tensor<?x{0}xf32> {{\n  %0 = tile.silu %x : "
                    "tensor<?x{0}xf32>\n  return %0 : tensor<?x{0}xf32>\n}\n",
                    kColumns)
          .str(),
      "sm_90", {&x}, out);
  if (HasFatalFailure())
    return;
  double worst = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    double expected = x.get(i) / (1 + std::exp(-x.get(i)));
    worst = std::max(
        worst, runtime::ulpDistance(ElementType::F32, out.get(i), expected));
  }
  EXPECT_LE(worst, 6.5);
}

/// Quotients and roots whose operands are known to lie away from 0.
TEST_F(FunctionsTest, QuotientsAwayFromZeroAreNearToTheReference) {
  struct Quotient {
    const char *formula;
    double (*reference)(double, double);
    double bound;
  };
  const Quotient quotients[] = {
      {"arith.divf %one, %far", [](double x, double) { return 1 / (1 + x); },
       1.5},
      {"arith.divf %y, %far", [](double x, double y) { return y / (1 + x); },
       1.5},
      {"math.sqrt %far", [](double x, double) { return std::sqrt(1 + x); },
       2.5},
      {"math.rsqrt %far", [](double x, double) { return 1 / std::sqrt(1 + x); },
       3}};
  Elements x(ElementType::F32, 8), y(ElementType::F32, 8);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-30, 128), size(-140, 128);
  // The largest number is no dividend: beside 1, a reciprocal that is as bad as
  // may be makes it infinite.
  const double special[] = {0.0, INFINITY, NAN, 1.0, 0x1p126, 0x1.8p127};
  for (int64_t i = 0; i < x.count(); ++i) {
    x.set(i, i % 7 == 0    ? special[i / 7 % 6]
             : i % 13 == 0 ? 0x1.fffffep127
                           : std::exp2(exponent(random)));
    y.set(i, (i % 2 ? 1 : -1) *
                 (i % 11 == 0 ? special[i / 11 % 6] : std::exp2(size(random))));
  }
  for (const Quotient &quotient : quotients) {
    Elements out(ElementType::F32, x.rows);
    run(llvm::formatv(
            "func.func @f(%x: tensor<?x{0}xf32>, %y: tensor<?x{0}xf32>) -> "
            "tensor<?x{0}xf32> {{\n"
            "  %c = arith.constant 1.0 : f32\n"
            "  %one = tile.broadcast %c like %x : f32, tensor<?x{0}xf32> -> "
            "tensor<?x{0}xf32>\n"
            "  %size = math.absf %x : tensor<?x{0}xf32>\n"
            "  %far = arith.addf %size, %one : tensor<?x{0}xf32>\n"
            "  %0 = {1} : tensor<?x{0}xf32>\n"
            "  return %0 : tensor<?x{0}xf32>\n}\n",
            kColumns, quotient.formula)
            .str(),
        "sm_90", {&x, &y}, out);
    if (HasFatalFailure())
      return;
    for (int64_t i = 0; i < x.count(); ++i) {
      // The reference rounds where the formula does.
      const double far = static_cast<float>(1 + x.get(i)) - 1.0;
      const double expected = quotient.reference(far, y.get(i));
      Elements rounded(ElementType::F32, 1);
      rounded.set(0, expected);
      if (isSame(out.get(i), rounded.get(0)))
        continue;
      EXPECT_LE(runtime::ulpDistance(ElementType::F32, out.get(i), expected),
                quotient.bound)
          << quotient.formula << " at " << x.get(i) << ", " << y.get(i);
    }
  }
}

TEST_F(FunctionsTest, Float8RoundsAsTheRuntimeDoes) {
  Elements x(ElementType::F32, 64);
  std::mt19937 random(2);
  std::uniform_real_distribution<double> exponent(-20, 18);
  for (int64_t i = 0; i < x.count(); ++i) {
    double value = std::exp2(exponent(random)) * (i % 2 ? 1 : -1);
    // Some of the numbers are ties.
    if (i % 3 == 0)
      value = std::ldexp(std::round(std::fmod(value, 64.0)),
                         static_cast<int>(exponent(random)));
    x.set(i, value);
  }
  const double special[] = {464,  465,   480,   INFINITY, -INFINITY, NAN,
                            0.0,  -0.0,  61439, 61440,    -61440,    448,
                            1e38, 57344, 1e-40, 65536};
  for (int64_t i = 0; i < 16; ++i)
    x.set(i, special[i]);
  for (const char *target : {"sm_80", "sm_90"})
    for (auto [name, type] : {std::pair("f8E4M3FN", ElementType::F8E4M3FN),
                              std::pair("f8E5M2", ElementType::F8E5M2)}) {
      const char *format = R"(
func.func @f(%x: tensor<?x{0}x{1}>) -> tensor<?x{0}x{2}> {{
  %0 = arith.{3} %x : tensor<?x{0}x{1}> to tensor<?x{0}x{2}>
  return %0 : tensor<?x{0}x{2}>
})";
      Elements narrow(type, x.rows), wide(ElementType::F32, x.rows);
      run(llvm::formatv(format, kColumns, "f32", name, "truncf"), target, {&x},
          narrow);
      for (int64_t i = 0; i < x.count(); ++i) {
        Elements expected(type, 1);
        expected.set(0, x.get(i));
        ASSERT_TRUE(isSame(narrow.get(i), expected.get(0)))
            << target << " " << name << " " << x.get(i) << ": "
            << narrow.get(i);
      }
      for (int64_t i = 0; i < narrow.count(); ++i)
        *narrow.at(i) = static_cast<char>(i);
      run(llvm::formatv(format, kColumns, name, "f32", "extf"), target,
          {&narrow}, wide);
      for (int64_t i = 0; i < narrow.count(); ++i)
        ASSERT_TRUE(isSame(wide.get(i), narrow.get(i)))
            << target << " " << name << " " << i % 256;
    }
}

} // namespace
