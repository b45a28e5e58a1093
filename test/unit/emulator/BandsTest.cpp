//===- BandsTest.cpp - Bands of rows, compiled for the GPU ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Compiles whole functions and runs them on the emulator, which finds races
// between threads that write and threads that read the combined rows of a band.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "llvm/Support/MathExtras.h"

using namespace bastile;
using namespace bastile::test;

namespace {

/// Numbers of rows, contiguous and aligned.
struct Rows {
  Rows(int64_t rows, int64_t columns)
      : sizes{rows, columns}, memory(rows * columns + 4, -1) {
    while (reinterpret_cast<uintptr_t>(base()) % 16 != 0)
      ++first;
  }
  float *base() { return memory.data() + first; }
  float &at(int64_t row, int64_t column) {
    return base()[row * sizes[1] + column];
  }
  runtime::TensorView view() {
    return runtime::TensorView::contiguous(base(), runtime::ElementType::F32,
                                           sizes);
  }
  void registerWith(Emulator &emulator, const char *name, bool isWritable) {
    emulator.registerBuffer(base(), sizes[0] * sizes[1] * sizeof(float), name,
                            isWritable);
  }

  runtime::Dimensions sizes;
  std::vector<float> memory;
  int64_t first = 0;
};

/// For blocks of rows and columns: the sums, and each element less its block's
/// sum plus its block's number from memory.
constexpr char kBlocks[] = R"mlir(
func.func @f(%x: tensor<?x{0}xf32>, %s: tensor<?x{1}xf32>)
    -> (tensor<?x{0}xf32>, tensor<?x{1}xf32>) {{
  %0 = tile.reduce add %x : tensor<?x{0}xf32> -> tensor<?x{1}xf32>
  %1 = tile.reduce_bands add %0 of {2} : tensor<?x{1}xf32>
  %2 = tile.repeat_bands %s of {2} like %x
      : tensor<?x{1}xf32>, tensor<?x{0}xf32> -> tensor<?x{1}xf32>
  %3 = arith.subf %2, %1 : tensor<?x{1}xf32>
  %4 = tile.broadcast %3 like %x
      : tensor<?x{1}xf32>, tensor<?x{0}xf32> -> tensor<?x{0}xf32>
  %5 = arith.addf %x, %4 : tensor<?x{0}xf32>
  %6 = tile.pack_bands %1 of {2} : tensor<?x{1}xf32> -> tensor<?x{1}xf32>
  return %5, %6 : tensor<?x{0}xf32>, tensor<?x{1}xf32>
})mlir";

class BandsTest : public CompiledTest {
protected:
  /// Compiles kBlocks for rows of `length` in blocks of `band` times `group`.
  void compileBlocks(int64_t length, int64_t group, int64_t band,
                     const char *schedule) {
    compile(llvm::formatv(kBlocks, length, length / group, band).str(),
            schedule);
    if (!HasFatalFailure())
      emulator = createEmulator();
  }

  /// Calls the function; returns the message of the error, or nothing.
  std::string call(Rows &x, Rows &s, Rows &y, Rows &z) {
    x.registerWith(*emulator, "x", /*isWritable=*/false);
    s.registerWith(*emulator, "s", /*isWritable=*/false);
    y.registerWith(*emulator, "y", /*isWritable=*/true);
    z.registerWith(*emulator, "z", /*isWritable=*/true);
    return launch(*emulator, metadata.functions.front(), {x.view(), s.view()},
                  {y.view(), z.view()});
  }

  std::unique_ptr<Emulator> emulator;
};

TEST_F(BandsTest, BlocksAreCombinedByTheirThreads) {
  struct Case {
    int64_t rows, length, group, band;
    const char *schedule;
  };
  for (auto [rows, length, group, band, schedule] : {
           Case{300, 256, 128, 128, ""},
           Case{128, 384, 128, 128, "threads=64"},
           Case{130, 256, 128, 128, "columns=256,vector=4,threads=128"},
           Case{40, 256, 32, 16, "columns=128,vector=1,threads=128"},
           Case{40, 96, 8, 6, "rows=6,threads=32,vector=4,columns=128"},
           Case{70, 64, 32, 32, "rows=8,threads=64,vector=4,columns=64"},
           Case{70, 64, 32, 32, "persistent=1"},
       }) {
    SCOPED_TRACE(schedule);
    compileBlocks(length, group, band, schedule);
    if (!emulator)
      return;
    int64_t groups = length / group, bands = llvm::divideCeil(rows, band);
    Rows x(rows, length), s(bands, groups), y(rows, length), z(bands, groups);
    for (int64_t i = 0; i < rows * length; ++i)
      x.base()[i] = static_cast<float>((i * 7919) % 101) - 50;
    for (int64_t i = 0; i < bands * groups; ++i)
      s.base()[i] = static_cast<float>(i);
    ASSERT_EQ(call(x, s, y, z), "");
    std::vector<float> sums(bands * groups);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < length; ++column)
        sums[row / band * groups + column / group] += x.at(row, column);
    for (int64_t i = 0; i < bands * groups; ++i)
      ASSERT_EQ(z.base()[i], sums[i]) << "block " << i;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < length; ++column) {
        int64_t block = row / band * groups + column / group;
        ASSERT_EQ(y.at(row, column),
                  x.at(row, column) + (static_cast<float>(block) - sums[block]))
            << "row " << row << ", column " << column;
      }
  }
}

TEST_F(BandsTest, PackedRowsAreCounted) {
  compileBlocks(/*length=*/256, /*group=*/128, /*band=*/128, "");
  if (!emulator)
    return;
  Rows x(300, 256), s(2, 2), y(300, 256), z(3, 2);
  EXPECT_EQ(call(x, s, y, z),
            "function 'f': kernel 'f_kernel': input 's' has shape [2, 2], "
            "expected 3 rows, one for each 128 of 300");
}

} // namespace
