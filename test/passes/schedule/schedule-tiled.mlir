// RUN: tile-opt %s --schedule --schedule=target=host | FileCheck %s

// A program has followed its schedule already, and keeps it.
// CHECK:      tile.program @tiled(
// CHECK-SAME:     attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>}
tile.program @tiled(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  tile.return
}

// CHECK:      tile.program @lowered(
// CHECK-SAME:     attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>}
tile.program @lowered(%rows: index, %x: !llvm.ptr, %stride: index)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  tile.return
}
