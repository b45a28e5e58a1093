// options: --pass-pipeline=builtin.module(func.func(split-rows))
func.func @join_of_broadcasts(%x: tensor<?x8xf32>, %s: tensor<?x0xf32>, %t: tensor<?x0xf32>)
    -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : tensor<?x0xf32>, tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = tile.broadcast %t like %x : tensor<?x0xf32>, tensor<?x8xf32> -> tensor<?x4xf32>
  %2 = tile.join interleaved %0, %1 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %3 = arith.subf %2, %x : tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}
