//===- EmulatorTest.h - The fixture of the emulator's tests -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_EMULATOR_EMULATORTEST_H
#define BASTILE_TEST_UNIT_EMULATOR_EMULATORTEST_H

#include "bastile/Emulator.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <memory>
#include <string>
#include <vector>

namespace bastile::test {

/// Parses kernels of the LLVM and NVVM dialects and runs them.
class EmulatorTest : public testing::Test {
protected:
  EmulatorTest() {
    context.loadDialect<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  }

  /// Compiles `source`; the test fails if that fails.
  void compile(const std::string &source) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context,
                                                          "kernel.mlir");
    ASSERT_TRUE(module);
    auto created = Emulator::create(*module);
    if (!created)
      FAIL() << llvm::toString(created.takeError());
    emulator = std::move(*created);
  }

  /// The message of the error that compiling `source` gives.
  std::string compileError(const std::string &source) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context,
                                                          "kernel.mlir");
    if (!module)
      return "does not parse";
    auto created = Emulator::create(*module);
    return created ? "" : llvm::toString(created.takeError());
  }

  /// Launches the kernel on one-dimensional sizes with pointers to `arguments`;
  /// returns the message of the error, or nothing.
  template <typename... Arguments>
  std::string launch(unsigned numBlocks, unsigned numThreads,
                     uint64_t sharedBytes, Arguments... arguments) {
    void *pointers[] = {static_cast<void *>(&arguments)..., nullptr};
    return llvm::toString(emulator->launch("kernel", {numBlocks, 1, 1},
                                           {numThreads, 1, 1}, sharedBytes,
                                           pointers));
  }

  /// Launches the kernel in clusters of `cluster` blocks.
  template <typename... Arguments>
  std::string launchClusters(unsigned cluster, unsigned numBlocks,
                             unsigned numThreads, Arguments... arguments) {
    void *pointers[] = {static_cast<void *>(&arguments)..., nullptr};
    return llvm::toString(
        emulator->launch("kernel", {numBlocks, 1, 1}, {numThreads, 1, 1},
                         /*sharedBytes=*/0, pointers, cluster));
  }

  template <typename Element>
  void addBuffer(const std::vector<Element> &buffer, const char *name,
                 bool isWritable) {
    emulator->registerBuffer(buffer.data(), buffer.size() * sizeof(Element),
                             name, isWritable);
  }

  mlir::MLIRContext context;
  std::unique_ptr<Emulator> emulator;
};

inline testing::AssertionResult contains(const std::string &text,
                                         const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "'" << text << "' lacks '" << part << "'";
}

} // namespace bastile::test

#endif // BASTILE_TEST_UNIT_EMULATOR_EMULATORTEST_H
