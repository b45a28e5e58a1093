// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// A tile lies piece by piece, and of each piece thread by thread, so that
// neighbouring threads have neighbouring addresses; nobody waits for others.
// CHECK:         llvm.mlir.global external @kept_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: tile.program @kept(
// CHECK-SAME:      %[[SLOT:[^:]*]]: index,
// CHECK-DAG:     %[[MEMORY:.*]] = llvm.mlir.addressof @kept_shared
// CHECK-DAG:     %[[SECOND:.*]] = llvm.getelementptr %[[MEMORY]][512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[PIECES:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[THREADS:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[VECTOR:.*]] = arith.constant 4 : index
// CHECK:         %[[START:.*]] = arith.muli %[[SLOT]], %[[PIECES]]
// CHECK-NEXT:    %[[OWN:.*]] = arith.addi %[[START]], %[[THREAD]]
// CHECK-NEXT:    %[[ELEMENT:.*]] = arith.muli %[[OWN]], %[[VECTOR]]
// CHECK-NEXT:    %[[ELEMENT32:.*]] = arith.index_castui %[[ELEMENT]] : index to i32
// CHECK-NEXT:    %[[A:.*]] = llvm.getelementptr %[[SECOND]][%[[ELEMENT32]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
// CHECK-NEXT:    llvm.store %{{.*}}, %[[A]] {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr<3>
// CHECK-NEXT:    %[[OTHER:.*]] = arith.addi %[[OWN]], %[[THREADS]]
// CHECK-NEXT:    %[[ELEMENT:.*]] = arith.muli %[[OTHER]], %[[VECTOR]]
// CHECK-NEXT:    %[[ELEMENT32:.*]] = arith.index_castui %[[ELEMENT]] : index to i32
// CHECK-NEXT:    %[[B:.*]] = llvm.getelementptr %[[SECOND]][%[[ELEMENT32]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
// CHECK-NEXT:    llvm.store %{{.*}}, %[[B]] {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr<3>
// CHECK-NOT:     barrier
// CHECK:         llvm.load %[[A]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<4xbf16>
// CHECK-NEXT:    llvm.load %[[B]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<4xbf16>
// CHECK:         tile.return
tile.program @kept(%rows: index, %x: memref<?x256xbf16, strided<[?, 1]>>,
                   %y: memref<?x256xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, reread = shared>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %buffer = tile.buffer {offset = 512 : i64} : memref<4x1x256xbf16, #gpu.address_space<workgroup>>
  %0 = tile.load %x[%row, %c0] {alignment = 8 : i64}
      : memref<?x256xbf16, strided<[?, 1]>> -> tensor<1x256xbf16>
  tile.keep %0, %buffer[%rows] : tensor<1x256xbf16>, memref<4x1x256xbf16, #gpu.address_space<workgroup>>
  %1 = tile.take %buffer[%rows] : memref<4x1x256xbf16, #gpu.address_space<workgroup>> -> tensor<1x256xbf16>
  tile.store %1, %y[%row, %c0] {alignment = 8 : i64}
      : tensor<1x256xbf16>, memref<?x256xbf16, strided<[?, 1]>>
  tile.return
}

// -----

// Vectors of a length that is no power of two lie without gaps, aligned as far
// as that goes. Floats of 8 bits lie as integers. A function may have the name
// that the memory would get.
// CHECK:         llvm.mlir.global external @odd_shared_()
// CHECK-LABEL: tile.program @odd(
// CHECK-DAG:     %[[MEMORY:.*]] = llvm.mlir.addressof @odd_shared_
// CHECK-DAG:     %[[VECTOR:.*]] = arith.constant 6 : index
// CHECK:         %[[ELEMENT:.*]] = arith.muli %{{.*}}, %[[VECTOR]]
// CHECK:         %[[ELEMENT32:.*]] = arith.index_castui %[[ELEMENT]] : index to i32
// CHECK-NEXT:    %[[A:.*]] = llvm.getelementptr %[[MEMORY]][%[[ELEMENT32]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK:         llvm.store %{{.*}}, %[[A]] {alignment = 2 : i64} : vector<6xi8>, !llvm.ptr<3>
// CHECK:         llvm.load %[[A]] {alignment = 2 : i64} : !llvm.ptr<3> -> vector<6xi8>
tile.program @odd(%rows: index, %x: memref<?x192xf8E5M2, strided<[?, 1]>>,
                  %y: memref<?x192xf8E5M2, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 2, columns = 64, reread = shared>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %buffer = tile.buffer {offset = 0 : i64} : memref<1x1x192xf8E5M2, #gpu.address_space<workgroup>>
  %0 = tile.load %x[%row, %c0] {alignment = 2 : i64}
      : memref<?x192xf8E5M2, strided<[?, 1]>> -> tensor<1x192xf8E5M2>
  tile.keep %0, %buffer[%c0] : tensor<1x192xf8E5M2>, memref<1x1x192xf8E5M2, #gpu.address_space<workgroup>>
  %1 = tile.take %buffer[%c0] : memref<1x1x192xf8E5M2, #gpu.address_space<workgroup>> -> tensor<1x192xf8E5M2>
  tile.store %1, %y[%row, %c0] {alignment = 2 : i64}
      : tensor<1x192xf8E5M2>, memref<?x192xf8E5M2, strided<[?, 1]>>
  tile.return
}
func.func private @odd_shared()

// -----

// What each thread has combined of a row is its own, one number for each row
// that it holds; spread, it is in all of the thread's pieces.
#threads = #tile.blocked<vector = 1, threadRows = 1, threadColumns = 32>
// CHECK-LABEL: tile.program @fold(
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<4xf32>
// CHECK:         %[[PAIR:.*]] = arith.maximumf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK-NEXT:    %[[ROW0:.*]] = vector.reduction <maximumf>, %[[PAIR]] fastmath<reassoc> : vector<4xf32> into f32
// CHECK-NEXT:    %[[PAIR:.*]] = arith.maximumf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK-NEXT:    %[[ROW1:.*]] = vector.reduction <maximumf>, %[[PAIR]] fastmath<reassoc> : vector<4xf32> into f32
// CHECK-NOT:     gpu.shuffle
// CHECK-DAG:     %[[ALL0:.*]] = vector.broadcast %[[ROW0]] : f32 to vector<4xf32>
// CHECK-DAG:     %[[ALL1:.*]] = vector.broadcast %[[ROW1]] : f32 to vector<4xf32>
// CHECK:         masked.store %[[ALL0]],
// CHECK:         masked.store %[[ALL0]],
// CHECK:         masked.store %[[ALL1]],
// CHECK:         masked.store %[[ALL1]],
tile.program @fold(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                   %y: memref<?x256xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64}
      : memref<?x256xf32, strided<[?, 1]>> -> tensor<2x256xf32>
  %1 = tile.fold max %0 : tensor<2x256xf32> -> tensor<2x32xf32, #threads>
  %2 = tile.spread %1 : tensor<2x32xf32, #threads> -> tensor<2x256xf32>
  tile.store %2, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<2x256xf32>, memref<?x256xf32, strided<[?, 1]>>
  tile.return
}
