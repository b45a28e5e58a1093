func.func @loss(%x: tensor<?x2880xbf16>, %w: tensor<2880xf32>) -> tensor<1xf32> {
  %0 = arith.extf %x : tensor<?x2880xbf16> to tensor<?x2880xf32>
  %1 = tile.broadcast %w like %x : tensor<2880xf32>, tensor<?x2880xbf16> -> tensor<?x2880xf32>
  %2 = arith.mulf %0, %1 : tensor<?x2880xf32>
  %3 = tile.reduce add %2 : tensor<?x2880xf32> -> tensor<?x1xf32>
  %4 = tile.reduce_rows add %3 : tensor<?x1xf32> -> tensor<1xf32>
  return %4 : tensor<1xf32>
}
