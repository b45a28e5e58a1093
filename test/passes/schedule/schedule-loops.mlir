// RUN: tile-opt %s --schedule | FileCheck %s --check-prefixes=CHECK,CLUSTER
// RUN: tile-opt %s --schedule=target=sm_80 | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: tile-opt %s --schedule="schedule='reread=memory'" | FileCheck %s --check-prefix=MEMORY
// RUN: tile-opt %s --schedule="schedule='cluster=2'" | FileCheck %s --check-prefix=PINNED

// Registers hold too little of long rows with several reductions, as a loss has
// them: these rows are swept in tiles. A block that keeps rows in shared memory
// for later sweeps leaves room for two others, whatever the alignment.
// CHECK-LABEL: @one_block
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 1, reread = shared>,
// CLUSTER-SAME: unaligned_schedule = #tile.rows<rows = 1, threads = 256, vector = 4, columns = 1024, cluster = 1, reread = shared>
// SM80-SAME:   schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 8192, cluster = 1, reread = shared>,
// MEMORY-LABEL: @one_block
// MEMORY-SAME: reread = memory>
// PINNED-LABEL: @one_block
// PINNED-SAME: schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 8192, cluster = 2, reread = shared>
tile.kernel @one_block(%x: tensor<?x32768xbf16>) -> (tensor<?x32768xbf16>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %0, %2 : tensor<?x32768xf32>
  %4 = math.exp %3 : tensor<?x32768xf32>
  %5 = tile.reduce add %4 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %6 = tile.reduce min %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %8 = arith.divf %4, %7 : tensor<?x32768xf32>
  %9 = arith.truncf %8 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  tile.return %9, %6 : tensor<?x32768xbf16>, tensor<?x1xf32>
}

// Longer ones are shared by as few blocks as keep them like that, or leave room
// for one other block, which then have more threads. Without
// clusters, a block keeps what fits.
// CHECK-LABEL: @two_blocks
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 8192, cluster = 2, reread = shared>,
// SM80-SAME:   schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 8192, cluster = 1, reread = shared>,
tile.kernel @two_blocks(%x: tensor<?x65536xbf16>) -> (tensor<?x65536xbf16>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce max %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %3 = arith.subf %0, %2 : tensor<?x65536xf32>
  %4 = math.exp %3 : tensor<?x65536xf32>
  %5 = tile.reduce add %4 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %6 = tile.reduce min %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %8 = arith.divf %4, %7 : tensor<?x65536xf32>
  %9 = arith.truncf %8 : tensor<?x65536xf32> to tensor<?x65536xbf16>
  tile.return %9, %6 : tensor<?x65536xbf16>, tensor<?x1xf32>
}

// CHECK-LABEL: @two_to_a_multiprocessor
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 416, vector = 8, columns = 26624, cluster = 4, reread = shared>,
tile.kernel @two_to_a_multiprocessor(%x: tensor<?x201088xbf16>) -> (tensor<?x201088xbf16>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x201088xbf16> to tensor<?x201088xf32>
  %1 = tile.reduce max %0 : tensor<?x201088xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x201088xbf16> -> tensor<?x201088xf32>
  %3 = arith.subf %0, %2 : tensor<?x201088xf32>
  %4 = math.exp %3 : tensor<?x201088xf32>
  %5 = tile.reduce add %4 : tensor<?x201088xf32> -> tensor<?x1xf32>
  %6 = tile.reduce min %0 : tensor<?x201088xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x201088xbf16> -> tensor<?x201088xf32>
  %8 = arith.divf %4, %7 : tensor<?x201088xf32>
  %9 = arith.truncf %8 : tensor<?x201088xf32> to tensor<?x201088xbf16>
  tile.return %9, %6 : tensor<?x201088xbf16>, tensor<?x1xf32>
}

// CHECK-LABEL: @eight_blocks
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 32768, cluster = 8, reread = shared>,
// SM80-SAME:   schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 8192, cluster = 1, reread = memory>,
tile.kernel @eight_blocks(%x: tensor<?x262144xbf16>) -> (tensor<?x262144xbf16>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x262144xbf16> to tensor<?x262144xf32>
  %1 = tile.reduce max %0 : tensor<?x262144xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x262144xbf16> -> tensor<?x262144xf32>
  %3 = arith.subf %0, %2 : tensor<?x262144xf32>
  %4 = math.exp %3 : tensor<?x262144xf32>
  %5 = tile.reduce add %4 : tensor<?x262144xf32> -> tensor<?x1xf32>
  %6 = tile.reduce min %0 : tensor<?x262144xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x262144xbf16> -> tensor<?x262144xf32>
  %8 = arith.divf %4, %7 : tensor<?x262144xf32>
  %9 = arith.truncf %8 : tensor<?x262144xf32> to tensor<?x262144xbf16>
  tile.return %9, %6 : tensor<?x262144xbf16>, tensor<?x1xf32>
}

// A row that no cluster keeps is loaded again, from the cache: blocks that share
// rows have few enough of them under way at once.
// CHECK-LABEL: @too_long
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 32768, cluster = 4, reread = memory>,
// SM80-SAME:   schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 8192, cluster = 1, reread = memory>,
tile.kernel @too_long(%x: tensor<?x1048576xbf16>) -> (tensor<?x1048576xbf16>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x1048576xbf16> to tensor<?x1048576xf32>
  %1 = tile.reduce max %0 : tensor<?x1048576xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x1048576xbf16> -> tensor<?x1048576xf32>
  %3 = arith.subf %0, %2 : tensor<?x1048576xf32>
  %4 = math.exp %3 : tensor<?x1048576xf32>
  %5 = tile.reduce add %4 : tensor<?x1048576xf32> -> tensor<?x1xf32>
  %6 = tile.reduce min %0 : tensor<?x1048576xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x1048576xbf16> -> tensor<?x1048576xf32>
  %8 = arith.divf %4, %7 : tensor<?x1048576xf32>
  %9 = arith.truncf %8 : tensor<?x1048576xf32> to tensor<?x1048576xbf16>
  tile.return %9, %6 : tensor<?x1048576xbf16>, tensor<?x1xf32>
}

// A row that registers hold is read once.
// CHECK-LABEL: @whole
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 16384>,
tile.kernel @whole(%x: tensor<?x16384xbf16>) -> (tensor<?x16384xbf16>, tensor<?x1xf32>) {
  %0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %1 = tile.reduce max %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %3 = arith.subf %0, %2 : tensor<?x16384xf32>
  %4 = math.exp %3 : tensor<?x16384xf32>
  %5 = tile.reduce add %4 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %6 = tile.reduce min %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %8 = arith.divf %4, %7 : tensor<?x16384xf32>
  %9 = arith.truncf %8 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %9, %6 : tensor<?x16384xbf16>, tensor<?x1xf32>
}

// Every operand takes registers: two of float32 leave a block less of a row than
// one of bfloat16.
// CHECK-LABEL: @two_operands
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = {{[0-9]+}}, vector = {{[0-9]+}}, columns = {{[0-9]+}}, cluster = 4>
tile.kernel @two_operands(%x: tensor<?x16384xf32>, %y: tensor<?x16384xf32>) -> tensor<?x1xf32> {
  %0 = arith.mulf %x, %y : tensor<?x16384xf32>
  %1 = tile.reduce add %0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}
// CHECK-LABEL: @one_operand
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = {{[0-9]+}}, vector = {{[0-9]+}}, columns = 16384>
tile.kernel @one_operand(%x: tensor<?x16384xf32>) -> tensor<?x1xf32> {
  %1 = tile.reduce add %x : tensor<?x16384xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// A result that takes the memory of an operand is stored in the last sweep, which
// reads that operand again.
// CHECK-LABEL: @in_place
// CHECK-SAME:  columns = 8192, reread = shared>
tile.kernel @in_place(%x: tensor<?x32768xbf16> {tile.in_place = 0 : index}, %y: tensor<?x32768xf32>)
    -> (tensor<?x32768xbf16>, tensor<?x32768xf32>)
    attributes {schedule = #tile.rows<threads = 512, columns = 8192>} {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce add %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %y, %2 : tensor<?x32768xf32>
  %4 = arith.negf %x : tensor<?x32768xbf16>
  tile.return %4, %3 : tensor<?x32768xbf16>, tensor<?x32768xf32>
}
// CHECK-LABEL: @not_in_place
// CHECK-SAME:  columns = 8192>
tile.kernel @not_in_place(%x: tensor<?x32768xbf16>, %y: tensor<?x32768xf32>)
    -> (tensor<?x32768xbf16>, tensor<?x32768xf32>)
    attributes {schedule = #tile.rows<threads = 512, columns = 8192>} {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce add %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %y, %2 : tensor<?x32768xf32>
  %4 = arith.negf %x : tensor<?x32768xbf16>
  tile.return %4, %3 : tensor<?x32768xbf16>, tensor<?x32768xf32>
}

// So are rows with two reductions that are too long for one block. One that keeps
// a row by itself and leaves room for two others has more threads, a vector each.
// CHECK-LABEL: @two_reductions
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 4096, cluster = 1, reread = shared>,
// CLUSTER-SAME: unaligned_schedule = #tile.rows<rows = 1, threads = 512, vector = 4, columns = 2048, cluster = 1, reread = shared>
// PINNED-LABEL: @two_reductions
// PINNED-SAME: schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 32768, cluster = 2>
tile.kernel @two_reductions(%x: tensor<?x32768xbf16>) -> tensor<?x32768xbf16> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %0, %2 : tensor<?x32768xf32>
  %4 = math.exp %3 : tensor<?x32768xf32>
  %5 = tile.reduce add %4 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %6 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %7 = arith.divf %4, %6 : tensor<?x32768xf32>
  %8 = arith.truncf %7 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  tile.return %8 : tensor<?x32768xbf16>
}

// CHECK-LABEL: @two_reductions_of_longer_rows
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 8192, cluster = 2, reread = shared>,
// SM80-SAME:   schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 8192, cluster = 1, reread = shared>,
tile.kernel @two_reductions_of_longer_rows(%x: tensor<?x65536xbf16>) -> tensor<?x65536xbf16> {
  %0 = arith.extf %x : tensor<?x65536xbf16> to tensor<?x65536xf32>
  %1 = tile.reduce max %0 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %3 = arith.subf %0, %2 : tensor<?x65536xf32>
  %4 = math.exp %3 : tensor<?x65536xf32>
  %5 = tile.reduce add %4 : tensor<?x65536xf32> -> tensor<?x1xf32>
  %6 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x65536xbf16> -> tensor<?x65536xf32>
  %7 = arith.divf %4, %6 : tensor<?x65536xf32>
  %8 = arith.truncf %7 : tensor<?x65536xf32> to tensor<?x65536xbf16>
  tile.return %8 : tensor<?x65536xbf16>
}

// Of two tensors, reductions that wait for each other are found in as many sweeps, which
// read and compute more than blocks that hold the row.
// CHECK-LABEL: @two_reductions_of_two_tensors
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 32768, cluster = 4>,
tile.kernel @two_reductions_of_two_tensors(%x: tensor<?x32768xbf16>, %y: tensor<?x32768xbf16>) -> tensor<?x32768xbf16> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = arith.extf %y : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %2 = arith.mulf %0, %1 : tensor<?x32768xf32>
  %3 = tile.reduce add %2 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %5 = arith.subf %2, %4 : tensor<?x32768xf32>
  %6 = arith.mulf %5, %5 : tensor<?x32768xf32>
  %7 = tile.reduce add %6 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %8 = tile.broadcast %7 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %9 = arith.mulf %5, %8 : tensor<?x32768xf32>
  %10 = arith.truncf %9 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  tile.return %10 : tensor<?x32768xbf16>
}

// A row with one reduction stays in the registers of a cluster, but for one whose
// vectors begin ahead of it.
// CHECK-LABEL: @one_reduction
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 32768, cluster = 2>,
tile.kernel @one_reduction(%x: tensor<?x32768xbf16>) -> tensor<?x32768xbf16> {
  %0 = arith.extf %x : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %1 = tile.reduce max %0 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %3 = arith.subf %0, %2 : tensor<?x32768xf32>
  %4 = arith.truncf %3 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  tile.return %4 : tensor<?x32768xbf16>
}

// CHECK-LABEL: @one_reduction_of_odd_rows
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 416, vector = 8, columns = 3328, cluster = 1, reread = shared>,
tile.kernel @one_reduction_of_odd_rows(%x: tensor<?x32771xbf16>) -> tensor<?x32771xbf16> {
  %0 = arith.extf %x : tensor<?x32771xbf16> to tensor<?x32771xf32>
  %1 = tile.reduce max %0 : tensor<?x32771xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x32771xbf16> -> tensor<?x32771xf32>
  %3 = arith.subf %0, %2 : tensor<?x32771xf32>
  %4 = arith.truncf %3 : tensor<?x32771xf32> to tensor<?x32771xbf16>
  tile.return %4 : tensor<?x32771xbf16>
}

// Of two tensors a block keeps as much as leaves room for one other.
// CHECK-LABEL: @odd_rows_of_two_tensors
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 416, vector = 8, columns = 13312, cluster = 2, reread = shared>,
tile.kernel @odd_rows_of_two_tensors(%x: tensor<?x50257xbf16>, %y: tensor<?x50257xbf16>)
    -> tensor<?x50257xbf16> {
  %0 = arith.extf %x : tensor<?x50257xbf16> to tensor<?x50257xf32>
  %1 = arith.extf %y : tensor<?x50257xbf16> to tensor<?x50257xf32>
  %2 = arith.mulf %0, %1 : tensor<?x50257xf32>
  %3 = tile.reduce add %2 : tensor<?x50257xf32> -> tensor<?x1xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x1xf32>, tensor<?x50257xbf16> -> tensor<?x50257xf32>
  %5 = arith.subf %0, %4 : tensor<?x50257xf32>
  %6 = arith.mulf %5, %1 : tensor<?x50257xf32>
  %7 = arith.truncf %6 : tensor<?x50257xf32> to tensor<?x50257xbf16>
  tile.return %7 : tensor<?x50257xbf16>
}

// Rows of which shared memory has no room for two blocks stay in registers.
// CHECK-LABEL: @too_long_to_keep
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 1024, vector = 4, columns = 131072, cluster = 4>,
tile.kernel @too_long_to_keep(%x: tensor<?x131072xf32>, %y: tensor<?x131072xf32>) -> tensor<?x131072xf32> {
  %0 = arith.mulf %x, %y : tensor<?x131072xf32>
  %1 = tile.reduce max %0 : tensor<?x131072xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x131072xf32> -> tensor<?x131072xf32>
  %3 = arith.subf %0, %2 : tensor<?x131072xf32>
  %4 = math.exp %3 : tensor<?x131072xf32>
  %5 = tile.reduce add %4 : tensor<?x131072xf32> -> tensor<?x1xf32>
  %6 = tile.broadcast %5 like %x : tensor<?x1xf32>, tensor<?x131072xf32> -> tensor<?x131072xf32>
  %7 = arith.divf %4, %6 : tensor<?x131072xf32>
  tile.return %7 : tensor<?x131072xf32>
}

// One that no cluster holds is kept there although one reduction needs it.
// CHECK-LABEL: @longer_than_registers
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 480, vector = 8, columns = 61440, cluster = 8, reread = shared>,
tile.kernel @longer_than_registers(%x: tensor<?x300000xbf16>) -> tensor<?x300000xbf16> {
  %0 = arith.extf %x : tensor<?x300000xbf16> to tensor<?x300000xf32>
  %1 = tile.reduce max %0 : tensor<?x300000xf32> -> tensor<?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x1xf32>, tensor<?x300000xbf16> -> tensor<?x300000xf32>
  %3 = arith.subf %0, %2 : tensor<?x300000xf32>
  %4 = arith.truncf %3 : tensor<?x300000xf32> to tensor<?x300000xbf16>
  tile.return %4 : tensor<?x300000xbf16>
}

// The expectation of a row under a softmax reads the row once, in one sweep, as
// its sum follows the maximum: nothing is kept, and no cluster is needed.
// CHECK-LABEL: @expectation
// CLUSTER-SAME: schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 1>,
// PINNED-LABEL: @expectation
tile.kernel @expectation(%x: tensor<?x131072xbf16>, %y: tensor<?x131072xbf16>) -> tensor<?x1xf32> {
  %0 = arith.extf %x : tensor<?x131072xbf16> to tensor<?x131072xf32>
  %1 = arith.extf %y : tensor<?x131072xbf16> to tensor<?x131072xf32>
  %2 = tile.reduce max %0 : tensor<?x131072xf32> -> tensor<?x1xf32>
  %3 = tile.broadcast %2 like %x : tensor<?x1xf32>, tensor<?x131072xbf16> -> tensor<?x131072xf32>
  %4 = arith.subf %0, %3 : tensor<?x131072xf32>
  %5 = math.exp %4 : tensor<?x131072xf32>
  %6 = tile.reduce add %5 : tensor<?x131072xf32> -> tensor<?x1xf32>
  %7 = tile.broadcast %6 like %x : tensor<?x1xf32>, tensor<?x131072xbf16> -> tensor<?x131072xf32>
  %8 = arith.divf %5, %7 : tensor<?x131072xf32>
  %9 = arith.mulf %8, %1 : tensor<?x131072xf32>
  %10 = tile.reduce add %9 : tensor<?x131072xf32> -> tensor<?x1xf32>
  tile.return %10 : tensor<?x1xf32>
}
