// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @no_rows(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.reduce_bands' op has bands of 0 rows; one is the least}}
  %0 = tile.reduce_bands max %x of 0 : tensor<?x8xf32>
  return
}

// -----

func.func @leading(%x: tensor<?x?x8xf32>) {
  // expected-error @below {{'tile.reduce_bands' op counts bands of rows with one leading dimension, which 'tensor<?x?x8xf32>' does not have}}
  %0 = tile.reduce_bands max %x of 128 : tensor<?x?x8xf32>
  return
}

// -----

func.func @packed_rows(%x: tensor<300x8xf32>) {
  // expected-error @below {{'tile.pack_bands' op needs 'tensor<3x8xf32>' for bands of 128 rows of 'tensor<300x8xf32>', but has 'tensor<2x8xf32>'}}
  %0 = tile.pack_bands %x of 128 : tensor<300x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @packed_elements(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.pack_bands' op turns 'tensor<?x8xf32>' into 'tensor<?x8xf64>', whose element types differ}}
  %0 = tile.pack_bands %x of 128 : tensor<?x8xf32> -> tensor<?x8xf64>
  return
}

// -----

func.func @repeated_length(%s: tensor<?x2xf32>, %x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.repeat_bands' op needs 'tensor<?x8xf32>' for bands of 128 rows of 'tensor<?x8xf32>', but has 'tensor<?x2xf32>'}}
  %0 = tile.repeat_bands %s of 128 like %x : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @repeated_like(%s: tensor<?x2xf32>, %x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.repeat_bands' op result of type 'tensor<?x2xf32>' does not have the leading sizes of 'like' of type 'tensor<4x8xf32>'}}
  %0 = tile.repeat_bands %s of 128 like %x : tensor<?x2xf32>, tensor<4x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @quantize_leading(%x: tensor<?x?x8xbf16>) {
  // expected-error @below {{'tile.quantize' op counts bands of rows with one leading dimension, which 'tensor<?x?x8xbf16>' does not have}}
  %q, %s = tile.quantize %x band(128) : tensor<?x?x8xbf16> -> tensor<?x?x8xf8E4M3FN>, tensor<?x?x1xf32>
  return
}

// -----

func.func @quantize_scale(%x: tensor<300x8xbf16>) {
  // expected-error @below {{'tile.quantize' op scale of type 'tensor<300x1xf32>' must be one number for each band of 128 rows of type 'tensor<300x8xbf16>', or for groups of its columns of one size}}
  %q, %s = tile.quantize %x band(128) : tensor<300x8xbf16> -> tensor<300x8xf8E4M3FN>, tensor<300x1xf32>
  return
}

// -----

func.func @dequantize_band(%x: tensor<?x8xf8E4M3FN>, %s: tensor<?x1xf32>) {
  // expected-error @below {{'tile.dequantize' op has bands of -1 rows; one is the least}}
  %0 = tile.dequantize %x, %s band(-1) : tensor<?x8xf8E4M3FN>, tensor<?x1xf32> -> tensor<?x8xbf16>
  return
}
