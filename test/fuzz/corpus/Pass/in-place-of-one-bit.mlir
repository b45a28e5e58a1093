// options: --pass-pipeline=builtin.module(fuse)
func.func @read_later(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %y: tensor<?x16xf32>)
    -> (tensor<?x1xf32> {tile.in_place = 1 : i1}, tensor<?x16xf32>) {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = arith.mulf %0, %s : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %3 = tile.broadcast %s like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %4 = arith.divf %2, %3 : tensor<?x16xf32>
  %5 = arith.mulf %4, %y : tensor<?x16xf32>
  return %1, %5 : tensor<?x1xf32>, tensor<?x16xf32>
}
