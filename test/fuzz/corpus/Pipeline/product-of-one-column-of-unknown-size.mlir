// options: --target=host --value-and-grad --in-place
func.func @computed_of_number(%x: tensor<?x1xbf16>, %y: tensor<?x8xbf16>)
    -> (tensor<1x8xf32>, tensor<?x8xf32>) {
  %cst = arith.constant 1.0 : f32
  %0 = tile.dot %x, %y contract [0, 0] : tensor<?x1xbf16>, tensor<?x8xbf16> -> tensor<1x8xf32>
  %1 = tile.broadcast %cst : f32 -> tensor<1x8xf32>
  %2 = arith.truncf %1 : tensor<1x8xf32> to tensor<1x8xbf16>
  %3 = tile.dot %x, %2 contract [0, 0] : tensor<?x1xbf16>, tensor<1x8xbf16> -> tensor<?x8xf32>
  return %0, %3 : tensor<1x8xf32>, tensor<?x8xf32>
}
