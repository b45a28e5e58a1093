// RUN: tile-opt %s --fuse -split-input-file -verify-diagnostics
// Pieces of rows are read and written; 'split-rows' computes with them.

func.func @split_of_piece(%x: tensor<?x8xf32>) -> tensor<?x2xf32> {
  %even, %odd = tile.split interleaved %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  // expected-error @below {{'tile.split' op splits rows that are computed; run the pass 'split-rows' first}}
  %low, %high = tile.split %odd : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
  return %high : tensor<?x2xf32>
}

// -----

func.func @join_and_go_on(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x16xf32> {
  // expected-error @below {{'tile.join' op joins rows that are computed with; run the pass 'split-rows' first}}
  %0 = tile.join %x, %y : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %1 = arith.negf %0 : tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}
