// RUN: tile-opt %s -verify-diagnostics -split-input-file

func.func @three_numbers(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{'tile.dot' op contracts the dimensions [1, 1, 0], not one of each operand}}
  %0 = tile.dot %a, %b contract [1, 1, 0] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @no_dimension(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{'tile.dot' op contracts the dimensions [2, 1], not one of each operand}}
  %0 = tile.dot %a, %b contract [2, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @lengths(%a: tensor<?x8xf32>, %b: tensor<4x6xf32>) {
  // expected-error @below {{'tile.dot' op sums over dimension 1 of 'tensor<?x8xf32>' and dimension 1 of 'tensor<4x6xf32>', whose sizes differ}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x6xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @part(%a: tensor<?x8xf32>, %b: tensor<16x8xf32>) {
  // expected-error @below {{'tile.dot' op on tensors has all columns of 'tensor<16x8xf32>', not those from 8 on}}
  %0 = tile.dot %a, %b contract [1, 1] column 8 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @shape(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{'tile.dot' op of 'tensor<?x8xf32>' and 'tensor<4x8xf32>' over [1, 1] is no 'tensor<?x5xf32>'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @vectors(%a: tensor<8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{'tile.dot' op multiplies 'tensor<8xf32>' and 'tensor<4x8xf32>' to 'tensor<1x4xf32>', of which some has no two dimensions}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<8xf32>, tensor<4x8xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @types(%a: tensor<?x8xf16>, %b: tensor<4x8xbf16>) {
  // expected-error @below {{'tile.dot' op multiplies 'tensor<?x8xf16>' and 'tensor<4x8xbf16>', whose element types differ}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf16>, tensor<4x8xbf16> -> tensor<?x4xf32>
  return
}

// -----

func.func @integers(%a: tensor<?x8xi32>, %b: tensor<4x8xi32>) {
  // expected-error @below {{'tile.dot' op multiplies bf16, f16, f32, f64, f8E4M3FN or f8E5M2, not 'i32'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xi32>, tensor<4x8xi32> -> tensor<?x4xi32>
  return
}

// -----

func.func @narrow_sum(%a: tensor<?x8xbf16>, %b: tensor<4x8xbf16>) {
  // expected-error @below {{'tile.dot' op of 'bf16' sums to 'f32', not to 'bf16'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xbf16>, tensor<4x8xbf16> -> tensor<?x4xbf16>
  return
}

// -----

func.func @accumulator(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>, %c: tensor<?x4xf32>) {
  // expected-error @below {{'tile.dot' op on tensors adds to nothing; use 'arith.addf'}}
  %0 = tile.dot %a, %b, %c contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @batches(%a: tensor<2x?x8xf32>, %b: tensor<3x4x8xf32>) {
  // expected-error @below {{in the batch's dimension 1 ahead of the matrices, sizes are equal or 1, and the result has that size, or 1 for a sum}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<2x?x8xf32>, tensor<3x4x8xf32> -> tensor<2x?x4xf32>
  return
}

// -----

func.func @repeated(%a: tensor<1x?x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{in the batch's dimension 1 ahead of the matrices}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<1x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x4xf32>
  return
}

// -----

func.func @rank(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error @below {{'tile.dot' op gives 'tensor<2x?x4xf32>', with dimensions that 'tensor<?x8xf32>' and 'tensor<4x8xf32>' do not have; they could be of size 1 alone}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<2x?x4xf32>
  return
}

// -----

// A kernel computes left factors only, row by row, and nothing but what follows
// its product element by element.
tile.kernel @computed_factor(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %0 = arith.addf %b, %b : tensor<4x8xf32>
  // expected-error @below {{'tile.dot' op multiplies a value that its kernel computes, and that is no left factor with rows that are summed; compute it in a kernel of its own}}
  %1 = tile.dot %a, %0 contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  tile.return %1 : tensor<?x4xf32>
}

// -----

tile.kernel @rows_and_columns(%a: tensor<?x?xf32>, %b: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = arith.addf %a, %a : tensor<?x?xf32>
  // expected-error @below {{'tile.dot' op sums along the rows of a factor that its kernel computes, beside a product that sums over such rows; compute it in a kernel of its own}}
  %1 = tile.dot %0, %b contract [1, 0] : tensor<?x?xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = tile.dot %0, %b contract [0, 0] : tensor<?x?xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  tile.return %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

tile.kernel @factor_summed_over_batch(%q: tensor<3x?x8xf32>, %k: tensor<3x4x8xf32>, %v: tensor<4x8xf32>)
    -> tensor<?x8xf32> {
  // expected-error @below {{'tile.dot' op adds up products over the batch for a factor that its kernel computes for each matrix of the batch; compute it in a kernel of its own}}
  %0 = tile.dot %q, %k contract [1, 1] : tensor<3x?x8xf32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  %1 = math.exp %0 : tensor<?x4xf32>
  %2 = tile.dot %1, %v contract [1, 0] : tensor<?x4xf32>, tensor<4x8xf32> -> tensor<?x8xf32>
  tile.return %2 : tensor<?x8xf32>
}

// -----

tile.kernel @reduced_columns(%a: tensor<?x?xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'tile.reduce' op cannot share a kernel with a product}}
  %0 = tile.reduce add %a : tensor<?x?xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %a : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %2 = arith.addf %a, %1 : tensor<?x?xf32>
  // expected-note @below {{the product is here}}
  %3 = tile.dot %2, %b contract [0, 0] : tensor<?x?xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  tile.return %3 : tensor<?x8xf32>
}

// -----

func.func @rounded_types(%a: tensor<?x8xf64>, %b: tensor<4x8xbf16>) {
  // expected-error @below {{'tile.dot' op multiplies 'tensor<?x8xf64>' and 'tensor<4x8xbf16>', whose element types differ; only float32 is rounded to the other type, where that is bf16 or f16, and only f8E4M3FN and f8E5M2 may meet}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf64>, tensor<4x8xbf16> -> tensor<?x4xf32>
  return
}

// -----

func.func @free_columns(%a: tensor<?x8xf32>, %s: tensor<?x1xf32>) {
  // expected-error @below {{'tile.broadcast' op result of type 'tensor<?x?xf32>' has rows of unknown length, and 'like' of type 'tensor<?x8xf32>' has not; name a tensor that has them}}
  %0 = tile.broadcast %s like %a : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x?xf32>
  return
}

// -----

func.func @groups_of_free_columns(%a: tensor<?x?xf32>) {
  // expected-error @below {{'tile.reduce' op cannot reduce 'tensor<?x?xf32>' to 2 groups of columns of one size}}
  %0 = tile.reduce add %a : tensor<?x?xf32> -> tensor<?x2xf32>
  return
}

// -----

tile.kernel @reduced(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) -> tensor<?x1xf32> {
  // expected-note @below {{the product is here}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  // expected-error @below {{'tile.reduce' op cannot share a kernel with a product or with rows of unknown length, as it is not computed element by element}}
  %1 = tile.reduce add %0 : tensor<?x4xf32> -> tensor<?x1xf32>
  tile.return %1 : tensor<?x1xf32>
}

// -----

tile.kernel @other_shape(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) -> (tensor<?x4xf32>, tensor<?x8xf32>) {
  // expected-note @below {{the product is a 'tensor<?x4xf32>'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  // expected-error @below {{'arith.addf' op computes a 'tensor<?x8xf32>' in the kernel of a product}}
  %1 = arith.addf %a, %a : tensor<?x8xf32>
  tile.return %0, %1 : tensor<?x4xf32>, tensor<?x8xf32>
}

// -----

func.func @load_dot_indices(%a: memref<?x?xf32, strided<[?, 1]>>, %i: index, %0: tensor<4x4xf32>) {
  // expected-error @below {{'tile.load_dot' op has 2 indices of 'memref<?x?xf32, strided<[?, 1]>>', not those of a matrix and of one of its rows or columns}}
  %1 = tile.load_dot %a[%i, %i], %a[%i], %0 contract [1, 1]
      : memref<?x?xf32, strided<[?, 1]>>, memref<?x?xf32, strided<[?, 1]>> -> tensor<4x4xf32>
  return
}

// -----

func.func @load_dot_of_tile(%a: tensor<4x8xf32>, %b: memref<?x?xf32, strided<[?, 1]>>, %i: index, %0: tensor<2x4xf32>) {
  // expected-error @below {{'tile.load_dot' op multiplies the rows of 'tensor<4x8xf32>' to 'tensor<2x4xf32>'; both have the same rows and layout, the tile has no indices, and its dimension 1 is contracted}}
  %1 = tile.load_dot %a, %b[%i, %i], %0 contract [1, 0]
      : tensor<4x8xf32>, memref<?x?xf32, strided<[?, 1]>> -> tensor<2x4xf32>
  return
}

// -----

func.func @load_dot_types(%a: memref<?x?xbf16, strided<[?, 1]>>, %i: index, %0: tensor<4x4xbf16>) {
  // expected-error @below {{operands are both of bf16, f16, f32, f8E4M3FN or f8E5M2, summed in f32, or of f64}}
  %1 = tile.load_dot %a[%i], %a[%i], %0 contract [1, 1]
      : memref<?x?xbf16, strided<[?, 1]>>, memref<?x?xbf16, strided<[?, 1]>> -> tensor<4x4xbf16>
  return
}

// -----

// A number for each group of columns is not one for each element.
tile.kernel @groups(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>, %s: tensor<?x2xf32>) -> tensor<?x4xf32> {
  // expected-note @below {{the product is here}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  // expected-error @below {{'tile.broadcast' op cannot share a kernel with a product or with rows of unknown length, as it is not computed element by element}}
  %1 = tile.broadcast %s like %0 : tensor<?x2xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = arith.mulf %0, %1 : tensor<?x4xf32>
  tile.return %2 : tensor<?x4xf32>
}

// -----

// expected-error @below {{'tile.kernel' op has 1 numbers in 'few_rows', but 2 in 'few_rows_schedules'; give each schedule the rows that it serves at most}}
tile.kernel @few_rows_of_another_count(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) -> tensor<?x4xf32>
    attributes {few_rows = array<i64: 64>, few_rows_schedules = [#tile.matmul<rows = 64>, #tile.matmul<rows = 128>]} {
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  tile.return %0 : tensor<?x4xf32>
}

// -----

// expected-error @below {{'tile.kernel' op has 64 in 'few_rows' behind 256; each number has to be larger than the one before}}
tile.kernel @few_rows_in_another_order(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) -> tensor<?x4xf32>
    attributes {few_rows = array<i64: 256, 64>, few_rows_schedules = [#tile.matmul<rows = 64>, #tile.matmul<rows = 128>]} {
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  tile.return %0 : tensor<?x4xf32>
}

// -----

// expected-error @below {{but only products have such; use '#tile.matmul'}}
tile.kernel @few_rows_of_another_kind(%a: tensor<?x8xf32>, %b: tensor<4x8xf32>) -> tensor<?x4xf32>
    attributes {few_rows = array<i64: 64>, few_rows_schedules = [#tile.rows<rows = 1>]} {
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  tile.return %0 : tensor<?x4xf32>
}
