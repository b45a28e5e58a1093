// RUN: tile-opt %s --schedule=target=host -verify-diagnostics -split-input-file | FileCheck %s

// The host computes float64.
// CHECK-LABEL: @float64
// CHECK-SAME:  #tile.schedule<rows = 1, threads = 1,
tile.kernel @float64(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  %0 = arith.addf %x, %x : tensor<?x8xf64>
  tile.return %0 : tensor<?x8xf64>
}

// -----

// A schedule for a GPU is no error on the host, which ignores its threads.
// CHECK-LABEL: @gpu_schedule
// CHECK-SAME:  #tile.schedule<rows = 2, threads = 2048, vector = 8, columns = 64>
tile.kernel @gpu_schedule(%x: tensor<?x64xbf16>) -> tensor<?x64xbf16>
    attributes {schedule = #tile.schedule<rows = 2, threads = 2048, vector = 8, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x64xbf16>
  tile.return %0 : tensor<?x64xbf16>
}

// -----

// expected-error @below {{does not fit host: a tile of 4096 vectors is more than the 2048 that the host unrolls}}
tile.kernel @unrolled(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32>
    attributes {schedule = #tile.schedule<vector = 1, columns = 4096>} {
  %0 = arith.addf %x, %x : tensor<?x4096xf32>
  tile.return %0 : tensor<?x4096xf32>
}
