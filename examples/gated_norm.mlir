// Mamba-2's norm of what the gate lets through, the activation of the gate
// included, in one kernel.
func.func @gated_norm(%x: tensor<?x4096xbf16>, %z: tensor<?x4096xbf16>,
                      %weight: tensor<4096xbf16>) -> tensor<?x4096xbf16> {
  %gate = tile.silu %z : tensor<?x4096xbf16>
  %gated = arith.mulf %x, %gate : tensor<?x4096xbf16>
  %0 = tile.rms_norm %gated, %weight {eps = 1.0e-5}
      : tensor<?x4096xbf16>, tensor<4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
