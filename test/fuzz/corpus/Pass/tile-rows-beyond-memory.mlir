// options: --pass-pipeline=builtin.module(tile,keep-rows,canonicalize,cse)
tile.kernel @sums_in_memory(%x: tensor<?x4611686018427387904xf32>) -> tensor<?x4611686018427387904xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256, persistent = 1, reread = shared>} {
  %0 = tile.reduce max %x : tensor<?x4611686018427387904xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %x : tensor<?x1xf32>, tensor<?x4611686018427387904xf32> -> tensor<?x4611686018427387904xf32>
  %2 = arith.subf %x, %1 : tensor<?x4611686018427387904xf32>
  %3 = tile.reduce_rows add %2 partial : tensor<?x4611686018427387904xf32> -> tensor<?x4611686018427387904xf32>
  tile.return %3 : tensor<?x4611686018427387904xf32>
}
func.func @f(%x: tensor<?x4611686018427387904xf32>) -> tensor<?x4611686018427387904xf32> {
  %0 = tile.launch [@sums_in_memory](%x) : (tensor<?x4611686018427387904xf32>) -> tensor<?x4611686018427387904xf32>
  return %0 : tensor<?x4611686018427387904xf32>
}
