func.func @f(%x: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %q, %s = tile.quantize %x
      : tensor<?x64xbf16> -> tensor<?x64xf8E4M3FN>, tensor<?x4xf32>
  %0 = tile.dequantize %q, %s
      : tensor<?x64xf8E4M3FN>, tensor<?x4xf32> -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}
