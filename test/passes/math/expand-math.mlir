// RUN: tile-opt %s --expand-math | FileCheck %s

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// The GPU has 2^x. Rounding to bfloat16 hides the error of one product, and of a
// square, which has results below 2^-126 where the instruction has none.
// CHECK-LABEL: tile.program @exp_narrow(
// CHECK-SAME:      %[[P:[^:]*]]: !llvm.ptr<1>, %[[X:[^:]*]]: vector<4xf32>)
// CHECK:         %[[HALF:.*]] = arith.constant dense<0.72134{{.*}}> : vector<4xf32>
// CHECK:         %[[POWER:.*]] = arith.mulf %[[X]], %[[HALF]]
// CHECK-NEXT:    %[[FIRST:.*]] = vector.extract %[[POWER]][0]
// CHECK-NEXT:    llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[FIRST]])
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:         %[[ROOT:.*]] = vector.insert
// CHECK-NEXT:    arith.mulf %[[ROOT]], %[[ROOT]]
// CHECK:         arith.truncf
tile.program @exp_narrow(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : vector<4xf32>
  %1 = arith.truncf %0 : vector<4xf32> to vector<4xbf16>
  llvm.store %1, %p : vector<4xbf16>, !llvm.ptr<1>
  tile.return
}

// A number that is only read for what is rounded may be approximate itself.
// CHECK-LABEL: tile.program @marked(
// CHECK-COUNT-2: math.sqrt %{{.*}} fastmath<afn>
tile.program @marked(%p: !llvm.ptr<1>,
                     %saved: !llvm.ptr<1> {tile.approximate}, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.rsqrt %x : f32
  llvm.store %0, %saved : f32, !llvm.ptr<1>
  %1 = math.rsqrt %y : f32
  %2 = arith.truncf %1 : f32 to bf16
  llvm.store %2, %p : bf16, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @not_marked(
// CHECK-NOT:     afn
// CHECK:         tile.return
tile.program @not_marked(%saved: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.rsqrt %x : f32
  llvm.store %0, %saved : f32, !llvm.ptr<1>
  tile.return
}

// A power takes the operand's size for nothing. Reciprocals of numbers that a range
// keeps away from 0, as here 1 to 2, need no care.
// CHECK-LABEL: tile.program @power_of_size(
// CHECK:         %[[SIZE:.*]] = math.absf
// CHECK:         arith.negf %[[SIZE]]
// CHECK:         %[[ROOT:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:         arith.mulf %[[ROOT]], %[[ROOT]]
// CHECK:         llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
tile.program @power_of_size(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %positive = arith.cmpf oge, %x, %zero : f32
  %negated = arith.negf %x : f32
  %size = arith.select %positive, %negated, %x : f32
  %power = math.exp %size : f32
  %denominator = arith.addf %power, %one : f32
  %0 = arith.divf %power, %denominator : f32
  %1 = arith.truncf %0 : f32 to bf16
  llvm.store %1, %p : bf16, !llvm.ptr<1>
  tile.return
}

// A divisor without an upper bound is made a quarter as large, so that its
// reciprocal is no subnormal number.
// CHECK-LABEL: tile.program @scaled_division(
// CHECK-DAG:     %[[QUARTER:.*]] = arith.constant 2.500000e-01
// CHECK-DAG:     %[[SQUARE:.*]] = arith.mulf %[[X:.*]], %[[X]]
// CHECK-DAG:     %[[Y:.*]] = arith.mulf %{{.*}}, %[[QUARTER]]
// CHECK-DAG:     %[[D:.*]] = math.fma %[[SQUARE]], %[[QUARTER]], %[[QUARTER]]
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[D]])
// CHECK:         arith.mulf %[[Y]], %[[R]]
tile.program @scaled_division(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %one = arith.constant 1.0 : f32
  %square = arith.mulf %x, %x : f32
  %divisor = arith.addf %square, %one : f32
  %0 = arith.divf %y, %divisor : f32
  %1 = arith.truncf %0 : f32 to bf16
  llvm.store %1, %p : bf16, !llvm.ptr<1>
  tile.return
}

// Of a divisor that may be subnormal, and of its root, nothing is flushed.
// CHECK-LABEL: tile.program @small_divisor(
// CHECK-NOT:     ftz
// CHECK:         tile.return
tile.program @small_divisor(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %square = arith.mulf %x, %x : f32
  %root = math.sqrt %square : f32
  %0 = arith.divf %y, %root : f32
  %1 = arith.truncf %0 : f32 to bf16
  llvm.store %1, %p : bf16, !llvm.ptr<1>
  tile.return
}

// Functions whose error a rounding hides: their powers and quotients need no care
// of subnormal numbers, and one function of an angle no other. An angle that has been
// rounded is bounded, any other reduced in a branch where it is large.
// CHECK-LABEL: tile.program @hidden(
// CHECK:         "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:         "llvm.nvvm.rcp.approx.ftz.f"
// CHECK:         "llvm.nvvm.lg2.approx.ftz.f"
// CHECK:         arith.minimumf
// CHECK-NOT:     scf.if
// CHECK:         arith.xori
// CHECK:         scf.if
tile.program @hidden(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.tanh %x : f32
  %1 = math.log1p %0 : f32
  %2 = math.sin %1 : f32
  %number = math.cos %x : f32
  %sum = arith.addf %2, %number : f32
  %3 = arith.truncf %sum : f32 to bf16
  llvm.store %3, %p : bf16, !llvm.ptr<1>
  tile.return
}

// What is sent to another block reaches a result there, of float32 here: nothing that
// leads to it is approximate.
llvm.mlir.global internal @places() {addr_space = 3 : i32} : !llvm.array<4 x f32>
// CHECK-LABEL: tile.program @sent(
// CHECK-NOT:     ftz
// CHECK:         ex2.approx.f32
// CHECK-NOT:     ftz
// CHECK:         tile.return
tile.program @sent(%p: !llvm.ptr<1>, %x: f32, %block: i32, %barrier: !llvm.ptr<7>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %places = llvm.mlir.addressof @places : !llvm.ptr<3>
  %remote = nvvm.mapa %places, %block : !llvm.ptr<3> -> !llvm.ptr<7>
  %power = math.exp %x : f32
  %bits = llvm.bitcast %power : f32 to i32
  llvm.inline_asm has_side_effects "st.async.b32 [$0], $1, [$2];", "l,r,l" %remote, %bits, %barrier
      : (!llvm.ptr<7>, i32, !llvm.ptr<7>) -> ()
  %0 = llvm.load %places : !llvm.ptr<3> -> f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}

// Of two numbers that an exchange sends to places beside each other, only the first
// reaches the result.
// CHECK-LABEL: tile.program @sent_beside(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
tile.program @sent_beside(%p: !llvm.ptr<1>, %x: f32, %y: f32, %block: i32,
    %barrier: !llvm.ptr<7>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %places = llvm.mlir.addressof @places : !llvm.ptr<3>
  %remote = nvvm.mapa %places, %block : !llvm.ptr<3> -> !llvm.ptr<7>
  %power = math.exp %x : f32
  %bits = llvm.bitcast %power : f32 to i32
  %other = math.exp %y : f32
  %other_bits = llvm.bitcast %other : f32 to i32
  llvm.inline_asm has_side_effects {tile.number = 0 : i64} "st.async.b32 [$0], $1, [$2];", "l,r,l"
      %remote, %bits, %barrier : (!llvm.ptr<7>, i32, !llvm.ptr<7>) -> ()
  llvm.inline_asm has_side_effects {tile.number = 1 : i64} "st.async.b32 [$0], $1, [$2];", "l,r,l"
      %remote, %other_bits, %barrier : (!llvm.ptr<7>, i32, !llvm.ptr<7>) -> ()
  %0 = llvm.load %places {tile.number = 0 : i64} : !llvm.ptr<3> -> f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}

// In a sum, or times a number of the row, what is below 2^-126 may be 0.
// CHECK-LABEL: tile.program @exp_term(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:         vector.reduction
tile.program @exp_term(%p: !llvm.ptr<1>, %x: vector<2xf32>, %scale: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : vector<2xf32>
  %1 = vector.reduction <add>, %0 : vector<2xf32> into f32
  %2 = vector.broadcast %scale : f32 to vector<2xf32>
  %3 = arith.mulf %0, %2 : vector<2xf32>
  %4 = vector.broadcast %1 : f32 to vector<2xf32>
  %5 = arith.divf %3, %4 : vector<2xf32>
  %6 = arith.truncf %5 : vector<2xf32> to vector<2xbf16>
  llvm.store %6, %p : vector<2xbf16>, !llvm.ptr<1>
  tile.return
}

// A gate is multiplied by what may be large: silu(-88) is a number of bfloat16.
// CHECK-LABEL: tile.program @exp_gate(
// CHECK:         %[[ROOT:.*]] = vector.insert %{{.*}} [1]
// CHECK-NEXT:    arith.mulf %[[ROOT]], %[[ROOT]]
// CHECK:         tile.return
tile.program @exp_gate(%p: !llvm.ptr<1>, %x: vector<2xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : vector<2xf32>
  %1 = arith.mulf %0, %x : vector<2xf32>
  %2 = arith.truncf %1 : vector<2xf32> to vector<2xbf16>
  llvm.store %2, %p : vector<2xbf16>, !llvm.ptr<1>
  tile.return
}

// Where results are float32, what the product loses is made up for.
// CHECK-LABEL: tile.program @exp_wide(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %[[X:[^:]*]]: vector<4xf32>)
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant dense<1.44269502>
// CHECK-DAG:     %[[LN2:.*]] = arith.constant dense<-0.693147182>
// CHECK-DAG:     %[[REST:.*]] = arith.constant dense<1.90465421E-9>
// CHECK-DAG:     %[[LOW:.*]] = arith.constant dense<-1.050000e+02>
// CHECK-DAG:     %[[HIGH:.*]] = arith.constant dense<88.7228394>
// CHECK:         %[[FLOORED:.*]] = arith.maximumf %[[X]], %[[LOW]]
// CHECK-NEXT:    %[[CLAMPED:.*]] = arith.minimumf %[[FLOORED]], %[[HIGH]]
// CHECK-NEXT:    %[[POWER:.*]] = arith.mulf %[[CLAMPED]], %[[LOG2E]]
// CHECK-NEXT:    %[[LOST:.*]] = math.fma %[[POWER]], %[[LN2]], %[[CLAMPED]]
// CHECK-NEXT:    %[[ALL:.*]] = math.fma %[[POWER]], %[[REST]], %[[LOST]]
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
// CHECK:         %[[EXP:.*]] = vector.insert
// CHECK-NEXT:    math.fma %[[EXP]], %[[ALL]], %[[EXP]]
tile.program @exp_wide(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : vector<4xf32>
  llvm.store %0, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// A power that is known not to be infinite has no upper bound.
// CHECK-LABEL: tile.program @exp_finite(
// CHECK:         arith.maximumf
// CHECK-NOT:     arith.minimumf
// CHECK:         tile.return
tile.program @exp_finite(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.mulf %x, %x : f32
  %1 = arith.negf %0 : f32
  %2 = math.exp %1 : f32
  llvm.store %2, %p : f32, !llvm.ptr<1>
  tile.return
}

// What passes through a wait for products stays within the kernel: a number that
// is rounded behind it may be approximate, though another one is not.
// CHECK-LABEL: tile.program @exp_waited(
// CHECK-NOT:     math.fma
// CHECK:         "llvm.nvvm.ex2.approx.{{(ftz.)?}}f32"
// CHECK:         tile.wgmma_wait
// CHECK:         math.sqrt %{{[a-z0-9#]+}} : f32
tile.program @exp_waited(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : f32
  %1:2 = tile.wgmma_wait 0 of %0, %y : f32, f32
  %2 = math.sqrt %1#1 : f32
  llvm.store %2, %q : f32, !llvm.ptr<1>
  %3 = arith.truncf %1#0 : f32 to bf16
  llvm.store %3, %p : bf16, !llvm.ptr<1>
  tile.return
}

// A result that is stored under a mask is no less a result.
// CHECK-LABEL: tile.program @exp_wide_masked(
// CHECK:         math.fma
// CHECK:         "llvm.nvvm.ex2.approx.{{(ftz.)?}}f32"
tile.program @exp_wide_masked(%p: !llvm.ptr<1>, %x: vector<4xf32>, %inside: i1)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : vector<4xf32>
  %mask = vector.broadcast %inside : i1 to vector<4xi1>
  llvm.intr.masked.store %0, %p, %mask {alignment = 4 : i32}
      : vector<4xf32>, vector<4xi1> into !llvm.ptr<1>
  tile.return
}

// Partial sums in shared memory are not results.
// CHECK-LABEL: tile.program @exp_shared(
// CHECK-NOT:     math.fma
// CHECK:         "llvm.nvvm.ex2.approx.{{(ftz.)?}}f32"
// CHECK-NOT:     math.fma
// CHECK:         tile.return
tile.program @exp_shared(%p: !llvm.ptr<1>, %shared: !llvm.ptr<3>, %x: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : f32
  llvm.store %0, %shared : f32, !llvm.ptr<3>
  %1 = arith.truncf %0 : f32 to f16
  llvm.store %1, %p : f16, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @division_narrow(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32)
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         %[[RECIPROCAL:.*]] = arith.divf %[[ONE]], %[[Y]] fastmath<afn>
// CHECK-NEXT:    arith.mulf %[[X]], %[[RECIPROCAL]]
tile.program @division_narrow(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.divf %x, %y : f32
  %1 = arith.truncf %0 : f32 to bf16
  llvm.store %1, %p : bf16, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @division_wide(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32)
// CHECK-NEXT:    arith.divf %[[X]], %[[Y]] : f32
tile.program @division_wide(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.divf %x, %y : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @rsqrt_narrow(
// CHECK:         %[[ROOT:.*]] = math.sqrt %{{.*}} fastmath<afn>
// CHECK-NEXT:    arith.divf %{{.*}}, %[[ROOT]] fastmath<afn>
tile.program @rsqrt_narrow(%p: !llvm.ptr<1>, %x: f32) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.rsqrt %x : f32
  %1 = arith.truncf %0 : f32 to f16
  llvm.store %1, %p : f16, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @rsqrt_wide(
// CHECK:         %[[ROOT:.*]] = math.sqrt %{{[^ ]*}} : f32
// CHECK-NEXT:    arith.divf %{{.*}}, %[[ROOT]] : f32
tile.program @rsqrt_wide(%p: !llvm.ptr<1>, %x: f32) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.rsqrt %x : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}

// The GPU has no other functions: they become arithmetic.
// CHECK-LABEL: tile.program @polynomials(
// CHECK-NOT:     math.{{(erf|erfc|tanh|log|sin|cos)}}
// CHECK:         tile.return
tile.program @polynomials(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.erf %x : vector<4xf32>
  %1 = math.erfc %0 : vector<4xf32>
  %2 = math.tanh %1 : vector<4xf32>
  %3 = math.log %2 : vector<4xf32>
  %4 = math.sin %3 : vector<4xf32>
  %5 = math.cos %4 : vector<4xf32>
  llvm.store %5, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @angles_and_roots(
// CHECK-NOT:     math.{{(a?sin|a?cos|a?tan|atan2|a?sinh|a?cosh|a?tanh|log|exp|cbrt|clampf|isinf|isnormal)}}
// CHECK:         tile.return
tile.program @angles_and_roots(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.asin %x : vector<4xf32>
  %1 = math.acos %0 : vector<4xf32>
  %2 = math.atan %1 : vector<4xf32>
  %3 = math.atan2 %2, %x : vector<4xf32>
  %4 = math.tan %3 : vector<4xf32>
  %5 = math.sinh %4 : vector<4xf32>
  %6 = math.cosh %5 : vector<4xf32>
  %7 = math.asinh %6 : vector<4xf32>
  %8 = math.acosh %7 : vector<4xf32>
  %9 = math.atanh %8 : vector<4xf32>
  %10 = math.cbrt %9 : vector<4xf32>
  %11 = math.log10 %10 : vector<4xf32>
  %12 = math.clampf %11 to [%1, %2] : vector<4xf32>
  %13 = math.isinf %12 : vector<4xf32>
  %14 = math.isnormal %12 : vector<4xf32>
  %15 = arith.andi %13, %14 : vector<4xi1>
  %16 = arith.select %15, %11, %12 : vector<4xi1>, vector<4xf32>
  llvm.store %16, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// What float16 has subnormal is not so as a float32.
// CHECK-LABEL: tile.program @is_normal(
// CHECK-SAME:      %[[X:[^:]*]]: f16
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 6.10351563E-5 : f32
// CHECK-DAG:     %[[WIDE:.*]] = arith.extf
// CHECK:         arith.cmpf oge, %{{.*}}, %[[LEAST]] : f32
tile.program @is_normal(%p: !llvm.ptr<1>, %x: f16) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.isnormal %x : f16
  %1 = arith.extui %0 : i1 to i8
  llvm.store %1, %p : i8, !llvm.ptr<1>
  tile.return
}

// Powers that are roots, or products.
// CHECK-LABEL: tile.program @constant_powers(
// CHECK-SAME:      %[[X:[^:]*]]: vector<4xf32>
// CHECK:         %[[ROOT:.*]] = math.sqrt %[[X]] : vector<4xf32>
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[ROOT]], %[[ROOT]] : vector<4xf32>
// CHECK-NEXT:    %[[CUBE:.*]] = arith.mulf %[[SQUARE]], %[[ROOT]] : vector<4xf32>
// CHECK-NEXT:    llvm.store %[[CUBE]]
tile.program @constant_powers(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %half = arith.constant 0.5 : f32
  %halves = vector.broadcast %half : f32 to vector<4xf32>
  %0 = math.powf %x, %halves : vector<4xf32>
  %three = arith.constant 3.0 : f32
  %threes = vector.broadcast %three : f32 to vector<4xf32>
  %1 = math.powf %0, %threes : vector<4xf32>
  llvm.store %1, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// A divisor of 0, and -1 beside the least integer, are 1 in place of that: a
// processor would end the process.
// CHECK-LABEL: tile.program @divide(
// CHECK-SAME:      %[[X:[^:]*]]: vector<4xi32>, %[[Y:[^:]*]]: vector<4xi32>
// CHECK-DAG:     %[[ONE:.*]] = arith.constant dense<1> : vector<4xi32>
// CHECK-DAG:     %[[IS_ZERO:.*]] = arith.cmpi eq, %[[Y]], %{{.*}} : vector<4xi32>
// CHECK-DAG:     %[[IS_LEAST:.*]] = arith.cmpi eq, %[[X]], %{{.*}} : vector<4xi32>
// CHECK:         %[[OVERFLOWS:.*]] = arith.andi %[[IS_LEAST]]
// CHECK:         %[[EITHER:.*]] = arith.ori %[[IS_ZERO]], %[[OVERFLOWS]]
// CHECK:         %[[DIVISOR:.*]] = arith.select %[[EITHER]], %[[ONE]], %[[Y]]
// CHECK:         arith.divsi %[[X]], %[[DIVISOR]]
tile.program @divide(%p: !llvm.ptr<1>, %x: vector<4xi32>, %y: vector<4xi32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.divsi %x, %y : vector<4xi32>
  llvm.store %0, %p : vector<4xi32>, !llvm.ptr<1>
  tile.return
}

// A constant divides as it is, and addresses do.
// CHECK-LABEL: tile.program @divide_by_constant(
// CHECK-NOT:     arith.select
// CHECK:         tile.return
tile.program @divide_by_constant(%p: !llvm.ptr<1>, %x: vector<4xi32>, %i: index)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %seven = arith.constant dense<7> : vector<4xi32>
  %0 = arith.remsi %x, %seven : vector<4xi32>
  %1 = arith.divui %i, %i : index
  %2 = arith.index_cast %1 : index to i32
  %3 = vector.broadcast %2 : i32 to vector<4xi32>
  %4 = arith.addi %0, %3 : vector<4xi32>
  llvm.store %4, %p : vector<4xi32>, !llvm.ptr<1>
  tile.return
}

// Large angles take a branch, one element after the other.
// CHECK-LABEL: tile.program @sine(
// CHECK-SAME:      %[[X:[^:]*]]: vector<4xf32>)
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant dense<0x49800000> : vector<4xf32>
// CHECK-DAG:     %[[SIZE:.*]] = math.absf %[[X]]
// CHECK:         %[[LARGE:.*]] = arith.cmpf olt, %[[LIMIT]], %[[SIZE]]
// CHECK-COUNT-4: vector.extract %[[LARGE]]
// CHECK:         %[[ANY:.*]] = arith.ori
// CHECK-NEXT:    %[[RESULT:.*]] = scf.if %[[ANY]]
// CHECK:           scf.for
// CHECK-COUNT-2:     vector.shuffle %{{.*}} [1, 2, 3, 4] : vector<4xf32>, vector<1xf32>
// CHECK:         } else {
// CHECK-NEXT:      scf.yield
// CHECK:         llvm.store %[[RESULT]]
tile.program @sine(%p: !llvm.ptr<1>, %x: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.sin %x : vector<4xf32>
  llvm.store %0, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// Two bfloat16 are the upper halves of two float32, in one word.
// CHECK-LABEL: tile.program @extend(
// CHECK-DAG:     %[[MISALIGNMENT:.*]] = arith.constant dense<16> : vector<2xi32>
// CHECK-DAG:     %[[UPPER:.*]] = arith.constant dense<-65536> : vector<2xi32>
// CHECK:         %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<4xbf16> to vector<2xi32>
// CHECK-NEXT:    %[[LEFT:.*]] = arith.shli %[[WORDS]], %[[MISALIGNMENT]]
// CHECK-NEXT:    %[[EVEN:.*]] = arith.bitcast %[[LEFT]] : vector<2xi32> to vector<2xf32>
// CHECK-NEXT:    %[[RIGHT:.*]] = arith.andi %[[WORDS]], %[[UPPER]]
// CHECK-NEXT:    %[[ODD:.*]] = arith.bitcast %[[RIGHT]] : vector<2xi32> to vector<2xf32>
// CHECK-NEXT:    %[[ALL:.*]] = vector.interleave %[[EVEN]], %[[ODD]]
// CHECK-NEXT:    llvm.store %[[ALL]]
tile.program @extend(%p: !llvm.ptr<1>, %x: vector<4xbf16>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.extf %x : vector<4xbf16> to vector<4xf32>
  llvm.store %0, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}

// Narrow values are computed in float32 and rounded after each op: a product
// and a sum keep the rounding between them.
// CHECK-LABEL: tile.program @narrow_arithmetic(
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}} : vector<4xf32>
// CHECK-NEXT:    %[[ROUNDED:.*]] = arith.truncf %[[PRODUCT]] : vector<4xf32> to vector<4xbf16>
// CHECK-NEXT:    %[[WORDS:.*]] = vector.bitcast %[[ROUNDED]] : vector<4xbf16> to vector<2xi32>
// CHECK:         %[[WIDE:.*]] = vector.interleave
// CHECK:         %[[SUM:.*]] = arith.addf %[[WIDE]], %{{.*}} : vector<4xf32>
// CHECK-NEXT:    arith.truncf %[[SUM]] : vector<4xf32> to vector<4xbf16>
tile.program @narrow_arithmetic(%p: !llvm.ptr<1>, %x: vector<4xbf16>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.mulf %x, %x : vector<4xbf16>
  %1 = arith.addf %0, %x : vector<4xbf16>
  llvm.store %1, %p : vector<4xbf16>, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @narrow_function(
// CHECK-NOT:     math.exp %
// CHECK:         "llvm.nvvm.ex2.approx.{{(ftz.)?}}f32"
// CHECK:         arith.truncf %{{.*}} : f32 to f16
tile.program @narrow_function(%p: !llvm.ptr<1>, %x: f16)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.exp %x : f16
  llvm.store %0, %p : f16, !llvm.ptr<1>
  tile.return
}

// The casts of a kernel are meaning: the GPU's are left as they are.
// CHECK-LABEL: tile.program @casts(
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT:    arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:    arith.truncf %{{.*}} : f32 to f16
tile.program @casts(%p: !llvm.ptr<1>, %x: f32) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.extf %0 : bf16 to f32
  %2 = arith.truncf %1 : f32 to f16
  llvm.store %2, %p : f16, !llvm.ptr<1>
  tile.return
}

// A float32 result makes exact what it needs, and nothing else.
// CHECK-LABEL: tile.program @mixed(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32)
// CHECK-DAG:     arith.divf %[[X]], %[[Y]] : f32
// CHECK-DAG:     arith.divf %{{.*}}, %[[X]] fastmath<afn> : f32
tile.program @mixed(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.divf %x, %y : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  %1 = arith.divf %y, %x : f32
  %2 = arith.truncf %1 : f32 to bf16
  llvm.store %2, %p : bf16, !llvm.ptr<1>
  tile.return
}

// Rounding on the way hides the error from a wide result.
// CHECK-LABEL: tile.program @rounded_before(
// CHECK:         arith.divf %{{.*}} fastmath<afn> : f32
tile.program @rounded_before(%p: !llvm.ptr<1>, %x: f32, %y: f32)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.divf %x, %y : f32
  %1 = arith.truncf %0 : f32 to bf16
  %2 = arith.extf %1 : bf16 to f32
  llvm.store %2, %p : f32, !llvm.ptr<1>
  tile.return
}

// Through shared memory and a loop to a wide result: of the two variables and
// the two sums, the ones that lead there.
// CHECK-LABEL: tile.program @wide_by_memory(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<3>, %{{[^:]*}}: !llvm.ptr<3>, %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32,
// CHECK:         scf.for
// CHECK-DAG:       arith.divf %[[X]], %[[Y]] : f32
// CHECK-DAG:       arith.divf %{{.*}}, %[[X]] fastmath<afn> : f32
// CHECK:           scf.yield
tile.program @wide_by_memory(%p: !llvm.ptr<1>, %a: !llvm.ptr<3>,
                             %b: !llvm.ptr<3>, %x: f32, %y: f32, %n: index)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0:2 = scf.for %i = %n to %n step %n iter_args(%s = %x, %t = %y)
      -> (f32, f32) {
    %q = arith.divf %x, %y : f32
    %r = arith.divf %y, %x : f32
    %u = arith.addf %s, %q : f32
    %v = arith.addf %t, %r : f32
    scf.yield %u, %v : f32, f32
  }
  %address = llvm.getelementptr %a[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
  llvm.store %0#0, %address : f32, !llvm.ptr<3>
  llvm.store %0#1, %b : f32, !llvm.ptr<3>
  %c = llvm.load %a : !llvm.ptr<3> -> f32
  %d = llvm.load %b : !llvm.ptr<3> -> f32
  llvm.store %c, %p : f32, !llvm.ptr<1>
  %e = arith.truncf %d : f32 to f16
  llvm.store %e, %p : f16, !llvm.ptr<1>
  tile.return
}

// The logarithm's instruction is good but near 1.
// CHECK-LABEL: tile.program @log_narrow(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"
// CHECK:         arith.cmpf olt
// CHECK:         arith.select
tile.program @log_narrow(%p: !llvm.ptr<1>, %x: f32) attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.log %x : f32
  %1 = arith.truncf %0 : f32 to bf16
  llvm.store %1, %p : bf16, !llvm.ptr<1>
  tile.return
}

// The instruction saturates what has to become NaN.
// CHECK-LABEL: tile.program @float8(
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1>, %[[X:[^:]*]]: vector<2xf32>)
// CHECK-DAG:     %[[NAN:.*]] = arith.constant dense<0x7FC00000> : vector<2xf32>
// CHECK-DAG:     %[[BOUND:.*]] = arith.constant dense<4.640000e+02> : vector<2xf32>
// CHECK:         %[[SIZE:.*]] = math.absf %[[X]]
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpf ole, %[[SIZE]], %[[BOUND]]
// CHECK-NEXT:    %[[INPUT:.*]] = arith.select %[[INSIDE]], %[[X]], %[[NAN]]
// CHECK-NEXT:    %[[LOW:.*]] = vector.extract %[[INPUT]][0]
// CHECK-NEXT:    %[[HIGH:.*]] = vector.extract %[[INPUT]][1]
// CHECK-NEXT:    nvvm.convert.f32x2.to.f8x2 %[[HIGH]], %[[LOW]]
// CHECK-SAME:        satfinite
tile.program @float8(%p: !llvm.ptr<1>, %x: vector<2xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>
  %1 = arith.bitcast %0 : vector<2xf8E4M3FN> to vector<2xi8>
  llvm.store %1, %p : vector<2xi8>, !llvm.ptr<1>
  tile.return
}

// CHECK-LABEL: tile.program @drop_nan(
// CHECK:         llvm.intr.maxnum
// CHECK-NEXT:    llvm.intr.minnum
tile.program @drop_nan(%p: !llvm.ptr<1>, %x: vector<4xf32>, %y: vector<4xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = arith.maxnumf %x, %y : vector<4xf32>
  %1 = arith.minnumf %0, %y : vector<4xf32>
  llvm.store %1, %p : vector<4xf32>, !llvm.ptr<1>
  tile.return
}
