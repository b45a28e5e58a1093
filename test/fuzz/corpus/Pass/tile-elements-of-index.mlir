// options: --pass-pipeline=builtin.module(tile,keep-rows,canonicalize,cse)
tile.kernel @sizes(%x: tensor<?x261xindex>, %w: tensor<261xindex>) -> tensor<?x261xindex> attributes {
    schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = tile.broadcast %w like %x : tensor<261xindex>, tensor<?x261xindex> -> tensor<?x261xindex>
  tile.return %0 : tensor<?x261xindex>
}
func.func @f(%x: tensor<?x261xindex>, %w: tensor<261xindex>) -> tensor<?x261xindex> {
  %0 = tile.launch [@sizes](%x, %w) : (tensor<?x261xindex>, tensor<261xindex>) -> tensor<?x261xindex>
  return %0 : tensor<?x261xindex>
}
