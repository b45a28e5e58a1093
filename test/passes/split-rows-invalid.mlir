// RUN: tile-opt %s --split-rows -split-input-file -verify-diagnostics

func.func @two_kinds(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // expected-note @below {{'tile.split' op with contiguous pieces}}
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.negf %x : tensor<?x8xf32>
  // expected-error @below {{'tile.split' op has interleaved pieces of rows of type 'tensor<?x8xf32>' that are also taken apart into contiguous pieces; use one of the two for both}}
  %even, %odd = tile.split interleaved %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low, %odd : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

func.func @split_of_other_join(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-note @below {{'tile.join' op with interleaved pieces}}
  %0 = tile.join interleaved %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  // expected-error @below {{has contiguous pieces of rows of type 'tensor<?x8xf32>' that are also taken apart into interleaved pieces}}
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low : tensor<?x4xf32>
}

// -----

// Halves of interleaved pieces are neither.
func.func @pieces_of_other_pieces(%x: tensor<?x8xf32>) -> tensor<?x2xf32> {
  // expected-note @below {{'tile.split' op with interleaved pieces}}
  %even, %odd = tile.split interleaved %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  // expected-error @below {{has contiguous pieces of rows of type 'tensor<?x4xf32>'}}
  %low, %high = tile.split %odd : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
  return %low : tensor<?x2xf32>
}

// -----

func.func private @other(tensor<?x8xf32>) -> tensor<?x8xf32>

func.func @split_of_call(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{'func.call' op needs whole rows of type 'tensor<?x8xf32>', which are taken apart; split or join them in a function of its own}}
  %0 = func.call @other(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-note @below {{'tile.split' op here}}
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low : tensor<?x4xf32>
}

// -----

func.func @split_of_constant() -> tensor<1x2xf32> {
  // expected-error @below {{'arith.constant' op needs whole rows of type 'tensor<1x4xf32>'}}
  %0 = arith.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>
  // expected-note @below {{'tile.split' op here}}
  %low, %high = tile.split %0 : tensor<1x4xf32> -> tensor<1x2xf32>, tensor<1x2xf32>
  return %low : tensor<1x2xf32>
}

// -----

func.func @used_in_region(%x: tensor<?x8xf32>, %c: i1) -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  // expected-note @below {{'tile.split' op here}}
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = scf.if %c -> tensor<?x8xf32> {
    // expected-error @below {{'arith.negf' op needs whole rows of type 'tensor<?x8xf32>'}}
    %1 = arith.negf %x : tensor<?x8xf32>
    scf.yield %1 : tensor<?x8xf32>
  } else {
    scf.yield %x : tensor<?x8xf32>
  }
  return %low, %0 : tensor<?x4xf32>, tensor<?x8xf32>
}
