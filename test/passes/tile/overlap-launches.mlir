// RUN: tile-opt %s --tile --overlap-launches -split-input-file | FileCheck %s
// RUN: tile-opt %s --tile --overlap-launches=target=sm_80 -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: tile-opt %s --tile=target=host --overlap-launches=target=host -split-input-file | FileCheck %s --check-prefix=NONE
// NONE-NOT: overlap_

// All programs of the first launch run at once, so that the second may come
// before they have ended. What the first writes is no constant to the second,
// whatever the alignment.
// CHECK-LABEL: tile.program @partials(
// CHECK-SAME:      overlap_next
// CHECK-NOT:     overlap_previous
// CHECK-LABEL: tile.program @partials_unaligned(
// CHECK-SAME:      overlap_next
// CHECK-LABEL: tile.program @sum(
// CHECK-SAME:      %[[P:[^:]*]]: memref<?x256xf32{{[^:]*}}> {tile.alignment = 16 : i64}, %[[W:[^:]*]]: memref<256xf32> {tile.alignment = 16 : i64, tile.readonly}
// CHECK-SAME:      overlap_previous
// CHECK-NOT:     tile.load %[[P]]{{.*}}invariant
// CHECK:         tile.load %[[W]]{{.*}}invariant
// CHECK-NOT:     tile.load %[[P]]{{.*}}invariant
// CHECK-LABEL: tile.program @sum_unaligned(
// CHECK-SAME:      %{{[^:]*}}: memref<?x256xf32{{[^:]*}}> {tile.alignment = 4 : i64}, %{{[^:]*}}: memref<256xf32> {tile.alignment = 4 : i64, tile.readonly}
// CHECK-SAME:      overlap_previous
// CHECK-LABEL: func.func @f(
// CHECK:         tile.launch [@partials, {{.*}}overlap_next
// CHECK-NOT:     overlap_
// CHECK:         return
tile.kernel @partials(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 2>} {
  %0 = tile.reduce_rows add %x partial : tensor<?x256xf32> -> tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @sum(%p: tensor<?x256xf32>, %w: tensor<256xf32>) -> tensor<256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = tile.reduce_rows add %p : tensor<?x256xf32> -> tensor<256xf32>
  %1 = arith.mulf %0, %w : tensor<256xf32>
  tile.return %1 : tensor<256xf32>
}
func.func @f(%x: tensor<?x256xf32>, %w: tensor<256xf32>) -> tensor<256xf32> {
  %0 = tile.launch [@partials](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %1 = tile.launch [@sum](%0, %w) : (tensor<?x256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %1 : tensor<256xf32>
}

// -----

// Programs that do not run at once would find their places taken.
// CHECK-LABEL: tile.program @many(
// CHECK-NOT:   overlap_
// CHECK:       return %{{.*}} : tensor<?x256xf32>, tensor<?x256xf32>
tile.kernel @many(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %0 = arith.addf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @after(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
// Nor is there a promise for launches that do not wait for each other, which may
// write where others read.
tile.kernel @apart(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.mulf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>) {
  %0 = tile.launch [@many](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %1 = tile.launch [@after](%0) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %2 = tile.launch [@apart](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %1, %2 : tensor<?x256xf32>, tensor<?x256xf32>
}

// -----

// A launch may be both.
// CHECK-LABEL: tile.program @middle(
// CHECK-SAME:      overlap_next, overlap_previous
tile.kernel @first(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @middle(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @last(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %0 = arith.addf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@first](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %1 = tile.launch [@middle](%0) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %2 = tile.launch [@last](%1) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %2 : tensor<?x256xf32>
}
