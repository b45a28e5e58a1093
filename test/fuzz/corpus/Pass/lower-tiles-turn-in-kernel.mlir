// options: --pass-pipeline=builtin.module(lower-tiles)
tile.kernel @k(%x: tensor<?x65xf32>) -> tensor<?x65xf32> {
  tile.take_turn
  tile.return %x : tensor<?x65xf32>
}
