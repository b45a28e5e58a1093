// options: --target=host --grad
func.func @f(%0: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %1 = tile.repeat_bands %0 of 128 like %0 : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  %2 = tile.broadcast %1 like %0 : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  %3 = arith.mulf %2, %0 : tensor<?x2xf32>
  return %3 : tensor<?x2xf32>
}
