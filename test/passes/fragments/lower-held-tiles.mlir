// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

!sum = tensor<64x16xf32, #tile.mma<warps = 4>>

// Each thread moves two pieces at once, 16 bytes, which lie as far apart as all
// threads' together. What is sent goes to the same place in the other block, whose
// barrier counts it.
// CHECK:       llvm.mlir.global external @send_shared() {addr_space = 3 : i32, alignment = 16 : i64}
// CHECK-LABEL: tile.program @send(
// CHECK-SAME:      %[[N:[^:]*]]: index
// CHECK-DAG:     %[[MEMORY:.*]] = llvm.mlir.addressof @send_shared
// CHECK-DAG:     %[[BARRIER:.*]] = llvm.mlir.addressof @send_scratch0
// CHECK-DAG:     %[[UNIT:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[TILE:.*]] = arith.constant 4096 : index
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
tile.program @send(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 128, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !sum
  %buffer = tile.buffer {offset = 0 : i64} : memref<2x64x16xf32, #tile.held>
  %barrier = tile.make_barriers arrivals 1 : !tile.barriers<1>
  tile.announce_block
  tile.synchronize
  tile.await_blocks
  // CHECK:     %[[SLOT:.*]] = arith.muli %[[N]], %[[TILE]]
  // CHECK:     %[[OWN:.*]] = arith.muli %[[THREAD]], %[[UNIT]]
  // CHECK:     %[[OFFSET:.*]] = arith.addi %[[SLOT]], %[[OWN]]
  // CHECK:     %[[OFFSET32:.*]] = arith.index_castui %[[OFFSET]]
  // CHECK:     %[[FIRST:.*]] = llvm.getelementptr %[[MEMORY]][%[[OFFSET32]]]
  // CHECK:     llvm.store %{{.*}}, %[[FIRST]] {alignment = 16 : i64} : vector<4xf32>
  // CHECK:     %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][2048]
  // CHECK:     llvm.store %{{.*}}, %[[SECOND]] {alignment = 16 : i64} : vector<4xf32>
  tile.keep %zero, %buffer[%n] : !sum, memref<2x64x16xf32, #tile.held>
  // CHECK:     %[[THERE:.*]] = nvvm.mapa %[[FIRST]], %[[BLOCK:.*]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK:     %[[BARRIER_THERE:.*]] = nvvm.mapa %[[BARRIER]], %[[BLOCK]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK:     llvm.inline_asm has_side_effects {{.*}}"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [$0], {$1, $2, $3, $4}, [$5];", "l,r,r,r,r,l,~{memory}" %[[THERE]], {{.*}}, %[[BARRIER_THERE]]
  // CHECK:     %[[NEXT:.*]] = llvm.getelementptr %[[THERE]][2048]
  // CHECK:     llvm.inline_asm {{.*}} %[[NEXT]], {{.*}}, %[[BARRIER_THERE]]
  tile.send %zero to %buffer[%n] block %n arrive %barrier[%c0]
      : !sum, memref<2x64x16xf32, #tile.held>, !tile.barriers<1>
  // CHECK:     llvm.load %[[FIRST]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK:     llvm.load %[[SECOND]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  %0 = tile.take %buffer[%n] : memref<2x64x16xf32, #tile.held> -> !sum
  tile.keep %0, %buffer[%c0] : !sum, memref<2x64x16xf32, #tile.held>
  tile.return
}
