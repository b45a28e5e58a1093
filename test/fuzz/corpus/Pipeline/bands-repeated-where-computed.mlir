// options: --target=like --grad
func.func @packed(%x: tensor<?x2xf32>, %s: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = arith.negf %s : tensor<?x2xf32>
  %1 = tile.repeat_bands %0 of 128 like %x : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>

  %2 = tile.broadcast %1 like %x : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  %3 = arith.mulf %0, %2 : tensor<?x2xf32>
  return %3 : tensor<?x2xf32>
}
