// options: --target=host
func.func @piece(%x: tensor<?x0xf32>, %s: tensor<?x4xf32>) -> tensor<?x0xf32> {
  %low, %high = tile.split %s : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
  %0 = tile.repeat_bands %low of 64 like %x : tensor<?x2xf32>, tensor<?x0xf32> -> tensor<?x2xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x2xf32>, tensor<?x0xf32> -> tensor<?x0xf32>
  %2 = arith.subf %x, %1 : tensor<?x0xf32>
  return %2 : tensor<?x0xf32>
}
