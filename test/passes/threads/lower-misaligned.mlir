// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// The row's first element is so many behind the address that 8 divide. A thread
// has three vectors of the row, each at such an address: the second is inside of
// the row wherever that begins, what is not whole of the others is moved element
// by element, and addressed inside the row. First all vectors are loaded.
// CHECK-LABEL: tile.program @edges(
// CHECK-DAG:     %[[SIZE:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[MASK:.*]] = arith.constant 7 : i32
// CHECK-DAG:     %[[WHOLE:.*]] = arith.constant 513 : i32
// CHECK-DAG:     %[[SOME:.*]] = arith.constant 527 : i32
// CHECK-DAG:     %[[ADDRESS:.*]] = llvm.ptrtoint %[[ROW:.*]] : !llvm.ptr<1> to i32
// CHECK-DAG:     %[[BEHIND:.*]] = arith.shrui %[[ADDRESS]], %[[SIZE]]
// CHECK-DAG:     %[[MISALIGNMENT:.*]] = arith.andi %[[BEHIND]], %[[MASK]]
// CHECK-DAG:     %[[FIRST:.*]] = arith.subi %{{.*}}, %[[MISALIGNMENT]]
// CHECK:         %[[IS:.*]] = arith.cmpi ult, %[[FIRST]], %[[WHOLE]]
// CHECK:         %[[INSIDE:.*]] = arith.select %[[IS]], %[[FIRST]], %{{.*}} : i32
// CHECK-NEXT:    %[[INDEX:.*]] = arith.index_castui %[[INSIDE]] : i32 to index
// CHECK-NEXT:    %[[INSIDE64:.*]] = arith.index_castui %[[INDEX]]
// CHECK-NEXT:    %[[VECTOR:.*]] = llvm.getelementptr %[[ROW]][%[[INSIDE64]]]
// CHECK-NEXT:    llvm.load %[[VECTOR]] invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-COUNT-2: llvm.load {{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-NOT:     llvm.load
// CHECK:         %[[LAST:.*]] = arith.addi %[[FIRST]], %[[MASK]]
// CHECK-NEXT:    %[[ISSOME:.*]] = arith.cmpi ult, %[[LAST]], %[[SOME]]
// CHECK-NEXT:    %[[ISCUT:.*]] = arith.cmpi uge, %[[FIRST]], %[[WHOLE]]
// CHECK-NEXT:    %[[ISEDGE:.*]] = arith.andi %[[ISSOME]], %[[ISCUT]]
// CHECK-NEXT:    scf.if %[[ISEDGE]] -> (vector<8xbf16>) {
// CHECK-COUNT-8:   llvm.load {{.*}} invariant {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK:         scf.if
// CHECK-COUNT-8:   llvm.load {{.*}} invariant {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK-NOT:     scf.if
// CHECK:         llvm.intr.masked.store {{.*}} {alignment = 16 : i32} : vector<8xi16>
// CHECK:         llvm.store {{.*}} {alignment = 16 : i64} : vector<8xi16>
// CHECK:         llvm.intr.masked.store {{.*}} {alignment = 16 : i32} : vector<8xi16>
// CHECK:         scf.if %[[ISEDGE]] {
// CHECK-COUNT-8:   llvm.intr.masked.store {{.*}} {alignment = 2 : i32} : vector<1xi16>
// CHECK:         scf.if
// CHECK-COUNT-8:   llvm.intr.masked.store {{.*}} {alignment = 2 : i32} : vector<1xi16>
// CHECK-NOT:     store
// CHECK:         tile.return
tile.program @edges(%rows: index, %x: memref<?x520xbf16, strided<[?, 1]>>,
                    %y: memref<?x520xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 768>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %s = tile.misalignment %x[%row] to 8 : memref<?x520xbf16, strided<[?, 1]>> -> tensor<1x1xi32>
  %0 = tile.load %x[%row, %c0] misaligned %s {alignment = 16 : i64, invariant}
      : memref<?x520xbf16, strided<[?, 1]>>, tensor<1x1xi32> -> tensor<1x768xbf16>
  tile.store %0, %y[%row, %c0] misaligned %s {alignment = 16 : i64}
      : tensor<1x768xbf16>, memref<?x520xbf16, strided<[?, 1]>>, tensor<1x1xi32>
  tile.return
}

// -----

// Each element has its own number, and is masked by itself. What all rows share
// begins at another place: no vector of it is aligned, and each row has others.
// CHECK-LABEL: tile.program @elements(
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant dense<150> : vector<4xi32>
// CHECK-DAG:     %[[STEPS:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
// CHECK-DAG:     %[[FIRST:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-8: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK-NOT:     llvm.load
// CHECK:         %[[UPTO:.*]] = arith.minsi %[[FIRST]], %{{.*}} : i32
// CHECK-NEXT:    %[[START:.*]] = vector.broadcast %[[UPTO]] : i32 to vector<4xi32>
// CHECK-NEXT:    %[[COLUMNS:.*]] = arith.addi %[[START]], %[[STEPS]]
// CHECK:         arith.cmpi ult, %[[COLUMNS]], %[[LIMIT]] : vector<4xi32>
// CHECK-NEXT:    arith.select {{.*}} : vector<4xi1>, vector<4xf32>
tile.program @elements(%rows: index, %x: memref<?x150xf32, strided<[?, 1]>>,
                       %w: memref<150xf32>, %y: memref<?x150xf32, strided<[?, 1]>>,
                       %z: memref<?x150xi32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 32, vector = 4, columns = 128>} {
  %c32 = arith.constant 32 : index
  %row = tile.program_id
  %s = tile.misalignment %x[%row] to 4 : memref<?x150xf32, strided<[?, 1]>> -> tensor<2x1xi32>
  %0 = tile.load %w[%c32] misaligned %s {alignment = 4 : i64} : memref<150xf32>, tensor<2x1xi32> -> tensor<2x128xf32>
  %1 = tile.mask %0 from %c32 misaligned %s limit 150 else 0.0 : f32 : tensor<2x128xf32>, tensor<2x1xi32>
  %2 = tile.iota from %c32 misaligned %s of tensor<2x1xi32> : tensor<2x128xi32>
  tile.store %1, %y[%row, %c32] misaligned %s {alignment = 16 : i64}
      : tensor<2x128xf32>, memref<?x150xf32, strided<[?, 1]>>, tensor<2x1xi32>
  tile.store %2, %z[%row, %c32] misaligned %s {alignment = 16 : i64}
      : tensor<2x128xi32>, memref<?x150xi32, strided<[?, 1]>>, tensor<2x1xi32>
  tile.return
}

// -----

// Whole vectors are copied by the memory system, edges by the thread.
// CHECK-LABEL: tile.program @ahead(
// CHECK:         scf.if %[[ISWHOLE:.*]] {
// CHECK:           nvvm.cp.async.shared.global %[[SLOT:.*]], %{{.*}}, 16
// CHECK:         scf.if %[[ISEDGE:.*]] {
// CHECK-COUNT-8:   llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK:           llvm.store %{{.*}}, %[[SLOT]] {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<3>
// CHECK:         nvvm.cp.async.commit.group
tile.program @ahead(%rows: index, %x: memref<?x250xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 256, reread = shared>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %buffer = tile.buffer {offset = 0 : i64} : memref<2x1x256xbf16, #gpu.address_space<workgroup>>
  %s = tile.misalignment %x[%row] to 8 : memref<?x250xbf16, strided<[?, 1]>> -> tensor<1x1xi32>
  tile.copy_ahead %x[%row, %c0] misaligned %s to %buffer[%c0] {tile = tensor<1x256xbf16>}
      : memref<?x250xbf16, strided<[?, 1]>>, memref<2x1x256xbf16, #gpu.address_space<workgroup>>, tensor<1x1xi32>
  tile.commit_copies
  tile.return
}
