// Neighbours are rotated, in two thirds of each row, with an angle for each.
func.func @rope(%q: tensor<?x?x?x96xbf16>, %k: tensor<?x?x?x96xbf16>,
                %cos: tensor<1x?x1x64xf32>, %sin: tensor<1x?x1x64xf32>)
    -> (tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>) {
  %0 = tile.rope %q, %cos, %sin interleaved {rotary = 64} : tensor<?x?x?x96xbf16>, tensor<1x?x1x64xf32>
  %1 = tile.rope %k, %cos, %sin interleaved {rotary = 64} : tensor<?x?x?x96xbf16>, tensor<1x?x1x64xf32>
  return %0, %1 : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>
}
