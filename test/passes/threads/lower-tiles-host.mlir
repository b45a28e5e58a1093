// RUN: tile-opt %s --distribute=target=host --lower-tiles=target=host --canonicalize --cse | FileCheck %s

// A block of one thread needs nothing of the gpu dialect, and addresses are of
// the host's only address space.
// CHECK-LABEL: tile.program @reduction(
// CHECK-SAME:      %{{[^:]*}}: index, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: index, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: index)
// CHECK-NOT:     gpu.
// CHECK:         %[[A:.*]] = llvm.load {{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK:         %[[B:.*]] = llvm.load {{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK-NEXT:    %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[SUM:.*]] = vector.reduction <add>, %[[AB]] fastmath<reassoc>
// The only thread stores without a condition.
// CHECK-NOT:     masked.store
// CHECK:         llvm.store %[[SUM]], %{{.*}} : f32, !llvm.ptr
// CHECK-NEXT:    tile.return
tile.program @reduction(%rows: index, %x: memref<?x16xf32, strided<[?, 1]>>,
                        %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 1, vector = 8, columns = 16>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
  %1 = tile.reduce add %0 : tensor<1x16xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// One thread combines all rows of a column by itself.
// CHECK-LABEL: tile.program @rows(
// CHECK-NOT:     gpu.
// CHECK:         %[[A:.*]] = llvm.load
// CHECK:         %[[B:.*]] = llvm.load
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : vector<8xf32>
// CHECK-NOT:     masked.store
// CHECK:         llvm.store %[[SUM]]
tile.program @rows(%rows: index, %x: memref<?x8xf32, strided<[?, 1]>>, %y: memref<8xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 1, vector = 8, columns = 8>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x8xf32, strided<[?, 1]>> -> tensor<2x8xf32>
  %1 = tile.reduce_rows add %0 : tensor<2x8xf32> -> tensor<1x8xf32>
  tile.store %1, %y[%c0] : tensor<1x8xf32>, memref<8xf32>
  tile.return
}
