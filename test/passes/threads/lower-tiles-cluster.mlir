// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// Blocks of a cluster ready their barriers, announce themselves ahead of the
// loads and meet before they send: each of the first lanes of the first warp to
// one block, whose barrier counts the bytes. All wait for these. One of them
// stores what all then know.
// CHECK-DAG:   llvm.mlir.global internal @cluster_scratch0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<2 x f32>
// CHECK-DAG:   llvm.mlir.global internal @cluster_scratch1() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<2 x f32>
// CHECK-DAG:   llvm.mlir.global internal @cluster_scratch2() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1 x i64>
// CHECK-LABEL: tile.program @cluster(
// CHECK-DAG:     %[[PART:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 8 : i32
// CHECK-DAG:     %[[BASE:.*]] = llvm.mlir.addressof @cluster_scratch1
// CHECK-DAG:     %[[BARRIER:.*]] = llvm.mlir.addressof @cluster_scratch2
// CHECK:         scf.if
// CHECK-NEXT:      nvvm.mbarrier.init %[[BARRIER]], %{{.*}}
// CHECK-NEXT:      nvvm.mbarrier.arrive.expect_tx %[[BARRIER]], %[[BYTES]]
// CHECK-NEXT:      nvvm.fence.mbarrier.init
// CHECK:         nvvm.cluster.arrive.relaxed {aligned}
// CHECK:         %[[RANK:.*]] = gpu.cluster_block_id x upper_bound 2
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[RANK]], %[[PART]]
// CHECK-NEXT:    arith.addi %[[FIRST]],
// CHECK:         llvm.load
// CHECK-COUNT-5: gpu.shuffle
// CHECK-NOT:     gpu.shuffle
// CHECK:         gpu.barrier
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         %[[SENDS:.*]] = arith.cmpi ult, %[[LANE:[^,]*]],
// CHECK-NEXT:    scf.if %[[SENDS]] {
// CHECK-NEXT:      %[[CLAMPED:.*]] = arith.minui %[[LANE]],
// CHECK-NEXT:      %[[BLOCK:.*]] = arith.index_castui %[[CLAMPED]] : index to i32
// CHECK-DAG:       %[[REMOTE:.*]] = nvvm.mapa %[[BASE]], %[[BLOCK]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-DAG:       %[[THERE:.*]] = nvvm.mapa %[[BARRIER]], %[[BLOCK]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK:           %[[ADDRESS:.*]] = llvm.getelementptr %[[REMOTE]]
// CHECK-NEXT:      llvm.inline_asm has_side_effects {tile.number = 0 : i64} "st.async{{.*}}" %[[ADDRESS]], %{{.*}}, %[[THERE]]
// CHECK-NEXT:    }
// CHECK:         scf.while
// CHECK-NEXT:      nvvm.mbarrier.try_wait %[[BARRIER]]
// CHECK-COUNT-2: llvm.load volatile %{{.*}} {{.*}}tile.number = 0 : i64} : !llvm.ptr<3> -> f32
// CHECK-NOT:     nvvm.cluster
// CHECK-NOT:     gpu.barrier
// CHECK:         llvm.intr.masked.store
tile.program @cluster(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                      %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %part1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %parts1:2 = tile.exchange %part1 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  %1 = arith.maximumf %parts1#0, %parts1#1 : tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Reductions that do not depend on each other are exchanged together.
// CHECK-LABEL: tile.program @reductions_in_cluster(
// CHECK:         nvvm.cluster.arrive
// CHECK:         nvvm.cluster.wait
// CHECK:         scf.if
// CHECK-COUNT-2:   st.async
// CHECK:         nvvm.mbarrier.try_wait
// CHECK-COUNT-4: llvm.load volatile
// CHECK-NOT:     nvvm.mbarrier.try_wait
// CHECK:         tile.return
tile.program @reductions_in_cluster(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                                    %y: memref<?x1xf32, strided<[?, 1]>>,
                                    %z: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %part1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %parts1:2 = tile.exchange %part1 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  %1 = arith.maximumf %parts1#0, %parts1#1 : tensor<1x1xf32>
  %part2 = tile.reduce min %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %parts2:2 = tile.exchange %part2 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  %2 = arith.minimumf %parts2#0, %parts2#1 : tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.store %2, %z[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Others are not, but the blocks meet once, however many reductions there are.
// CHECK-LABEL: tile.program @dependent_reductions_in_cluster(
// CHECK:         nvvm.cluster.arrive
// CHECK:         nvvm.cluster.wait
// CHECK-COUNT-2: nvvm.mbarrier.try_wait
// CHECK-NOT:     nvvm.cluster
// CHECK:         tile.return
tile.program @dependent_reductions_in_cluster(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                                              %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %part1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %parts1:2 = tile.exchange %part1 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  %1 = arith.maximumf %parts1#0, %parts1#1 : tensor<1x1xf32>
  %2 = tile.broadcast %1 : tensor<1x1xf32> -> tensor<1x512xf32>
  %3 = arith.subf %0, %2 : tensor<1x512xf32>
  %part2 = tile.reduce add %3 : tensor<1x512xf32> -> tensor<1x1xf32>
  %parts2:2 = tile.exchange %part2 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  %4 = arith.addf %parts2#0, %parts2#1 : tensor<1x1xf32>
  tile.store %4, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// In a loop, two places take turns, so that nobody overwrites what another still
// reads; a barrier that has counted one exchange expects the one after next.
// CHECK:       llvm.mlir.global internal @cluster_in_loop_scratch1() {{.*}} : !llvm.array<4 x f32>
// CHECK-LABEL: tile.program @cluster_in_loop(
// CHECK-COUNT-2: nvvm.mbarrier.arrive.expect_tx
// CHECK:         nvvm.cluster.arrive.relaxed
// CHECK:         nvvm.cluster.wait
// CHECK:         scf.for
// CHECK-NOT:       nvvm.cluster
// CHECK:           gpu.barrier
// CHECK:           %[[COUNT:.*]] = llvm.load {{.*}} -> i32
// CHECK:           arith.andi %[[COUNT]], %{{.*}} : i32
// CHECK-NEXT:      %[[ROUND:.*]] = arith.shrui %[[COUNT]], %{{.*}} : i32
// CHECK-NEXT:      %[[PARITY:.*]] = arith.andi %[[ROUND]], %{{.*}} : i32
// CHECK:           st.async
// CHECK:           nvvm.mbarrier.try_wait %[[BARRIER:[^,]*]], %[[PARITY]]
// CHECK:           scf.if
// CHECK-NEXT:        nvvm.mbarrier.arrive.expect_tx %[[BARRIER]]
// CHECK:         tile.return
tile.program @cluster_in_loop(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                              %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, persistent = 1, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %count = tile.program_count
  scf.for %row = %id to %rows step %count {
    %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
    %part1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
    %parts1:2 = tile.exchange %part1 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
    %1 = arith.maximumf %parts1#0, %parts1#1 : tensor<1x1xf32>
    tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  }
  tile.return
}

// -----

// For a loop and what follows it, too, one meeting is enough, ahead of both.
// CHECK-LABEL: tile.program @cluster_after_loop(
// CHECK:         nvvm.cluster.arrive.relaxed
// CHECK:         nvvm.cluster.wait
// CHECK:         scf.for
// CHECK-NOT:     nvvm.cluster
// CHECK:         tile.return
tile.program @cluster_after_loop(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                                 %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = tile.load %x[%c0, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  scf.for %row = %c0 to %rows step %c1 {
    %part1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
    %parts1:2 = tile.exchange %part1 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
    %1 = arith.maximumf %parts1#0, %parts1#1 : tensor<1x1xf32>
    tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  }
  %part2 = tile.reduce min %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %parts2:2 = tile.exchange %part2 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  %2 = arith.minimumf %parts2#0, %parts2#1 : tensor<1x1xf32>
  tile.store %2, %y[%c0, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// What each block has reduced is sent to both at once: by the first warp of a
// row, to the place of its number and block, and with one wait for all.
// CHECK-LABEL: tile.program @exchange(
// CHECK:         nvvm.cluster.arrive.relaxed
// CHECK:         gpu.barrier
// CHECK:         nvvm.cluster.wait
// CHECK-COUNT-2: st.async
// CHECK-COUNT-1: nvvm.mbarrier.try_wait
// CHECK-COUNT-4: llvm.load volatile
// CHECK-NOT:     try_wait
// CHECK:         tile.return
tile.program @exchange(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>,
                       %y: memref<?x1xf32, strided<[?, 1]>>,
                       %z: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %2 = tile.reduce min %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  %3:4 = tile.exchange %1, %2 : (tensor<1x1xf32>, tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
  %4 = arith.maximumf %3#0, %3#1 : tensor<1x1xf32>
  %5 = arith.minimumf %3#2, %3#3 : tensor<1x1xf32>
  tile.store %4, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.store %5, %z[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Where no column lies beyond the row, the pieces of a thread are a constant
// apart, so that they share one address.
// CHECK-LABEL: tile.program @pieces_in_cluster(
// CHECK:         llvm.load %[[FIRST:[^ ]*]]
// CHECK-NEXT:    %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][512]
// CHECK-NEXT:    llvm.load %[[SECOND]]
tile.program @pieces_in_cluster(%rows: index, %x: memref<?x1024xf32, strided<[?, 1]>>,
                                %y: memref<?x1024xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 1024, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x1024xf32, strided<[?, 1]>> -> tensor<1x1024xf32>
  tile.store %0, %y[%row, %c0] : tensor<1x1024xf32>, memref<?x1024xf32, strided<[?, 1]>>
  tile.return
}
