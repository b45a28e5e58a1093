// RUN: tile-opt %s --expand-math | FileCheck %s

// Quotients and roots of float32 results take no branch where an operand is known
// to lie away from 0, or where all elements have one divisor.

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// The reciprocal of an eighth is never subnormal. One step of Newton's method; that
// of an infinite divisor is NaN.
// CHECK-LABEL: tile.program @reciprocal(
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK-NEXT:    %[[EIGHTH:.*]] = arith.mulf %[[SUM]]
// CHECK-NEXT:    %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[EIGHTH]])
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[R]]
// CHECK-NEXT:    %[[STEP:.*]] = math.fma %[[NEGATED]], %[[EIGHTH]]
// CHECK-NEXT:    %[[FINITE:.*]] = llvm.intr.minnum(%[[STEP]]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.mulf %[[R]]
// CHECK-NEXT:    math.fma %[[FIRST]], %[[FINITE]], %[[FIRST]]
tile.program @reciprocal(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %one = arith.constant 1.0 : f32
  %size = math.absf %x : f32
  %divisor = arith.addf %size, %one : f32
  %0 = arith.divf %one, %divisor : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}

// What the product exceeds the quotient by is taken from it.
// CHECK-LABEL: tile.program @quotient(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: f32, %[[Y:[^:]*]]: f32)
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK-NEXT:    %[[RECIPROCAL:.*]] = arith.mulf %[[R]]
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[Y]], %[[RECIPROCAL]]
// CHECK:         %[[EXCESS:.*]] = math.fma %[[PRODUCT]]
// CHECK:         %[[FINITE:.*]] = arith.select %{{.*}}, %[[EXCESS]]
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[FINITE]]
// CHECK-NEXT:    math.fma %[[NEGATED]], %[[RECIPROCAL]], %[[PRODUCT]]
tile.program @quotient(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %one = arith.constant 1.0 : f32
  %size = math.absf %x : f32
  %divisor = arith.addf %size, %one : f32
  %0 = arith.divf %y, %divisor : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}

// Between numbers that are far from the ends of the range nothing is scaled, and
// nothing is infinite.
// CHECK-LABEL: tile.program @finite(
// CHECK:         %[[DIVISOR:.*]] = arith.addf
// CHECK-NEXT:    %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %[[R]]
// CHECK-NEXT:    arith.negf
// CHECK-NEXT:    %[[EXCESS:.*]] = math.fma %[[PRODUCT]], %[[DIVISOR]]
// CHECK-NEXT:    %[[NEGATED:.*]] = arith.negf %[[EXCESS]]
// CHECK-NEXT:    math.fma %[[NEGATED]], %[[R]], %[[PRODUCT]]
// CHECK:         %[[R2:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
// CHECK-NEXT:    %[[NEGATED2:.*]] = arith.negf %[[R2]]
// CHECK-NEXT:    %[[STEP:.*]] = math.fma %[[NEGATED2]], %[[DIVISOR]]
// CHECK-NEXT:    math.fma %[[R2]], %[[STEP]], %[[R2]]
tile.program @finite(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %one = arith.constant 1.0 : f32
  %cosine = math.cos %x : f32
  %square = arith.mulf %cosine, %cosine : f32
  %divisor = arith.addf %square, %one : f32
  %0 = arith.divf %cosine, %divisor : f32
  %1 = arith.divf %one, %divisor : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  llvm.store %1, %q : f32, !llvm.ptr<1>
  tile.return
}

// One division for all elements, of a divisor whose reciprocal is a normal number.
// CHECK-LABEL: tile.program @one_divisor(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %[[X:[^:]*]]: vector<2xf32>, %[[Y:[^:]*]]: f32)
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[Y]], %[[SCALE:.*]] : f32
// CHECK-NEXT:    %[[SCALES:.*]] = vector.broadcast %[[SCALE]]
// CHECK-NEXT:    %[[ELEMENTS:.*]] = arith.mulf %[[X]], %[[SCALES]]
// CHECK-NEXT:    %[[RECIPROCAL:.*]] = arith.divf %{{.*}}, %[[SCALED]] : f32
// CHECK-NEXT:    %[[RECIPROCALS:.*]] = vector.broadcast %[[RECIPROCAL]]
// CHECK-NEXT:    arith.mulf %[[ELEMENTS]], %[[RECIPROCALS]]
tile.program @one_divisor(%p: !llvm.ptr<1>, %x: vector<2xf32>, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %divisor = vector.broadcast %y : f32 to vector<2xf32>
  %0 = arith.divf %x, %divisor : vector<2xf32>
  llvm.store %0, %p : vector<2xf32>, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @roots(
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK-NEXT:    llvm.call_intrinsic "llvm.nvvm.sqrt.approx.ftz.f"(%[[SUM]])
// CHECK-NEXT:    llvm.store
// CHECK-NEXT:    llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%[[SUM]])
tile.program @roots(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %one = arith.constant 1.0 : f32
  %square = arith.mulf %x, %x : f32
  %sum = arith.addf %square, %one : f32
  %0 = math.sqrt %sum : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  %1 = math.rsqrt %sum : f32
  llvm.store %1, %p : f32, !llvm.ptr<1>
  tile.return
}
