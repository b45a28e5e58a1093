// options: --pass-pipeline=builtin.module(tile{target=host})
tile.kernel @unaligned(%x: tensor<?x0xf64>) -> tensor<?x0xf64>
    attributes {schedule = #tile.rows<rows = 1, threads = 1, vector = 16, columns = 64>} {
  %0 = arith.addf %x, %x : tensor<?x0xf64>
  tile.return %0 : tensor<?x0xf64>
}
func.func @f(%x: tensor<?x0xf64>) -> tensor<?x0xf64> {
  %0 = tile.launch [@unaligned](%x) : (tensor<?x0xf64>) -> tensor<?x0xf64>
  return %0 : tensor<?x0xf64>
}
