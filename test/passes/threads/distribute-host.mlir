// RUN: tile-opt %s --distribute=target=host | FileCheck %s

// On the host a block is one thread, however many the schedule names.
// CHECK-LABEL: tile.program @one_thread
// CHECK:         tile.load {{.*}} -> tensor<2x64xf32, #tile.blocked<vector = 16, threadRows = 1, threadColumns = 1>>
tile.program @one_thread(%rows: index, %x: memref<?x64xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 128, vector = 16, columns = 64>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %0 = tile.load %x[%id, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<2x64xf32>
  tile.return
}
