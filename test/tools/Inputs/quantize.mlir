func.func @row(%x: tensor<?x4096xbf16>)
    -> (tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>) {
  %q, %s = tile.quantize %x
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
}
func.func @norm_blocks(%x: tensor<?x4096xbf16>, %w: tensor<4096xbf16>)
    -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>) {
  %n = tile.rms_norm %x, %w : tensor<?x4096xbf16>, tensor<4096xbf16>
  %q, %s = tile.quantize %n power_of_two
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @all(%x: tensor<?x2880xbf16>)
    -> (tensor<?x2880xf8E5M2>, tensor<1xf32>) {
  %q, %s = tile.quantize %x format(e5m2)
      : tensor<?x2880xbf16> -> tensor<?x2880xf8E5M2>, tensor<1xf32>
  return %q, %s : tensor<?x2880xf8E5M2>, tensor<1xf32>
}
func.func @back(%x: tensor<?x4224xf8E4M3FN>, %s: tensor<?x33xf32>)
    -> tensor<?x4224xbf16> {
  %0 = tile.dequantize %x, %s
      : tensor<?x4224xf8E4M3FN>, tensor<?x33xf32> -> tensor<?x4224xbf16>
  return %0 : tensor<?x4224xbf16>
}
func.func @squares(%x: tensor<?x4096xbf16>)
    -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>) {
  %q, %s = tile.quantize %x band(128)
      : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @squares_back(%x: tensor<?x4096xf8E4M3FN>, %s: tensor<?x32xf32>)
    -> tensor<?x4096xbf16> {
  %0 = tile.dequantize %x, %s band(128)
      : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
