// RUN: tile-opt %s --distribute --lower-tiles | FileCheck %s
// RUN: tile-opt %s --distribute | FileCheck %s --check-prefix=LAYOUT
// RUN: tile-opt %s --distribute=target=host --lower-tiles=target=host | FileCheck %s --check-prefix=HOST

// A group of 64 columns is 16 vectors, of neighbouring lanes on a GPU.

// LAYOUT-LABEL: tile.program @groups
// LAYOUT:         tile.reduce max %{{.*}} : tensor<1x256xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>> -> tensor<1x4xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32, group = 64>>

// CHECK-LABEL: tile.program @groups
// CHECK-DAG:     %[[PIECE0:.*]] = llvm.load %{{.*}} -> vector<4xf32>
// CHECK-DAG:     %[[PIECE1:.*]] = llvm.load %{{.*}} -> vector<4xf32>
// CHECK-DAG:     %[[SCALE0:.*]] = llvm.load %{{.*}} -> f32
// CHECK-DAG:     %[[SCALE1:.*]] = llvm.load %{{.*}} -> f32
// CHECK:         %[[MAX0:.*]] = vector.reduction <maximumf>, %[[PIECE0]]
// CHECK:         gpu.shuffle xor %[[MAX0]], %{{.*}}
// CHECK-COUNT-3: gpu.shuffle xor
// CHECK:         %[[MAX1:.*]] = vector.reduction <maximumf>, %[[PIECE1]]
// CHECK-COUNT-4: gpu.shuffle xor
// No group meets another, and the first of 16 lanes stores.
// CHECK-NOT:     gpu.shuffle
// CHECK-NOT:     gpu.barrier
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %[[SCALE0]] : f32
// CHECK:         vector.broadcast %[[PRODUCT]] : f32 to vector<4xf32>
// CHECK:         %[[LANE:.*]] = arith.remui %{{.*}}, %c16
// CHECK:         arith.cmpi eq, %[[LANE]], %{{.*}}
// CHECK:         llvm.intr.masked.store

// The one thread of a host has all pieces of a group, and stores it once.
// HOST-LABEL:  tile.program @groups
// HOST-COUNT-15: arith.maximumf {{.*}} : vector<4xf32>
// HOST:          vector.reduction <maximumf>
// HOST-COUNT-64: llvm.store {{.*}} : vector<4xf32>
// HOST-COUNT-4:  llvm.store {{.*}} : f32
// HOST-NOT:      llvm.store
tile.program @groups(%rows: index, %x: memref<?x4096xf32, strided<[?, 1]>>,
                     %s: memref<?x64xf32, strided<[?, 1]>>,
                     %y: memref<?x4096xf32, strided<[?, 1]>>,
                     %z: memref<?x64xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<
        rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%c0, %c0] : memref<?x4096xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %1 = tile.load %s[%c0, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<1x4xf32>
  %2 = tile.reduce max %0 : tensor<1x256xf32> -> tensor<1x4xf32>
  %3 = arith.mulf %2, %1 : tensor<1x4xf32>
  %4 = tile.broadcast %3 : tensor<1x4xf32> -> tensor<1x256xf32>
  tile.store %4, %y[%c0, %c0] : tensor<1x256xf32>, memref<?x4096xf32, strided<[?, 1]>>
  tile.store %2, %z[%c0, %c0] : tensor<1x4xf32>, memref<?x64xf32, strided<[?, 1]>>
  tile.return
}
