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

// A function's own constant is one, too: -0.5 and half of log2(e).
// CHECK-LABEL: tile.program @within_function(
// CHECK-DAG:     %[[BOTH:.*]] = arith.constant dense<-0.360673{{.*}}>
// CHECK:         arith.mulf %{{.*}}, %[[BOTH]]
// CHECK-NOT:     arith.mulf %{{.*}}, %cst
// CHECK:         ex2.approx
tile.program @within_function(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %half = arith.constant dense<-0.5> : vector<4xf32>
  %0 = arith.mulf %x, %x : vector<4xf32>
  %1 = arith.mulf %0, %half : vector<4xf32>
  %2 = math.exp %1 : vector<4xf32>
  %3 = arith.truncf %2 : vector<4xf32> to vector<4xbf16>
  llvm.store %3, %p : vector<4xbf16>, !llvm.ptr<1>
  tile.return
}

// Both terms of a sum take a power of 2, which rounds nothing in another way.
// CHECK-LABEL: tile.program @sum(
// CHECK-DAG:     %[[SIX:.*]] = arith.constant dense<6.000000e+00>
// CHECK-DAG:     %[[TEN:.*]] = arith.constant dense<1.000000e+01>
// CHECK-DAG:     %[[FIRST:.*]] = arith.mulf %{{.*}}, %[[SIX]]
// CHECK-DAG:     %[[SECOND:.*]] = arith.mulf %{{.*}}, %[[TEN]]
// CHECK:         %[[SUM:.*]] = arith.addf %[[FIRST]], %[[SECOND]]
// CHECK-NEXT:    llvm.store %[[SUM]]
tile.program @sum(%p: !llvm.ptr<1>, %x: vector<4xf32>, %y: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %two = arith.constant dense<2.0> : vector<4xf32>
  %three = arith.constant dense<3.0> : vector<4xf32>
  %five = arith.constant dense<5.0> : vector<4xf32>
  %0 = arith.mulf %x, %three : vector<4xf32>
  %1 = arith.mulf %y, %five : vector<4xf32>
  %2 = arith.addf %0, %1 : vector<4xf32>
  %3 = arith.mulf %2, %two : vector<4xf32>
  llvm.store %3, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// Other numbers would be rounded in another way.
// CHECK-LABEL: tile.program @rounded_sum(
// CHECK-COUNT-3: arith.mulf
tile.program @rounded_sum(%p: !llvm.ptr<1>, %x: vector<4xf32>, %y: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %three = arith.constant dense<3.0> : vector<4xf32>
  %five = arith.constant dense<5.0> : vector<4xf32>
  %0 = arith.mulf %x, %three : vector<4xf32>
  %1 = arith.mulf %y, %five : vector<4xf32>
  %2 = arith.addf %0, %1 : vector<4xf32>
  %3 = arith.mulf %2, %three : vector<4xf32>
  llvm.store %3, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// A product of which all users multiply by constants becomes part of these.
// CHECK-LABEL: tile.program @users(
// CHECK-SAME:      %[[X:[^ ]*]]: vector<4xf32>
// CHECK-DAG:     %[[SIX:.*]] = arith.constant dense<6.000000e+00>
// CHECK-DAG:     %[[TEN:.*]] = arith.constant dense<1.000000e+01>
// CHECK-DAG:     arith.mulf %[[X]], %[[SIX]]
// CHECK-DAG:     arith.mulf %[[X]], %[[TEN]]
tile.program @users(%x: vector<4xf32>, %p: !llvm.ptr<1>, %q: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %two = arith.constant dense<2.0> : vector<4xf32>
  %three = arith.constant dense<3.0> : vector<4xf32>
  %five = arith.constant dense<5.0> : vector<4xf32>
  %0 = arith.mulf %x, %two : vector<4xf32>
  %1 = arith.mulf %0, %three : vector<4xf32>
  %2 = arith.mulf %0, %five : vector<4xf32>
  llvm.store %1, %p : vector<4xf32>, !llvm.ptr<1>
  llvm.store %2, %q : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// A number that is compared for equality keeps its bits: another loop may
// compute it beside other readers of the inner product.
// CHECK-LABEL: tile.program @compared(
// CHECK-COUNT-2: arith.mulf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK:         arith.cmpf oeq
tile.program @compared(%p: !llvm.ptr<1>, %x: vector<4xf32>, %y: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %two = arith.constant dense<2.0> : vector<4xf32>
  %three = arith.constant dense<3.0> : vector<4xf32>
  %0 = arith.mulf %x, %two : vector<4xf32>
  %1 = arith.mulf %0, %three : vector<4xf32>
  %2 = arith.cmpf oeq, %1, %y : vector<4xf32>
  %3 = arith.select %2, %x, %y : vector<4xi1>, vector<4xf32>
  llvm.store %3, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// A sigmoid is one of the quotients that its derivative takes as well.
// CHECK-LABEL: tile.program @sigmoid(
// CHECK:         %[[ONE:.*]] = arith.divf %{{.*}}, %{{.*}} fastmath<afn>
// CHECK-NEXT:    %[[OTHER:.*]] = arith.mulf %{{.*}}, %[[ONE]]
// CHECK-NEXT:    %[[EITHER:.*]] = arith.select %{{.*}}, %[[ONE]], %[[OTHER]]
// CHECK-NEXT:    arith.mulf %[[EITHER]], %[[OTHER]]
tile.program @sigmoid(%p: !llvm.ptr<1>, %e: vector<4xf32>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %c = arith.cmpf oge, %x, %zero : vector<4xf32>
  %one = arith.constant dense<1.0> : vector<4xf32>
  %0 = arith.addf %e, %one : vector<4xf32>
  %1 = arith.select %c, %one, %e : vector<4xi1>, vector<4xf32>
  %2 = arith.divf %1, %0 : vector<4xf32>
  %3 = arith.divf %one, %0 : vector<4xf32>
  %4 = arith.mulf %e, %3 : vector<4xf32>
  %5 = arith.mulf %2, %4 : vector<4xf32>
  %6 = arith.truncf %5 : vector<4xf32> to vector<4xbf16>
  llvm.store %6, %p : vector<4xbf16>, !llvm.ptr<1>
  tile.return
}
