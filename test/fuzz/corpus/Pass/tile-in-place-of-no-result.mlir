// options: --pass-pipeline=builtin.module(tile,canonicalize,cse)
tile.kernel @in_place(%x: tensor<?x127xf64> {tile.in_place = 2147483647 : i64}, %y: tensor<?x127xf64>) -> tensor<?x127xf64>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %0 = arith.addf %x, %y : tensor<?x127xf64>
// options: --pass-pipeline=builtin.module(tile,canonicalize,cse)
  tile.return %0 : tensor<?x127xf64>
}
func.func @f(%x: tensor<?x127xf64>, %y: tensor<?x127xf64>) -> tensor<?x127xf64> {
  %0 = tile.launch [@in_place](%x, %y) : (tensor<?x127xf64>, tensor<?x127xf64>) -> tensor<?x127xf64>
  return %0 : tensor<?x127xf64>
}
