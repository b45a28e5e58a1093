// RUN: tile-opt %s --schedule | FileCheck %s
// RUN: tile-opt %s --schedule=target=host | FileCheck %s --check-prefix=HOST

// Rows that no wide vector divides are shifted to the addresses of wide ones, and
// operands that cannot be have a schedule of vectors that divide the row. What a
// program of the host loads costs the same at any address.
// HOST-NOT: unaligned_schedule

// CHECK-LABEL: @odd
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 192, vector = 8, columns = 1536>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 192, vector = 1, columns = 768>
// HOST-LABEL:  @odd
// HOST-SAME:   vector = 1,
tile.kernel @odd(%x: tensor<?x4097xbf16>) -> tensor<?x4097xbf16> {
  %0 = arith.addf %x, %x : tensor<?x4097xbf16>
  tile.return %0 : tensor<?x4097xbf16>
}

// CHECK-LABEL: @pairs
// CHECK-SAME:  schedule = #tile.rows<{{[^>]*}} vector = 8,
// CHECK-SAME:  unaligned_schedule = #tile.rows<{{[^>]*}} vector = 2,
tile.kernel @pairs(%x: tensor<?x4098xbf16>) -> tensor<?x4098xbf16> {
  %0 = arith.addf %x, %x : tensor<?x4098xbf16>
  tile.return %0 : tensor<?x4098xbf16>
}

// Half as wide is wide enough.
// CHECK-LABEL: @halves
// CHECK-SAME:  {schedule = #tile.rows<{{[^>]*}} vector = 4,
tile.kernel @halves(%x: tensor<?x4100xbf16>) -> tensor<?x4100xbf16> {
  %0 = arith.addf %x, %x : tensor<?x4100xbf16>
  tile.return %0 : tensor<?x4100xbf16>
}

// So few vectors that many would be edges.
// CHECK-LABEL: @short
// CHECK-SAME:  {schedule = #tile.rows<rows = 1, threads = 128, vector = 1, columns = 128>, space = #tile.space<{{[^>]*}}>}
tile.kernel @short(%x: tensor<?x255xbf16>) -> tensor<?x255xbf16> {
  %0 = arith.addf %x, %x : tensor<?x255xbf16>
  tile.return %0 : tensor<?x255xbf16>
}

// A row may begin at the last element of its first vector: 511 vectors hold this
// one, and 512 where it begins.
// CHECK-LABEL: @one_more
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 1024, vector = 1, columns = 4096>
tile.kernel @one_more(%x: tensor<?x4087xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x4087xbf16> to tensor<?x4087xf32>
  %1 = tile.reduce add %0 : tensor<?x4087xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// Programs that each leave a sum of their statistics are as many in both.
// CHECK-LABEL: @sums_of_statistics
// CHECK-SAME:  schedule = #tile.rows<rows = [[ROWS:[0-9]+]], threads = {{[0-9]+}}, vector = 4,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = [[ROWS]], threads = {{[0-9]+}}, vector = 1,
tile.kernel @sums_of_statistics(%x: tensor<?x129xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x129xf32> -> tensor<?x1xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x1xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// A sum of rows adds what a thread has of one row to what it has of another:
// these must be the same columns.
// CHECK-LABEL: @sums_of_rows
// CHECK-SAME:  {schedule = #tile.rows<{{[^>]*}} vector = 1,
tile.kernel @sums_of_rows(%x: tensor<?x4097xf32>) -> tensor<?x4097xf32> {
  %0 = tile.reduce_rows add %x partial : tensor<?x4097xf32> -> tensor<?x4097xf32>
  tile.return %0 : tensor<?x4097xf32>
}

// What all rows share begins nowhere else for the one than for the other.
// CHECK-LABEL: @no_row
// CHECK-SAME:  {schedule = #tile.rows<{{[^>]*}} vector = 1,
tile.kernel @no_row(%w: tensor<4097xf32>, %s: tensor<?x1xf32>, %x: tensor<?x4097xbf16>) -> tensor<?x1xf32> {
  %0 = tile.broadcast %w like %x : tensor<4097xf32>, tensor<?x4097xbf16> -> tensor<?x4097xf32>
  %1 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x4097xbf16> -> tensor<?x4097xf32>
  %2 = arith.mulf %0, %1 : tensor<?x4097xf32>
  %3 = tile.reduce add %2 : tensor<?x4097xf32> -> tensor<?x1xf32>
  tile.return %3 : tensor<?x1xf32>
}

// The pieces of a row begin at other places.
// CHECK-LABEL: @pieces
// CHECK-SAME:  {schedule = #tile.rows<{{[^>]*}} vector = 1,
tile.kernel @pieces(%x: tensor<?x8194xbf16>) -> tensor<?x4097xbf16> {
  %0, %1 = tile.split %x : tensor<?x8194xbf16> -> tensor<?x4097xbf16>, tensor<?x4097xbf16>
  %2 = arith.addf %0, %1 : tensor<?x4097xbf16>
  tile.return %2 : tensor<?x4097xbf16>
}
