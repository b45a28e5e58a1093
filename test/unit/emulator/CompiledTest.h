//===- CompiledTest.h - Compiled functions on the emulator ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_EMULATOR_COMPILEDTEST_H
#define BASTILE_TEST_UNIT_EMULATOR_COMPILEDTEST_H

#include "bastile/Compiler.h"
#include "bastile/EmulatorExecutor.h"
#include "bastile/Registration.h"
#include "bastile/Source.h"
#include "bastile/runtime/HostTypes.h"
#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Shapes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"
#include <cstddef>
#include <random>

namespace bastile::test {

/// The softmax of rows of {0} elements of type {1}.
inline constexpr char kSoftmax[] = R"mlir(
  func.func @softmax(%x: tensor<?x{0}x{1}>) -> tensor<?x{0}x{1}> {{
    %0 = tile.softmax %x : tensor<?x{0}x{1}>
    return %0 : tensor<?x{0}x{1}>
  })mlir";

/// One tensor in memory with a margin, so that misaligned views and rows with
/// gaps can be made.
struct Buffer {
  runtime::ElementType type;
  int64_t rows, columns, stride, offset;
  std::vector<char> bytes;

  Buffer(runtime::ElementType type, int64_t rows, int64_t columns,
         int64_t gap = 0, int64_t offset = 0)
      : type(type), rows(rows), columns(columns), stride(columns + gap),
        offset(offset),
        bytes((offset + rows * stride + 16) * runtime::byteSize(type), '\xff') {
    // Vector accesses need the alignment that a GPU's allocator gives.
    constexpr size_t alignment = 64;
    bytes.reserve(bytes.size() + alignment);
    size_t misaligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignment;
    base = misaligned ? alignment - misaligned : 0;
    bytes.resize(bytes.size() + alignment, '\xff');
  }
  char *element(int64_t row, int64_t column) {
    return bytes.data() + base +
           (offset + row * stride + column) * runtime::byteSize(type);
  }
  double get(int64_t row, int64_t column) {
    return runtime::loadElement(type, element(row, column));
  }
  /// All elements, row by row.
  std::vector<double> getAll() {
    std::vector<double> all;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        all.push_back(get(row, column));
    return all;
  }
  void set(int64_t row, int64_t column, double value) {
    runtime::storeElement(type, element(row, column), value);
  }
  void fill(std::mt19937 &random) {
    std::normal_distribution<double> normal;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        set(row, column, normal(random));
  }
  runtime::TensorView view(bool isVector = false) {
    runtime::TensorView view;
    view.data = element(0, 0);
    view.type = type;
    view.sizes = isVector ? runtime::Dimensions{columns}
                          : runtime::Dimensions{rows, columns};
    view.strides =
        isVector ? runtime::Dimensions{1} : runtime::Dimensions{stride, 1};
    return view;
  }

private:
  size_t base = 0;
};

/// Compiles whole functions for the GPU and runs them on the emulator.
class CompiledTest : public testing::Test {
protected:
  CompiledTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Lowers `text` to NVVM; the test fails if that fails.
  void compile(const std::string &text, const std::string &schedule = "",
               const GradientOptions &gradients = {}) {
    llvm::SourceMgr source;
    source.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(text, "kernel.mlir"),
        llvm::SMLoc());
    module = parseSource(source, context);
    ASSERT_TRUE(module);
    auto target = Target::lookup(architecture);
    ASSERT_TRUE(static_cast<bool>(target));
    CompileOptions options;
    options.target = &*target;
    options.schedule = schedule;
    options.gradients = gradients;
    llvm::json::Value json = nullptr;
    ASSERT_TRUE(succeeded(lower(*module, Level::NVVM, options, &json)));
    auto parsed = runtime::parseMetadata(llvm::formatv("{0}", json).str());
    ASSERT_TRUE(static_cast<bool>(parsed)) << parsed.takeError().message();
    metadata = *parsed;
  }

  /// An emulator of the current module; null if the test has failed.
  std::unique_ptr<Emulator> createEmulator() {
    auto created = Emulator::create(*module);
    if (created)
      return std::move(*created);
    ADD_FAILURE() << llvm::toString(created.takeError());
    return nullptr;
  }

  /// Launches `function` with temporaries of its own; returns the message of
  /// the error, or nothing.
  static std::string launch(Emulator &emulator,
                            const runtime::Function &function,
                            const std::vector<runtime::TensorView> &inputs,
                            const std::vector<runtime::TensorView> &outputs) {
    EmulatorExecutor executor(emulator);
    runtime::ResolvedShapes shapes;
    if (runtime::Error error = runtime::resolveShapes(
            function, inputs, executor.capacity(), shapes))
      return error.message();
    std::vector<std::vector<std::max_align_t>> memory;
    std::vector<runtime::TensorView> temporaries;
    for (size_t i = 0; i < shapes.temporaries.size(); ++i) {
      auto view = runtime::TensorView::contiguous(
          nullptr, function.temporaries[i].type, shapes.temporaries[i]);
      memory.emplace_back(view.byteCount() / sizeof(std::max_align_t) + 1);
      view.data = memory.back().data();
      emulator.registerBuffer(view.data, view.byteCount(), "temporary",
                              /*isWritable=*/true);
      temporaries.push_back(view);
    }
    runtime::LaunchPlan plan;
    runtime::Error error = plan.prepare(
        function, {inputs, outputs, temporaries}, executor.capacity());
    if (!error)
      error = runtime::execute(plan, executor);
    return error ? error.message() : "";
  }

  /// Runs the module's function called `name`, or the first, with
  /// approximations at their worst; returns the message of the error, or
  /// nothing. An output may lie where an input does.
  std::string run(const std::vector<runtime::TensorView> &inputs,
                  const std::vector<runtime::TensorView> &outputs,
                  Emulator::Order order, const char *name = nullptr) {
    std::unique_ptr<Emulator> emulator = createEmulator();
    if (!emulator)
      return "there is no code";
    emulator->setOrder(order, /*seed=*/7);
    emulator->setWorstApproximations(true);
    auto addBuffer = [&](const runtime::TensorView &view, const char *name,
                         bool isWritable) {
      int64_t elements = 1;
      for (unsigned dim = 0; dim < view.rank(); ++dim)
        elements += (view.sizes[dim] - 1) * view.strides[dim];
      if (view.elementCount() > 0)
        emulator->registerBuffer(view.data,
                                 elements * runtime::byteSize(view.type), name,
                                 isWritable);
    };
    for (const runtime::TensorView &input : inputs)
      if (llvm::none_of(outputs, [&](const runtime::TensorView &output) {
            return output.data == input.data;
          }))
        addBuffer(input, "input", /*isWritable=*/false);
    for (const runtime::TensorView &output : outputs)
      addBuffer(output, "output", /*isWritable=*/true);
    const runtime::Function *function =
        name ? metadata.find(name) : &metadata.functions.front();
    if (!function)
      return std::string("there is no function ") + name;
    return launch(*emulator, *function, inputs, outputs);
  }

  /// What is compiled for.
  const char *architecture = "sm_90";
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  runtime::Metadata metadata;
};

inline constexpr Emulator::Order kOrders[] = {Emulator::Order::Forward,
                                              Emulator::Order::Reverse,
                                              Emulator::Order::Random};

} // namespace bastile::test

#endif // BASTILE_TEST_UNIT_EMULATOR_COMPILEDTEST_H
