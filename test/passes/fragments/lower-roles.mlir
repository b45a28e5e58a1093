// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// Roles become branches on the number of the warp, which all lanes take
// together. Registers change only where a block has begun with other numbers of
// them: 65536 for 384 threads are 168 each. One thread of a role arrives, or the
// first one of each warpgroup. Threads of a role wait at a barrier of its own.
// CHECK-LABEL: tile.program @roles(
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[WARP32:[^,]*]], %{{.*}} = gpu.shuffle idx
// CHECK-DAG:     %[[WARP:.*]] = arith.index_castui %[[WARP32]] : i32 to index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[ARRIVALS:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 4096 : i32
// CHECK-DAG:     %[[ROLE2:.*]] = arith.constant 3 : i32
// CHECK-DAG:     %[[BARRIERS:.*]] = llvm.mlir.addressof @roles_scratch0
// CHECK:         scf.if
// CHECK-NEXT:      nvvm.mbarrier.init %[[BARRIERS]], %[[ARRIVALS]]
// CHECK-NEXT:      %[[NEXT:.*]] = llvm.getelementptr %[[BARRIERS]][1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
// CHECK-NEXT:      nvvm.mbarrier.init %[[NEXT]], %[[ARRIVALS]]
// CHECK:           nvvm.mbarrier.init
// CHECK-NEXT:      nvvm.fence.mbarrier.init
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[FIRST:.*]] = arith.cmpi ult, %[[WARP]], %[[C4]]
// CHECK-NEXT:    scf.if %[[FIRST]] {
// CHECK-NEXT:      nvvm.setmaxregister decrease 24
// CHECK-NEXT:      %[[ACTIVE:.*]] = arith.cmpi ult, %[[THREAD]], %{{.*}}
// CHECK-NEXT:      scf.if %[[ACTIVE]] {
// CHECK-NEXT:        %[[EXPECTING:.*]] = llvm.getelementptr %[[BARRIERS]][1]
// CHECK-NEXT:        nvvm.mbarrier.arrive.expect_tx %[[EXPECTING]], %[[BYTES]]
// CHECK-NEXT:        %[[THIRD:.*]] = llvm.getelementptr %[[BARRIERS]][2]
// CHECK-NEXT:        nvvm.mbarrier.arrive %[[THIRD]]
// CHECK-NEXT:      }
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[SECOND:.*]] = arith.cmpi ult, %[[WARP]], %[[C8]]
// CHECK-NEXT:      scf.if %[[SECOND]] {
// CHECK-NEXT:        %[[ACTIVE:.*]] = arith.cmpi ult, %[[THREAD]], %[[C192:.*]] :
// CHECK-NEXT:        scf.if %[[ACTIVE]] {
// CHECK:               %[[OWN:.*]] = arith.subi %[[THREAD]], %[[C128:.*]] :
// CHECK-NEXT:          %[[IS_FIRST:.*]] = arith.cmpi eq, %[[OWN]], %{{.*}}
// CHECK-NEXT:          scf.if %[[IS_FIRST]] {
// CHECK-NEXT:            nvvm.mbarrier.arrive
// CHECK-NEXT:          }
// CHECK-NEXT:          nvvm.barrier id = %[[ARRIVALS]] number_of_threads = %{{.*}}
// CHECK-NEXT:        }
// CHECK-NEXT:      } else {
// CHECK-NEXT:        nvvm.setmaxregister increase 240
// CHECK:             %[[OWN:.*]] = arith.subi %[[THREAD]], %[[C256:.*]] :
// CHECK-NEXT:        %[[OF_GROUP:.*]] = arith.remui %[[OWN]], %[[C128]]
// CHECK-NEXT:        %[[ARRIVES:.*]] = arith.cmpi ult, %[[OF_GROUP]], %{{.*}}
// CHECK-NEXT:        scf.if %[[ARRIVES]] {
// CHECK-NEXT:          nvvm.mbarrier.arrive
// CHECK-NEXT:        }
// CHECK-NEXT:        nvvm.barrier id = %[[ROLE2]] number_of_threads = %{{.*}}
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.return
tile.program @roles(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 384>} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %barriers = tile.make_barriers arrivals 2 : !tile.barriers<3>
  tile.roles warps [4, 4, 4] threads [1, 64, 128] registers [24, 168, 240] {
    tile.expect 4096 bytes at %barriers[%c1] : !tile.barriers<3>
    tile.arrive at %barriers[%c2] : !tile.barriers<3>
    // Nobody else is there to wait for.
    tile.synchronize
  }, {
    tile.arrive at %barriers[%c2] : !tile.barriers<3>
    tile.synchronize
  }, {
    tile.arrive at %barriers[%c2] : !tile.barriers<3>
    tile.synchronize
  }
  tile.return
}

// -----

// All threads have the only role.
// CHECK-LABEL: tile.program @one_role(
// CHECK-NOT:     scf.if
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads
tile.program @one_role(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 128>} {
  tile.roles warps [4] threads [128] {
    tile.synchronize
  }
  tile.return
}

// -----

// Roles that share a warpgroup part once all its warps have set their registers.
// CHECK-LABEL: tile.program @shared_warpgroup(
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK:         %[[SHARED:.*]] = arith.cmpi ult, %[[WARP:.*]], %[[C4]]
// CHECK-NEXT:    scf.if %[[SHARED]] {
// CHECK-NEXT:      nvvm.setmaxregister decrease 24
// CHECK-NEXT:      %[[FIRST:.*]] = arith.cmpi ult, %[[WARP]], %[[C2]]
// CHECK-NEXT:      scf.if %[[FIRST]] {
// CHECK-NOT:         nvvm.setmaxregister
// CHECK:           } else {
// CHECK-NOT:         nvvm.setmaxregister
// CHECK:         } else {
// CHECK-NEXT:      nvvm.setmaxregister increase 240
tile.program @shared_warpgroup(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 384>} {
  %c1 = arith.constant 1 : index
  %barriers = tile.make_barriers arrivals 2 : !tile.barriers<3>
  tile.roles warps [2, 2, 8] threads [32, 1, 256] registers [24, 24, 240] {
    tile.arrive at %barriers[%c1] : !tile.barriers<3>
  }, {
    tile.arrive at %barriers[%c1] : !tile.barriers<3>
  }, {
    tile.synchronize
  }
  tile.return
}

// -----

// The last of three warpgroups gives the first turn to the first one. Each waits
// at its own barrier, whose other arrivals are those of the warpgroup before.
// CHECK-LABEL: tile.program @turns(
// CHECK-DAG:     %[[BOTH:.*]] = arith.constant 256 : i32
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant 5 : index
// CHECK-DAG:     %[[FIRST32:.*]] = arith.constant 5 : i32
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[COUNT:.*]] = arith.constant 3 : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK:         } else {
// CHECK-NEXT:      %[[WARP:.*]] = arith.subi %{{.*}}, %[[C4]]
// CHECK-NEXT:      %[[OWN:.*]] = arith.divui %[[WARP]], %[[C4]]
// CHECK-NEXT:      %[[IS_LAST:.*]] = arith.cmpi eq, %[[OWN]], %[[LAST]]
// CHECK-NEXT:      scf.if %[[IS_LAST]] {
// CHECK-NEXT:        nvvm.barrier.arrive id = %[[FIRST32]] number_of_threads = %[[BOTH]]
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[OWN_BARRIER:.*]] = arith.addi %[[OWN]], %[[FIRST]]
// CHECK-NEXT:      %[[ID:.*]] = arith.index_castui %[[OWN_BARRIER]]
// CHECK-NEXT:      nvvm.barrier id = %[[ID]] number_of_threads = %[[BOTH]]
// CHECK-NEXT:      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[OWN]], %[[C1]]
// CHECK-NEXT:      %[[WRAPS:.*]] = arith.cmpi eq, %[[NEXT]], %[[COUNT]]
// CHECK-NEXT:      %[[TO:.*]] = arith.select %[[WRAPS]], %[[C0]], %[[NEXT]]
// CHECK-NEXT:      %[[NEXT_BARRIER:.*]] = arith.addi %[[TO]], %[[FIRST]]
// CHECK-NEXT:      %[[ID:.*]] = arith.index_castui %[[NEXT_BARRIER]]
// CHECK-NEXT:      nvvm.barrier.arrive id = %[[ID]] number_of_threads = %[[BOTH]]
tile.program @turns(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 512>} {
  tile.roles warps [4, 12] threads [1, 384] {
  }, {
    tile.take_turn
    tile.fence_shared
    tile.pass_turn
  }
  tile.return
}

// -----

// In a cluster, one thread arrives in each block, or the first threads of each
// warpgroup in one block each.
// CHECK-LABEL: tile.program @cluster(
// CHECK-DAG:     %[[BARRIER:.*]] = llvm.mlir.addressof @cluster_scratch0
// CHECK-DAG:     %[[BLOCKS:.*]] = arith.constant 2 : index
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK:         %[[BLOCK0:.*]] = nvvm.mapa %[[BARRIER]], %{{.*}}
// CHECK-NEXT:    nvvm.mbarrier.arrive %[[BLOCK0]] : !llvm.ptr<7>
// CHECK-NEXT:    %[[BLOCK1:.*]] = nvvm.mapa %[[BARRIER]], %{{.*}}
// CHECK-NEXT:    nvvm.mbarrier.arrive %[[BLOCK1]] : !llvm.ptr<7>
// CHECK:         %[[THREAD:.*]] = arith.remui
// CHECK-NEXT:    %[[ARRIVES:.*]] = arith.cmpi ult, %[[THREAD]], %[[BLOCKS]]
// CHECK-NEXT:    scf.if %[[ARRIVES]] {
// CHECK-NEXT:      %[[BLOCK:.*]] = arith.index_castui %[[THREAD]]
// CHECK-NEXT:      %[[THERE:.*]] = nvvm.mapa %[[BARRIER]], %[[BLOCK]]
// CHECK-NEXT:      nvvm.mbarrier.arrive %[[THERE]] : !llvm.ptr<7>
// CHECK-NEXT:    }
tile.program @cluster(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 256, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %barriers = tile.make_barriers arrivals 2 : !tile.barriers<1>
  tile.synchronize cluster
  tile.roles warps [4, 4] threads [1, 128] {
    tile.arrive at %barriers[%c0] cluster : !tile.barriers<1>
  }, {
    tile.arrive at %barriers[%c0] cluster : !tile.barriers<1>
  }
  tile.return
}

// -----

// A wait asks until the phase has ended, and gives the slot of each buffer. A
// block without a cluster has rank 0.
// CHECK:       llvm.mlir.global external @wait_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: tile.program @wait(
// CHECK-SAME:      %[[SLOT:[^:]*]]: index,
// CHECK-DAG:     %[[BARRIERS:.*]] = llvm.mlir.addressof @wait_scratch0
// CHECK-DAG:     %[[MEMORY:.*]] = llvm.mlir.addressof @wait_shared
// CHECK-DAG:     %[[BUFFER:.*]] = llvm.getelementptr %[[MEMORY]][2048]
// CHECK-DAG:     %[[PARITY:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 8192 : index
// CHECK:         gpu.barrier
// CHECK:         %[[BARRIER:.*]] = llvm.getelementptr %[[BARRIERS]][%{{.*}}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
// CHECK-NEXT:    scf.while
// CHECK-NEXT:      %[[DONE:.*]] = nvvm.mbarrier.try_wait %[[BARRIER]], %[[PARITY]]
// CHECK-NEXT:      %[[LEFT:.*]] = arith.xori %[[DONE]]
// CHECK-NEXT:      scf.condition(%[[LEFT]])
// CHECK:         %[[OFFSET:.*]] = arith.muli %[[SLOT]], %[[BYTES]]
// CHECK-NEXT:    %[[OFFSET32:.*]] = arith.index_castui %[[OFFSET]]
// CHECK-NEXT:    %[[TILE:.*]] = llvm.getelementptr %[[BUFFER]][%[[OFFSET32]]]
// CHECK:         "tile.wgmma"(%[[TILE]], %[[TILE]])
!slots = memref<2x64x64xbf16, #tile.shared<swizzle = 128>>
!tile = memref<64x64xbf16, #tile.shared<swizzle = 128>>
tile.program @wait(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 32 : i64},
                schedule = #tile.launch<threads = 128>} {
  %rank = tile.block_rank
  %buffer = tile.buffer {offset = 2048 : i64} : !slots
  %barriers = tile.make_barriers arrivals 1 : !tile.barriers<2>
  tile.synchronize
  %tile = tile.await %barriers[%n] parity %rank of %buffer : !tile.barriers<2>, !slots -> !tile
  %dots = tile.dot %tile, %tile contract [1, 1]
      : !tile, !tile -> !tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>>
  tile.wait_dots 0 : () -> ()
  tile.return
}
