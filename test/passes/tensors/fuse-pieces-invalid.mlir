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

// -----

// expected-error @below {{'tile.kernel' op goes along rows in pieces of which each column stands for a group of the same rows' columns; name the two dimensions apart, or split the function}}
// expected-note @below {{the rows of 'tensor<?x16xf32>' are in pieces}}
func.func @pieces_of_groups(%x: tensor<?x16xf32> {tile.dimensions = ["r", "d"]})
    -> (tensor<?x16xf32> {tile.dimensions = ["r", "d"]}) {
  %0:4 = tile.split %x : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %1 = tile.broadcast %0#3 like %0#3 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}
