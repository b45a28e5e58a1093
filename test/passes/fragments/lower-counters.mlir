// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s --check-prefixes=CHECK,BOXES
// RUN: tile-opt %s --lower-tiles=target=sm_80 --canonicalize --cse -split-input-file | FileCheck %s --check-prefixes=CHECK,PLAIN

// The block's first thread waits for the count, and the others for it. Where the
// target copies boxes, those that begin later see what others wrote; and before a
// count is released, those that have begun have written.
// CHECK-LABEL: tile.program @turns(
// CHECK-SAME:      %[[N:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr<1>
// CHECK-SAME:      %[[TURNS:[^:]*]]: !llvm.ptr<1> {tile.counters = {n = 64 : i64}})
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         %[[IS_FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %[[C0]]
// CHECK:         scf.if %[[IS_FIRST]] {
// CHECK-NEXT:      %[[PLACE:.*]] = arith.index_castui %[[N]] : index to i64
// CHECK-NEXT:      %[[COUNTER:.*]] = llvm.getelementptr %[[TURNS]][%[[PLACE]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
// CHECK-NEXT:      tile.poll_count %[[COUNTER]], %[[C1]] : !llvm.ptr<1>
// BOXES-NEXT:      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK:         llvm.intr.masked.store
// CHECK:         gpu.barrier
// CHECK-NEXT:    scf.if %[[IS_FIRST]] {
// BOXES-NEXT:      nvvm.cp.async.bulk.wait_group 0
// BOXES-NOT:       read
// PLAIN-NOT:       nvvm
// CHECK:           tile.publish_count %{{.*}}, %[[C2]] : !llvm.ptr<1>
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.return
!row = tensor<1x8xf32, #tile.mma<warps = 2>>
tile.program @turns(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"]},
    %turns: memref<?xi32> {tile.counters = {n = 64 : i64}})
    attributes {dimensions = ["n"], programs = {n = 64 : i64},
                schedule = #tile.launch<threads = 64>} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  tile.await_count %turns[%n] reaches %c1 : memref<?xi32>
  %0 = tile.load %x[%n] : memref<?xf32> -> !row
  tile.store %0, %x[%n] : !row, memref<?xf32>
  tile.release_count %turns[%n] to %c2 : memref<?xi32>
  tile.return
}

// The copies that began last may go on.
// CHECK-LABEL: tile.program @pending(
// BOXES:         nvvm.cp.async.bulk.wait_group 1
// BOXES-NOT:     read
// CHECK:         tile.publish_count
tile.program @pending(%n: index, %turns: memref<?xi32> {tile.counters = {n = 64 : i64}})
    attributes {dimensions = ["n"], programs = {n = 64 : i64},
                schedule = #tile.launch<threads = 64>} {
  %c2 = arith.constant 2 : index
  tile.release_count %turns[%n] to %c2 pending 1 : memref<?xi32>
  tile.return
}
