// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse | FileCheck %s

// Numbers of an operand's rows along the columns of a tile. Where all of them lie
// in the operand, behind each other, each thread has one address, and its numbers
// at constants from there, and two of them are loaded at once where they are so
// aligned. Otherwise each number has an address of its own, that of the operand's
// first one where it lies beyond.
// CHECK-LABEL: tile.program @numbers(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr<1> {{[^}]*}}}, %[[STRIDE:[^:]*]]: index,
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
// CHECK:         %[[END:.*]] = arith.addi %[[M]], %[[C16]]
// CHECK:         %[[IS_WHOLE:.*]] = arith.cmpi ule, %[[END]], %[[K]]
// CHECK:         %[[IS_NEXT:.*]] = arith.cmpi eq, %[[STRIDE]], %[[C1]]
// CHECK:         %[[IS_DENSE:.*]] = arith.andi %[[IS_WHOLE]], %[[IS_NEXT]]
// CHECK:         %[[TILE:.*]] = llvm.getelementptr %[[X]][%
// CHECK:         %[[PLACE:.*]] = llvm.ptrtoint %[[TILE]]
// CHECK:         %[[BYTES:.*]] = arith.andi %[[PLACE]], %{{.*}} : i64
// CHECK:         %[[IS_ALIGNED:.*]] = arith.cmpi eq, %[[BYTES]]
// CHECK:         %[[IN_PAIRS:.*]] = arith.andi %[[IS_DENSE]], %[[IS_ALIGNED]]
// CHECK:         scf.if %[[IN_PAIRS]]
// CHECK-NOT:       arith.select
// CHECK:           %[[FIRST:.*]] = llvm.getelementptr %[[X]][%
// CHECK:           llvm.load %[[FIRST]] invariant {alignment = 8 : i64} : {{.*}} -> vector<2xf32>
// CHECK:           %[[NEXT:.*]] = llvm.getelementptr %[[FIRST]][8]
// CHECK:           llvm.load %[[NEXT]] invariant {alignment = 8 : i64} : {{.*}} -> vector<2xf32>
// CHECK:         } else {
// CHECK:           scf.if %[[IS_DENSE]]
// CHECK-NOT:         arith.select
// CHECK:             %[[FIRST:.*]] = llvm.getelementptr %[[X]][%
// CHECK:             llvm.load %[[FIRST]] invariant {alignment = 4 : i64} : {{.*}} -> f32
// CHECK:             %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][1]
// CHECK:             llvm.load %[[SECOND]] invariant
// CHECK:             llvm.getelementptr %[[FIRST]][8]
// CHECK:             llvm.getelementptr %[[FIRST]][9]
// CHECK:         } else {
// CHECK-COUNT-4:   arith.cmpi ugt
!numbers = memref<?x1xf32, strided<[?, 1]>>
!matrix = memref<?x?xf32, strided<[?, 1]>>
tile.program @numbers(%m: index, %k: index, %x: !numbers {tile.dimensions = ["k", 1], tile.readonly},
    %y: !matrix {tile.dimensions = ["m", "k"]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%m, %c0] {invariant, transposed} : !numbers -> tensor<1x16xf32, #tile.mma<warps = 4>>
  %1 = tile.broadcast %0 : tensor<1x16xf32, #tile.mma<warps = 4>> -> tensor<64x16xf32, #tile.mma<warps = 4>>
  tile.store %1, %y[%m, %c0] : tensor<64x16xf32, #tile.mma<warps = 4>>, !matrix
  tile.return
}
