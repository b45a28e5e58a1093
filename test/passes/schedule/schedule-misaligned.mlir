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

// Of several tensors, each of which has ends of rows, vectors are as wide as a register.
// A thread has more of these rather than a block more threads.
// CHECK-LABEL: @two_tensors(
// CHECK-SAME:  {schedule = #tile.rows<rows = 1, threads = 384, vector = 2, columns = 3072>,
tile.kernel @two_tensors(%x0: tensor<?x3001xbf16>, %x1: tensor<?x3001xbf16>) -> tensor<?x3001xbf16> {
  %w0 = arith.extf %x0 : tensor<?x3001xbf16> to tensor<?x3001xf32>
  %w1 = arith.extf %x1 : tensor<?x3001xbf16> to tensor<?x3001xf32>
  %m1 = arith.mulf %w0, %w1 : tensor<?x3001xf32>
  %s0 = tile.reduce add %m1 : tensor<?x3001xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x3001xbf16> -> tensor<?x3001xf32>
  %g0 = arith.mulf %m1, %b0 : tensor<?x3001xf32>
  %r = arith.truncf %g0 : tensor<?x3001xf32> to tensor<?x3001xbf16>
  tile.return %r : tensor<?x3001xbf16>
}

// Where such vectors divide the row, none is an edge.
// CHECK-LABEL: @two_tensors_of_pairs(
// CHECK-SAME:  {schedule = #tile.rows<rows = 1, threads = 384, vector = 2, columns = 3072>,
tile.kernel @two_tensors_of_pairs(%x0: tensor<?x2882xbf16>, %x1: tensor<?x2882xbf16>) -> tensor<?x2882xbf16> {
  %w0 = arith.extf %x0 : tensor<?x2882xbf16> to tensor<?x2882xf32>
  %w1 = arith.extf %x1 : tensor<?x2882xbf16> to tensor<?x2882xf32>
  %m1 = arith.mulf %w0, %w1 : tensor<?x2882xf32>
  %s0 = tile.reduce add %m1 : tensor<?x2882xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x2882xbf16> -> tensor<?x2882xf32>
  %g0 = arith.mulf %m1, %b0 : tensor<?x2882xf32>
  %r = arith.truncf %g0 : tensor<?x2882xf32> to tensor<?x2882xbf16>
  tile.return %r : tensor<?x2882xbf16>
}

// A number of float32 is one.
// CHECK-LABEL: @two_tensors_of_floats(
// CHECK-SAME:  {schedule = #tile.rows<rows = 1, threads = 768, vector = 1, columns = 3072>
tile.kernel @two_tensors_of_floats(%x0: tensor<?x3001xf32>, %x1: tensor<?x3001xf32>) -> tensor<?x3001xf32> {
  %m1 = arith.mulf %x0, %x1 : tensor<?x3001xf32>
  %s0 = tile.reduce add %m1 : tensor<?x3001xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x3001xf32> -> tensor<?x3001xf32>
  %g0 = arith.mulf %m1, %b0 : tensor<?x3001xf32>
  tile.return %g0 : tensor<?x3001xf32>
}

// Long rows have few ends. Blocks share them: each sweep of a loop would ask again
// which vectors are edges.
// CHECK-LABEL: @two_long_tensors(
// CHECK-SAME:  {schedule = #tile.rows<rows = 1, threads = 320, vector = 4, columns = 10240, cluster = 2>,
tile.kernel @two_long_tensors(%x0: tensor<?x10007xbf16>, %x1: tensor<?x10007xbf16>) -> tensor<?x10007xbf16> {
  %w0 = arith.extf %x0 : tensor<?x10007xbf16> to tensor<?x10007xf32>
  %w1 = arith.extf %x1 : tensor<?x10007xbf16> to tensor<?x10007xf32>
  %m1 = arith.mulf %w0, %w1 : tensor<?x10007xf32>
  %s0 = tile.reduce add %m1 : tensor<?x10007xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x10007xbf16> -> tensor<?x10007xf32>
  %g0 = arith.mulf %m1, %b0 : tensor<?x10007xf32>
  %s1 = tile.reduce add %g0 : tensor<?x10007xf32> -> tensor<?x1xf32>
  %b1 = tile.broadcast %s1 like %x0 : tensor<?x1xf32>, tensor<?x10007xbf16> -> tensor<?x10007xf32>
  %g1 = arith.mulf %g0, %b1 : tensor<?x10007xf32>
  %r = arith.truncf %g1 : tensor<?x10007xf32> to tensor<?x10007xbf16>
  tile.return %r : tensor<?x10007xbf16>
}

// One tensor has wide vectors, unless these make a few warps that all have edges.
// CHECK-LABEL: @one_short_tensor(
// CHECK-SAME:  {schedule = #tile.rows<rows = 1, threads = 96, vector = 4, columns = 1152>,
tile.kernel @one_short_tensor(%x0: tensor<?x1023xbf16>) -> tensor<?x1023xbf16> {
  %w0 = arith.extf %x0 : tensor<?x1023xbf16> to tensor<?x1023xf32>
  %s0 = tile.reduce add %w0 : tensor<?x1023xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x1023xbf16> -> tensor<?x1023xf32>
  %g0 = arith.mulf %w0, %b0 : tensor<?x1023xf32>
  %r = arith.truncf %g0 : tensor<?x1023xf32> to tensor<?x1023xbf16>
  tile.return %r : tensor<?x1023xbf16>
}
