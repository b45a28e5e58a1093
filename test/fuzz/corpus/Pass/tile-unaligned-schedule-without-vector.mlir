// options: --pass-pipeline=builtin.module(tile,keep-rows,canonicalize,cse)
tile.kernel @sizes(%x: tensor<?x96xf32>, %w: tensor<96xf32>) -> tensor<?x96xf32> attributes {
    schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 1, vector = 0, columns = 32>} {
  %0 = tile.broadcast %w like %x : tensor<96xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x96xf32>, %w: tensor<96xf32>) -> tensor<?x96xf32> {
  %0 = tile.launch [@sizes](%x, %w) : (tensor<?x96xf32>, tensor<96xf32>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
