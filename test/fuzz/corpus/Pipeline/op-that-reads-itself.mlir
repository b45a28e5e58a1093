// options: --target=host --value-and-grad --in-place
tile.kernel @unscheduled(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %0 = arith.addf %x, %x : tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@unscheduled](%x) : (tensor<?x1xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
  %0 = tile.reduce max %0 : tensor<?x1xf32> -> tensor<?x1xf32>
