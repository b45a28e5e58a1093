// Query and key of any number of heads, rotated by the same angles.
func.func @rope(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>,
                %cos: tensor<1x?x1x64xf32>, %sin: tensor<1x?x1x64xf32>)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>) {
  %0 = tile.rope %q, %cos, %sin : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  %1 = tile.rope %k, %cos, %sin : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  return %0, %1 : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>
}
