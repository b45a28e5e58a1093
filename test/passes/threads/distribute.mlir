// RUN: tile-opt %s --distribute -split-input-file -verify-diagnostics | FileCheck %s

// All threads stand along a row that has as many vectors. One layout serves the
// tile and its edges.
// CHECK-LABEL: tile.program @along_the_row
// CHECK:         tile.load {{.*}} -> tensor<1x256xbf16, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>
// CHECK:         arith.extf %{{.*}} : tensor<1x256xbf16, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>> to tensor<1x256xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>
// CHECK:         tile.reduce {{.*}} -> tensor<1x1xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>
// CHECK:         tile.store %{{.*}} : tensor<1x1xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>, memref<?x1xf32, strided<[?, 1]>>
tile.program @along_the_row(%rows: index, %x: memref<?x256xbf16, strided<[?, 1]>>,
                            %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %0 = tile.load %x[%id, %c0] : memref<?x256xbf16, strided<[?, 1]>> -> tensor<1x256xbf16>
  %1 = arith.extf %0 : tensor<1x256xbf16> to tensor<1x256xf32>
  %2 = tile.reduce add %1 : tensor<1x256xf32> -> tensor<1x1xf32>
  tile.store %2, %y[%id, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Of rows with fewer vectors, the threads hold several at once.
// CHECK-LABEL: tile.program @several_rows
// CHECK:         tile.load {{.*}} -> tensor<16x64xf32, #tile.blocked<vector = 4, threadRows = 8, threadColumns = 16>>
tile.program @several_rows(%rows: index, %x: memref<?x64xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 16, threads = 128, vector = 4, columns = 64>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %0 = tile.load %x[%id, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<16x64xf32>
  tile.return
}

// -----

// What a loop carries has a layout, and so do constants.
// CHECK-LABEL: tile.program @loop
// CHECK:         arith.constant dense<0.000000e+00> : tensor<1x128xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>
// CHECK:         scf.for {{.*}} -> (tensor<1x128xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>)
// CHECK-NEXT:      arith.addf %{{.*}} : tensor<1x128xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>
tile.program @loop()
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<1x128xf32>
  %0 = scf.for %i = %c0 to %c1 step %c1 iter_args(%sum = %zero) -> tensor<1x128xf32> {
    %1 = arith.addf %sum, %sum : tensor<1x128xf32>
    scf.yield %1 : tensor<1x128xf32>
  }
  tile.return
}

// -----

// Twice the schedule's columns hold two interleaved pieces: a thread's vector is
// twice as wide.
// CHECK-LABEL: tile.program @interleaved
// CHECK:         tile.split interleaved %{{.*}} : tensor<1x256xbf16, #tile.blocked<vector = 8, threadRows = 1, threadColumns = 32>> -> tensor<1x128xbf16, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32>>,
tile.program @interleaved(%rows: index, %x: memref<?x256xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %0 = tile.load %x[%id, %c0] : memref<?x256xbf16, strided<[?, 1]>> -> tensor<1x256xbf16>
  %1, %2 = tile.split interleaved %0 : tensor<1x256xbf16> -> tensor<1x128xbf16>, tensor<1x128xbf16>
  tile.return
}

// -----

// Kernels on tensors have no tiles yet.
// CHECK-LABEL: tile.kernel @on_tensors
// CHECK:         arith.addf %{{.*}} : tensor<4x8xf32>{{$}}
tile.kernel @on_tensors(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = arith.addf %x, %x : tensor<4x8xf32>
  tile.return %0 : tensor<4x8xf32>
}

// -----

// expected-error @below {{schedule #tile.rows<rows = 1, threads = 128, vector = 4, columns = 256> does not divide evenly among its threads}}
tile.program @uneven()
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 128, vector = 4, columns = 256>} {
  tile.return
}

// -----

// The blocks of a cluster share a tile's columns.
// CHECK-LABEL: tile.program @cluster
// CHECK:         tile.load {{.*}} -> tensor<1x256xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 32, blocks = 2>>
tile.program @cluster(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, cluster = 2>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %0 = tile.load %x[%id, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  tile.return
}
