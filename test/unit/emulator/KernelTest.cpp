//===- KernelTest.cpp - Compiled GPU code on the emulator -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Runs the code that would go to PTX, as the NVVM lowering leaves it, and
// compares it with the formulas in float64. The emulator must notice mutations
// of the code.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cmath>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

constexpr char kGeglu[] = R"mlir(
  func.func @geglu(%gate: tensor<?x{0}x{1}>, %up: tensor<?x{0}x{1}>)
      -> tensor<?x{0}x{1}> {{
    %0 = tile.geglu %gate, %up : tensor<?x{0}x{1}>
    return %0 : tensor<?x{0}x{1}>
  })mlir";
constexpr char kRmsNorm[] = R"mlir(
  func.func @rms_norm(%x: tensor<?x{0}x{1}>, %weight: tensor<{0}x{1}>)
      -> tensor<?x{0}x{1}> {{
    %0 = tile.rms_norm %x, %weight casting(gemma)
        : tensor<?x{0}x{1}>, tensor<{0}x{1}>
    return %0 : tensor<?x{0}x{1}>
  })mlir";

double geglu(double gate, double up) {
  gate = std::min(gate, 7.0);
  up = std::clamp(up, -7.0, 7.0);
  return (up + 1) * gate / (1 + std::exp(-1.702 * gate));
}

class KernelTest : public CompiledTest {
protected:
  /// Lowers `format` for rows of `length` elements of `type` to NVVM.
  void lowerToNVVM(const char *format, int64_t length, const char *type,
                   const std::string &schedule) {
    compile(llvm::formatv(format, length, type).str(), schedule);
  }

  /// Runs a norm of each of `x` and `y` with one weight in one launch; returns
  /// the message of an error.
  std::string runNorms(int64_t xRows, int64_t yRows, Emulator::Order order) {
    constexpr int64_t length = 1000;
    constexpr ElementType type = ElementType::BF16;
    std::mt19937 random(xRows * 104729 + yRows);
    Buffer x(type, xRows, length), y(type, yRows, length),
        weight(type, 1, length), xNorm(type, xRows, length),
        yNorm(type, yRows, length);
    x.fill(random);
    y.fill(random);
    weight.fill(random);
    std::string message =
        run({x.view(), y.view(), weight.view(/*isVector=*/true)},
            {xNorm.view(), yNorm.view()}, order);
    EXPECT_LE(getNormError(x, weight, xNorm), 0.51);
    EXPECT_LE(getNormError(y, weight, yNorm), 0.51);
    return message;
  }

  /// The largest error of a GEGLU in units in the last place; an error's
  /// message goes to `message`.
  double runGeglu(int64_t rows, int64_t length, ElementType type,
                  Emulator::Order order, std::string &message, int64_t gap = 0,
                  int64_t offset = 0) {
    std::mt19937 random(rows * 7919 + length);
    Buffer gate(type, rows, length, gap, offset);
    Buffer up(type, rows, length, gap, offset);
    Buffer out(type, rows, length, gap, offset);
    gate.fill(random);
    up.fill(random);
    message = run({gate.view(), up.view()}, {out.view()}, order);
    double worst = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < length; ++column)
        worst =
            std::max(worst, runtime::ulpDistance(type, out.get(row, column),
                                                 geglu(gate.get(row, column),
                                                       up.get(row, column))));
    return worst;
  }

  double runRmsNorm(int64_t rows, int64_t length, ElementType type,
                    Emulator::Order order, std::string &message) {
    std::mt19937 random(rows * 104729 + length);
    Buffer x(type, rows, length), weight(type, 1, length),
        out(type, rows, length);
    x.fill(random);
    weight.fill(random);
    message =
        run({x.view(), weight.view(/*isVector=*/true)}, {out.view()}, order);
    return getNormError(x, weight, out);
  }

  static double getNormError(Buffer &x, Buffer &weight, Buffer &out) {
    double worst = 0;
    for (int64_t row = 0; row < x.rows; ++row) {
      double squares = 0;
      for (int64_t column = 0; column < x.columns; ++column)
        squares += x.get(row, column) * x.get(row, column);
      double rstd = 1 / std::sqrt(squares / x.columns + 1e-6);
      for (int64_t column = 0; column < x.columns; ++column)
        worst =
            std::max(worst, runtime::ulpDistance(x.type, out.get(row, column),
                                                 x.get(row, column) * rstd *
                                                     weight.get(0, column)));
    }
    return worst;
  }
};

struct Type {
  const char *name;
  ElementType element;
  /// How far off a result may be, in units in the last place: the rounding and,
  /// in float32, the approximations at their documented worst.
  double bound;
};
const Type kTypes[] = {{"bf16", ElementType::BF16, 0.51},
                       {"f16", ElementType::F16, 0.55},
                       {"f32", ElementType::F32, 8}};

TEST_F(KernelTest, GegluAgreesWithTheFormula) {
  for (const Type &type : kTypes)
    for (int64_t length : {1, 7, 31, 33, 128, 520, 2880}) {
      lowerToNVVM(kGeglu, length, type.name, "");
      for (int64_t rows : {0, 1, 3}) {
        std::string message;
        double worst =
            runGeglu(rows, length, type.element, kOrders[rows % 3], message);
        EXPECT_EQ(message, "");
        EXPECT_LE(worst, type.bound) << rows << "x" << length << type.name;
      }
    }
}

TEST_F(KernelTest, RmsNormAgreesWithTheFormula) {
  for (const Type &type : kTypes)
    for (int64_t length : {1, 2, 31, 33, 128, 520, 2880, 4096}) {
      lowerToNVVM(kRmsNorm, length, type.name, "");
      for (int64_t rows : {0, 1, 3}) {
        std::string message;
        double worst =
            runRmsNorm(rows, length, type.element, kOrders[rows % 3], message);
        EXPECT_EQ(message, "");
        EXPECT_LE(worst, type.bound) << rows << "x" << length << type.name;
      }
    }
}

TEST_F(KernelTest, SchedulesDoNotChangeTheResult) {
  for (const char *schedule :
       {"threads=32", "threads=1024", "vector=1", "rows=4,threads=64",
        "columns=256,threads=32", "columns=512,threads=64,persistent=1",
        "rows=2,persistent=1", "rows=8,threads=256,columns=512,vector=8"})
    for (Emulator::Order order : kOrders) {
      std::string message;
      lowerToNVVM(kRmsNorm, 1000, "bf16", schedule);
      if (HasFatalFailure())
        return;
      EXPECT_LE(runRmsNorm(9, 1000, ElementType::BF16, order, message), 0.51)
          << schedule;
      EXPECT_EQ(message, "") << schedule;
    }
}

/// Rows of several blocks, by hand and by the heuristic: of whole tiles and
/// with padding, in one sweep and in several, several rows to a block.
TEST_F(KernelTest, ClustersDoNotChangeTheResult) {
  for (const char *schedule :
       {"cluster=2", "cluster=3,threads=64,columns=1536",
        "cluster=8,threads=32,vector=4,columns=1024",
        "cluster=16,threads=32,vector=2,columns=1024",
        "cluster=2,threads=64,rows=4,columns=1024",
        "cluster=2,threads=128,rows=2,columns=1024",
        "cluster=2,threads=32,columns=512",
        "cluster=2,threads=32,columns=512,persistent=1",
        "cluster=4,threads=32,columns=1024,persistent=1"})
    for (Emulator::Order order : kOrders) {
      std::string message;
      lowerToNVVM(kRmsNorm, 1000, "bf16", schedule);
      if (HasFatalFailure())
        return;
      EXPECT_LE(runRmsNorm(5, 1000, ElementType::BF16, order, message), 0.51)
          << schedule;
      EXPECT_EQ(message, "") << schedule;
    }
}

/// The blocks of both row spaces meet at barriers of their own, and an empty
/// row space leaves all blocks to the other.
TEST_F(KernelTest, MergedLaunchesKeepTheirRows) {
  constexpr char norms[] = R"mlir(
    func.func @norms(%x: tensor<?x{0}x{1}>, %y: tensor<?x{0}x{1}>,
                     %weight: tensor<{0}x{1}>)
        -> (tensor<?x{0}x{1}>, tensor<?x{0}x{1}>) {{
      %0 = tile.rms_norm %x, %weight casting(gemma)
          : tensor<?x{0}x{1}>, tensor<{0}x{1}>
      %1 = tile.rms_norm %y, %weight casting(gemma)
          : tensor<?x{0}x{1}>, tensor<{0}x{1}>
      return %0, %1 : tensor<?x{0}x{1}>, tensor<?x{0}x{1}>
    })mlir";
  constexpr std::pair<int64_t, int64_t> counts[] = {
      {5, 2}, {1, 9}, {0, 3}, {3, 0}, {0, 0}};
  for (const char *schedule :
       {"", "rows=4,threads=64", "columns=512,threads=64",
        "columns=512,threads=64,reread=shared"}) {
    lowerToNVVM(norms, 1000, "bf16", schedule);
    if (HasFatalFailure())
      return;
    ASSERT_EQ(metadata.functions.front().launches.size(), 1u) << schedule;
    for (Emulator::Order order : kOrders)
      for (auto [xRows, yRows] : counts)
        EXPECT_EQ(runNorms(xRows, yRows, order), "")
            << schedule << " " << xRows << " " << yRows;
  }
}

TEST_F(KernelTest, LongRowsTakeClusters) {
  for (int64_t length : {32776, 65536}) {
    std::string message;
    lowerToNVVM(kRmsNorm, length, "bf16", "");
    EXPECT_GT(
        metadata.functions.front().launches.front().variants.front().cluster,
        1);
    EXPECT_LE(runRmsNorm(1, length, ElementType::BF16, Emulator::Order::Random,
                         message),
              0.51);
    EXPECT_EQ(message, "");
  }
}

/// One of two reductions waits for the other, and one block of each cluster
/// stores the statistics.
TEST_F(KernelTest, ClustersCarrySeveralReductions) {
  constexpr char spread[] = R"mlir(
    func.func @spread(%x: tensor<?x{0}x{1}>) -> tensor<?x1x{1}> {{
      %max = tile.reduce max %x : tensor<?x{0}x{1}> -> tensor<?x1x{1}>
      %wide = tile.broadcast %max like %x
          : tensor<?x1x{1}>, tensor<?x{0}x{1}> -> tensor<?x{0}x{1}>
      %below = arith.subf %wide, %x : tensor<?x{0}x{1}>
      %sum = tile.reduce add %below : tensor<?x{0}x{1}> -> tensor<?x1x{1}>
      return %sum : tensor<?x1x{1}>
    })mlir";
  for (const char *schedule :
       {"cluster=2", "cluster=4,threads=32,vector=4,persistent=1",
        "cluster=2,threads=32,vector=4,columns=256,persistent=1"})
    for (Emulator::Order order : kOrders) {
      lowerToNVVM(spread, 1000, "f32", schedule);
      if (HasFatalFailure())
        return;
      std::mt19937 random(3);
      Buffer x(ElementType::F32, 5, 1000), out(ElementType::F32, 5, 1);
      x.fill(random);
      EXPECT_EQ(run({x.view()}, {out.view()}, order), "") << schedule;
      for (int64_t row = 0; row < 5; ++row) {
        double max = x.get(row, 0), sum = 0;
        for (int64_t column = 0; column < 1000; ++column)
          max = std::max(max, x.get(row, column));
        for (int64_t column = 0; column < 1000; ++column)
          sum += max - x.get(row, column);
        EXPECT_NEAR(out.get(row, 0), sum, 1e-5 * sum) << schedule;
      }
    }
}

TEST_F(KernelTest, TakesAnyAlignmentAndStride) {
  lowerToNVVM(kGeglu, 128, "bf16", "");
  for (auto [gap, offset] :
       {std::pair<int64_t, int64_t>(0, 1), {5, 0}, {3, 3}, {8, 0}}) {
    std::string message;
    EXPECT_LE(runGeglu(3, 128, ElementType::BF16, Emulator::Order::Forward,
                       message, gap, offset),
              0.51);
    EXPECT_EQ(message, "");
  }
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

class MutationTest : public KernelTest {
protected:
  /// Erases every barrier for which `condition` holds.
  void eraseBarriers(llvm::function_ref<bool(unsigned)> condition) {
    llvm::SmallVector<mlir::Operation *> barriers;
    module->walk([&](mlir::Operation *op) {
      if (llvm::isa<mlir::NVVM::Barrier0Op, mlir::NVVM::BarrierOp>(op))
        barriers.push_back(op);
    });
    ASSERT_FALSE(barriers.empty());
    for (auto [index, barrier] : llvm::enumerate(barriers))
      if (condition(index))
        barrier->erase();
  }

  /// Erases the arrival at one of the clusters' barriers, and the wait for it.
  void eraseClusterBarrier(unsigned erased) {
    llvm::SmallVector<mlir::Operation *> arrivals, waits;
    module->walk([&](mlir::Operation *op) {
      if (llvm::isa<mlir::NVVM::ClusterArriveOp,
                    mlir::NVVM::ClusterArriveRelaxedOp>(op))
        arrivals.push_back(op);
      if (llvm::isa<mlir::NVVM::ClusterWaitOp>(op))
        waits.push_back(op);
    });
    ASSERT_LT(erased, arrivals.size());
    ASSERT_EQ(arrivals.size(), waits.size());
    arrivals[erased]->erase();
    waits[erased]->erase();
  }

  /// Whether any order shows an error or a wrong number.
  bool isFoundOut(int64_t rows, int64_t length) {
    for (Emulator::Order order : kOrders) {
      double worst = runRmsNorm(rows, length, ElementType::BF16, order, error);
      if (!error.empty() || !(worst <= 0.51))
        return true;
    }
    return false;
  }

  /// Whether the error that was noticed contains `part`.
  bool hasError(const char *part) const {
    return error.find(part) != std::string::npos;
  }

  std::string error;
};

TEST_F(MutationTest, UnchangedCodePasses) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", "threads=128");
  EXPECT_FALSE(isFoundOut(1, 2048));
}

TEST_F(MutationTest, RemovedBarrierIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", "threads=128");
  eraseBarriers([](unsigned) { return true; });
  EXPECT_TRUE(isFoundOut(1, 2048));
}

TEST_F(MutationTest, BarrierThatOnlyALoopNeedsIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", "threads=128,persistent=1");
  EXPECT_FALSE(isFoundOut(9, 2048));
  // The first barrier of the loop keeps the sums of one row from overwriting
  // those of another.
  eraseBarriers([](unsigned index) { return index == 0; });
  EXPECT_TRUE(isFoundOut(9, 2048));
}

constexpr char kRowsSideBySide[] =
    "rows=3,threads=384,columns=2048,vector=16,persistent=1";

TEST_F(MutationTest, UnchangedRowsSideBySidePass) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kRowsSideBySide);
  EXPECT_FALSE(isFoundOut(10, 2048));
}

/// The rows of a block must not meet at one barrier.
TEST_F(MutationTest, SharedRowBarrierIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kRowsSideBySide);
  bool isFound = false;
  module->walk([&](mlir::NVVM::BarrierOp barrier) {
    mlir::OpBuilder builder(barrier);
    if (!barrier.getBarrierId())
      return;
    isFound = true;
    barrier.getBarrierIdMutable().assign(mlir::LLVM::ConstantOp::create(
        builder, barrier.getLoc(), builder.getI32IntegerAttr(1)));
  });
  EXPECT_TRUE(isFound);
  EXPECT_TRUE(isFoundOut(10, 2048));
}

constexpr char kClusters[] = "cluster=2,threads=64,columns=2048";

TEST_F(MutationTest, UnchangedClustersPass) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClusters);
  EXPECT_FALSE(isFoundOut(2, 2048));
}

/// A block must not write to the memory of a block that has not started.
TEST_F(MutationTest, ClusterThatDoesNotMeetIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClusters);
  eraseClusterBarrier(0);
  EXPECT_TRUE(isFoundOut(2, 2048));
  EXPECT_TRUE(hasError("that block may not have started")) << error;
}

/// A block must not read messages before they have come.
TEST_F(MutationTest, NotWaitingForMessagesIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClusters);
  module->walk([](mlir::NVVM::MBarrierTryWaitOp wait) {
    mlir::OpBuilder builder(wait);
    wait.replaceAllUsesWith(
        mlir::LLVM::ConstantOp::create(builder, wait.getLoc(),
                                       builder.getBoolAttr(true))
            .getResult());
    wait.erase();
  });
  EXPECT_TRUE(isFoundOut(2, 2048));
  EXPECT_TRUE(hasError("data race")) << error;
}

/// A block must wait for all bytes of its messages.
TEST_F(MutationTest, WaitingForTooFewBytesIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClusters);
  module->walk([](mlir::NVVM::MBarrierArriveExpectTxOp arrive) {
    mlir::OpBuilder builder(arrive);
    arrive.getTxcountMutable().assign(mlir::LLVM::ConstantOp::create(
        builder, arrive.getLoc(), builder.getI32IntegerAttr(4)));
  });
  EXPECT_TRUE(isFoundOut(2, 2048));
}

constexpr char kClustersInALoop[] =
    "cluster=2,threads=64,columns=2048,persistent=1";

TEST_F(MutationTest, UnchangedClustersInALoopPass) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClustersInALoop);
  EXPECT_FALSE(isFoundOut(9, 2048));
}

/// In a loop, a phase differs from the one before by its parity.
TEST_F(MutationTest, WrongParityInALoopIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClustersInALoop);
  module->walk([](mlir::NVVM::MBarrierTryWaitOp wait) {
    mlir::OpBuilder builder(wait);
    wait.getStateOrPhaseMutable().assign(mlir::LLVM::ConstantOp::create(
        builder, wait.getLoc(), builder.getI32IntegerAttr(0)));
  });
  EXPECT_TRUE(isFoundOut(9, 2048));
}

/// In a loop, the sums of one row must not overwrite those of the row before.
TEST_F(MutationTest, SinglePlaceInALoopIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClustersInALoop);
  bool isFound = false;
  module->walk([&](mlir::LLVM::AndOp op) {
    auto load = op.getLhs().getDefiningOp<mlir::LLVM::LoadOp>();
    if (!load || !load.getAddr().getDefiningOp<mlir::LLVM::AllocaOp>())
      return;
    mlir::OpBuilder builder(op);
    op.getResult().replaceAllUsesWith(mlir::LLVM::ConstantOp::create(
        builder, op.getLoc(), builder.getI32IntegerAttr(0)));
    isFound = true;
  });
  EXPECT_TRUE(isFound);
  EXPECT_TRUE(isFoundOut(9, 2048));
}

TEST_F(MutationTest, WrongBlockOfTheClusterIsFoundOut) {
  lowerToNVVM(kRmsNorm, 2048, "bf16", kClusters);
  module->walk([](mlir::NVVM::MapaOp map) {
    mlir::OpBuilder builder(map);
    mlir::Value zero = mlir::LLVM::ConstantOp::create(
        builder, map.getLoc(), builder.getI32IntegerAttr(0));
    map.getBMutable().assign(zero);
  });
  EXPECT_TRUE(isFoundOut(2, 2048));
  EXPECT_TRUE(hasError("data race")) << error;
}

TEST_F(MutationTest, WrongShuffleMaskIsFoundOut) {
  lowerToNVVM(kRmsNorm, 256, "bf16", "threads=32");
  EXPECT_FALSE(isFoundOut(1, 256));
  module->walk([](mlir::NVVM::ShflOp shuffle) {
    mlir::OpBuilder builder(shuffle);
    mlir::Value mask = mlir::LLVM::ConstantOp::create(
        builder, shuffle.getLoc(), builder.getI32IntegerAttr(0x0000ffff));
    shuffle.getThreadMaskMutable().assign(mask);
  });
  EXPECT_TRUE(isFoundOut(1, 256));
}

TEST_F(MutationTest, WrongShuffleDistanceIsFoundOut) {
  lowerToNVVM(kRmsNorm, 256, "bf16", "threads=32");
  module->walk([](mlir::NVVM::ShflOp shuffle) {
    mlir::OpBuilder builder(shuffle);
    mlir::Value one = mlir::LLVM::ConstantOp::create(
        builder, shuffle.getLoc(), builder.getI32IntegerAttr(1));
    shuffle.getOffsetMutable().assign(one);
    return mlir::WalkResult::interrupt();
  });
  EXPECT_TRUE(isFoundOut(1, 256));
}

} // namespace
