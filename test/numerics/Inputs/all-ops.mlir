// Every op once, forward; with --grad=x,y,w,b backward as well. What takes no
// gradient has other names: angles, targets.

func.func @layer_norm(%x: tensor<?x1000xbf16>, %w: tensor<1000xbf16>, %b: tensor<1000xbf16>) -> tensor<?x1000xbf16> {
  %0 = tile.layer_norm %x, %w bias(%b) : tensor<?x1000xbf16>, tensor<1000xbf16>, tensor<1000xbf16>
  return %0 : tensor<?x1000xbf16>
}
func.func @rms_norm(%x: tensor<?x65536xbf16>, %w: tensor<65536xf32>) -> tensor<?x65536xbf16> {
  %0 = tile.rms_norm %x, %w : tensor<?x65536xbf16>, tensor<65536xf32>
  return %0 : tensor<?x65536xbf16>
}
func.func @add_rms_norm(%x: tensor<?x?x129xf16>, %y: tensor<?x?x129xf16>, %w: tensor<129xf16>) -> (tensor<?x?x129xf16>, tensor<?x?x129xf16>) {
  %0, %1 = tile.add_rms_norm %x, %y, %w casting(gemma) : tensor<?x?x129xf16>, tensor<129xf16>
  return %0, %1 : tensor<?x?x129xf16>, tensor<?x?x129xf16>
}
func.func @geglu_interleaved(%x: tensor<?x2000xbf16>, %b: tensor<2000xbf16>) -> tensor<?x1000xbf16> {
  %0 = tile.add_bias %x, %b : tensor<?x2000xbf16>, tensor<2000xbf16>
  %g, %u = tile.split interleaved %0 : tensor<?x2000xbf16> -> tensor<?x1000xbf16>, tensor<?x1000xbf16>
  %1 = tile.geglu %g, %u : tensor<?x1000xbf16>
  return %1 : tensor<?x1000xbf16>
}
func.func @geglu_halves(%x: tensor<?x2000xbf16>) -> tensor<?x1000xbf16> {
  %g, %u = tile.split %x : tensor<?x2000xbf16> -> tensor<?x1000xbf16>, tensor<?x1000xbf16>
  %1 = tile.geglu %g, %u form(tanh) : tensor<?x1000xbf16>
  return %1 : tensor<?x1000xbf16>
}
func.func @swiglu(%x: tensor<?x1001xf32>, %y: tensor<?x1001xf32>) -> tensor<?x1001xf32> {
  %0 = tile.swiglu %x, %y : tensor<?x1001xf32>
  return %0 : tensor<?x1001xf32>
}
func.func @reglu(%x: tensor<?x1000xf16>, %y: tensor<?x1000xf16>) -> tensor<?x1000xf16> {
  %0 = tile.reglu %x, %y : tensor<?x1000xf16>
  return %0 : tensor<?x1000xf16>
}
func.func @relu_squared(%x: tensor<?x1000xbf16>) -> tensor<?x1000xbf16> {
  %0 = tile.relu_squared %x : tensor<?x1000xbf16>
  return %0 : tensor<?x1000xbf16>
}
func.func @gelu(%x: tensor<?x1000xbf16>) -> tensor<?x1000xbf16> {
  %0 = tile.gelu %x : tensor<?x1000xbf16>
  return %0 : tensor<?x1000xbf16>
}
func.func @silu(%x: tensor<?x1000xbf16>) -> tensor<?x1000xbf16> {
  %0 = tile.silu %x : tensor<?x1000xbf16>
  return %0 : tensor<?x1000xbf16>
}
func.func @softmax(%x: tensor<?x32768xbf16>) -> tensor<?x32768xbf16> {
  %0 = tile.softmax %x : tensor<?x32768xbf16>
  return %0 : tensor<?x32768xbf16>
}
func.func @log_softmax(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  %0 = tile.log_softmax %x : tensor<?x1000xf32>
  return %0 : tensor<?x1000xf32>
}
func.func @rope(%x: tensor<?x?x?x128xbf16>, %y: tensor<?x?x?x128xbf16>, %cos: tensor<1x?x1x64xf32>, %sin: tensor<1x?x1x64xf32>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>) {
  %0 = tile.rope %x, %cos, %sin : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  %1 = tile.rope %y, %cos, %sin : tensor<?x?x?x128xbf16>, tensor<1x?x1x64xf32>
  return %0, %1 : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>
}
func.func @rope_interleaved(%x: tensor<?x?x?x64xf16>, %cos: tensor<1x?x1x64xf16>, %sin: tensor<1x?x1x64xf16>) -> tensor<?x?x?x64xf16> {
  %0 = tile.rope %x, %cos, %sin interleaved : tensor<?x?x?x64xf16>, tensor<1x?x1x64xf16>
  return %0 : tensor<?x?x?x64xf16>
}
func.func @cross_entropy(%x: tensor<?x50257xbf16>, %targets: tensor<?x1xi64>) -> tensor<1xf32> {
  %0:5 = tile.cross_entropy %x, %targets : tensor<?x50257xbf16>, tensor<?x1xi64>
  return %0#0 : tensor<1xf32>
}
func.func @cross_entropy_each(%x: tensor<?x128256xbf16>, %targets: tensor<?x1xi32>, %weights: tensor<128256xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x1xi8>, tensor<1xf32>, tensor<?x1xi32>) {
  %0:5 = tile.cross_entropy %x, %targets weights(%weights) reduction(none) {label_smoothing = 0.1, soft_cap = 30.0, z_loss = 1.0e-4} : tensor<?x128256xbf16>, tensor<?x1xi32>, tensor<128256xf32>
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x1xi8>, tensor<1xf32>, tensor<?x1xi32>
}
func.func @quantize_rows(%a: tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>) {
  %0, %1 = tile.quantize %a : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
  return %0, %1 : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
}
func.func @quantize_blocks(%a: tensor<?x4096xbf16>, %w: tensor<4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>) {
  %0 = tile.rms_norm %a, %w : tensor<?x4096xbf16>, tensor<4096xbf16>
  %1, %2 = tile.quantize %0 : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  return %1, %2 : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @quantize_tensor(%a: tensor<?x4096xbf16>) -> (tensor<?x4096xf8E5M2>, tensor<1xf32>) {
  %0, %1 = tile.quantize %a format(e5m2) : tensor<?x4096xbf16> -> tensor<?x4096xf8E5M2>, tensor<1xf32>
  return %0, %1 : tensor<?x4096xf8E5M2>, tensor<1xf32>
}
func.func @dequantize(%a: tensor<?x4096xf8E4M3FN>, %scale: tensor<?x32xf32>) -> tensor<?x4096xbf16> {
  %0 = tile.dequantize %a, %scale : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
func.func @quantize_squares(%a: tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>) {
  %0, %1 = tile.quantize %a band(128) : tensor<?x4096xbf16> -> tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
  return %0, %1 : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @dequantize_squares(%a: tensor<?x4096xf8E4M3FN>, %scale: tensor<?x32xf32>) -> tensor<?x4096xbf16> {
  %0 = tile.dequantize %a, %scale band(128) : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
func.func @linear(%x: tensor<?x?x192xbf16>, %w: tensor<96x192xbf16>, %b: tensor<96xf32>) -> tensor<?x?x96xbf16> {
  %0 = tile.linear %x, %w, %b : tensor<?x?x192xbf16>, tensor<96x192xbf16>, tensor<96xf32>
  return %0 : tensor<?x?x96xbf16>
}
