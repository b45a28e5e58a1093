func.func @swiglu(%gate: tensor<?x8xf32>, %up: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.swiglu %gate, %up : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
