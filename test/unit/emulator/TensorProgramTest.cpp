//===- TensorProgramTest.cpp - Programs on tensor cores -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The programs of examples/tensor-cores, which are written by hand, and what
// becomes of them if a wait, a phase or a fence is wrong.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "EmulatorTest.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

class TensorProgramTest : public CompiledTest {
protected:
  TensorProgramTest() { architecture = "sm_90a"; }

  static std::string read(const std::string &name) {
    auto file = llvm::MemoryBuffer::getFile(
        std::string(BASTILE_EXAMPLES "/tensor-cores/") + name);
    EXPECT_TRUE(static_cast<bool>(file)) << name;
    return file ? (*file)->getBuffer().str() : "";
  }

  /// The text with `from` replaced everywhere.
  static std::string change(std::string text, const std::string &from,
                            const std::string &to) {
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << "nothing to replace: " << from;
    for (; at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  }

  /// Multiplies small integers; returns the error. How many elements of the
  /// result are wrong is then in `numWrong`.
  std::string multiply(const std::string &text, int64_t m, int64_t n, int64_t k,
                       Emulator::Order order = Emulator::Order::Forward) {
    compile(text);
    if (HasFatalFailure())
      return "does not compile";
    Buffer x(ElementType::BF16, m, k), w(ElementType::BF16, n, k),
        bias(ElementType::BF16, 1, n), y(ElementType::BF16, m, n);
    std::mt19937 random(1);
    for (Buffer *buffer : {&x, &w, &bias})
      for (int64_t row = 0; row < buffer->rows; ++row)
        for (int64_t column = 0; column < buffer->columns; ++column)
          buffer->set(row, column, static_cast<int>(random() % 5) - 2);
    std::string error = run({x.view(), w.view(), bias.view(/*isVector=*/true)},
                            {y.view()}, order);
    numWrong = 0;
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = bias.get(0, column);
        for (int64_t i = 0; i < k; ++i)
          sum += x.get(row, i) * w.get(column, i);
        // Rounding to bf16 costs half of 2^-8 at most.
        double wrong = std::abs(y.get(row, column) - sum);
        numWrong += !(wrong <= std::abs(sum) / 512);
      }
    return error;
  }

  int numWrong = 0;
};

TEST_F(TensorProgramTest, TheProductIsRight) {
  const std::string product = read("product.mlir");
  for (Emulator::Order order : kOrders) {
    EXPECT_EQ(multiply(product, 256, 256, 320, order), "");
    EXPECT_EQ(numWrong, 0);
  }
  // Sizes that nothing divides, with several parts for each cluster.
  EXPECT_EQ(multiply(product, 300, 520, 72), "");
  EXPECT_EQ(numWrong, 0);
}

TEST_F(TensorProgramTest, MistakesInTheProductAreFoundOut) {
  const std::string product = read("product.mlir");
  struct Mistake {
    const char *from, *to, *found;
  };
  for (const Mistake &one : std::initializer_list<Mistake>{
           // A slot is released while products read it.
           {"tile.wait_dots 1 :", "tile.wait_dots 2 :",
            "read it before, and nothing has waited for them since"},
           // So is one of the other block.
           {"arrivals 4", "arrivals 2", "data race on byte 0 of"},
           // A copy fills a slot that nobody has released.
           {"        tile.await %empty[%slot] parity %parity : "
            "!tile.barriers<4>\n",
            "", "at an mbarrier at which all have arrived"},
           // The wrong phase of an empty slot.
           {"%parity = arith.remui %before, %c2",
            "%parity = arith.remui %round, %c2", "barrier divergence"},
           // A slot is full ahead of its last copy.
           {"expect 49152", "expect 32768", "data race on byte "},
           {"expect 49152", "expect 49168", "barrier divergence"},
           // Copies to the other block get lost.
           {" blocks %c3", "", "barrier divergence"},
           // What threads have written is copied.
           {"      tile.fence_shared\n", "", "missing fence for byte "},
           {"tile.fence_shared\n      tile.synchronize\n",
            "tile.fence_shared\n", "and no barrier lies in between"},
           {"tile.wait_stores 1\n", "tile.wait_stores 2\n",
            "stores of tensors by thread 128 of block 0 read it before"},
           {"    tile.wait_stores 0\n", "",
            "exits before it has waited for its stores"},
           // The blocks of a cluster begin and end together.
           {"  tile.synchronize cluster\n\n", "  tile.synchronize\n\n",
            "that block may not have started"},
           {"  tile.synchronize cluster\n  tile.return", "  tile.return",
            "is done with its shared memory in 'nvvm.mbarrier.arrive'"},
       }) {
    SCOPED_TRACE(std::string(one.from) + " -> " + one.to);
    std::string error = multiply(change(product, one.from, one.to),
                                 /*m=*/256, /*n=*/256, /*k=*/384);
    EXPECT_TRUE(contains(error, one.found)) << error;
  }
}

} // namespace
