// options: --pass-pipeline=builtin.module(tile{target=host})
tile.kernel @mixed_alignment(%x: tensor<?x128xbf16>) -> tensor<?x128xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %0 = tile.launch [@mixed_alignment](%x) : (tensor<?x128xbf16>) -> tensor<?x128xf32>
  tile.return %0 : tensor<?x128xf32>
}
func.func @f(%x: tensor<?x128xbf16>) -> tensor<?x128xf32> {
  %0 = arith.extf %x : tensor<?x128xbf16> to tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
