// options: --target=sm_90a
func.func @f(%x: tensor<?x256xf32>, %s: tensor<?x2xf32>) -> (tensor<?x256xf32>, tensor<?x2xf32>) {
  %0 = tile.reduce max %x : tensor<?x256xf32> -> tensor<?x2xf32>
  %1 = tile.reduce_bands max %0 of 2147483647 : tensor<?x2xf32>
  %2 = tile.repeat_bands %s of 64 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x2xf32>
  %3 = arith.addf %1, %2 : tensor<?x2xf32>
  %4 = tile.broadcast %3 like %x : tensor<?x2xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %5 = arith.subf %x, %4 : tensor<?x256xf32>
  %6 = tile.pack_bands %1 of 64 : tensor<?x2xf32> -> tensor<?x2xf32>
  return %5, %6 : tensor<?x256xf32>, tensor<?x2xf32>
}
