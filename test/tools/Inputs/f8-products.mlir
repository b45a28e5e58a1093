// Products of 8-bit floats, which tensor cores add in parts beside the sums.

func.func @linear(%x: tensor<?x512xf8E4M3FN>, %w: tensor<512x512xf8E4M3FN>) -> tensor<?x512xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xf8E4M3FN>, tensor<512x512xf8E4M3FN> -> tensor<?x512xf32>
  %1 = arith.truncf %0 : tensor<?x512xf32> to tensor<?x512xbf16>
  return %1 : tensor<?x512xbf16>
}

func.func @of_two_types(%x: tensor<?x512xf8E5M2>, %w: tensor<512x512xf8E4M3FN>) -> tensor<?x512xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xf8E5M2>, tensor<512x512xf8E4M3FN> -> tensor<?x512xf32>
  %1 = arith.truncf %0 : tensor<?x512xf32> to tensor<?x512xbf16>
  return %1 : tensor<?x512xbf16>
}

func.func @gated(%x: tensor<?x512xf8E4M3FN>, %w: tensor<512x512xf8E4M3FN>, %u: tensor<512x512xf8E4M3FN>, %s: tensor<1xf32>) -> tensor<?x512xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xf8E4M3FN>, tensor<512x512xf8E4M3FN> -> tensor<?x512xf32>
  %1 = tile.dot %x, %u contract [1, 1] : tensor<?x512xf8E4M3FN>, tensor<512x512xf8E4M3FN> -> tensor<?x512xf32>
  %2 = math.tanh %0 : tensor<?x512xf32>
  %3 = arith.mulf %2, %1 : tensor<?x512xf32>
  %4 = tile.broadcast %s like %0 : tensor<1xf32>, tensor<?x512xf32> -> tensor<?x512xf32>
  %5 = arith.mulf %3, %4 : tensor<?x512xf32>
  %6 = arith.truncf %5 : tensor<?x512xf32> to tensor<?x512xbf16>
  return %6 : tensor<?x512xbf16>
}
