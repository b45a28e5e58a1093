// Two products of halves of a weight; a backward needs both, rounded.
func.func @packed(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x48xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  %h = arith.truncf %0 : tensor<?x96xf32> to tensor<?x96xbf16>
  %g, %u = tile.split %h : tensor<?x96xbf16> -> tensor<?x48xbf16>, tensor<?x48xbf16>
  %y = tile.swiglu %g, %u : tensor<?x48xbf16>
  return %y : tensor<?x48xbf16>
}
