// options: --target=sm_90a --grad
tile.kernel @return_type(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  tile.return %y : tensor<?x4xf32>
^grad(%y: tensor<?x4xf32>):
  tile.return %x : tensor<?x4xf32>
}
