func.func @mean_loss(%logits: tensor<?x2880xbf16>, %targets: tensor<?x1xi64>) -> tensor<1xf32> {
  %loss, %lse, %correct, %invalid, %predicted = tile.cross_entropy %logits, %targets
      : tensor<?x2880xbf16>, tensor<?x1xi64>
  return %loss : tensor<1xf32>
}
