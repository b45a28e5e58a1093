// options: --target=sm_90a --grad
tile.program @p(%n: index, %m: index, %x: memref<?xf32> {tile.dimensions = ["n"]},
    %c: memref<?xi32> {tile.counters = {n = 64 : i64}})
    attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) {
  %0 = tile.launch [@p](%x) : (tensor<?xf32>) -> tensor<?xi32>
  return
}
