// options: --pass-pipeline=builtin.module(tile{target=host})
func.func @in_place_of_another_type(%x: tensor<?x8xbf16>)
    -> (tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

tile.kernel @maximum_of_rows(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 16, columns = 64, persistent = 1>} {
  %0 = tile.reduce_rows max %x partial : tensor<?x64xf32> -> tensor<?x64xf32>
  tile.return %x : tensor<?x64xf32>
}
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = tile.launch [@maximum_of_rows](%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
