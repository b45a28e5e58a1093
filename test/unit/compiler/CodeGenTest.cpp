//===- CodeGenTest.cpp - From the LLVM dialect to machine code ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/CodeGen.h"
#include "bastile/Jit.h"
#include "bastile/Ptxas.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Program.h"
#include "gtest/gtest.h"

using namespace bastile;

namespace {

class CodeGenTest : public testing::Test {
protected:
  CodeGenTest() {
    context.loadDialect<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  }

  std::unique_ptr<llvm::Module> translate(const char *source,
                                          const Target &target) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(source, &context, "scale.mlir");
    mlir::PassManager passes(&context);
    addLineInfo(passes);
    if (!module || failed(passes.run(*module)))
      return nullptr;
    return cantFail(translateToLLVM(*module, llvmContext, target));
  }

  std::string compile(const char *source, const Target &target) {
    std::unique_ptr<llvm::Module> module = translate(source, target);
    if (!module)
      return "does not translate";
    auto machine = cantFail(createTargetMachine(target));
    optimize(*module, *machine);
    return cantFail(emitAssembly(*module, *machine));
  }

  mlir::MLIRContext context;
  llvm::LLVMContext llvmContext;
};

bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

constexpr const char *scaleKernel = R"(
llvm.func @scale(
    %x: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly},
    %y: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias, llvm.writeonly},
    %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
  %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %px = llvm.getelementptr %x[%tid]
      : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xbf16>
  %v = llvm.load %px {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
  %f = llvm.fpext %v : vector<8xbf16> to vector<8xf32>
  %ff = llvm.fmul %f, %f : vector<8xf32>
  %g = llvm.fadd %ff, %f : vector<8xf32>
  %b = llvm.fptrunc %g : vector<8xf32> to vector<8xbf16>
  %py = llvm.getelementptr %y[%tid]
      : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xbf16>
  llvm.store %b, %py {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
  llvm.return
}
)";

TEST_F(CodeGenTest, PtxHasVectorAccessesAndLines) {
  std::string ptx = compile(scaleKernel, cantFail(Target::lookup("sm_90")));
  EXPECT_TRUE(contains(ptx, ".version 8.0\n.target sm_90\n")) << ptx;
  EXPECT_TRUE(contains(ptx, ".visible .entry scale("));
  EXPECT_TRUE(contains(ptx, ".param .u64 .ptr .global .align 16 "));
  EXPECT_TRUE(contains(ptx, ".reqntid 128"));
  EXPECT_TRUE(contains(ptx, "ld.global.nc.v4.b32"));
  EXPECT_TRUE(contains(ptx, "cvt.rn.bf16x2.f32"));
  EXPECT_TRUE(contains(ptx, "st.global.v4.b32"));
  EXPECT_TRUE(contains(ptx, ".file\t1 "));
  EXPECT_TRUE(contains(ptx, "\t.loc\t1 9 "));
}

TEST_F(CodeGenTest, EveryGpuTakesTheKernel) {
  for (const Target &target : Target::all()) {
    if (target.isHost())
      continue;
    std::string ptx = compile(scaleKernel, target);
    EXPECT_TRUE(contains(ptx, (".target " + target.chip + "\n").c_str()));
    if (!llvm::sys::findProgramByName("ptxas"))
      continue;
    llvm::Expected<Cubin> cubin = assembleCubin(ptx, target.chip);
    ASSERT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
    ASSERT_EQ(cubin->kernels.size(), 1u);
    EXPECT_EQ(cubin->kernels.front().entry, "scale");
    EXPECT_GT(cubin->kernels.front().registers, 0u);
    EXPECT_EQ(cubin->kernels.front().spillStoreBytes, 0u);
    EXPECT_EQ(llvm::StringRef(cubin->bytes.data(), 4), "\x7f"
                                                       "ELF");
  }
}

TEST_F(CodeGenTest, PtxasErrorsArePassedOn) {
  if (!llvm::sys::findProgramByName("ptxas"))
    GTEST_SKIP() << "ptxas is not on PATH";
  llvm::Expected<Cubin> cubin = assembleCubin("not PTX", "sm_90");
  ASSERT_FALSE(bool(cubin));
  std::string message = llvm::toString(cubin.takeError());
  EXPECT_TRUE(contains(message, "ptxas failed on the PTX for sm_90"))
      << message;
  EXPECT_TRUE(contains(message, ".version"));
}

TEST_F(CodeGenTest, UnknownTargetsListTheKnownOnes) {
  llvm::Expected<const Target &> target = Target::lookup("sm_1");
  ASSERT_FALSE(bool(target));
  std::string message = llvm::toString(target.takeError());
  EXPECT_TRUE(contains(message, "unknown target 'sm_1'"));
  EXPECT_TRUE(contains(message, "sm_90a")) << message;
  EXPECT_TRUE(contains(message, "host"));
}

TEST_F(CodeGenTest, HostCodeRunsInThisProcess) {
  auto module = translate(R"(
llvm.func @axpy(%a: f64, %x: f64, %y: f64) -> f64 {
  %ax = llvm.fmul %a, %x : f64
  %r = llvm.fadd %ax, %y : f64
  %e = llvm.intr.exp(%r) : (f64) -> f64
  llvm.return %e : f64
}
)",
                          Target::host());
  ASSERT_TRUE(module);
  auto jit = Jit::create(*module);
  ASSERT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
  auto axpy = reinterpret_cast<double (*)(double, double, double)>(
      cantFail((*jit)->lookup("axpy")));
  EXPECT_DOUBLE_EQ(axpy(2.0, 3.0, -6.0), 1.0);
  llvm::Expected<void *> missing = (*jit)->lookup("axpby");
  ASSERT_FALSE(bool(missing));
  EXPECT_TRUE(contains(llvm::toString(missing.takeError()), "axpby"));
}

TEST_F(CodeGenTest, MissingFunctionsOfHostCodeAreNamed) {
  auto module = translate(R"(
llvm.func @nowhere(f32) -> f32
llvm.func @calls(%x: f32) -> f32 {
  %r = llvm.call @nowhere(%x) : (f32) -> f32
  llvm.return %r : f32
}
)",
                          Target::host());
  ASSERT_TRUE(module);
  auto jit = Jit::create(*module);
  ASSERT_FALSE(bool(jit));
  EXPECT_TRUE(contains(llvm::toString(jit.takeError()),
                       "host code calls what this process does not define: "
                       "'nowhere'"));
}

/// A function of `length` multiplications in one block.
std::string writeProduct(int length) {
  std::string source = "llvm.func @product(%x: f64, %v0: f64) -> f64 {\n";
  for (int i = 1; i <= length; ++i)
    source += "  %v" + std::to_string(i) + " = llvm.fmul %v" +
              std::to_string(i - 1) + ", %x : f64\n";
  return source + "  llvm.return %v" + std::to_string(length) + " : f64\n}\n";
}

TEST_F(CodeGenTest, LongBlocksAreSplit) {
  for (const Target &target :
       {Target::host(), cantFail(Target::lookup("sm_90"))}) {
    auto module = translate(writeProduct(5000).c_str(), target);
    ASSERT_TRUE(module);
    auto machine = cantFail(createTargetMachine(target));
    cantFail(emitAssembly(*module, *machine));
    EXPECT_EQ(module->getFunction("product")->size(), 3u) << target.name;
  }
}

TEST_F(CodeGenTest, OtherBlocksAreNot) {
  auto module = translate(writeProduct(2000).c_str(), Target::host());
  ASSERT_TRUE(module);
  auto machine = cantFail(createTargetMachine(Target::host()));
  cantFail(emitAssembly(*module, *machine));
  EXPECT_EQ(module->getFunction("product")->size(), 1u);
}

TEST_F(CodeGenTest, SplitBlocksComputeTheSame) {
  auto module = translate(writeProduct(5000).c_str(), Target::host());
  ASSERT_TRUE(module);
  auto jit = Jit::create(*module);
  ASSERT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
  auto product = reinterpret_cast<double (*)(double, double)>(
      cantFail((*jit)->lookup("product")));
  EXPECT_EQ(product(-1.0, 3.0), 3.0);
  double expected = 1.0;
  for (int i = 0; i < 5000; ++i)
    expected *= 1.001;
  EXPECT_EQ(product(1.001, 1.0), expected);
}

} // namespace
