// A residual connection and the norm behind it, in one kernel: both tensors are
// read once, the sum and the norm written once.
func.func @add_rms_norm(%x: tensor<?x2880xbf16>, %residual: tensor<?x2880xbf16>,
                        %weight: tensor<2880xbf16>)
    -> (tensor<?x2880xbf16>, tensor<?x2880xbf16>) {
  %sum = arith.addf %x, %residual : tensor<?x2880xbf16>
  %norm = tile.rms_norm %sum, %weight : tensor<?x2880xbf16>, tensor<2880xbf16>
  return %sum, %norm : tensor<?x2880xbf16>, tensor<?x2880xbf16>
}
