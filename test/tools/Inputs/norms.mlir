// Norms whose backward has several rows to a block, or keeps much.
func.func @rms_norm_1024(%x: tensor<?x1024xbf16>, %w: tensor<1024xbf16>) -> tensor<?x1024xbf16> {
  %y = tile.rms_norm %x, %w : tensor<?x1024xbf16>, tensor<1024xbf16>
  return %y : tensor<?x1024xbf16>
}
func.func @rms_norm_2048(%x: tensor<?x2048xbf16>, %w: tensor<2048xbf16>) -> tensor<?x2048xbf16> {
  %y = tile.rms_norm %x, %w : tensor<?x2048xbf16>, tensor<2048xbf16>
  return %y : tensor<?x2048xbf16>
}
func.func @layer_norm_768(%x: tensor<?x768xbf16>, %w: tensor<768xbf16>,
    %b: tensor<768xbf16>) -> tensor<?x768xbf16> {
  %y = tile.layer_norm %x, %w bias(%b) : tensor<?x768xbf16>, tensor<768xbf16>, tensor<768xbf16>
  return %y : tensor<?x768xbf16>
}
func.func @layer_norm_2880(%x: tensor<?x2880xbf16>, %w: tensor<2880xbf16>,
    %b: tensor<2880xbf16>) -> tensor<?x2880xbf16> {
  %y = tile.layer_norm %x, %w bias(%b) : tensor<?x2880xbf16>, tensor<2880xbf16>, tensor<2880xbf16>
  return %y : tensor<?x2880xbf16>
}
func.func @gated_norm_2880(%x: tensor<?x2880xbf16>, %z: tensor<?x2880xbf16>,
    %w: tensor<2880xbf16>) -> tensor<?x2880xbf16> {
  %0 = tile.silu %z : tensor<?x2880xbf16>
  %1 = arith.mulf %x, %0 : tensor<?x2880xbf16>
  %y = tile.rms_norm %1, %w : tensor<?x2880xbf16>, tensor<2880xbf16>
  return %y : tensor<?x2880xbf16>
}
