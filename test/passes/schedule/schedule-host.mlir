// RUN: tile-opt %s --schedule=target=host -verify-diagnostics -split-input-file | FileCheck %s

// The host computes float64.
// CHECK-LABEL: @float64
// CHECK-SAME:  #tile.rows<rows = 1, threads = 1,
tile.kernel @float64(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  %0 = arith.addf %x, %x : tensor<?x8xf64>
  tile.return %0 : tensor<?x8xf64>
}

// -----

// A schedule for a GPU is no error on the host, which ignores its threads.
// CHECK-LABEL: @gpu_schedule
// CHECK-SAME:  #tile.rows<rows = 2, threads = 2048, vector = 8, columns = 64>
tile.kernel @gpu_schedule(%x: tensor<?x64xbf16>) -> tensor<?x64xbf16>
    attributes {schedule = #tile.rows<rows = 2, threads = 2048, vector = 8, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x64xbf16>
  tile.return %0 : tensor<?x64xbf16>
}

// -----

// What a GPU's many threads hold would be a long program for one.
// CHECK-LABEL: @long_gpu_schedule
// CHECK-SAME:  #tile.rows<rows = 1, threads = 512, vector = 2, columns = 4096>
tile.kernel @long_gpu_schedule(%x: tensor<?x16384xbf16>) -> tensor<?x16384xbf16>
    attributes {schedule = #tile.rows<rows = 1, threads = 512, vector = 2, columns = 16384>} {
  %0 = arith.addf %x, %x : tensor<?x16384xbf16>
  tile.return %0 : tensor<?x16384xbf16>
}

// -----

// expected-error @below {{does not fit host: a tile of 8192 vectors is more than the 5461 that the host unrolls of this kernel; use fewer 'rows' or 'columns', or a wider 'vector'}}
tile.kernel @unrolled(%x: tensor<?x8192xf32>) -> tensor<?x8192xf32>
    attributes {schedule = #tile.rows<vector = 1, columns = 8192>} {
  %1 = arith.mulf %x, %x : tensor<?x8192xf32>
  %0 = arith.addf %x, %1 : tensor<?x8192xf32>
  tile.return %0 : tensor<?x8192xf32>
}

// -----

// A function is many ops.
// expected-error @below {{a tile of 1024 vectors is more than the 963 that the host unrolls of this kernel}}
tile.kernel @unrolled_function(%x: tensor<?x8192xf32>) -> tensor<?x8192xf32>
    attributes {schedule = #tile.rows<vector = 8, columns = 8192>} {
  %0 = math.exp %x : tensor<?x8192xf32>
  tile.return %0 : tensor<?x8192xf32>
}

// -----

// Nor are its ways to hide what memory takes.
// CHECK-LABEL: @hidden_latency
// CHECK-NOT:   stages
// CHECK-NOT:   reread
// CHECK:       tile.return
tile.kernel @hidden_latency(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32>
    attributes {schedule = #tile.rows<persistent = 1, stages = 2, reread = shared>} {
  %1 = arith.mulf %x, %x : tensor<?x4096xf32>
  %0 = arith.addf %x, %1 : tensor<?x4096xf32>
  tile.return %0 : tensor<?x4096xf32>
}

// -----

// Rows of an odd length are computed one element at a time, 64 to a program.
// CHECK-LABEL: @odd_length
// CHECK-SAME:  #tile.rows<rows = 1, threads = 1, vector = 1, columns = 64>
tile.kernel @odd_length(%x: tensor<?x65xf32>) -> tensor<?x65xf32> {
  %0 = arith.addf %x, %x : tensor<?x65xf32>
  tile.return %0 : tensor<?x65xf32>
}

// -----

// Where more is computed, fewer: they are all code.
// CHECK-LABEL: @odd_length_much
// CHECK-SAME:  #tile.rows<rows = 1, threads = 1, vector = 1, columns = 16>
tile.kernel @odd_length_much(%x: tensor<?x65xf32>) -> tensor<?x65xf32> {
  %0 = math.tanh %x : tensor<?x65xf32>
  %1 = math.exp %0 : tensor<?x65xf32>
  %2 = math.tanh %1 : tensor<?x65xf32>
  %3 = math.exp %2 : tensor<?x65xf32>
  %4 = math.tanh %3 : tensor<?x65xf32>
  %5 = math.exp %4 : tensor<?x65xf32>
  %6 = math.tanh %5 : tensor<?x65xf32>
  %7 = math.exp %6 : tensor<?x65xf32>
  %8 = math.tanh %7 : tensor<?x65xf32>
  %9 = math.exp %8 : tensor<?x65xf32>
  %10 = math.tanh %9 : tensor<?x65xf32>
  %11 = math.exp %10 : tensor<?x65xf32>
  %12 = math.tanh %11 : tensor<?x65xf32>
  %13 = math.exp %12 : tensor<?x65xf32>
  %14 = math.tanh %13 : tensor<?x65xf32>
  tile.return %14 : tensor<?x65xf32>
}

// -----

// Rows that are added up keep 64 partial sums of reductions, unless that is more than a
// program may unroll.
// CHECK-LABEL: @odd_length_sums
// CHECK-SAME:  #tile.rows<rows = 1, threads = 1, vector = 1, columns = 50, persistent = 1>
tile.kernel @odd_length_sums(%x: tensor<?x1001xf32>) -> (tensor<?x1xf32>, tensor<?x1001xf32>) {
  %0 = math.tanh %x : tensor<?x1001xf32>
  %1 = math.tanh %0 : tensor<?x1001xf32>
  %2 = math.tanh %1 : tensor<?x1001xf32>
  %3 = math.tanh %2 : tensor<?x1001xf32>
  %4 = math.tanh %3 : tensor<?x1001xf32>
  %5 = tile.reduce add %4 : tensor<?x1001xf32> -> tensor<?x1xf32>
  %6 = tile.reduce_rows add %4 partial : tensor<?x1001xf32> -> tensor<?x1001xf32>
  tile.return %5, %6 : tensor<?x1xf32>, tensor<?x1001xf32>
}

// -----

// Functions are many ops of the processor each.
// expected-error @below {{does not fit host: a tile of 1024 vectors is more than the 252 that the host unrolls of this kernel}}
tile.kernel @functions(%x: tensor<?x8192xf32>) -> tensor<?x8192xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 8, columns = 8192>} {
  %0 = math.tanh %x : tensor<?x8192xf32>
  tile.return %0 : tensor<?x8192xf32>
}
