//===- KernelCodeGenTest.cpp - The kernels of a module side by side -------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/CodeGen.h"
#include "bastile/Ptxas.h"
#include "bastile/TextCompiler.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "test/unit/WithoutThreads.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"
#include "gtest/gtest.h"
#include <thread>

using namespace bastile;
using llvm::StringRef;

namespace {

/// A kernel that reads `memory` of a block and then does `more`.
std::string kernel(StringRef name, StringRef memory, StringRef more = "") {
  return llvm::formatv(R"(
llvm.func @{0}(%y: !llvm.ptr<1>) attributes {{nvvm.kernel} {{
  %s = llvm.mlir.addressof @{1} : !llvm.ptr<3>
  %v = llvm.load volatile %s : !llvm.ptr<3> -> f32
  llvm.store %v, %y : f32, !llvm.ptr<1>
  {2}
  llvm.return
}
)",
                       name, memory, more);
}

/// Declares a block's memory, either as large as the launch says or of four
/// bytes.
std::string launchMemory(StringRef name) {
  return llvm::formatv("llvm.mlir.global external @{0}() {{addr_space = 3 : "
                       "i32} : !llvm.array<0 x f32>\n",
                       name);
}
std::string blockMemory(StringRef name) {
  return llvm::formatv("llvm.mlir.global internal @{0}() {{addr_space = 3 : "
                       "i32} : !llvm.array<1 x f32>\n",
                       name);
}

size_t count(const std::string &text, const std::string &part) {
  return StringRef(text).count(StringRef(part));
}

class KernelCodeGenTest : public testing::Test {
protected:
  KernelCodeGenTest() {
    context.loadDialect<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &source) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context,
                                                          "kernels.mlir");
    mlir::PassManager passes(&context);
    addLineInfo(passes);
    EXPECT_TRUE(module && succeeded(passes.run(*module)));
    return module;
  }

  /// Generates code, and checks that the module stays unchanged.
  llvm::Expected<std::string> tryGenerate(const std::string &source) {
    auto module = parse(source);
    const std::string before = print(*module);
    auto ptx = generateAssembly(*module, target);
    EXPECT_EQ(print(*module), before);
    return ptx;
  }

  std::string generate(const std::string &source) {
    std::string ptx = cantFail(tryGenerate(source));
    EXPECT_EQ(count(ptx, ".version"), 1u) << ptx;
    EXPECT_EQ(count(ptx, ".target sm_90\n"), 1u) << ptx;
    EXPECT_EQ(count(ptx, ".address_size 64\n"), 1u) << ptx;
    if (llvm::sys::findProgramByName("ptxas")) {
      llvm::Expected<Cubin> cubin = assembleCubin(ptx, target.chip);
      EXPECT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError()) << ptx;
    }
    return ptx;
  }

  static std::string print(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  const Target &target = cantFail(Target::lookup("sm_90"));
};

TEST_F(KernelCodeGenTest, KernelsKeepTheirOrderAndTheirMemory) {
  // The larger kernel is the second: it is generated first.
  const std::string ptx =
      generate(launchMemory("a_shared") + kernel("a", "a_shared") +
               blockMemory("b_scratch") + launchMemory("b_shared") +
               kernel("b", "b_scratch",
                      "%t = llvm.mlir.addressof @b_shared : !llvm.ptr<3>\n"
                      "llvm.store volatile %v, %t : f32, !llvm.ptr<3>"));
  const StringRef text = ptx;
  const size_t a = text.find(".visible .entry a("),
               b = text.find(".visible .entry b(");
  ASSERT_NE(a, StringRef::npos) << ptx;
  ASSERT_NE(b, StringRef::npos) << ptx;
  EXPECT_LT(a, b);
  EXPECT_LT(text.find(".extern .shared .align 4 .b8 a_shared[];"), a) << ptx;
  EXPECT_LT(text.find(".extern .shared .align 4 .b8 b_shared[];"), b) << ptx;
  const size_t scratch = text.find(".shared .align 4 .b8 b_scratch[4];");
  EXPECT_NE(scratch, StringRef::npos) << ptx;
  EXPECT_GT(scratch, b) << ptx;
  for (StringRef once :
       {".extern .shared .align 4 .b8 a_shared",
        ".extern .shared .align 4 .b8 b_shared", "b_scratch[4]",
        ".visible .entry a(", ".visible .entry b(", ".file\t"})
    EXPECT_EQ(count(ptx, once.str()), 1u) << once.str() << ptx;
}

TEST_F(KernelCodeGenTest, MessagesOfOneKernelRaiseTheVersion) {
  const std::string silent =
      blockMemory("a_scratch") + kernel("a", "a_scratch") +
      blockMemory("b_scratch") + kernel("b", "b_scratch");
  const std::string sends =
      blockMemory("c_scratch") +
      kernel("c", "c_scratch",
             "llvm.inline_asm has_side_effects asm_dialect = att \"st.async."
             "shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], 1, "
             "[$0];\", \"r\" %s : (!llvm.ptr<3>) -> ()");
  EXPECT_EQ(count(generate(silent), ".version 8.0\n"), 1u);
  EXPECT_EQ(count(generate(silent + sends), ".version 8.1\n"), 1u);
  EXPECT_EQ(count(generate(sends + silent), ".version 8.1\n"), 1u);
}

TEST_F(KernelCodeGenTest, AnErrorInOneIsReported) {
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          said += diagnostic.str();
                                          return mlir::success();
                                        });
  const std::string sound = blockMemory("a_scratch") + kernel("a", "a_scratch");
  const std::string unknown =
      blockMemory("b_scratch") +
      kernel("b", "b_scratch",
             "%u = builtin.unrealized_conversion_cast %v : f32 to i32\n"
             "llvm.store %u, %y : i32, !llvm.ptr<1>");
  for (const std::string &source : {sound + unknown, unknown + sound}) {
    said.clear();
    auto ptx = tryGenerate(source);
    ASSERT_FALSE(bool(ptx));
    EXPECT_EQ(llvm::toString(ptx.takeError()),
              "cannot translate the module to LLVM IR");
    EXPECT_NE(said.find("unrealized_conversion_cast"), std::string::npos)
        << said;
  }
}

TEST_F(KernelCodeGenTest, OneThreadGeneratesAllWhereThereAreNoOthers) {
  const std::string source =
      blockMemory("a_scratch") + kernel("a", "a_scratch") +
      blockMemory("b_scratch") + kernel("b", "b_scratch") +
      blockMemory("c_scratch") + kernel("c", "c_scratch");
  const std::string expected = generate(source);
  WithoutThreads none;
  EXPECT_EQ(cantFail(tryGenerate(source)), expected);
}

TEST_F(KernelCodeGenTest, MemoryThatKernelsShareIsThereOnce) {
  const std::string ptx = generate(
      blockMemory("scratch") + kernel("a", "scratch") + kernel("b", "scratch"));
  EXPECT_EQ(count(ptx, "scratch[4];"), 1u) << ptx;
  EXPECT_EQ(count(ptx, ".visible .entry "), 2u) << ptx;
}

/// Kernels that refer to nothing, the larger one last.
const std::string twoAlone = R"(
llvm.func @a(%y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  llvm.return
}
llvm.func @b(%y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %c = llvm.mlir.constant(1.0 : f32) : f32
  llvm.store %c, %y : f32, !llvm.ptr<1>
  llvm.return
}
)";

TEST_F(KernelCodeGenTest, FunctionsAreLoweredOneByOneToTheSameText) {
  auto module = parse(twoAlone);
  std::string order;
  auto lower = [&](mlir::ModuleOp one) {
    for (auto function : one.getOps<mlir::LLVM::LLVMFuncOp>())
      order += function.getSymName().str() + ";";
    order += ".";
    return mlir::success();
  };
  auto ptx = generateAssembly(*module, target, lower, [&] { order += "end"; });
  EXPECT_EQ(order, "b;.a;.end");
  EXPECT_EQ(cantFail(std::move(ptx)), generate(twoAlone));
}

TEST_F(KernelCodeGenTest, FunctionsThatCannotBeApartAreGeneratedTogether) {
  // Lowering makes one of them no kernel, which others might call.
  auto module = parse(twoAlone);
  auto ptx = generateAssembly(*module, target, [](mlir::ModuleOp one) {
    if (auto b = one.lookupSymbol<mlir::LLVM::LLVMFuncOp>("b"))
      b->removeAttr(mlir::NVVM::NVVMDialect::getKernelFuncAttrName());
    return mlir::success();
  });
  const std::string text = cantFail(std::move(ptx));
  EXPECT_EQ(count(text, ".visible .entry a("), 1u) << text;
  EXPECT_EQ(count(text, ".visible .func b("), 1u) << text;
}

TEST_F(KernelCodeGenTest, FunctionsThatReferToOthersAreLoweredTogether) {
  const std::string source =
      blockMemory("a_scratch") + kernel("a", "a_scratch") + twoAlone;
  const size_t name = source.rfind("@a(");
  const std::string renamed = std::string(source).replace(name, 2, "@c");
  auto module = parse(renamed);
  std::string order;
  auto lower = [&](mlir::ModuleOp) {
    order += "all;";
    return mlir::success();
  };
  auto ptx = generateAssembly(*module, target, lower, [&] { order += "end"; });
  EXPECT_EQ(order, "all;end");
  EXPECT_EQ(cantFail(std::move(ptx)), generate(renamed));
}

TEST_F(KernelCodeGenTest, TheLargestFunctionIsAmongTheFirstTwoLowered) {
  // How many come ahead of it depends on the number of cores.
  std::string source;
  const size_t stores[] = {4, 9, 40, 16, 16, 16, 1};
  for (auto [index, count] : llvm::enumerate(stores)) {
    source += llvm::formatv("llvm.func @f{0}(%y: !llvm.ptr<1>) attributes "
                            "{{nvvm.kernel} {{\n"
                            "%c = llvm.mlir.constant(1.0 : f32) : f32\n",
                            index);
    for (size_t store = 0; store < count; ++store)
      source += "llvm.store volatile %c, %y : f32, !llvm.ptr<1>\n";
    source += "llvm.return\n}\n";
  }
  auto module = parse(source);
  llvm::SmallVector<std::string> order;
  auto ptx = generateAssembly(*module, target, [&](mlir::ModuleOp one) {
    for (auto function : one.getOps<mlir::LLVM::LLVMFuncOp>())
      order.push_back(function.getSymName().str());
    return mlir::success();
  });
  EXPECT_EQ(cantFail(std::move(ptx)), generate(source));
  ASSERT_EQ(order.size(), std::size(stores));
  // The one ahead keeps a thread busy while the largest is lowered.
  EXPECT_TRUE(order[0] == "f2" || (order[0] == "f1" && order[1] == "f2"))
      << order[0] << ", " << order[1];
  EXPECT_EQ(order.back(), "f6");
}

TEST_F(KernelCodeGenTest, AModuleOfNothingStillRunsWhatIsDoneMeanwhile) {
  auto module = parse("");
  auto lower = [](mlir::ModuleOp) { return mlir::success(); };
  bool isDone = false;
  auto ptx = generateAssembly(*module, target, lower, [&] { isDone = true; });
  EXPECT_TRUE(isDone);
  EXPECT_EQ(cantFail(std::move(ptx)), generate(""));
}

TEST_F(KernelCodeGenTest, AFunctionThatCannotBeLoweredIsAnError) {
  for (StringRef name : {"a", "b"}) {
    auto module = parse(twoAlone);
    auto ptx = generateAssembly(*module, target, [&](mlir::ModuleOp one) {
      return mlir::success(!one.lookupSymbol(name));
    });
    ASSERT_FALSE(bool(ptx));
    EXPECT_EQ(llvm::toString(ptx.takeError()), "a program cannot be lowered");
  }
}

TEST_F(KernelCodeGenTest, FilesOfLinesHaveOneNumberEach) {
  auto storeAt = [](StringRef file) {
    return llvm::formatv("llvm.store volatile %v, %y : f32, !llvm.ptr<1> "
                         "loc(\"{0}\":7:1)",
                         file)
        .str();
  };
  const std::string ptx = generate(
      blockMemory("a_scratch") + kernel("a", "a_scratch", storeAt("one.py")) +
      blockMemory("b_scratch") + kernel("b", "b_scratch", storeAt("two.py")));
  const StringRef text = ptx;
  for (StringRef file : {"one.py", "two.py"}) {
    const size_t name = text.find(file);
    ASSERT_NE(name, StringRef::npos) << ptx;
    const StringRef line = text.take_front(name).rsplit('\n').second;
    StringRef number = line.split("\t.file\t").second.split(' ').first;
    EXPECT_EQ(count(ptx, ("\t.file\t" + number + " ").str()), 1u) << ptx;
    EXPECT_EQ(count(ptx, ("\t.loc\t" + number + " 7 1").str()), 1u) << ptx;
  }
}

TEST(KernelTextTest, TheTextIsTheSameEveryTimeAndInEveryThread) {
  CompileRequest request;
  request.source = R"(
func.func @f(%x: tensor<?x512xbf16>, %w: tensor<512xbf16>)
    -> tensor<?x512xbf16> {
  %0 = tile.rms_norm %x, %w : tensor<?x512xbf16>, tensor<512xbf16>
  return %0 : tensor<?x512xbf16>
})";
  request.target = "sm_90";
  request.gradients.arguments = {"all"};
  auto first = compileText(request);
  ASSERT_TRUE(bool(first)) << first.takeError().message();
  EXPECT_GE(count(first->code, ".visible .entry "), 3u);

  std::vector<std::string> codes(4);
  std::vector<std::thread> threads;
  for (std::string &code : codes)
    threads.emplace_back([&] {
      if (auto compiled = compileText(request))
        code = compiled->code;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &code : codes)
    EXPECT_EQ(code, first->code);
}

} // namespace
