// Qwen3's queries (batch, sequence, heads, size): each head is normalized and
// rotated by the angles of its position, which all heads share, in one kernel.
func.func @qk_norm_rope(%q: tensor<?x?x?x128xbf16>, %weight: tensor<128xbf16>,
                        %cos: tensor<1x?x1x64xf32>, %sin: tensor<1x?x1x64xf32>)
    -> tensor<?x?x?x128xbf16> {
  %norm = tile.rms_norm %q, %weight
      : tensor<?x?x?x128xbf16>, tensor<128xbf16>
  %0 = tile.rope %norm, %cos, %sin
      : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  return %0 : tensor<?x?x?x128xbf16>
}
