// RUN: tile-opt %s --differentiate=gradients=x -verify-diagnostics -split-input-file

// expected-error @below {{no function has an argument called 'x' to compute a gradient for}}
module {
  func.func @unknown_name(%y: tensor<?x8xf32> {tile.name = "y"}) -> tensor<?x8xf32> {
    %0 = math.exp %y : tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
}

// -----

// expected-error @below {{'func.func' op argument 'x' of type 'tensor<?x1xi64>' has no gradient}}
func.func @integers(%x: tensor<?x1xi64> {tile.name = "x"}) -> tensor<?x1xf32> {
  %0 = arith.sitofp %x : tensor<?x1xi64> to tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

func.func @no_derivative(%x: tensor<?x8xf32> {tile.name = "x"}) -> tensor<?x8xf32> {
  // expected-error @below {{'math.copysign' op has no derivative}}
  %0 = math.copysign %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @second_of_two_results(%x: tensor<?x8xf32> {tile.name = "x"}) -> tensor<?x8xf32> {
  // expected-error @below {{'math.sincos' op has no derivative}}
  %0, %1 = math.sincos %x : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

// What does not depend on x needs no derivative.
func.func @elsewhere(%x: tensor<?x8xf32> {tile.name = "x"}, %y: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = math.copysign %y, %y : tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

func.func @number_along_a_vector(%s: tensor<1xf32> {tile.name = "x"}) -> tensor<8xf32> {
  // expected-error @below {{'tile.broadcast' op repeats a number along a row vector, and a gradient with respect to it, the sum of a vector, is not supported; repeat it over rows}}
  %0 = tile.broadcast %s : tensor<1xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @row_of_any_length(%x: tensor<1x8xf32> {tile.name = "x"}, %y: tensor<?x8xf32>, %z: tensor<4x8xf32>)
    -> tensor<4x?xf32> {
  %0 = tile.dot %x, %y contract [1, 1] : tensor<1x8xf32>, tensor<?x8xf32> -> tensor<1x?xf32>
  %1 = tile.dot %z, %y contract [1, 1] : tensor<4x8xf32>, tensor<?x8xf32> -> tensor<4x?xf32>
  // expected-error @below {{'tile.broadcast' op repeats rows whose length only a call knows, and a gradient with respect to them, a sum of rows, is not supported; multiply a column of ones by the row, whose gradient is a product, or give the rows a known length}}
  %2 = tile.broadcast %0 like %1 : tensor<1x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32>
  %3 = arith.addf %1, %2 : tensor<4x?xf32>
  return %3 : tensor<4x?xf32>
}

// -----

func.func @number(%x: tensor<?x8xf32> {tile.name = "x"},
                  // expected-error @below {{argument 1 of type 'f32' must be a row tensor or row vector of f8E4M3FN, f8E5M2, f16, bf16, f32, f64, i8, i32 or i64 with a row length from 1 to 2147483648, which is static in a vector; pass one number as 'tensor<1xf32>'}}
                  %s: f32) -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

func.func @number_returned(%x: tensor<?x8xf32> {tile.name = "x"}) -> f32 {
  %0 = arith.constant 1.0 : f32
  // expected-error @below {{'func.return' op result 0 of type 'f32' is neither a row tensor nor a row vector}}
  return %0 : f32
}

// -----

// expected-error @below {{'func.func' op returns nothing, so there is nothing to compute}}
func.func @nothing(%x: tensor<?x8xf32> {tile.name = "x"}) {
  return
}
