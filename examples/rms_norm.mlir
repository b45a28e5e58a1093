// Root mean square normalization, rounding where Llama's code rounds.
func.func @rms_norm(%x: tensor<?x2880xbf16>, %weight: tensor<2880xbf16>)
    -> tensor<?x2880xbf16> {
  %0 = tile.rms_norm %x, %weight {eps = 1.0e-5}
      : tensor<?x2880xbf16>, tensor<2880xbf16>
  return %0 : tensor<?x2880xbf16>
}
