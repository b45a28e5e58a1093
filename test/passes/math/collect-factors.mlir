// RUN: tile-opt %s --expand-math --cse | FileCheck %s

// Elements are multiplied by a constant once: an outer one becomes part of one
// within, also behind a quotient or a sum's statistic.

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// CHECK-LABEL: tile.program @two_constants(
// CHECK-DAG:     %[[SIX:.*]] = arith.constant dense<6.000000e+00>
// CHECK:         %[[INNER:.*]] = arith.mulf %{{.*}}, %[[SIX]]
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[INNER]], %
// CHECK-NEXT:    llvm.store %[[PRODUCT]]
tile.program @two_constants(%p: !llvm.ptr<1>, %x: vector<4xf32>, %y: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %two = arith.constant dense<2.0> : vector<4xf32>
  %three = arith.constant dense<3.0> : vector<4xf32>
  %0 = arith.mulf %x, %two : vector<4xf32>
  %1 = arith.mulf %0, %y : vector<4xf32>
  %2 = arith.mulf %1, %three : vector<4xf32>
  llvm.store %2, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// A constant that others read as it is stays.
// CHECK-LABEL: tile.program @shared(
// CHECK-COUNT-2: arith.mulf %{{.*}}, %{{.*}} : vector<4xf32>
tile.program @shared(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %two = arith.constant dense<2.0> : vector<4xf32>
  %three = arith.constant dense<3.0> : vector<4xf32>
  %0 = arith.mulf %x, %two : vector<4xf32>
  %1 = arith.mulf %0, %three : vector<4xf32>
  llvm.store %0, %q : vector<4xf32>, !llvm.ptr<1>
  llvm.store %1, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}
