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
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <functional>
#include <numeric>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

class TensorProgramTest : public CompiledTest {
protected:
  TensorProgramTest() { architecture = "sm_90a"; }

  /// An example, without its variants for less alignment: no test runs them.
  static std::string read(const std::string &name) {
    auto file = llvm::MemoryBuffer::getFile(
        std::string(BASTILE_EXAMPLES "/tensor-cores/") + name);
    EXPECT_TRUE(static_cast<bool>(file)) << name;
    if (!file)
      return "";
    std::string text = (*file)->getBuffer().str();
    const std::string alignments = "alignments = array<i64: 4, 2>,";
    return text.find(alignments) == std::string::npos
               ? text
               : change(text, alignments, "");
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

  /// Multiplies small integers; returns the error. Without one, how many
  /// elements of the result are wrong is in `numWrong`.
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
    if (!error.empty())
      return error;
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
    return "";
  }

  /// Multiplies by both weights of a gated MLP; returns the error.
  std::string multiplyGated(const std::string &text, int64_t m, int64_t n,
                            int64_t k) {
    compile(text);
    if (HasFatalFailure())
      return "does not compile";
    Buffer x(ElementType::BF16, m, k), gate(ElementType::BF16, n, k),
        up(ElementType::BF16, n, k), gateBias(ElementType::BF16, 1, n),
        upBias(ElementType::BF16, 1, n), y(ElementType::BF16, m, n);
    std::mt19937 random(1);
    for (Buffer *buffer : {&x, &gate, &up, &gateBias, &upBias})
      buffer->fill(random);
    return run({x.view(), gate.view(), up.view(), gateBias.view(true),
                upBias.view(true)},
               {y.view()}, Emulator::Order::Forward);
  }

  /// Computes causal attention of `heads` heads on one of keys; returns the
  /// error. Without one, the largest error of the result and of the log-sum-exp
  /// is in `worst`.
  std::string attend(const std::string &text, int64_t queries, int64_t keys,
                     int64_t size,
                     Emulator::Order order = Emulator::Order::Forward,
                     int64_t heads = 2) {
    compile(text);
    if (HasFatalFailure())
      return "does not compile";
    Buffer q(ElementType::BF16, heads * queries, size),
        k(ElementType::BF16, keys, size), v(ElementType::BF16, keys, size),
        o(ElementType::BF16, heads * queries, size),
        sums(ElementType::F32, heads * queries, 1);
    std::mt19937 random(1);
    for (Buffer *buffer : {&q, &k, &v})
      buffer->fill(random);
    auto view = [](Buffer &buffer, int64_t numHeads) {
      runtime::TensorView view = buffer.view();
      int64_t rows = buffer.rows / numHeads, columns = buffer.columns;
      view.sizes = {1, numHeads, rows, columns};
      view.strides = {buffer.rows * columns, rows * columns, columns, 1};
      return view;
    };
    std::string error = run({view(q, heads), view(k, 1), view(v, 1)},
                            {view(o, heads), view(sums, heads)}, order);
    if (!error.empty())
      return error;
    worst = 0;
    for (int64_t row = 0; row < heads * queries; ++row) {
      int64_t seen = row % queries + keys - queries + 1;
      std::vector<double> powers(seen);
      double total = 0;
      for (int64_t key = 0; key < seen; ++key) {
        double score = 0;
        for (int64_t i = 0; i < size; ++i)
          score += q.get(row, i) * k.get(key, i);
        total += powers[key] = std::exp(score / std::sqrt(size));
      }
      worst = std::max(worst, std::abs(sums.get(row, 0) - std::log(total)));
      for (int64_t i = 0; i < size; ++i) {
        double sum = 0;
        for (int64_t key = 0; key < seen; ++key)
          sum += powers[key] / total * v.get(key, i);
        worst = std::max(worst, std::abs(o.get(row, i) - sum));
      }
    }
    return "";
  }

  /// Multiplies small integers, k cut into parts of 512; returns the error, or
  /// that some sums are wrong.
  std::string multiplyParts(const std::string &text, int64_t m, int64_t n,
                            int64_t k,
                            Emulator::Order order = Emulator::Order::Forward) {
    compile(change(text, "2048", "512"));
    if (HasFatalFailure())
      return "does not compile";
    Buffer x(ElementType::BF16, m, k), w(ElementType::BF16, n, k),
        y(ElementType::F32, m, n);
    std::mt19937 random(1);
    for (Buffer *buffer : {&x, &w})
      for (int64_t row = 0; row < buffer->rows; ++row)
        for (int64_t column = 0; column < buffer->columns; ++column)
          buffer->set(row, column, static_cast<int>(random() % 5) - 2);
    std::string error = run({x.view(), w.view()}, {y.view()}, order);
    if (!error.empty())
      return error;
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += x.get(row, i) * w.get(column, i);
        if (y.get(row, column) != sum)
          return "wrong sums";
      }
    return "";
  }

  /// Computes the gradients of causal attention of two heads on one of keys;
  /// returns the error. Without one, the largest error of a gradient, as
  /// a part of its norm, is in `worst`.
  std::string differentiate(const std::string &text, int64_t queries,
                            int64_t keys, int64_t size,
                            Emulator::Order order = Emulator::Order::Forward);

  int numWrong = 0;
  double worst = 0;
};

std::string TensorProgramTest::differentiate(const std::string &text,
                                             int64_t queries, int64_t keys,
                                             int64_t size,
                                             Emulator::Order order) {
  constexpr int64_t heads = 2;
  compile(text);
  if (HasFatalFailure())
    return "does not compile";
  Buffer q(ElementType::BF16, heads * queries, size),
      k(ElementType::BF16, keys, size), v(ElementType::BF16, keys, size),
      gradient(ElementType::BF16, heads * queries, size),
      lse(ElementType::F32, heads * queries, 1),
      delta(ElementType::F32, heads * queries, 1),
      dq(ElementType::F32, heads * queries, size),
      dk(ElementType::BF16, keys, size), dv(ElementType::BF16, keys, size);
  std::mt19937 random(1);
  for (Buffer *buffer : {&q, &k, &v, &gradient, &delta})
    buffer->fill(random);
  std::vector<double> fairQ(heads * queries * size), fairK(keys * size),
      fairV(keys * size);
  const std::vector<double> ofQ = q.getAll(), ofK = k.getAll(),
                            ofV = v.getAll(), ofGradient = gradient.getAll();
  auto dot = [&](const std::vector<double> &a, int64_t row,
                 const std::vector<double> &b, int64_t other) {
    return std::inner_product(&a[row * size], &a[row * size] + size,
                              &b[other * size], 0.0);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  for (int64_t row = 0; row < heads * queries; ++row) {
    const int64_t seen = row % queries + keys - queries + 1;
    std::vector<double> scores(seen);
    double total = 0;
    for (int64_t key = 0; key < seen; ++key)
      total += std::exp(scores[key] = scale * dot(ofQ, row, ofK, key));
    lse.set(row, 0, std::log2(total));
    for (int64_t key = 0; key < seen; ++key) {
      const double power = std::exp(scores[key]) / total;
      const double ofScore =
          scale * power * (dot(ofGradient, row, ofV, key) - delta.get(row, 0));
      for (int64_t i = 0; i < size; ++i) {
        fairQ[row * size + i] += ofScore * ofK[key * size + i];
        fairK[key * size + i] += ofScore * ofQ[row * size + i];
        fairV[key * size + i] += power * ofGradient[row * size + i];
      }
    }
  }
  auto view = [](Buffer &buffer, int64_t numHeads) {
    runtime::TensorView view = buffer.view();
    int64_t rows = buffer.rows / numHeads, columns = buffer.columns;
    view.sizes = {1, numHeads, rows, columns};
    view.strides = {buffer.rows * columns, rows * columns, columns, 1};
    return view;
  };
  std::string error =
      run({view(q, heads), view(k, 1), view(v, 1), view(gradient, heads),
           view(lse, heads), view(delta, heads)},
          {view(dq, heads), view(dk, 1), view(dv, 1)}, order);
  if (!error.empty())
    return error;
  worst = 0;
  auto compare = [&](Buffer &buffer, const std::vector<double> &expected) {
    double squares = 0, wrong = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double own = buffer.get(at / size, at % size) - expected[i];
      squares += expected[i] * expected[i];
      wrong += own * own;
    }
    // A NaN is an error as well.
    const double part = std::sqrt(wrong / squares);
    worst = part <= worst ? worst : part;
  };
  compare(dq, fairQ);
  compare(dk, fairK);
  compare(dv, fairV);
  return "";
}

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
           {"tile.wait_stores 1 warp\n", "tile.wait_stores 2 warp\n",
            "stores of tensors by thread 128 of block 0 read it before"},
           // Each warp waits for its own copies only.
           {"tile.wait_stores 1 warp\n",
            "tile.wait_stores 1\n      tile.synchronize\n",
            "read it before, and nothing has waited for them since"},
           {"    tile.wait_stores 0 warp\n", "",
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

TEST_F(TensorProgramTest, TheFlashForwardIsRight) {
  // Powers and results are rounded to bf16; those of a query that sees few keys
  // are as large as 4.
  constexpr double allowed = 0.02;
  for (Emulator::Order order : kOrders) {
    EXPECT_EQ(attend(read("flash_64.mlir"), 256, 256, 64, order), "");
    EXPECT_LT(worst, allowed);
  }
  EXPECT_EQ(attend(read("flash_64.mlir"), 200, 300, 64), "");
  EXPECT_LT(worst, allowed);
  EXPECT_EQ(attend(read("flash_128.mlir"), 136, 200, 128), "");
  EXPECT_LT(worst, allowed);
  // Blocks that have one part of the queries more or less than others: the last
  // round is the first one, the one that goes back, and the one behind that.
  for (int64_t heads : {1, 3, 5}) {
    EXPECT_EQ(attend(read("flash_128.mlir"), 100, 100, 128,
                     Emulator::Order::Forward, heads),
              "");
    EXPECT_LT(worst, allowed);
  }
}

/// The lines of a program, without the spaces ahead.
std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> lines;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, '\n');
  for (llvm::StringRef part : parts)
    lines.push_back(part.trim().str());
  return lines;
}

/// Runs `check` with each changed text of the lines from `begin` to before
/// `end` in which one line that only makes somebody wait or lets somebody go on
/// is left out, or a wait for all products or copies but so many waits for one
/// less.
/// Returns how many there are.
unsigned forEachMistake(const std::vector<std::string> &lines, size_t begin,
                        size_t end,
                        llvm::function_ref<void(const std::string &)> check) {
  static constexpr const char *alone[] = {
      "tile.await",        "tile.arrive",      "tile.expect",
      "tile.synchronize",  "tile.take_turn",   "tile.pass_turn",
      "tile.fence_shared", "tile.wait_stores", "tile.release_count"};
  unsigned numChanged = 0;
  for (size_t i = begin; i < end; ++i) {
    std::vector<std::string> changed = lines;
    // The number stands behind the name.
    size_t at = std::string::npos;
    for (llvm::StringRef wait : {"tile.wait_dots ", "tile.wait_copies "})
      if (size_t found = lines[i].find(wait); found != std::string::npos)
        at = found + wait.size();
    if (llvm::any_of(alone, [&](const char *name) {
          return lines[i].rfind(name, 0) == 0;
        }))
      changed[i].clear();
    else if (at != std::string::npos)
      ++changed[i][at];
    else
      continue;
    ++numChanged;
    SCOPED_TRACE("line " + std::to_string(i + 1) + ": " + lines[i]);
    check(llvm::join(changed, "\n"));
  }
  return numChanged;
}

/// The first line that begins with `text`.
size_t findLine(const std::vector<std::string> &lines, const char *text) {
  return llvm::find_if(lines,
                       [&](const std::string &line) {
                         return line.rfind(text, 0) == 0;
                       }) -
         lines.begin();
}

TEST_F(TensorProgramTest, EveryWaitOfTheFlashForwardIsNeeded) {
  const std::vector<std::string> lines = split(read("flash_64.mlir"));
  // The second program is for other GPUs.
  const size_t end = findLine(lines, "tile.program @flash_mma");
  unsigned numChanged =
      forEachMistake(lines, 0, end, [&](const std::string &text) {
        std::string error = attend(text, 384, 384, 64);
        // With few keys, waits for their slots do not make up for one for a
        // slot of queries, of which there are two.
        if (error.empty())
          error = attend(text, 100, 100, 64, Emulator::Order::Forward,
                         /*heads=*/6);
        EXPECT_NE(error, "");
        EXPECT_NE(error, "does not compile");
      });
  EXPECT_GT(numChanged, 20U);
}

TEST_F(TensorProgramTest, TheSplitProductIsRight) {
  const std::string product = read("split_product.mlir");
  for (const char *one : {"sm_90a", "sm_80"}) {
    architecture = one;
    for (Emulator::Order order : kOrders)
      EXPECT_EQ(multiplyParts(product, 100, 140, 1104, order), "");
  }
}

TEST_F(TensorProgramTest, EveryWaitOfTheSplitProductIsNeeded) {
  const std::vector<std::string> lines = split(read("split_product.mlir"));
  const size_t middle = findLine(lines, "tile.program @split_product_mma");
  auto check = [&](const std::string &text) {
    // In one of the orders a mistake shows that another one happens to hide.
    std::string error = multiplyParts(text, 128, 128, 1600);
    if (error.empty())
      error = multiplyParts(text, 128, 128, 1600, Emulator::Order::Reverse);
    EXPECT_NE(error, "");
    EXPECT_NE(error, "does not compile");
  };
  EXPECT_EQ(forEachMistake(lines, 0, middle, check), 8U);
  architecture = "sm_80";
  EXPECT_EQ(forEachMistake(lines, middle, lines.size(), check), 5U);
}

/// In the variants for GPUs without products of warpgroups, all threads meet
/// before they read what others have copied, and before they copy to where
/// others have read; and they wait for copies before they meet.
TEST_F(TensorProgramTest, EveryMeetingAndWaitOfWarpsIsNeeded) {
  architecture = "sm_80";
  struct Program {
    const char *file, *begin;
    std::function<std::string(const std::string &)> run;
    unsigned numMistakes;
  };
  const Program programs[] = {
      {"product.mlir", "tile.program @product_mma",
       [&](const std::string &text) { return multiply(text, 256, 128, 160); },
       5},
      {"gated_product.mlir", "tile.program @gated_product_mma",
       [&](const std::string &text) {
         return multiplyGated(text, 256, 64, 160);
       },
       5},
      {"flash_64.mlir", "tile.program @flash_mma",
       [&](const std::string &text) { return attend(text, 200, 300, 64); }, 8}};
  for (const Program &program : programs) {
    const std::vector<std::string> lines = split(read(program.file));
    EXPECT_EQ(program.run(read(program.file)), "");
    auto check = [&](const std::string &text) {
      std::string error = program.run(text);
      EXPECT_TRUE(contains(error, "data race on byte ") ||
                  contains(error, "exits before it has waited for its copy"))
          << error;
    };
    EXPECT_EQ(forEachMistake(lines, findLine(lines, program.begin),
                             lines.size(), check),
              program.numMistakes)
        << program.file;
  }
}

/// Programs add to the gradient of queries in turn, so that its bits are those
/// of every other run.
TEST_F(TensorProgramTest, TheFlashBackwardIsRight) {
  for (int64_t size : {64, 128}) {
    const std::string flash =
        read("flash_backward_" + std::to_string(size) + ".mlir");
    for (Emulator::Order order : kOrders) {
      EXPECT_EQ(differentiate(flash, 150, 200, size, order), "");
      EXPECT_LT(worst, 0.01);
    }
    // More queries than two steps, and one alone.
    EXPECT_EQ(differentiate(flash, 300, 300, size), "");
    EXPECT_LT(worst, 0.01);
    EXPECT_EQ(differentiate(flash, 1, 130, size), "");
    EXPECT_LT(worst, 0.01);
  }
}

TEST_F(TensorProgramTest, EveryWaitOfTheFlashBackwardIsNeeded) {
  const std::vector<std::string> lines = split(read("flash_backward_128.mlir"));
  unsigned numChanged =
      forEachMistake(lines, 0, lines.size(), [&](const std::string &text) {
        std::string error = differentiate(text, 300, 300, 128);
        if (error.empty())
          error = differentiate(text, 300, 300, 128, Emulator::Order::Reverse);
        EXPECT_NE(error, "");
        EXPECT_NE(error, "does not compile");
      });
  EXPECT_GT(numChanged, 20U);
}

} // namespace
