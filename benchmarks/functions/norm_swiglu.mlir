// A norm, two products and SwiGLU: the first half of a model's block.
func.func @norm_swiglu(%x: tensor<?x2048xbf16>, %g: tensor<2048xbf16>, %w: tensor<8192x2048xbf16>, %v: tensor<8192x2048xbf16>) -> tensor<?x8192xbf16> {
  %n = tile.rms_norm %x, %g : tensor<?x2048xbf16>, tensor<2048xbf16>
  %a = tile.dot %n, %w contract [1, 1] : tensor<?x2048xbf16>, tensor<8192x2048xbf16> -> tensor<?x8192xf32>
  %b = tile.dot %n, %v contract [1, 1] : tensor<?x2048xbf16>, tensor<8192x2048xbf16> -> tensor<?x8192xf32>
  %a1 = arith.truncf %a : tensor<?x8192xf32> to tensor<?x8192xbf16>
  %b1 = arith.truncf %b : tensor<?x8192xf32> to tensor<?x8192xbf16>
  %r = tile.swiglu %a1, %b1 : tensor<?x8192xbf16>
  return %r : tensor<?x8192xbf16>
}
