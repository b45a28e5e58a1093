// RUN: tile-opt %s --tile --canonicalize --cse | FileCheck %s

// A program combines the rows that one is left of, which follow each other where
// the sizes of what is left come first. What follows is computed on that one.
// CHECK-LABEL: tile.program @kept(
// CHECK-SAME:      %[[LEFT:[^:]*]]: index, %[[FIRST:[^:]*]]: index, %[[SECOND:[^:]*]]: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: index, %[[X:[^:]*]]: memref<?x?x?x256xf32
// CHECK-SAME:      %[[T:[^:]*]]: memref<?x?x?x256xf32{{[^>]*>>}} {{{[^}]*}}tile.space = 1 : i64}
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x?x?x256xf32{{[^>]*>>}} {{{[^}]*}}tile.space = 1 : i64}
// CHECK-SAME:      column_blocks = 8 : i64, combines = array<i64: 0, 2>, leading = 3 : i64, {{.*}}spaces = 2 : i64
// CHECK-DAG:     %[[ID:.*]] = arith.divui %{{.*}}, %{{.*}} : index
// CHECK-DAG:     %[[COUNT:.*]] = arith.muli %[[FIRST]], %[[SECOND]]
// CHECK:         %[[BEGIN:.*]] = arith.muli %[[ID]], %[[COUNT]]
// CHECK-NEXT:    %[[END:.*]] = arith.addi %[[BEGIN]], %[[COUNT]]
// CHECK:         %[[SUMS:.*]] = scf.for
// CHECK:           %[[ROW:.*]] = arith.addi %[[BEGIN]], %{{.*}}
// CHECK:           %[[ROWS:.*]] = tile.load %[[X]][%[[ROW]], %{{.*}}] {{.*}} -> tensor<8x32xf32>
// CHECK:           tile.mask_rows %[[ROWS]] from %[[ROW]] limit %[[END]]
// CHECK:         %[[SUM:.*]] = tile.reduce_rows add %[[SUMS]] : tensor<8x32xf32> -> tensor<1x32xf32>
// CHECK:         %[[FACTOR:.*]] = tile.load %[[T]][%[[ID]], %{{.*}}] {{.*}}space = 1{{.*}} -> tensor<1x32xf32>
// CHECK-NEXT:    %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[FACTOR]]
// CHECK-NEXT:    tile.store %[[SCALED]], %[[Y]][%[[ID]], %{{.*}}] {{.*}}space = 1
tile.kernel @kept(%x: tensor<?x?x?x256xf32>, %t: tensor<1x?x1x256xf32>)
    -> tensor<1x?x1x256xf32>
    attributes {schedule = #tile.rows<rows = 8, threads = 32, vector = 1, columns = 32, persistent = 1>} {
  %0 = tile.reduce_rows add %x : tensor<?x?x?x256xf32> -> tensor<1x?x1x256xf32>
  %1 = arith.mulf %0, %t : tensor<1x?x1x256xf32>
  tile.return %1 : tensor<1x?x1x256xf32>
}
func.func @f(%x: tensor<?x?x?x256xf32>, %t: tensor<1x?x1x256xf32>)
    -> tensor<1x?x1x256xf32> {
  %0 = tile.launch [@kept](%x, %t)
      : (tensor<?x?x?x256xf32>, tensor<1x?x1x256xf32>) -> tensor<1x?x1x256xf32>
  return %0 : tensor<1x?x1x256xf32>
}
