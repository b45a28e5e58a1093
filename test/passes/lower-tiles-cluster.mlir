// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// Blocks of a cluster announce themselves ahead of the loads and meet before
// they write: each of the first lanes of a warp into the memory of one block.
// One of them stores what all then know.
// CHECK:       llvm.mlir.global internal @cluster_scratch0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x f32>
// CHECK-LABEL: tile.kernel @cluster(
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[PART:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[BASE:.*]] = llvm.mlir.addressof @cluster_scratch0
// CHECK:         nvvm.cluster.arrive.relaxed {aligned}
// CHECK:         %[[RANK:.*]] = gpu.cluster_block_id x upper_bound 2
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[RANK]], %[[PART]]
// CHECK-NEXT:    arith.addi %[[FIRST]],
// CHECK:         llvm.load
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK-COUNT-5: gpu.shuffle
// CHECK-NOT:     gpu.shuffle
// CHECK:         %[[LANE:.*]] = arith.remui
// CHECK-NEXT:    %[[WARP:.*]] = arith.divui
// CHECK:         %[[WARPS:.*]] = arith.muli %{{.*}}, %[[TWO]]
// CHECK-NEXT:    %[[SLOT:.*]] = arith.addi %[[WARPS]], %[[WARP]]
// CHECK-NEXT:    %[[STORES:.*]] = arith.cmpi ult, %[[LANE]], %[[TWO]]
// CHECK-NEXT:    scf.if %[[STORES]] {
// CHECK-NEXT:      %[[CLAMPED:.*]] = arith.minui %[[LANE]], %[[ONE]]
// CHECK-NEXT:      %[[BLOCK:.*]] = arith.index_castui %[[CLAMPED]] : index to i32
// CHECK-NEXT:      %[[REMOTE:.*]] = nvvm.mapa %[[BASE]], %[[BLOCK]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-NEXT:      %[[INDEX:.*]] = arith.index_castui %[[SLOT]] : index to i32
// CHECK-NEXT:      %[[ADDRESS:.*]] = llvm.getelementptr %[[REMOTE]][%[[INDEX]]]
// CHECK-NEXT:      llvm.store %{{.*}}, %[[ADDRESS]] : f32, !llvm.ptr<7>
// CHECK-NEXT:    }
// CHECK-NEXT:    nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     gpu.barrier
// CHECK:         arith.andi
// CHECK:         llvm.intr.masked.store
tile.kernel @cluster(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                     %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.schedule<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Having met for one reduction, the blocks need not for the next.
// CHECK-LABEL: tile.kernel @reductions_in_cluster(
// CHECK-COUNT-3: nvvm.cluster.arrive
// CHECK-NOT:     nvvm.cluster.arrive
// CHECK:         tile.return
tile.kernel @reductions_in_cluster(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                                   %y: memref<?x1xf32, strided<[?, 1]>>,
                                   %z: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.schedule<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %2 = tile.reduce min %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.store %2, %z[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// In a loop they meet in every iteration, so that nobody overwrites what
// another still reads.
// CHECK-LABEL: tile.kernel @cluster_in_loop(
// CHECK-NOT:     nvvm.cluster
// CHECK:         scf.for
// CHECK-NEXT:      nvvm.cluster.arrive {aligned}
// CHECK:           llvm.load
// CHECK:           nvvm.cluster.wait {aligned}
// CHECK:           llvm.store %{{.*}} : f32, !llvm.ptr<7>
// CHECK:           nvvm.cluster.arrive {aligned}
// CHECK-NEXT:      nvvm.cluster.wait {aligned}
// CHECK-NOT:     nvvm.cluster
// CHECK:         tile.return
tile.kernel @cluster_in_loop(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                             %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.schedule<rows = 1, threads = 64, vector = 4, columns = 512, persistent = 1, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %count = tile.program_count
  scf.for %row = %id to %rows step %count {
    %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
    %1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
    tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  }
  tile.return
}

// -----

// A reduction after a loop with one of its own arrives behind that loop: a
// thread waits before it arrives again.
// CHECK-LABEL: tile.kernel @cluster_after_loop(
// CHECK:         scf.for
// CHECK-NEXT:      nvvm.cluster.arrive
// CHECK:           nvvm.cluster.wait
// CHECK:           nvvm.cluster.arrive
// CHECK-NEXT:      nvvm.cluster.wait
// CHECK:           llvm.intr.masked.store {{.*}} into !llvm.ptr<1>{{$}}
// CHECK-NEXT:    }
// CHECK-NEXT:    nvvm.cluster.arrive.relaxed
// CHECK:         nvvm.cluster.wait
// CHECK:         nvvm.cluster.arrive
// CHECK-NEXT:    nvvm.cluster.wait
// CHECK:         tile.return
tile.kernel @cluster_after_loop(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                                %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.schedule<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = tile.load %x[%c0, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  scf.for %row = %c0 to %rows step %c1 {
    %1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
    tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  }
  %2 = tile.reduce min %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  tile.store %2, %y[%c0, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Of more partial results than lanes, each lane combines several.
// CHECK-LABEL: tile.kernel @many_partials(
// CHECK:         llvm.store %{{.*}} : f32, !llvm.ptr<7>
// CHECK-COUNT-3: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     llvm.load
// CHECK:         arith.select
// CHECK-COUNT-5: gpu.shuffle
// CHECK-NOT:     gpu.shuffle
// CHECK:         tile.return
tile.kernel @many_partials(%rows: index, %x: memref<?x9216xf32, strided<[?, 1]>>,
                           %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.schedule<rows = 1, threads = 288, vector = 4, columns = 9216, cluster = 8>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x9216xf32, strided<[?, 1]>> -> tensor<1x9216xf32>
  %1 = tile.reduce add %0 : tensor<1x9216xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}
