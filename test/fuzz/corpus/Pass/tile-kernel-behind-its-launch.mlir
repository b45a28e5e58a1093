// options: --pass-pipeline=builtin.module(tile{target=host},merge-launches)
#one = #tile.rows<rows = 1, threads = 1, vector = 4, columns = 128>
func.func @order(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = tile.launch [@a](%x) : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
tile.kernel @a(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #one} {
  tile.return %x : tensor<?x128xf32>
}
