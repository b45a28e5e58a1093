func.func @loss(%logits: tensor<?x100xf32>, %targets: tensor<?x1xi64>)
    -> tensor<1xf32> {
  %loss, %lse, %correct, %invalid, %predicted =
      tile.cross_entropy %logits, %targets {ignore_index = -1}
      : tensor<?x100xf32>, tensor<?x1xi64>
  return %loss : tensor<1xf32>
}
