// options: --target=sm_90a
func.func @rms_norm(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = "tile.rms_norm"(%x) {operandSegmentSizes = array<index: 1, 0, 0>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
