// RUN: tile-opt %s --expand-math=target=host | FileCheck %s

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// The host has no vector functions: float32 ones become arithmetic.
// CHECK-LABEL: tile.program @functions(
// CHECK-NOT:     math.{{(exp|erfc|tanh|log)}}
// CHECK:         tile.return
tile.program @functions(%p: !llvm.ptr, %x: vector<8xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : vector<8xf32>
  %1 = math.erfc %0 : vector<8xf32>
  %2 = math.tanh %1 : vector<8xf32>
  %3 = math.log %2 : vector<8xf32>
  llvm.store %3, %p : vector<8xf32>, !llvm.ptr
  tile.return
}

// Small integral powers are products, of float64 as well.
// CHECK-LABEL: tile.program @integral_power(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr, %[[X:[^:]*]]: vector<8xf64>)
// CHECK-DAG:     %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-DAG:     %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-DAG:     %[[CUBE:.*]] = arith.mulf %[[SQUARE]], %[[X]]
// CHECK:         %[[RESULT:.*]] = arith.divf %[[ONE]], %[[CUBE]]
// CHECK-NEXT:    llvm.store %[[RESULT]]
tile.program @integral_power(%p: !llvm.ptr, %x: vector<8xf64>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %n = arith.constant dense<-3.0> : vector<8xf64>
  %0 = math.powf %x, %n : vector<8xf64>
  llvm.store %0, %p : vector<8xf64>, !llvm.ptr
  tile.return
}

// The zeroth is 1, of NaN as well.
// CHECK-LABEL: tile.program @zeroth_power(
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-NEXT:    llvm.store %[[ONE]]
tile.program @zeroth_power(%p: !llvm.ptr, %x: vector<8xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %n = arith.constant dense<0.0> : vector<8xf32>
  %0 = math.powf %x, %n : vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  tile.return
}

// Its division and square root are exact.
// CHECK-LABEL: tile.program @division(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr, %[[X:[^:]*]]: f32
// CHECK-NEXT:    %[[QUOTIENT:.*]] = arith.divf %[[X]], %[[X]] : f32
tile.program @division(%p: !llvm.ptr, %x: f32) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.divf %x, %x : f32
  %1 = arith.truncf %0 : f32 to f16
  llvm.store %1, %p : f16, !llvm.ptr
  tile.return
}

// Rounding to bfloat16 is done in integers: to the nearest, ties to even, NaN
// kept as a quiet one.
// CHECK-LABEL: tile.program @bfloat16(
// CHECK-SAME:      %[[P:[^:]*]]: !llvm.ptr, %[[X:[^:]*]]: vector<8xf32>)
// CHECK-DAG:     %[[QUIET:.*]] = arith.constant dense<4194304> : vector<8xi32>
// CHECK-DAG:     %[[HALF:.*]] = arith.constant dense<32767> : vector<8xi32>
// CHECK-DAG:     %[[ONE:.*]] = arith.constant dense<1> : vector<8xi32>
// CHECK-DAG:     %[[SIXTEEN:.*]] = arith.constant dense<16> : vector<8xi32>
// CHECK-DAG:     %[[BITS:.*]] = arith.bitcast %[[X]] : vector<8xf32> to vector<8xi32>
// CHECK-DAG:     %[[UPPER:.*]] = arith.shrui %[[BITS]], %[[SIXTEEN]]
// CHECK-DAG:     %[[ODD:.*]] = arith.andi %[[UPPER]], %[[ONE]]
// CHECK-DAG:     %[[UP:.*]] = arith.addi %[[BITS]], %[[HALF]]
// CHECK-DAG:     %[[ROUNDED:.*]] = arith.addi %[[UP]], %[[ODD]]
// CHECK-DAG:     %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK-DAG:     %[[QUIETED:.*]] = arith.ori %[[BITS]], %[[QUIET]]
// CHECK:         %[[CHOSEN:.*]] = arith.select %[[NAN]], %[[QUIETED]], %[[ROUNDED]]
// CHECK-NEXT:    %[[MISALIGNMENTED:.*]] = arith.shrui %[[CHOSEN]], %[[SIXTEEN]]
// CHECK-NEXT:    %[[NARROW:.*]] = arith.trunci %[[MISALIGNMENTED]] : vector<8xi32> to vector<8xi16>
// CHECK-NEXT:    %[[RESULT:.*]] = arith.bitcast %[[NARROW]] : vector<8xi16> to vector<8xbf16>
// CHECK-NEXT:    llvm.store %[[RESULT]], %[[P]]
tile.program @bfloat16(%p: !llvm.ptr, %x: vector<8xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  llvm.store %0, %p : vector<8xbf16>, !llvm.ptr
  tile.return
}

// Extending bfloat16 is a shift.
// CHECK-LABEL: tile.program @extend_bfloat16(
// CHECK-NOT:     arith.extf
// CHECK:         arith.shli %{{.*}} : vector<8xi32>
// CHECK-NEXT:    arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
tile.program @extend_bfloat16(%p: !llvm.ptr, %x: vector<8xbf16>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.extf %x : vector<8xbf16> to vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  tile.return
}

// float64 functions come from libm.
// CHECK-LABEL: tile.program @float64(
// CHECK:         math.exp %{{.*}} : f64
tile.program @float64(%p: !llvm.ptr, %x: f64) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : f64
  llvm.store %0, %p : f64, !llvm.ptr
  tile.return
}

// Without an instruction, float8 is a matter of integers.
// CHECK-LABEL: tile.program @float8(
// CHECK-NOT:     arith.truncf
// CHECK-NOT:     arith.extf
// CHECK:         arith.trunci %{{.*}} : vector<8xi32> to vector<8xi8>
// CHECK-NOT:     arith.truncf
// CHECK-NOT:     arith.extf
// CHECK:         tile.return
tile.program @float8(%p: !llvm.ptr, %x: vector<8xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.truncf %x : vector<8xf32> to vector<8xf8E4M3FN>
  %1 = arith.extf %0 : vector<8xf8E4M3FN> to vector<8xf32>
  llvm.store %1, %p : vector<8xf32>, !llvm.ptr
  tile.return
}

// float64 is rounded to an odd float32 first, so that the second rounding does
// not see a tie where there was none.
// CHECK-LABEL: tile.program @float64_to_float16(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr, %[[X:[^:]*]]: f64)
// CHECK:         %[[NEAREST:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK-NEXT:    %[[BACK:.*]] = arith.extf %[[NEAREST]] : f32 to f64
// CHECK-NEXT:    arith.cmpf one, %[[BACK]], %[[X]]
// CHECK:         %[[ODD:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK-NEXT:    arith.truncf %[[ODD]] : f32 to f16
tile.program @float64_to_float16(%p: !llvm.ptr, %x: f64)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.truncf %x : f64 to f16
  llvm.store %0, %p : f16, !llvm.ptr
  tile.return
}
