// RUN: tile-opt %s --expand-math | FileCheck %s

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// Nothing is chosen by the sign of x: an infinite exponential has 0 as its reciprocal.
// CHECK-LABEL: tile.program @sigmoid(
// CHECK-NOT:     select
// CHECK:         %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-NEXT:    %[[D:.*]] = math.fma %[[E]]
// CHECK-NEXT:    %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[D]])
// CHECK-NEXT:    arith.mulf %[[R]]
// CHECK-NEXT:    arith.truncf
tile.program @sigmoid(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %positive = arith.cmpf oge, %x, %zero : f32
  %negated = arith.negf %x : f32
  %size = arith.select %positive, %negated, %x : f32
  %power = math.exp %size : f32
  %choice = arith.select %positive, %one, %power : f32
  %sum = arith.addf %power, %one : f32
  %0 = arith.divf %choice, %sum : f32
  %1 = arith.truncf %0 : f32 to bf16
  llvm.store %1, %p : bf16, !llvm.ptr<1>
  tile.return
}

// g silu'(x) = g s + x (g s) (e s), as it is derived from x s. In the derivative an
// infinite exponential is a finite one.
// CHECK-LABEL: tile.program @silu(
// CHECK-NOT:     select
// CHECK:         %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK-NEXT:    %[[S:.*]] = arith.mulf %[[R]]
// CHECK-NEXT:    %[[FINITE:.*]] = llvm.intr.minnum(%[[E]], %{{.*}})
// CHECK-NEXT:    %[[COMPLEMENT:.*]] = arith.mulf %[[FINITE]], %[[S]]
// CHECK-NOT:     divf
// CHECK-NOT:     call_intrinsic
// CHECK:         tile.return
tile.program @silu(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32, %g: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %positive = arith.cmpf ogt, %x, %zero : f32
  %negated = arith.negf %x : f32
  %size = arith.select %positive, %negated, %x : f32
  %power = math.exp %size : f32
  %choice = arith.select %positive, %one, %power : f32
  %sum = arith.addf %power, %one : f32
  %numerator = arith.mulf %x, %choice : f32
  %0 = arith.divf %numerator, %sum : f32
  %inverse = arith.divf %one, %sum : f32
  %share = arith.mulf %g, %inverse : f32
  %complement = arith.mulf %power, %inverse : f32
  %slope = arith.mulf %share, %complement : f32
  %1 = arith.mulf %slope, %x : f32
  %2 = arith.mulf %share, %choice : f32
  %3 = arith.addf %1, %2 : f32
  %4 = arith.truncf %0 : f32 to bf16
  %5 = arith.truncf %3 : f32 to bf16
  llvm.store %4, %p : bf16, !llvm.ptr<1>
  llvm.store %5, %q : bf16, !llvm.ptr<1>
  tile.return
}

// A softplus of the same x needs exp(-|x|), so the sigmoid has it as well.
// CHECK-LABEL: tile.program @softplus(
// CHECK:         math.absf
// CHECK-COUNT-1: ex2.approx
// CHECK-NOT:     ex2.approx
// CHECK:         tile.return
tile.program @softplus(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %positive = arith.cmpf oge, %x, %zero : f32
  %negated = arith.negf %x : f32
  %size = arith.select %positive, %negated, %x : f32
  %power = math.exp %size : f32
  %choice = arith.select %positive, %one, %power : f32
  %sum = arith.addf %power, %one : f32
  %0 = arith.divf %choice, %sum : f32
  %1 = math.log1p %power : f32
  %2 = arith.truncf %0 : f32 to bf16
  %3 = arith.truncf %1 : f32 to bf16
  llvm.store %2, %p : bf16, !llvm.ptr<1>
  llvm.store %3, %q : bf16, !llvm.ptr<1>
  tile.return
}

// A sigmoid in float32 keeps what is lost below exp(-87).
// CHECK-LABEL: tile.program @wide(
// CHECK:         arith.select
// CHECK:         tile.return
tile.program @wide(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %positive = arith.cmpf oge, %x, %zero : f32
  %negated = arith.negf %x : f32
  %size = arith.select %positive, %negated, %x : f32
  %power = math.exp %size : f32
  %choice = arith.select %positive, %one, %power : f32
  %sum = arith.addf %power, %one : f32
  %0 = arith.divf %choice, %sum : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}
