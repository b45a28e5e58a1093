// RUN: tile-opt %s --fuse --schedule=target=sm_90a --tile=target=sm_90a --canonicalize | FileCheck %s

// The blocks of a cluster have a part of k each, and of the sums' columns.
// CHECK-LABEL: tile.program @product_kernel(
// CHECK-SAME:      programs = {m = 64 : i64, n = 128 : i64}
// CHECK-SAME:      split = 4
// CHECK:         %[[RANK:.*]] = tile.block_rank
// CHECK:         %[[STORED:.*]] = tile.make_barriers arrivals 4 : <1>
// CHECK-NEXT:    %[[SUMMED:.*]] = tile.make_barriers arrivals 4 : <1>
// CHECK:         %[[NUMBERS:.*]] = tile.make_numbers : memref<2x2xi32
// CHECK-NEXT:    %[[FULL:.*]] = tile.make_barriers arrivals 1 : <2>
// CHECK-NEXT:    %[[EMPTY:.*]] = tile.make_barriers arrivals 4 : <2>
// CHECK:         tile.roles
// CHECK:           scf.for
// CHECK:             tile.await %[[EMPTY]]
// CHECK-NEXT:        tile.put_numbers[%[[ROW:.*]], %[[COLUMN:.*]]] to %[[NUMBERS]]
// CHECK-NEXT:        tile.arrive at %[[FULL]]
// Copies write where another block may still read the sums of the last tile.
// CHECK:             tile.await %[[STORED]]{{.*}} cluster
// CHECK:             scf.for
// CHECK:               tile.copy_box {{.*}}[%[[ROW]],
// CHECK-NOT:           blocks
// CHECK:               tile.copy_box {{.*}}[%[[COLUMN]],
// CHECK-NOT:           blocks
// CHECK:         }, {
// CHECK:           scf.for
// CHECK:             tile.await %[[FULL]]
// CHECK:             scf.for
// CHECK:             tile.wait_dots 0
// Its place is read behind the products, and takes no registers there.
// CHECK:             tile.get_numbers %[[NUMBERS]]
// CHECK:             tile.arrive at %[[EMPTY]][{{.*}}] warps
// CHECK:             tile.await %[[STORED]]{{.*}} cluster
// CHECK-COUNT-4:     tile.keep
// CHECK:             tile.synchronize
// CHECK-NEXT:        tile.arrive at %[[SUMMED]][{{.*}}] cluster published
// CHECK:             tile.await %[[SUMMED]]{{.*}} cluster
// CHECK:             scf.for %[[PART:.*]] = %[[RANK]] to
// CHECK-COUNT-4:       tile.take {{.*}}[%[[PART]]] block
// CHECK:               tile.store_box
// CHECK:             tile.synchronize
// CHECK:             tile.arrive at %[[STORED]][{{.*}}] cluster published
func.func @product(%x: tensor<16x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
    attributes {tile.schedule = #tile.matmul<columns = 128, split = 4>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<16x4096xbf16>, tensor<4096x4096xbf16> -> tensor<16x4096xf32>
  %1 = arith.truncf %0 : tensor<16x4096xf32> to tensor<16x4096xbf16>
  return %1 : tensor<16x4096xbf16>
}
