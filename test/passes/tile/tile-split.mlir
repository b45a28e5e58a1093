// RUN: tile-opt %s --fuse --schedule=target=sm_90a --tile=target=sm_90a --canonicalize | FileCheck %s

// The blocks of a cluster have a part of k each, and complete a part of the sums'
// columns.
// CHECK-LABEL: tile.program @product_kernel(
// CHECK-SAME:      programs = {m = 64 : i64, n = 128 : i64}
// CHECK-SAME:      split = 4
// CHECK:         %[[RANK:.*]] = tile.block_rank
// CHECK:         %[[SLOTS:.*]] = tile.buffer {offset = {{.*}}} : memref<4x64x32xf32, #tile.held>
// CHECK-NEXT:    %[[RECEIVED:.*]] = tile.make_barriers arrivals 1 : <1>
// CHECK-NEXT:    %[[FREE:.*]] = tile.make_barriers arrivals 4 : <1>
// CHECK:         %[[NUMBERS:.*]] = tile.make_numbers : memref<2x2xi32
// CHECK-NEXT:    %[[FULL:.*]] = tile.make_barriers arrivals 1 : <2>
// CHECK-NEXT:    %[[EMPTY:.*]] = tile.make_barriers arrivals 4 : <2>
// CHECK:         tile.announce_block
// CHECK-NEXT:    tile.synchronize{{$}}
// CHECK:         tile.roles
// CHECK:           scf.for
// CHECK:             tile.await %[[EMPTY]]
// CHECK-NEXT:        tile.put_numbers[%[[ROW:.*]], %[[COLUMN:.*]]] to %[[NUMBERS]]
// CHECK-NEXT:        tile.arrive at %[[FULL]]
// CHECK:             scf.for
// CHECK:               tile.copy_box {{.*}}[%[[ROW]],
// CHECK-NOT:           blocks
// CHECK:               tile.copy_box {{.*}}[%[[COLUMN]],
// CHECK-NOT:           blocks
// CHECK:         }, {
// CHECK-DAG:       %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:       %[[C1:.*]] = arith.constant 1 : index
// CHECK:           tile.await_blocks
// CHECK:           scf.for
// CHECK:             tile.await %[[FULL]]
// CHECK:             scf.for
// CHECK:             tile.wait_dots 0
// Its place is read behind the products, and takes no registers there.
// CHECK:             tile.get_numbers %[[NUMBERS]]
// CHECK:             tile.arrive at %[[EMPTY]][{{.*}}] warps
// Three others send a part of 64 rows and 32 columns.
// CHECK:             tile.expect 24576 bytes at %[[RECEIVED]]
// CHECK:             tile.await %[[FREE]]
// CHECK:             %[[PARTS:.*]]:4 = tile.split
// CHECK:             %[[IS_FIRST:.*]] = arith.cmpi eq, %[[RANK]], %[[C0]]
// CHECK-NEXT:        scf.if %[[IS_FIRST]] {
// CHECK-NEXT:          tile.keep %[[PARTS]]#0, %[[SLOTS]][%[[RANK]]]
// CHECK-NEXT:        } else {
// CHECK-NEXT:          tile.send %[[PARTS]]#0 to %[[SLOTS]][%[[RANK]]] block %[[C0]] arrive %[[RECEIVED]]
// CHECK-NEXT:        }
// CHECK-NEXT:        %[[IS_SECOND:.*]] = arith.cmpi eq, %[[RANK]], %[[C1]]
// CHECK-NEXT:        scf.if %[[IS_SECOND]] {
// CHECK-NEXT:          tile.keep %[[PARTS]]#1, %[[SLOTS]][%[[RANK]]]
// CHECK-NEXT:        } else {
// CHECK-NEXT:          tile.send %[[PARTS]]#1 to %[[SLOTS]][%[[RANK]]] block %[[C1]] arrive %[[RECEIVED]]
// CHECK-NEXT:        }
// CHECK-COUNT-2:     tile.send
// CHECK:             tile.await %[[RECEIVED]]
// CHECK:             scf.for %[[PART:.*]] = %[[RANK]] to
// CHECK:               %[[FIRST:.*]] = arith.subi %[[PART]], %[[RANK]]
// CHECK:               %[[OF_FIRST:.*]] = tile.take %[[SLOTS]][%[[FIRST]]]
// CHECK:               %[[OF_SECOND:.*]] = tile.take %[[SLOTS]]
// CHECK-NEXT:          arith.addf %[[OF_FIRST]], %[[OF_SECOND]]
// CHECK-COUNT-2:       tile.take
// CHECK:               tile.store_box
// If there is a next tile, the others may send again once all have read.
// CHECK:             scf.if
// CHECK-NEXT:          tile.synchronize
// CHECK-NEXT:          tile.arrive at %[[FREE]][{{.*}}] cluster
// CHECK:         tile.synchronize{{$}}
// CHECK-NEXT:    tile.return
func.func @product(%x: tensor<16x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
    attributes {tile.schedule = #tile.matmul<columns = 128, split = 4>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<16x4096xbf16>, tensor<4096x4096xbf16> -> tensor<16x4096xf32>
  %1 = arith.truncf %0 : tensor<16x4096xf32> to tensor<16x4096xbf16>
  return %1 : tensor<16x4096xbf16>
}

// Where there are fewer parts than blocks, some blocks only send.
// CHECK-LABEL: tile.program @narrow_kernel(
// CHECK:         tile.buffer {offset = {{.*}}} : memref<8x64x16xf32, #tile.held>
// CHECK:         arith.cmpi ult
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      tile.expect 28672 bytes
// CHECK-NEXT:    } else {
// CHECK-NEXT:      tile.expect 0 bytes
// CHECK-NEXT:    }
// CHECK-COUNT-4: tile.send
// CHECK-NOT:     tile.send
func.func @narrow(%x: tensor<16x4096xbf16>, %w: tensor<512x4096xbf16>) -> tensor<16x512xbf16>
    attributes {tile.schedule = #tile.matmul<columns = 64, split = 8>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<16x4096xbf16>, tensor<512x4096xbf16> -> tensor<16x512xf32>
  %1 = arith.truncf %0 : tensor<16x512xf32> to tensor<16x512xbf16>
  return %1 : tensor<16x512xbf16>
}
