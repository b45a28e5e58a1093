// options: --pass-pipeline=builtin.module(schedule{target=sm_90})
tile.kernel @f(%x: tensor<?x96xf32>, %w: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %0 = tile.dot %w, %w contract [1, 1] : tensor<?x96xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
  tile.return %x : tensor<?x96xf32>
}
