func.func @vector(%w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.mulf %w, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}
