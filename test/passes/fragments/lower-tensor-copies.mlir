// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// One thread copies a box for each panel of the slot, the second one 128 bytes
// further along the rows. The operand's description is passed by value.
// CHECK:       llvm.mlir.global external @panels_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: tile.program @panels(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index,
// CHECK-SAME:      %[[X:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, tile.dimensions = ["m", "k"]})
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[BARRIERS:.*]] = llvm.mlir.addressof @panels_scratch0
// CHECK-DAG:     %[[BUFFER:.*]] = llvm.mlir.addressof @panels_shared
// CHECK-DAG:     %[[IS_FIRST:.*]] = arith.cmpi eq
// CHECK:         nvvm.fence.mbarrier.init
// CHECK:         scf.if %[[IS_FIRST]] {
// CHECK-DAG:       %[[SLOT:.*]] = llvm.getelementptr %[[BUFFER]][16384]
// CHECK-DAG:       %[[BARRIER:.*]] = llvm.getelementptr %[[BARRIERS]][1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
// CHECK-DAG:       %[[TARGET:.*]] = llvm.addrspacecast %[[SLOT]] : !llvm.ptr<3> to !llvm.ptr<7>
// CHECK-DAG:       %[[COLUMN:.*]] = arith.index_castui %[[K]]
// CHECK-DAG:       %[[ROW:.*]] = arith.index_castui %[[M]]
// CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TARGET]], %[[X]], %[[BARRIER]], box[%[[COLUMN]], %[[ROW]]] : !llvm.ptr<7>, !llvm.ptr
// CHECK-NEXT:      %[[PANEL:.*]] = llvm.getelementptr %[[SLOT]][8192]
// CHECK-NEXT:      %[[TARGET:.*]] = llvm.addrspacecast %[[PANEL]]
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[K]], %[[C64]]
// CHECK-NEXT:      %[[COLUMN:.*]] = arith.index_castui %[[NEXT]]
// CHECK-NEXT:      nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TARGET]], %[[X]], %[[BARRIER]], box[%[[COLUMN]], %[[ROW]]]
// CHECK-NEXT:    }
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
!slots = memref<2x64x128xbf16, #tile.shared<swizzle = 128>>
tile.program @panels(%m: index, %k: index, %x: !map {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c1 = arith.constant 1 : index
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  %full = tile.make_barriers arrivals 1 : !tile.barriers<2>
  tile.copy_box %x[%m, %k] to %buffer[%c1] arrive %full[%c1] : !map, !slots, !tile.barriers<2>
  tile.return
}

// -----

// A box of four dimensions makes rows of the slot from row `row` on, in each block
// of the mask. The only thread of a role needs no branch of its own.
// CHECK-LABEL: tile.program @multicast(
// CHECK-SAME:      %[[B:[^:]*]]: index, %[[H:[^:]*]]: index, %[[N:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[MASK:.*]] = arith.constant 3 : i16
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 4096 : index
// CHECK-DAG:     %[[BARRIER:.*]] = llvm.mlir.addressof @multicast_scratch0
// CHECK-DAG:     %[[BUFFER:.*]] = llvm.mlir.addressof @multicast_shared
// CHECK:         %[[RANK:.*]] = gpu.cluster_block_id x upper_bound 2
// CHECK:         scf.if
// CHECK-NEXT:      %[[OFFSET:.*]] = arith.muli %[[RANK]], %[[HALF]]
// CHECK-NEXT:      %[[OFFSET32:.*]] = arith.index_castui %[[OFFSET]]
// CHECK-NEXT:      %[[ROWS:.*]] = llvm.getelementptr %[[BUFFER]][%[[OFFSET32]]]
// CHECK-NEXT:      %[[TARGET:.*]] = llvm.addrspacecast %[[ROWS]]
// CHECK-DAG:       %[[N32:.*]] = arith.index_castui %[[N]]
// CHECK-DAG:       %[[H32:.*]] = arith.index_castui %[[H]]
// CHECK-DAG:       %[[B32:.*]] = arith.index_castui %[[B]]
// CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TARGET]], %[[X]], %[[BARRIER]], box[%[[ZERO]], %[[N32]], %[[H32]], %[[B32]]] multicast_mask = %[[MASK]]
// CHECK-NEXT:    }
!map = !tile.tensor_map<memref<?x?x?x32xbf16, strided<[?, ?, ?, 1]>>, box = [1, 2, 32, 32], swizzle = 64>
!slots = memref<1x128x32xbf16, #tile.shared<swizzle = 64>>
tile.program @multicast(%b: index, %h: index, %n: index, %x: !map {tile.dimensions = ["b", "h", "n", 32]})
    attributes {dimensions = ["b", "h", "n"], programs = {n = 64 : i64},
                schedule = #tile.launch<threads = 128, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c64 = arith.constant 64 : index
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  %rank = tile.block_rank
  %row = arith.muli %rank, %c64 : index
  tile.roles warps [4] threads [1] {
    tile.copy_box %x[%b, %h, %n, %c0] to %buffer[%c0] row %row arrive %full[%c0] blocks %c3
        : !map, !slots, !tile.barriers<1>
  }
  tile.return
}

// -----

// The copies of a tile to memory form one group; a wait is for their reads.
// CHECK-LABEL: tile.program @stores(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[BUFFER:.*]] = llvm.mlir.addressof @stores_shared
// CHECK:         scf.if %[[IS_FIRST:.*]] {
// CHECK-DAG:       %[[SLOT:.*]] = llvm.getelementptr %[[BUFFER]][16384]
// CHECK-DAG:       %[[COLUMN:.*]] = arith.index_castui %[[K]]
// CHECK-DAG:       %[[ROW:.*]] = arith.index_castui %[[M]]
// CHECK:           nvvm.cp.async.bulk.tensor.global.shared.cta %[[X]], %[[SLOT]], box[%[[COLUMN]], %[[ROW]]]
// CHECK-DAG:       %[[PANEL:.*]] = llvm.getelementptr %[[SLOT]][8192]
// CHECK-DAG:       %[[NEXT:.*]] = arith.addi %[[K]], %[[C32]]
// CHECK-DAG:       %[[COLUMN:.*]] = arith.index_castui %[[NEXT]]
// CHECK:           nvvm.cp.async.bulk.tensor.global.shared.cta %[[X]], %[[PANEL]], box[%[[COLUMN]], %[[ROW]]]
// CHECK-NEXT:      nvvm.cp.async.bulk.commit.group
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.if %[[IS_FIRST]] {
// CHECK-NEXT:      nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-NEXT:    }
!map = !tile.tensor_map<memref<?x?xf32, strided<[?, 1]>>, box = [64, 32], swizzle = 128>
!slots = memref<2x64x64xf32, #tile.shared<swizzle = 128>>
tile.program @stores(%m: index, %k: index, %x: !map {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c1 = arith.constant 1 : index
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  tile.store_box %buffer[%c1] to %x[%m, %k] : !slots, !map
  tile.wait_stores 1
  tile.return
}

// -----

// Each warp copies its 16 rows once all of its threads have come, and its threads
// go on once the copy has read them. 16 rows of 128 bytes lie 2048 bytes apart.
// CHECK-LABEL: tile.program @stores_of_warps(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 2048 : index
// CHECK-DAG:     %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[BUFFER:.*]] = llvm.mlir.addressof @stores_of_warps_shared
// CHECK-DAG:     %[[LANES:.*]] = arith.constant 32 : index
// CHECK:         %[[UNIFORM:.*]], %{{.*}} = gpu.shuffle idx
// CHECK-NEXT:    %[[WARP:.*]] = arith.index_castui %[[UNIFORM]]
// CHECK-NEXT:    nvvm.bar.warp.sync %[[ALL]]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[WARP]], %[[ROWS]]
// CHECK-NEXT:    %[[LANE:.*]] = arith.remui %{{.*}}, %[[LANES]]
// CHECK-NEXT:    %[[IS_FIRST:.*]] = arith.cmpi eq, %[[LANE]]
// CHECK-NEXT:    scf.if %[[IS_FIRST]] {
// CHECK-NEXT:      %[[OFFSET:.*]] = arith.muli %[[WARP]], %[[BYTES]]
// CHECK-NEXT:      %[[OFFSET32:.*]] = arith.index_castui %[[OFFSET]]
// CHECK-NEXT:      %[[SOURCE:.*]] = llvm.getelementptr %[[BUFFER]][%[[OFFSET32]]]
// CHECK-NEXT:      %[[COLUMN:.*]] = arith.index_castui %[[K]]
// CHECK-NEXT:      %[[ROW:.*]] = arith.addi %[[M]], %[[FIRST]]
// CHECK-NEXT:      %[[ROW32:.*]] = arith.index_castui %[[ROW]]
// CHECK-NEXT:      nvvm.cp.async.bulk.tensor.global.shared.cta %[[X]], %[[SOURCE]], box[%[[COLUMN]], %[[ROW32]]]
// CHECK-NEXT:      nvvm.cp.async.bulk.commit.group
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.if %[[IS_FIRST]] {
// CHECK-NEXT:      nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-NEXT:    }
// CHECK-NEXT:    nvvm.bar.warp.sync %[[ALL]]
!warp_map = !tile.tensor_map<memref<?x?xf32, strided<[?, 1]>>, box = [16, 32], swizzle = 128>
!warp_slots = memref<1x64x32xf32, #tile.shared<swizzle = 128>>
tile.program @stores_of_warps(%m: index, %k: index, %x: !warp_map {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : !warp_slots
  tile.store_box %buffer[%c0] to %x[%m, %k] warp : !warp_slots, !warp_map
  tile.wait_stores 1 warp
  tile.return
}

// -----

// Of a slot of two panels, both are added to the operand, as one group.
// CHECK-LABEL: tile.program @adds(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr
// CHECK:         nvvm.cp.async.bulk.tensor.reduce %[[X]], %{{.*}}, box[%{{.*}}, %{{.*}}] {redKind = #nvvm.tma_redux_kind<add>}
// CHECK:         nvvm.cp.async.bulk.tensor.reduce %[[X]], %{{.*}}, box[%{{.*}}, %{{.*}}] {redKind = #nvvm.tma_redux_kind<add>}
// CHECK-NEXT:    nvvm.cp.async.bulk.commit.group
!added = !tile.tensor_map<memref<?x?xf32, strided<[?, 1]>>, box = [32, 32], swizzle = 128>
!added_slots = memref<1x32x64xf32, #tile.shared<swizzle = 128>>
tile.program @adds(%m: index, %k: index, %x: !added {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : !added_slots
  tile.store_box %buffer[%c0] to %x[%m, %k] add : !added_slots, !added
  tile.wait_stores 0
  tile.return
}
