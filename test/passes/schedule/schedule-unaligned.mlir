// RUN: tile-opt %s --schedule | FileCheck %s
// RUN: tile-opt %s --schedule=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: tile-opt %s --schedule=target=host | FileCheck %s --check-prefix=HOST
// RUN: tile-opt %s --schedule="schedule='threads = 512'" | FileCheck %s --check-prefix=PINNED

// Programs for operands of any alignment access elements one by one, so that
// their threads hold fewer. On the host, and where a schedule is pinned, they
// follow the schedule of the others.
// HOST-NOT:   unaligned_schedule
// PINNED-NOT: unaligned_schedule

// Of a row that is not reduced, a block takes fewer columns.
// CHECK-LABEL: @long_elementwise
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 128, vector = 8, columns = 1024>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 128, vector = 4, columns = 512>
tile.kernel @long_elementwise(%x: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %0 = arith.addf %x, %x : tensor<?x16384xbf16>
  tile.return %0 : tensor<?x16384xbf16>
}

// Of short rows, it takes fewer.
// CHECK-LABEL: @short_rows
// CHECK-SAME:  schedule = #tile.rows<rows = 16, threads = 128, vector = 8, columns = 128>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 4, threads = 128, vector = 4, columns = 128>
tile.kernel @short_rows(%x: tensor<?x128xbf16>) -> tensor<?x128xbf16> {
  %0 = arith.addf %x, %x : tensor<?x128xbf16>
  tile.return %0 : tensor<?x128xbf16>
}

// A row that is reduced is shared by more threads.
// CHECK-LABEL: @reduction
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 192, vector = 8, columns = 3072>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 768, vector = 4, columns = 3072>
tile.kernel @reduction(%x: tensor<?x2880xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x2880xbf16> to tensor<?x2880xf32>
  %1 = tile.reduce add %0 : tensor<?x2880xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// A block has no more than 1024 threads, and a row that nothing reads twice may
// as well be swept in a loop.
// CHECK-LABEL: @long_reduction
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 32768>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 1024, vector = 4, columns = 4096>
tile.kernel @long_reduction(%x: tensor<?x32768xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// Rows that would be read again are swept in a loop only where a thread would
// hold very much of them.
// CHECK-LABEL: @read_again_much
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 32768, cluster = 2>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 1024, vector = 4, columns = 32768, cluster = 2>
// SM80-LABEL:  @read_again_much
// SM80-SAME:   schedule = #tile.rows<rows = 1, threads = 1024, vector = 8, columns = 32768>,
// SM80-SAME:   unaligned_schedule = #tile.rows<rows = 1, threads = 1024, vector = 4, columns = 4096, reread = memory>
tile.kernel @read_again_much(%x: tensor<?x32768xbf16>) -> tensor<?x32768xbf16> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %0, %2 : tensor<?x32768xf32>
  %4 = arith.truncf %3 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  tile.return %4 : tensor<?x32768xbf16>
}

// CHECK-LABEL: @read_again
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 1024, vector = 4, columns = 16384>
tile.kernel @read_again(%x: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce max %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %3 = arith.subf %0, %2 : tensor<?x16384xf32>
  %4 = arith.truncf %3 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %4 : tensor<?x16384xbf16>
}

// What is left by each program stays as long and as much, whichever program
// runs: only threads and vectors may differ.
// CHECK-LABEL: @partial_rows
// CHECK-SAME:  schedule = #tile.rows<rows = [[ROWS:[0-9]+]], threads = {{[0-9]+}}, vector = 8, columns = [[COLUMNS:[0-9]+]], persistent = [[PERSISTENT:[0-9]+]], stages = 2>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = [[ROWS]], threads = {{[0-9]+}}, vector = 4, columns = [[COLUMNS]], persistent = [[PERSISTENT]]>
tile.kernel @partial_rows(%x: tensor<?x16384xbf16>) -> tensor<?x16384xf32> {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce_rows add %0 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  tile.return %1 : tensor<?x16384xf32>
}

// A band is held by a program as a whole, so that it is read once: by more
// threads.
// CHECK-LABEL: @bands
// CHECK-SAME:  schedule = #tile.rows<rows = 128, threads = 256, vector = 8, columns = 128>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 128, threads = 1024, vector = 4, columns = 128>
tile.kernel @bands(%x: tensor<?x256xbf16>) -> tensor<?x256xf32> {
  %0 = arith.extf %x : tensor<?x256xbf16> to tensor<?x256xf32>
  %1 = tile.reduce_bands max %0 of 128 : tensor<?x256xf32>
  %2 = tile.pack_bands %1 of 128 : tensor<?x256xf32> -> tensor<?x256xf32>
  tile.return %2 : tensor<?x256xf32>
}

// What may have nothing to do has as few programs to find that.
// CHECK-LABEL: @factor
// CHECK-SAME:  schedule = #tile.rows<{{.*}}, vector = 8, {{.*}}, persistent = [[PERSISTENT:[0-9]+]]>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<{{.*}}, vector = 4, {{.*}}, persistent = [[PERSISTENT]]>
tile.kernel @factor(%s: tensor<1xf32> {tile.factor}, %x: tensor<?x2880xbf16> {tile.in_place = 0 : index}) -> tensor<?x2880xbf16> {
  %0 = arith.extf %x : tensor<?x2880xbf16> to tensor<?x2880xf32>
  %1 = tile.broadcast %s like %x : tensor<1xf32>, tensor<?x2880xbf16> -> tensor<?x2880xf32>
  %2 = arith.mulf %0, %1 : tensor<?x2880xf32>
  %3 = arith.truncf %2 : tensor<?x2880xf32> to tensor<?x2880xbf16>
  tile.return %3 : tensor<?x2880xbf16>
}

// A single row is shared out among more blocks.
// CHECK-LABEL: @single_row
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 2048>,
// CHECK-SAME:  unaligned_schedule = #tile.rows<rows = 1, threads = 256, vector = 4, columns = 1024>
tile.kernel @single_row(%w: tensor<8192xbf16>) -> tensor<8192xbf16> {
  %0 = arith.negf %w : tensor<8192xbf16>
  tile.return %0 : tensor<8192xbf16>
}
