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
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.schedule<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  %row = tile.program_id
  tile.copy_tile %x[%row, %c0] to %buffer[%c0] : memref<?x?xbf16, strided<[?, 1]>>, memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.commit_copies
  tile.return
}

// -----

// The operand's alignment is the most that is copied at once, and elements of two
// bytes that nothing aligns go through registers.
// CHECK-LABEL: tile.program @less_aligned(
// CHECK-COUNT-8: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache =  ca
// CHECK-NOT:     cp.async.shared
// CHECK:         %[[LOADED:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> bf16
// CHECK:         %[[ELEMENT:.*]] = arith.select %{{.*}}, %[[LOADED]], %{{.*}} : bf16
// CHECK:         llvm.store %[[ELEMENT]], %{{.*}} {alignment = 2 : i64} : bf16, !llvm.ptr<3>
tile.program @less_aligned(%m: index, %k: index,
    %x: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"], tile.alignment = 12 : i64},
    %y: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.schedule<threads = 64>} {
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
    attributes {dimensions = ["m", "k"], programs = {m = 32 : i64}, schedule = #tile.schedule<threads = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>
  tile.store_tile %buffer[%c0] to %y[%c0, %c0] : memref<1x32x32xbf16, #tile.shared<swizzle = 64>>, memref<?x?xbf16, strided<[?, 1]>>
  tile.return
}
