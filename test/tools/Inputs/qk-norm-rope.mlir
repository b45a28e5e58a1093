// Query and key of Qwen3: each head is normalized, then rotated by the angles of
// its position.
func.func @qk_norm_rope(%q: tensor<?x?x32x128xbf16>, %k: tensor<?x?x8x128xbf16>,
                        %q_weight: tensor<128xbf16>, %k_weight: tensor<128xbf16>,
                        %cos: tensor<1x?x1x64xf32>, %sin: tensor<1x?x1x64xf32>)
    -> (tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>) {
  %0 = tile.rms_norm %q, %q_weight : tensor<?x?x32x128xbf16>, tensor<128xbf16>
  %1 = tile.rms_norm %k, %k_weight : tensor<?x?x8x128xbf16>, tensor<128xbf16>
  %2 = tile.rope %0, %cos, %sin : tensor<?x?x32x128xbf16>, tensor<1x?x1x64xf32>
  %3 = tile.rope %1, %cos, %sin : tensor<?x?x8x128xbf16>, tensor<1x?x1x64xf32>
  return %2, %3 : tensor<?x?x32x128xbf16>, tensor<?x?x8x128xbf16>
}
