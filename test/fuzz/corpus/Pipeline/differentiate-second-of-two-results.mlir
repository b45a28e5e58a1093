// options: --target=sm_90a --value-and-grad
func.func @two_results(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0, %1 = math.sincos %x : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
