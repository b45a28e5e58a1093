// A branch that training opens slowly: its norm is scaled by tanh(gate), with the
// gate 0 at first, and added to the residual, in one kernel.
func.func @gated_residual(%x: tensor<?x1024xbf16>, %residual: tensor<?x1024xbf16>,
                          %weight: tensor<1024xbf16>, %gate: tensor<1024xbf16>)
    -> tensor<?x1024xbf16> {
  %norm = tile.layer_norm %x, %weight : tensor<?x1024xbf16>, tensor<1024xbf16>
  %scale = math.tanh %gate : tensor<1024xbf16>
  %scales = tile.broadcast %scale like %x
      : tensor<1024xbf16>, tensor<?x1024xbf16> -> tensor<?x1024xbf16>
  %branch = arith.mulf %norm, %scales : tensor<?x1024xbf16>
  %0 = arith.addf %residual, %branch : tensor<?x1024xbf16>
  return %0 : tensor<?x1024xbf16>
}
