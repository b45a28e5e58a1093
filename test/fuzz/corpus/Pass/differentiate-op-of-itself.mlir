// options: --pass-pipeline=builtin.module(differentiate{gradients=all})
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}
%0 = tile.stop_gradient %0 : tensor<?x8xf32>
