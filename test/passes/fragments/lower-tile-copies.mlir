// RUN: tile-opt %s --lower-tiles=target=sm_80 --canonicalize --cse -split-input-file | FileCheck %s

// 64 threads copy 32 rows of four pieces of 16 bytes: two pieces each. What lies
// beyond the operand comes from its first element, and no bytes of it.
// CHECK-LABEL: tile.program @aligned(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index,
// CHECK:         %[[LEFT:.*]] = arith.subi %[[K]], %[[COLUMN:.*]] : index
// CHECK:         %[[ELEMENTS:.*]] = arith.minui %[[LEFT]], %{{.*}} : index
// CHECK:         %[[SIZE:.*]] = arith.select %[[INSIDE:.*]], %{{.*}}, %{{.*}} : index
// CHECK:         %[[SIZE32:.*]] = arith.index_castui %[[SIZE]] : index to i32
// CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg, %[[SIZE32]]
// CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg
// CHECK-NOT:     cp.async.shared
// CHECK:         nvvm.cp.async.commit.group
tile.program @aligned(%m: index, %k: index,
    %x: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"], tile.alignment = 16 : i64})
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  %row = tile.program_id
  tile.copy_tile %x[%row, %c0] to %buffer[%c0] : memref<?x?xbf16, strided<[?, 1]>>, memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.commit_copies
  tile.return
}

// -----

// The operand's alignment is the most that is copied at once: 16 bytes in four parts,
// of which each has its own number of bytes in the operand. Elements of two bytes
// that nothing aligns go through registers, all of a piece together; only where the
// operand ends within the piece is each element asked about, and what lies beyond is
// not loaded: of an operand without elements, nothing may be.
// CHECK-LABEL: tile.program @less_aligned(
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[SIZE:[^,]*]], %{{.*}} : i32
// CHECK:         %[[FIRST:.*]] = arith.minsi %[[SOME]], %{{.*}} : i32
// CHECK:         nvvm.cp.async.shared.global %[[TO:.*]], %[[FROM:.*]], 4, cache =  ca, %[[FIRST]]
// CHECK:         %[[LEFT:.*]] = arith.subi %[[SIZE]], %{{.*}} : i32
// CHECK:         %[[MORE:.*]] = arith.maxsi %[[LEFT]], %{{.*}} : i32
// CHECK:         %[[SECOND:.*]] = arith.minsi %[[MORE]], %{{.*}} : i32
// CHECK-DAG:     %[[TO4:.*]] = llvm.getelementptr %[[TO]][4]
// CHECK-DAG:     %[[FROM4:.*]] = llvm.getelementptr %[[FROM]][4]
// CHECK:         nvvm.cp.async.shared.global %[[TO4]], %[[FROM4]], 4, cache =  ca, %[[SECOND]]
// CHECK-COUNT-6: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache =  ca
// CHECK-NOT:     cp.async.shared
// CHECK:         %[[PIECE:.*]] = scf.if %{{.*}} -> (vector<8xbf16>) {
// CHECK-COUNT-8:   llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> bf16
// CHECK:         } else {
// CHECK-NOT:       llvm.load
// CHECK-COUNT-8:   llvm.intr.masked.load %{{.*}} {alignment = 2 : i32}
// CHECK:         llvm.store %[[PIECE]], %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<3>
tile.program @less_aligned(%m: index, %k: index,
    %x: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"], tile.alignment = 4 : i64},
    %y: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.copy_tile %x[%c0, %c0] to %buffer[%c0] : memref<?x?xbf16, strided<[?, 1]>>, memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.copy_tile %y[%c0, %c0] to %buffer[%c0] : memref<?x?xbf16, strided<[?, 1]>>, memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.return
}

// -----

// Whole pieces are stored at once. Where the operand's rows end within the tile, a
// loop goes over the pieces again, and stores what is left of a row element by
// element.
// CHECK-LABEL: tile.program @stored(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index,
// CHECK-DAG:     %[[WIDTH:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[PIECES:.*]] = arith.constant 128 : index
// CHECK-DAG:     %[[THREADS:.*]] = arith.constant 64 : index
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xbf16>
// CHECK:         llvm.intr.masked.store {{.*}} {alignment = 16 : i32} : vector<8xi16>
// CHECK:         llvm.intr.masked.store {{.*}} {alignment = 16 : i32} : vector<8xi16>
// CHECK-NOT:     masked.store
// CHECK:         %[[CUT:.*]] = arith.cmpi ult, %[[K]], %[[WIDTH]] : index
// CHECK:         scf.if %[[CUT]]
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[PIECES]] step %[[THREADS]]
// CHECK:             scf.if
// CHECK:               %[[LEFT:.*]] = arith.subi %[[K]], %{{.*}} : index
// CHECK:               scf.for %{{.*}} = %{{.*}} to %[[LEFT]] step
// CHECK:                 %[[ELEMENT:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> bf16
// CHECK:                 llvm.store %[[ELEMENT]], %{{.*}} {alignment = 2 : i64} : bf16, !llvm.ptr<1>
tile.program @stored(%m: index, %k: index,
    %y: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"], tile.alignment = 16 : i64})
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.store_tile %buffer[%c0] to %y[%c0, %c0] : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>, memref<?x?xbf16, strided<[?, 1]>>
  tile.return
}

// -----

// With less alignment, whole pieces are stored in as many parts.
// CHECK-LABEL: tile.program @stored_in_parts(
// CHECK:         %[[PIECE:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xbf16>
// CHECK:         scf.if %{{.*}} {
// CHECK:           %[[FIRST:.*]] = vector.shuffle %[[PIECE]], %[[PIECE]] [0, 1]
// CHECK:           llvm.store %[[FIRST]], %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
// CHECK-COUNT-3:   llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<1>
// CHECK-NOT:       llvm.store
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             llvm.store %{{.*}}, %{{.*}} {alignment = 2 : i64} : bf16, !llvm.ptr<1>
tile.program @stored_in_parts(%m: index, %k: index,
    %y: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"], tile.alignment = 4 : i64})
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.store_tile %buffer[%c0] to %y[%c0, %c0] : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>, memref<?x?xbf16, strided<[?, 1]>>
  tile.return
}

// -----

// Each of 64 threads stores 16 pieces: four at a time in a loop that stays one.
// Their rows have the same swizzle, so that only one address is computed.
// CHECK-LABEL: tile.program @many_pieces(
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c256 step %c64 {
// CHECK-COUNT-4:   llvm.intr.masked.store
// CHECK-NOT:       llvm.intr.masked.store
// CHECK:         } {llvm.loop_annotation = #{{.*}}}
tile.program @many_pieces(%m: index, %k: index,
    %y: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"], tile.alignment = 16 : i64})
    attributes {dimensions = ["m", "k"], programs = {m = 256 : i64}, schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x256x32xbf16, #tile.shared<swizzle = 64>>
  tile.store_tile %buffer[%c0] to %y[%c0, %c0] : memref<1x256x32xbf16, #tile.shared<swizzle = 64>>, memref<?x?xbf16, strided<[?, 1]>>
  tile.return
}
