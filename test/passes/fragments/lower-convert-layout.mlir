// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// A single warp holds the same elements in both layouts: its registers change
// their order, and nothing is written or waited for.
// CHECK-LABEL: tile.program @own(
// CHECK-NOT:     llvm.mlir.addressof
// CHECK-NOT:     barrier
// CHECK:         tile.return
!matrix = memref<?x?xf32, strided<[?, 1]>>
tile.program @own(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 16 : i64},
                schedule = #tile.launch<threads = 32>} {
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%c0, %c0] : !matrix -> tensor<16x16xf32, #tile.mma<warps = 1>>
  %1 = tile.convert_layout %0 : tensor<16x16xf32, #tile.mma<warps = 1>>
      -> tensor<16x16xf32, #tile.blocked<vector = 2, threadRows = 8, threadColumns = 4>>
  %2 = arith.negf %1 : tensor<16x16xf32, #tile.blocked<vector = 2, threadRows = 8, threadColumns = 4>>
  %3 = tile.convert_layout %2
      : tensor<16x16xf32, #tile.blocked<vector = 2, threadRows = 8, threadColumns = 4>>
      -> tensor<16x16xf32, #tile.mma<warps = 1>>
  tile.store %3, %x[%c0, %c0] : tensor<16x16xf32, #tile.mma<warps = 1>>, !matrix
  tile.return
}

// -----

// Threads write what they hold, meet, and read what others held, after all have
// read what was there before. Rows of 256 bytes lie 288 bytes apart: so the rows of
// eight lanes that write pairs take turns in as few banks as can be.
// CHECK:       llvm.mlir.global internal @exchange_conversions0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<36864 x i8>
// CHECK-LABEL: tile.program @exchange(
// CHECK-DAG:     %[[PITCH:.*]] = arith.constant 288 : index
// CHECK-DAG:     %[[MEMORY:.*]] = llvm.mlir.addressof @exchange_conversions0
// CHECK:         arith.muli %{{.*}}, %[[PITCH]]
// CHECK:         %[[WRITES:.*]] = llvm.getelementptr %[[MEMORY]][
// CHECK:         gpu.barrier
// CHECK-NEXT:    llvm.store %{{.*}}, %[[WRITES]] {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
// CHECK-NEXT:    %[[LOWER:.*]] = llvm.getelementptr %[[WRITES]][2304]
// CHECK-NEXT:    llvm.store %{{.*}}, %[[LOWER]]
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.getelementptr %[[WRITES]][32]
// CHECK-NEXT:    llvm.store %{{.*}}, %[[NEXT]]
// CHECK-COUNT-13: llvm.store
// CHECK-NOT:     llvm.store
// CHECK:         gpu.barrier
// CHECK:         %[[READS:.*]] = llvm.getelementptr %[[MEMORY]][
// CHECK:         llvm.load %[[READS]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-NEXT:    %[[BELOW:.*]] = llvm.getelementptr %[[READS]][4608]
// CHECK-NEXT:    llvm.load %[[BELOW]]
// CHECK-COUNT-6: llvm.load
// CHECK-NOT:     llvm.load
// CHECK-COUNT-2: gpu.barrier
// CHECK-NOT:     gpu.barrier
!matrix = memref<?x?xf32, strided<[?, 1]>>
!blocked = tensor<128x64xf32, #tile.blocked<vector = 4, threadRows = 16, threadColumns = 16>>
tile.program @exchange(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 128 : i64},
                schedule = #tile.launch<threads = 256>} {
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #tile.mma<warps = 8>>
  %c0 = arith.constant 0 : index
  %0 = tile.convert_layout %zeros : tensor<128x64xf32, #tile.mma<warps = 8>> -> !blocked
  %1 = tile.convert_layout %0 : !blocked -> tensor<128x64xf32, #tile.mma<warps = 8>>
  tile.store %1, %x[%c0, %c0] : tensor<128x64xf32, #tile.mma<warps = 8>>, !matrix
  tile.return
}

// -----

// Each role has memory of its own, and its own barrier. A statistic is written by
// one of the threads that hold it.
// CHECK:       llvm.mlir.global internal @roles_conversions1()
// CHECK-LABEL: tile.program @roles(
// CHECK:         nvvm.barrier id = %[[ID:.*]] number_of_threads = %[[THREADS:.*]]
// CHECK-COUNT-2: llvm.intr.masked.store
// CHECK-NOT:     llvm.intr.masked.store
// CHECK:         nvvm.barrier id = %[[ID]] number_of_threads = %[[THREADS]]
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK-COUNT-2: nvvm.barrier id = %[[ID]] number_of_threads = %[[THREADS]]
!column = memref<?x1xf32, strided<[?, 1]>>
tile.program @roles(%m: index, %x: !column {tile.dimensions = ["m", 1]}) attributes {dimensions = ["m"], programs = {m = 64 : i64},
    schedule = #tile.launch<threads = 256>} {
  tile.roles warps [4, 4] threads [1, 128] {
  }, {
    %0 = arith.constant dense<0.0> : tensor<64x1xf32, #tile.mma<warps = 4>>
    %1 = tile.convert_layout %0 : tensor<64x1xf32, #tile.mma<warps = 4>>
        -> tensor<64x1xf32, #tile.blocked<vector = 1, threadRows = 64, threadColumns = 2>>
    %2 = tile.convert_layout %1
        : tensor<64x1xf32, #tile.blocked<vector = 1, threadRows = 64, threadColumns = 2>>
        -> tensor<64x1xf32, #tile.mma<warps = 4>>
    %c0 = arith.constant 0 : index
    tile.store %2, %x[%c0, %c0] : tensor<64x1xf32, #tile.mma<warps = 4>>, !column
  }
  tile.return
}
