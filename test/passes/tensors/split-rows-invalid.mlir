// RUN: tile-opt %s --split-rows -split-input-file -verify-diagnostics

func.func @other_pieces(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{'tile.split' op has contiguous pieces of rows of type 'tensor<?x8xf32>' that do not fit the other pieces they are computed with; split the rows in one way, or in functions of their own}}
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  // expected-note @below {{'tile.split' op with interleaved pieces}}
  %even, %odd = tile.split interleaved %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.addf %low, %odd : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Three elements are no half of interleaved pairs.
func.func @odd_halves(%x: tensor<?x6xf32>, %a: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x6xf32>) {
  // expected-error @below {{'tile.split' op has contiguous pieces of rows of type 'tensor<?x6xf32>' that do not fit the other pieces}}
  %low, %high = tile.split %x : tensor<?x6xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  // expected-note @below {{'tile.join' op with interleaved pieces}}
  %0 = tile.join interleaved %a, %a : tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x6xf32>
  %1 = arith.addf %0, %x : tensor<?x6xf32>
  return %low, %1 : tensor<?x3xf32>, tensor<?x6xf32>
}

// -----

func.func @groups(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x2xf32> {
  // expected-note @below {{'tile.join' op here}}
  %0 = tile.join %a, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  // expected-error @below {{'tile.reduce' op needs whole rows of type 'tensor<?x8xf32>'}}
  %1 = tile.reduce max %0 : tensor<?x8xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

func.func @group_statistic(%x: tensor<?x8xf32>, %s: tensor<?x2xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{'tile.broadcast' op needs whole rows of type 'tensor<?x8xf32>'}}
  %0 = tile.broadcast %s like %x : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-note @below {{'tile.split' op here}}
  %low, %high = tile.split %0 : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %low : tensor<?x4xf32>
}

// -----

func.func private @other(tensor<?x8xf32>) -> tensor<?x8xf32>

func.func @split_of_call(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{'func.call' op needs whole rows of type 'tensor<?x8xf32>', which are split; split or join them in a function of its own}}
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
