// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// One row of threads: a thread combines the rows that it holds.
// CHECK-LABEL: tile.program @in_thread(
// CHECK:         %[[A0:.*]] = llvm.load {{.*}} -> vector<4xf32>
// CHECK:         %[[A1:.*]] = llvm.load {{.*}} -> vector<4xf32>
// CHECK:         %[[B0:.*]] = llvm.load {{.*}} -> vector<4xf32>
// CHECK:         %[[B1:.*]] = llvm.load {{.*}} -> vector<4xf32>
// CHECK-NEXT:    %[[S0:.*]] = arith.addf %[[A0]], %[[B0]]
// CHECK-NEXT:    %[[S1:.*]] = arith.addf %[[A1]], %[[B1]]
// CHECK-NOT:     gpu.shuffle
// CHECK-NOT:     gpu.barrier
// CHECK:         llvm.store %[[S0]],
// CHECK:         llvm.store %[[S1]],
tile.program @in_thread(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                        %y: memref<256xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<2x256xf32>
  %1 = tile.reduce_rows add %0 : tensor<2x256xf32> -> tensor<1x256xf32>
  tile.store %1, %y[%c0] : tensor<1x256xf32>, memref<256xf32>
  tile.return
}

// -----

// Four rows in one warp: lanes 8 and 16 apart hold the same columns. One row of
// threads stores the result.
// CHECK-LABEL: tile.program @in_warp(
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[D16:.*]] = arith.constant 16 : i32
// CHECK-DAG:     %[[D8:.*]] = arith.constant 8 : i32
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[ROW:.*]] = arith.divui %[[THREAD]], %[[C8]]
// CHECK:         %[[X:.*]] = llvm.load {{.*}} -> vector<2xf32>
// CHECK:         %[[X0:.*]] = vector.extract %[[X]][0]
// CHECK-NEXT:    %[[Y0:.*]], %{{.*}} = gpu.shuffle xor %[[X0]], %[[D16]],
// CHECK-NEXT:    %[[X1:.*]] = vector.extract %[[X]][1]
// CHECK-NEXT:    %[[Y1:.*]], %{{.*}} = gpu.shuffle xor %[[X1]], %[[D16]],
// CHECK-NEXT:    %[[Y:.*]] = vector.from_elements %[[Y0]], %[[Y1]]
// CHECK-NEXT:    %[[TWO:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-COUNT-2: gpu.shuffle xor %{{.*}}, %[[D8]],
// CHECK-NOT:     gpu.shuffle
// CHECK-NOT:     gpu.barrier
// CHECK:         %[[FOUR:.*]] = arith.addf %[[TWO]],
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[ROW]], %[[C0]]
// CHECK:         %[[MASK:.*]] = vector.broadcast %[[FIRST]]
// CHECK:         masked.store %[[FOUR]], %{{.*}}, %[[MASK]]
tile.program @in_warp(%rows: index, %x: memref<?x16xf32, strided<[?, 1]>>, %y: memref<16xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 4, threads = 32, vector = 2, columns = 16>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<4x16xf32>
  %1 = tile.reduce_rows add %0 : tensor<4x16xf32> -> tensor<1x16xf32>
  tile.store %1, %y[%c0] : tensor<1x16xf32>, memref<16xf32>
  tile.return
}

// -----

// Across warps, each row of threads leaves its vectors in shared memory, and all
// read those of their columns.
// CHECK:       llvm.mlir.global internal @[[SCRATCH:.*]]() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<256 x f32>
// CHECK-LABEL: tile.program @across_warps(
// CHECK-NOT:     gpu.shuffle xor
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK-NEXT:    gpu.barrier
// CHECK:         %[[A:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK:         %[[B:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-NEXT:    %[[MAX:.*]] = arith.maximumf %[[A]], %[[B]]
// CHECK-NOT:     gpu.barrier
// CHECK:         masked.store %[[MAX]],
tile.program @across_warps(%rows: index, %x: memref<?x128xf32, strided<[?, 1]>>, %y: memref<128xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x128xf32, strided<[?, 1]>> -> tensor<2x128xf32>
  %1 = tile.reduce_rows max %0 : tensor<2x128xf32> -> tensor<1x128xf32>
  tile.store %1, %y[%c0] : tensor<1x128xf32>, memref<128xf32>
  tile.return
}

// -----

// Of lanes with the same columns, the first row of each warp writes; in a loop, a
// barrier keeps it from overwriting what others still read.
// CHECK:       llvm.mlir.global internal @{{.*}} : !llvm.array<32 x f32>
// CHECK-LABEL: tile.program @in_loop(
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
// CHECK:         scf.for
// CHECK-COUNT-4: gpu.shuffle
// CHECK:         gpu.barrier
// CHECK:         %[[LANE:.*]] = arith.remui %{{.*}}, %[[C32]]
// CHECK-NEXT:    %[[WRITES:.*]] = arith.cmpi ult, %[[LANE]], %[[C8]]
// CHECK-NEXT:    scf.if %[[WRITES]] {
// CHECK:           llvm.store {{.*}} !llvm.ptr<3>{{$}}
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<2xf32>
tile.program @in_loop(%rows: index, %x: memref<?x16xf32, strided<[?, 1]>>,
                      %y: memref<?x16xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 8, threads = 64, vector = 2, columns = 16>} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  scf.for %row = %c0 to %rows step %c8 {
    %0 = tile.load %x[%row, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %1 = tile.reduce_rows add %0 : tensor<8x16xf32> -> tensor<1x16xf32>
    tile.store %1, %y[%row, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
  }
  tile.return
}

// -----

// Every thread along a row holds its statistic: one of them writes.
// CHECK:       llvm.mlir.global internal @{{.*}} : !llvm.array<2 x f32>
// CHECK-LABEL: tile.program @statistic(
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[COLUMN:.*]] = arith.remui %[[THREAD]], %[[C32]]
// CHECK-DAG:     %[[FIRST:.*]] = arith.cmpi eq, %[[COLUMN]], %[[C0]]
// CHECK:         scf.if %[[FIRST]] {
// CHECK:           llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK:         gpu.barrier
// CHECK:         %[[BOTH:.*]] = arith.andi
// CHECK:         %[[MASK:.*]] = vector.broadcast %[[BOTH]]
// CHECK:         masked.store %{{.*}}, %{{.*}}, %[[MASK]]
tile.program @statistic(%rows: index, %x: memref<?x1xf32, strided<[?, 1]>>, %y: memref<1xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x1xf32, strided<[?, 1]>> -> tensor<2x1xf32>
  %1 = tile.reduce_rows add %0 : tensor<2x1xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%c0] : tensor<1x1xf32>, memref<1xf32>
  tile.return
}

// -----

// A single row is its own combination.
// CHECK-LABEL: tile.program @one_row(
// CHECK:         %[[X:.*]] = llvm.load
// CHECK-NOT:     arith.addf
// CHECK:         llvm.store %[[X]],
tile.program @one_row(%rows: index, %x: memref<?x128xf32, strided<[?, 1]>>, %y: memref<128xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x128xf32, strided<[?, 1]>> -> tensor<1x128xf32>
  %1 = tile.reduce_rows add %0 : tensor<1x128xf32> -> tensor<1x128xf32>
  tile.store %1, %y[%c0] : tensor<1x128xf32>, memref<128xf32>
  tile.return
}

// -----

// Several sums take turns in as many bytes as the largest needs.
// CHECK:       llvm.mlir.global internal @take_turns_common() {{.*}} : !llvm.array<1024 x i8>
// CHECK-NOT:   llvm.mlir.global
// CHECK-LABEL: tile.program @take_turns(
// CHECK:         %[[BASE:.*]] = llvm.mlir.addressof @take_turns_common
// CHECK-COUNT-4: gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         tile.return
tile.program @take_turns(%rows: index, %x: memref<?x128xf32, strided<[?, 1]>>, %s: memref<?x1xf32, strided<[?, 1]>>,
                         %y: memref<128xf32>, %z: memref<1xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %s[%row, %c0] : memref<?x1xf32, strided<[?, 1]>> -> tensor<2x1xf32>
  %1 = tile.load %x[%row, %c0] : memref<?x128xf32, strided<[?, 1]>> -> tensor<2x128xf32>
  %2 = tile.reduce_rows add %0 : tensor<2x1xf32> -> tensor<1x1xf32>
  %3 = tile.reduce_rows add %1 : tensor<2x128xf32> -> tensor<1x128xf32>
  tile.store %3, %y[%c0] : tensor<1x128xf32>, memref<128xf32>
  tile.store %2, %z[%c0] : tensor<1x1xf32>, memref<1xf32>
  tile.return
}
