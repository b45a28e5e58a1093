// RUN: tile-opt %s --tile --share-programs | FileCheck %s
// RUN: tile-opt %s --tile --share-programs --share-programs | FileCheck %s
// RUN: tile-opt %s --share-programs | FileCheck %s --check-prefix=KERNELS

// The program of `second` is that of `first`, in both variants; `third` has
// another schedule, `fourth` adds where they multiply, and `other` is another
// function's, whose kernels have its name.
// CHECK-NOT: @second
// CHECK: tile.program @other(
// CHECK: tile.program @other_unaligned(
// CHECK-NOT: @second
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:.*]]: tensor<?x256xf32>, %[[Y:.*]]: tensor<?x256xf32>)
// CHECK-NEXT: %[[A:.*]] = tile.launch [@first, @first_unaligned](%[[X]])
// CHECK-NEXT: %[[B:.*]] = tile.launch [@first, @first_unaligned](%[[Y]])
// CHECK-NEXT: tile.launch [@third, @third_unaligned](%[[A]])
// CHECK-NEXT: tile.launch [@fourth, @fourth_unaligned](%[[B]])
// CHECK-LABEL: func.func @g(
// CHECK: tile.launch [@other, @other_unaligned]

// Kernels stay as they are: each may get a schedule of its own.
// KERNELS: tile.launch [@first]
// KERNELS: tile.launch [@second]
tile.kernel @first(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %0 = arith.mulf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @second(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %0 = arith.mulf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @third(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 2, threads = 64, vector = 4, columns = 256>} {
  %0 = arith.mulf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @fourth(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %0 = arith.addf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
tile.kernel @other(%x: tensor<?x256xf32>) -> tensor<?x256xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %0 = arith.mulf %x, %x : tensor<?x256xf32>
  tile.return %0 : tensor<?x256xf32>
}
func.func @f(%x: tensor<?x256xf32>, %y: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>) {
  %0 = tile.launch [@first](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %1 = tile.launch [@second](%y) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %2 = tile.launch [@third](%0) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %3 = tile.launch [@fourth](%1) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %2, %3 : tensor<?x256xf32>, tensor<?x256xf32>
}
func.func @g(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = tile.launch [@other](%x) : (tensor<?x256xf32>) -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}
