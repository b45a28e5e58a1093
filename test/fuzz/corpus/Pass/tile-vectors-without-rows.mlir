// options: --pass-pipeline=builtin.module(tile,keep-rows,canonicalize,cse)
tile.kernel @sizes(%x: tensor<261xf32>, %w: tensor<261xf32>) -> tensor<261xf32> attributes {
    schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = tile.broadcast %w like %x : tensor<261xf32>, tensor<261xf32> -> tensor<261xf32>
  tile.return %0 : tensor<261xf32>
}
func.func @f(%x: tensor<261xf32>, %w: tensor<261xf32>) -> tensor<261xf32> {
  %0 = tile.launch [@sizes](%x, %w) : (tensor<261xf32>, tensor<261xf32>) -> tensor<261xf32>
  return %0 : tensor<261xf32>
}
