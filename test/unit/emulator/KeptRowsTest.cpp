//===- KeptRowsTest.cpp - Rows combined to fewer of them ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include <cmath>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;
using runtime::TensorView;

namespace {

constexpr char kSource[] = R"mlir(
  func.func @f(%x: tensor<?x?x?x40xf32>, %t: tensor<1x?x1x40xf32>)
      -> tensor<1x?x1x40xf32> {
    %0 = tile.reduce_rows add %x
        : tensor<?x?x?x40xf32> -> tensor<1x?x1x40xf32>
    %1 = arith.mulf %0, %t : tensor<1x?x1x40xf32>
    return %1 : tensor<1x?x1x40xf32>
  })mlir";

class KeptRowsTest : public CompiledTest {};

/// Sums over batches and heads, over no rows, and over more rows than a tile
/// has.
TEST_F(KeptRowsTest, AgreeWithTheFormula) {
  constexpr int64_t length = 40;
  for (const char *schedule :
       {"", "f_kernel:rows=1,threads=32,columns=64",
        "f_kernel:rows=4,threads=32,columns=8,vector=1,stages=2",
        "f_kernel:rows=8,threads=64,columns=32,vector=4,stages=3"}) {
    SCOPED_TRACE(schedule);
    ASSERT_NO_FATAL_FAILURE(compile(kSource, schedule, {}));
    for (auto [batch, sequence, heads] :
         {std::array<int64_t, 3>{2, 3, 5}, {1, 1, 1}, {3, 2, 0}, {0, 2, 3}}) {
      std::mt19937 random(3);
      Buffer x(ElementType::F32, batch * sequence * heads, length),
          t(ElementType::F32, sequence, length),
          y(ElementType::F32, sequence, length);
      x.fill(random);
      t.fill(random);
      auto shape = [](Buffer &buffer, const runtime::Dimensions &sizes) {
        return TensorView::contiguous(buffer.view().data, ElementType::F32,
                                      sizes);
      };
      for (Emulator::Order order : kOrders) {
        ASSERT_EQ(run({shape(x, {batch, sequence, heads, length}),
                       shape(t, {1, sequence, 1, length})},
                      {shape(y, {1, sequence, 1, length})}, order),
                  "");
        for (int64_t position = 0; position < sequence; ++position)
          for (int64_t column = 0; column < length; ++column) {
            double sum = 0;
            for (int64_t image = 0; image < batch; ++image)
              for (int64_t head = 0; head < heads; ++head)
                sum +=
                    x.get((image * sequence + position) * heads + head, column);
            double expected = sum * t.get(position, column);
            ASSERT_LE(std::abs(y.get(position, column) - expected), 1e-4);
          }
      }
    }
  }
}

} // namespace
