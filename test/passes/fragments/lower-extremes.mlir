// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s
// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s --check-prefix=ROLES

// Each lane of a warp reads two of the 64 integers, those beyond the last one as
// that one, and all lanes combine what they have found.
// CHECK-LABEL: tile.program @of_block(
// CHECK-DAG:     %[[LAST:.*]] = arith.subi %arg0, %{{.*}} : index
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         %[[LANE:.*]] = arith.remui %[[THREAD]], %{{.*}} : index
// CHECK:         %[[PLACE:.*]] = arith.minsi %{{.*}}, %[[LAST]] : index
// CHECK:         %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}]
// CHECK:         %[[ONE:.*]] = llvm.load %[[ADDRESS]]
// CHECK:         %[[OTHER:.*]] = llvm.load
// CHECK:         arith.minsi %[[ONE]], %[[OTHER]] : i32
// CHECK:         arith.maxsi %[[ONE]], %[[OTHER]] : i32
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
// CHECK:         tile.return
tile.program @of_block(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]},
                       %y: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 64 : i64},
                schedule = #tile.launch<threads = 64>} {
  %c1 = arith.constant 1 : index
  %least, %greatest = tile.extremes %x[%c1] along 0 count 64 end %n : memref<?xi32>
  %of_least = tile.broadcast %least : i32 -> tensor<1x8xi32, #tile.mma<warps = 2>>
  %of_greatest = tile.broadcast %greatest : i32 -> tensor<1x8xi32, #tile.mma<warps = 2>>
  %both = arith.addi %of_least, %of_greatest : tensor<1x8xi32, #tile.mma<warps = 2>>
  tile.store %both, %y[%c1] : tensor<1x8xi32, #tile.mma<warps = 2>>, memref<?xi32>
  tile.return
}

// -----

// A role of one thread has a loop.
// ROLES-LABEL: tile.program @of_roles(
// ROLES:         scf.for
// ROLES:           llvm.load
// ROLES:           arith.minsi %{{.*}} : i32
// ROLES:           arith.maxsi %{{.*}} : i32
// Of a role of one warp, no thread goes on before all have seen the phase.
// ROLES:         nvvm.mbarrier.try_wait
// ROLES:         nvvm.bar.warp.sync
tile.program @of_roles(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]},
                       %y: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 64 : i64},
                schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %barriers = tile.make_barriers arrivals 1 : !tile.barriers<1>
  tile.synchronize
  tile.roles warps [1, 1] threads [1, 32] {
    %least, %greatest = tile.extremes %x[%c0] along 0 count 64 end %n : memref<?xi32>
    %sum = arith.addi %least, %greatest : i32
    %index = arith.index_cast %sum : i32 to index
    tile.arrive at %barriers[%index] : !tile.barriers<1>
  }, {
    tile.await %barriers[%c0] parity %c0 : !tile.barriers<1>
  }
  tile.return
}
