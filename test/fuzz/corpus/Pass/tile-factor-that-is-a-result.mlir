// options: --pass-pipeline=builtin.module(schedule{target=host},tile{target=host})
tile.kernel @gram(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.dot %x, %x contract [0, 0] : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  tile.return %x : tensor<?x8xf32>
}
func.func @launch(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.launch [@gram](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}