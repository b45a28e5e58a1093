//===- LayoutTest.cpp - The elements that each thread holds ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/schedule/ThreadGrid.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bastile;

namespace {

class LayoutTest : public testing::Test {
protected:
  LayoutTest() { context.loadDialect<tile::TileDialect>(); }

  /// The layout, if it fits `shape`.
  tile::BlockedAttr getLayout(ArrayRef<int64_t> shape, int64_t vector,
                              int64_t threadRows, int64_t threadColumns,
                              int64_t blocks = 1, int64_t group = 1,
                              int64_t columns = 0) {
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) {});
    auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
    auto layout =
        tile::BlockedAttr::getChecked(emitError, &context, vector, threadRows,
                                      threadColumns, blocks, group, columns);
    if (!layout)
      return {};
    if (failed(layout.verifyEncoding(shape, Float32Type::get(&context),
                                     emitError)))
      return {};
    return layout;
  }

  FailureOr<ThreadGrid> getGrid(int64_t rows, int64_t threads, int64_t vector,
                                int64_t columns, int64_t cluster = 0) {
    return ThreadGrid::get(tile::RowsAttr::get(
        &context, rows, threads, vector, columns, /*persistent=*/0, cluster,
        /*stages=*/0, tile::Reread::Unset));
  }

  MLIRContext context;
};

/// For each element of the tile, how many (block, thread, piece, lane) hold it;
/// empty if one of these lies outside.
std::vector<int64_t> countHolders(tile::BlockedAttr layout,
                                  ArrayRef<int64_t> shape) {
  std::vector<int64_t> holders(shape[0] * shape[1]);
  int64_t threads = layout.getThreadRows() * layout.getThreadColumns();
  // A tile of one column has no vectors along it.
  int64_t lanes = shape[1] == 1 ? 1 : layout.getVector();
  for (int64_t index = 0; index < layout.getBlocks() * threads; ++index)
    for (int64_t piece = 0; piece < layout.getNumPieces(shape); ++piece) {
      auto [row, column] =
          layout.getElement(shape, index / threads, index % threads, piece);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        if (row < 0 || row >= shape[0] || column < 0 ||
            column + lane >= shape[1])
          return {};
        ++holders[row * shape[1] + column + lane];
      }
    }
  return holders;
}

TEST_F(LayoutTest, EveryElementHasOneHolder) {
  int64_t layouts = 0;
  for (int64_t vector : {1, 2, 4, 8, 16})
    for (int64_t threadRows : {1, 2, 3, 8, 64})
      for (int64_t threadColumns : {1, 2, 16, 24, 32, 96, 128})
        for (int64_t rowRepeats : {1, 2, 5})
          for (int64_t columnRepeats : {1, 2, 3}) {
            int64_t shape[] = {threadRows * rowRepeats,
                               threadColumns * vector * columnRepeats};
            // Threads hold copies of a single row or column: see below.
            if ((shape[0] == 1 && threadRows > 1) ||
                (shape[1] == 1 && threadColumns > 1))
              continue;
            tile::BlockedAttr layout =
                getLayout(shape, vector, threadRows, threadColumns);
            ASSERT_TRUE(layout);
            EXPECT_EQ(layout.getNumPieces(shape), rowRepeats * columnRepeats);
            std::vector<int64_t> holders = countHolders(layout, shape);
            ASSERT_FALSE(holders.empty());
            EXPECT_EQ(llvm::count(holders, 1),
                      static_cast<int64_t>(holders.size()))
                << shape[0] << "x" << shape[1] << " by vectors of " << vector
                << " for " << threadRows << "x" << threadColumns;
            ++layouts;
          }
  EXPECT_EQ(layouts, 5 * 5 * 7 * 3 * 3);
}

TEST_F(LayoutTest, EveryThreadRowHoldsTheSingleRow) {
  int64_t shape[] = {1, 64};
  tile::BlockedAttr layout =
      getLayout(shape, /*vector=*/2, /*threadRows=*/4, /*threadColumns=*/16);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout.getNumPieces(shape), 2);
  EXPECT_EQ(countHolders(layout, shape), std::vector<int64_t>(64, 4));
}

TEST_F(LayoutTest, EveryThreadColumnHoldsTheSingleColumn) {
  int64_t shape[] = {8, 1};
  tile::BlockedAttr layout =
      getLayout(shape, /*vector=*/2, /*threadRows=*/4, /*threadColumns=*/16);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout.getNumPieces(shape), 2);
  EXPECT_EQ(countHolders(layout, shape), std::vector<int64_t>(8, 16));
}

TEST_F(LayoutTest, EveryThreadHoldsTheSingleElement) {
  int64_t shape[] = {1, 1};
  tile::BlockedAttr layout =
      getLayout(shape, /*vector=*/8, /*threadRows=*/4, /*threadColumns=*/32);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout.getNumPieces(shape), 1);
  EXPECT_EQ(countHolders(layout, shape), std::vector<int64_t>(1, 128));
}

/// A statistic lies with the threads that hold its row, so that repeating it
/// along the row moves nothing.
TEST_F(LayoutTest, StatisticsLieWithTheirRows) {
  int64_t tile[] = {24, 64}, statistic[] = {24, 1};
  tile::BlockedAttr layout =
      getLayout(tile, /*vector=*/4, /*threadRows=*/8, /*threadColumns=*/16);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout.getNumPieces(tile), layout.getNumPieces(statistic));
  for (int64_t thread = 0; thread < 128; ++thread)
    for (int64_t piece = 0; piece < 3; ++piece)
      EXPECT_EQ(layout.getElement(tile, /*block=*/0, thread, piece).first,
                layout.getElement(statistic, /*block=*/0, thread, piece).first);
}

/// A group statistic also lies with the threads that hold its group.
TEST_F(LayoutTest, GroupStatisticsLieWithTheirGroups) {
  for (auto [vector, threadColumns, blocks, group] :
       {std::array<int64_t, 4>{2, 16, 1, 8},
        {2, 4, 1, 16},
        {4, 32, 2, 128},
        {8, 1, 1, 32},
        {4, 8, 2, 4},
        {2, 6, 1, 4},
        {2, 6, 1, 32}}) {
    int64_t columns = 8 * vector * threadColumns * blocks;
    int64_t tile[] = {8, columns}, groups[] = {8, columns / group};
    tile::BlockedAttr layout =
        getLayout(tile, vector, /*threadRows=*/4, threadColumns, blocks);
    tile::BlockedAttr statistic = getLayout(groups, vector, /*threadRows=*/4,
                                            threadColumns, blocks, group);
    ASSERT_TRUE(layout && statistic);
    ASSERT_EQ(layout.getNumPieces(tile), statistic.getNumPieces(groups));
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t thread = 0; thread < 4 * threadColumns; ++thread)
        for (int64_t piece = 0; piece < layout.getNumPieces(tile); ++piece) {
          auto [row, column] = layout.getElement(tile, block, thread, piece);
          EXPECT_EQ(statistic.getElement(groups, block, thread, piece),
                    std::make_pair(row, column / group));
        }
  }
}

TEST_F(LayoutTest, GroupsMustDivideIntoPieces) {
  int64_t shape[] = {1, 4};
  EXPECT_TRUE(getLayout(shape, 2, 1, 4, 1, /*group=*/4));
  EXPECT_FALSE(getLayout(shape, 4, 1, 4, 1, /*group=*/6));
  EXPECT_FALSE(getLayout(shape, 2, 1, 6, 1, /*group=*/8));
}

TEST_F(LayoutTest, GroupsAreAlignedWhereThreadsHoldThemAlike) {
  int64_t shape[] = {1, 4};
  EXPECT_TRUE(getLayout(shape, 2, 1, 4, 1, /*group=*/4).isGroupAligned());
  EXPECT_TRUE(getLayout(shape, 2, 1, 6, 1, /*group=*/6).isGroupAligned());
  EXPECT_FALSE(getLayout(shape, 2, 1, 4, 1, /*group=*/12).isGroupAligned());
}

/// The last group is cut where groups do not divide the columns.
TEST_F(LayoutTest, TheLastGroupMayBeCut) {
  int64_t tile[] = {1, 64}, groups[] = {1, 6};
  tile::BlockedAttr layout = getLayout(tile, 2, 1, 16);
  tile::BlockedAttr statistic =
      getLayout(groups, 2, 1, 16, 1, /*group=*/12, /*columns=*/64);
  ASSERT_TRUE(layout && statistic);
  ASSERT_EQ(layout.getNumPieces(tile), statistic.getNumPieces(groups));
  for (int64_t thread = 0; thread < 16; ++thread)
    for (int64_t piece = 0; piece < layout.getNumPieces(tile); ++piece)
      EXPECT_EQ(statistic.getElement(groups, 0, thread, piece).second,
                layout.getElement(tile, 0, thread, piece).second / 12);
  int64_t others[] = {1, 5};
  EXPECT_FALSE(getLayout(others, 2, 1, 16, 1, /*group=*/12, /*columns=*/64));
  EXPECT_FALSE(getLayout(groups, 2, 1, 16, 1, /*group=*/64, /*columns=*/64));
}

/// The example in the attribute's description.
TEST_F(LayoutTest, PiecesOfNeighboursAreNeighbours) {
  int64_t shape[] = {1, 16};
  tile::BlockedAttr layout =
      getLayout(shape, /*vector=*/2, /*threadRows=*/1, /*threadColumns=*/4);
  ASSERT_TRUE(layout);
  for (int64_t piece = 0; piece < 2; ++piece)
    for (int64_t thread = 0; thread < 4; ++thread)
      EXPECT_EQ(layout.getElement(shape, /*block=*/0, thread, piece),
                std::make_pair(int64_t(0), piece * 8 + thread * 2));
}

/// The second example: deals go to one block after the other.
TEST_F(LayoutTest, BlocksTakeTurns) {
  int64_t shape[] = {1, 16};
  tile::BlockedAttr layout =
      getLayout(shape, /*vector=*/2, /*threadRows=*/1, /*threadColumns=*/2,
                /*blocks=*/2);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout.getColumnsPerDeal(), 8);
  EXPECT_EQ(layout.getNumPieces(shape), 2);
  for (int64_t block = 0; block < 2; ++block)
    for (int64_t piece = 0; piece < 2; ++piece)
      for (int64_t thread = 0; thread < 2; ++thread)
        EXPECT_EQ(
            layout.getElement(shape, block, thread, piece),
            std::make_pair(int64_t(0), piece * 8 + block * 4 + thread * 2));
}

TEST_F(LayoutTest, EveryElementHasOneHolderInACluster) {
  for (int64_t blocks : {2, 3, 8, 16})
    for (int64_t columnRepeats : {1, 3}) {
      int64_t shape[] = {4, 4 * 32 * columnRepeats * blocks};
      tile::BlockedAttr layout = getLayout(shape, /*vector=*/4,
                                           /*threadRows=*/2,
                                           /*threadColumns=*/32, blocks);
      ASSERT_TRUE(layout);
      EXPECT_EQ(layout.getNumPieces(shape), 2 * columnRepeats);
      EXPECT_EQ(countHolders(layout, shape),
                std::vector<int64_t>(shape[0] * shape[1], 1));
    }
}

TEST_F(LayoutTest, EveryBlockHoldsTheSingleColumn) {
  int64_t shape[] = {4, 1};
  tile::BlockedAttr layout = getLayout(shape, /*vector=*/2, /*threadRows=*/4,
                                       /*threadColumns=*/32, /*blocks=*/2);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout.getNumPieces(shape), 1);
  EXPECT_EQ(countHolders(layout, shape), std::vector<int64_t>(4, 64));
}

TEST_F(LayoutTest, TilesThatDoNotDivideHaveNoLayout) {
  EXPECT_FALSE(getLayout({3, 16}, 2, 2, 4));
  EXPECT_FALSE(getLayout({2, 12}, 2, 2, 4));
  EXPECT_FALSE(getLayout({2, 4}, 2, 2, 4));
  EXPECT_FALSE(getLayout({16}, 2, 2, 4));
  EXPECT_FALSE(getLayout({ShapedType::kDynamic, 16}, 2, 2, 4));
  EXPECT_TRUE(getLayout({2, 24}, 2, 2, 4, /*blocks=*/3));
  EXPECT_FALSE(getLayout({2, 24}, 2, 2, 4, /*blocks=*/2));
}

/// A grid exists where every thread gets equally many whole vectors of as many
/// rows, each row held by whole warps or by a power of two of one warp.
TEST_F(LayoutTest, GridsExistForWhatDividesEvenly) {
  int64_t grids = 0;
  for (int64_t vector : {1, 4, 8})
    for (int64_t threads : {1, 32, 64, 96, 128, 192, 1024})
      for (int64_t rows : {1, 2, 3, 4, 8, 64})
        for (int64_t pieces : {1, 2, 3, 24, 31, 32, 33, 48, 64, 96, 128, 360,
                               384, 1000, 1024, 2048}) {
          FailureOr<ThreadGrid> grid =
              getGrid(rows, threads, vector, pieces * vector);
          // All threads share a row, unless it has fewer vectors.
          int64_t columns = std::min(threads, pieces);
          bool divides = pieces % columns == 0 && threads % columns == 0 &&
                         rows % (threads / columns) == 0;
          bool shuffles = threads == 1 || columns % 32 == 0 ||
                          llvm::is_contained({1, 2, 4, 8, 16}, columns);
          ASSERT_EQ(succeeded(grid), divides && shuffles)
              << rows << " rows of " << pieces << " vectors for " << threads;
          if (failed(grid))
            continue;
          EXPECT_EQ(grid->rows * grid->columns, threads);
          EXPECT_EQ(grid->columns, columns);
          EXPECT_TRUE(getLayout({rows, pieces * vector}, vector, grid->rows,
                                grid->columns));
          ++grids;
        }
  EXPECT_GT(grids, 100);
}

TEST_F(LayoutTest, TilesNarrowerThanAVectorHaveNoGrid) {
  EXPECT_TRUE(failed(getGrid(/*rows=*/1, /*threads=*/32, /*vector=*/8,
                             /*columns=*/4)));
}

TEST_F(LayoutTest, BlocksOfAClusterTakeEqualPartsOfWholeWarps) {
  FailureOr<ThreadGrid> grid = getGrid(2, 128, 4, 2048, /*cluster=*/4);
  ASSERT_TRUE(succeeded(grid));
  EXPECT_EQ(grid->rows, 1);
  EXPECT_EQ(grid->columns, 128);
  EXPECT_EQ(grid->blocks, 4);
  // Of 128 threads, 64 share a row: two rows at once.
  grid = getGrid(2, 128, 4, 512, /*cluster=*/2);
  ASSERT_TRUE(succeeded(grid));
  EXPECT_EQ(grid->rows, 2);
  EXPECT_EQ(grid->columns, 64);
  // A third of the vectors, and half of a warp, do not divide evenly.
  EXPECT_TRUE(failed(getGrid(1, 128, 4, 2048, /*cluster=*/3)));
  EXPECT_TRUE(failed(getGrid(8, 128, 4, 128, /*cluster=*/2)));
}

TEST_F(LayoutTest, BlocksOfARowMeetInSharedMemory) {
  FailureOr<ThreadGrid> grid = getGrid(4, 64, 4, 512, /*cluster=*/2);
  ASSERT_TRUE(succeeded(grid));
  EXPECT_EQ(grid->getWarpsPerRow(), 2);
  // There is a slot for each of the warps and of the blocks.
  EXPECT_EQ(grid->getScratchBytes(4), 4 * (2 + 2) * 4);
  grid = getGrid(1, 32, 4, 256, /*cluster=*/2);
  ASSERT_TRUE(succeeded(grid));
  EXPECT_EQ(grid->getWarpsPerRow(), 1);
  EXPECT_EQ(grid->getScratchBytes(1), 2 * 4);
}

TEST_F(LayoutTest, WarpsOfARowMeetInSharedMemory) {
  FailureOr<ThreadGrid> warp = getGrid(4, 128, 4, 128);
  ASSERT_TRUE(succeeded(warp));
  EXPECT_EQ(warp->getWarpsPerRow(), 1);
  EXPECT_EQ(warp->getScratchBytes(4), 0);
  FailureOr<ThreadGrid> warps = getGrid(4, 128, 4, 256);
  ASSERT_TRUE(succeeded(warps));
  EXPECT_EQ(warps->getWarpsPerRow(), 2);
  EXPECT_EQ(warps->getScratchBytes(4), 4 * 2 * 4);
}

/// For each element of a tile of products, how many threads of `warps` warps
/// hold it; empty if one of them lies outside or the layout does not fit.
std::vector<int64_t> countHolders(MLIRContext &context, int64_t warps,
                                  ArrayRef<int64_t> shape) {
  auto layout = tile::MmaAttr::get(&context, warps);
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) {});
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
  if (failed(
          layout.verifyEncoding(shape, Float32Type::get(&context), emitError)))
    return {};
  std::vector<int64_t> holders(shape[0] * shape[1]);
  for (int64_t thread = 0; thread < 32 * warps; ++thread)
    for (int64_t piece = 0; piece < layout.getNumPieces(shape); ++piece) {
      auto [row, column] = layout.getElement(shape, /*block=*/0, thread, piece);
      for (int64_t lane = 0; lane < layout.getPieceElements(shape); ++lane) {
        if (row < 0 || row >= shape[0] || column < 0 ||
            column + lane >= shape[1])
          return {};
        ++holders[row * shape[1] + column + lane];
      }
    }
  return holders;
}

TEST_F(LayoutTest, EveryElementOfAProductHasOneHolder) {
  for (int64_t warps : {1, 4, 8, 12})
    for (int64_t rowRepeats : {1, 2, 3})
      for (int64_t columns : {8, 16, 40, 256})
        EXPECT_EQ(
            countHolders(context, warps, {16 * warps * rowRepeats, columns}),
            std::vector<int64_t>(16 * warps * rowRepeats * columns, 1))
            << warps << " warps, " << rowRepeats << " times, " << columns;
}

/// A row lies with four lanes, a column with the lanes of eight rows of a warp.
TEST_F(LayoutTest, EveryThreadAlongASingleRowOrColumnOfAProductHoldsIt) {
  for (int64_t warps : {1, 4, 8}) {
    EXPECT_EQ(countHolders(context, warps, {32 * warps, 1}),
              std::vector<int64_t>(32 * warps, 4));
    EXPECT_EQ(countHolders(context, warps, {1, 24}),
              std::vector<int64_t>(24, 8 * warps));
    EXPECT_EQ(countHolders(context, warps, {1, 1}),
              std::vector<int64_t>(1, 32 * warps));
  }
}

/// The example in the attribute's description, whose warps stand below each
/// other.
TEST_F(LayoutTest, PiecesOfAProductAreRowsEightApart) {
  auto layout = tile::MmaAttr::get(&context, /*warps=*/2);
  int64_t shape[] = {64, 16};
  EXPECT_EQ(layout.getNumPieces(shape), 2 * 2 * 2);
  for (int64_t thread = 0; thread < 64; ++thread)
    for (int64_t repeat = 0; repeat < 2; ++repeat)
      for (int64_t chunk = 0; chunk < 2; ++chunk)
        for (int64_t half = 0; half < 2; ++half)
          EXPECT_EQ(
              layout.getElement(shape, /*block=*/0, thread,
                                layout.getPiece(shape, repeat, chunk, half)),
              std::make_pair(32 * repeat + thread / 32 * 16 + half * 8 +
                                 thread % 32 / 4,
                             chunk * 8 + thread % 4 * 2));
}

/// Operands of 8 bits: four neighbours are a piece, so that the bytes of each
/// lie where those of two elements of 16 bits do.
TEST_F(LayoutTest, PiecesOfBytesHaveFourElements) {
  auto left = tile::MmaAttr::get(&context, /*warps=*/1, /*vector=*/4);
  int64_t shape[] = {16, 64};
  ASSERT_EQ(left.getNumPieces(shape), 4 * 2);
  EXPECT_EQ(left.getPieceElements(shape), 4);
  for (int64_t thread = 0; thread < 32; ++thread)
    for (int64_t piece = 0; piece < 8; ++piece)
      EXPECT_EQ(left.getElement(shape, /*block=*/0, thread, piece),
                std::make_pair(thread / 4 + piece % 2 * 8,
                               piece / 2 * 16 + thread % 4 * 4));
  auto right = tile::MmaRhsAttr::get(&context, /*vector=*/4);
  ASSERT_EQ(right.getNumPieces(shape), 2 * 2 * 2);
  EXPECT_EQ(right.getPieceElements(shape), 4);
  for (int64_t thread = 0; thread < 32; ++thread)
    for (int64_t piece = 0; piece < 8; ++piece)
      EXPECT_EQ(right.getElement(shape, /*block=*/0, thread, piece),
                std::make_pair(piece / 4 * 8 + thread / 4,
                               piece % 4 * 16 + thread % 4 * 4));
}

TEST_F(LayoutTest, TilesThatDoNotDivideAreNoProducts) {
  EXPECT_TRUE(countHolders(context, 4, {96, 8}).empty());
  EXPECT_TRUE(countHolders(context, 4, {64, 12}).empty());
  EXPECT_TRUE(countHolders(context, 4, {64}).empty());
}

} // namespace
