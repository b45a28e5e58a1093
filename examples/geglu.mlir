// GPT-OSS's gated activation: one kernel, for any number of rows.
func.func @geglu(%gate: tensor<?x2880xbf16>, %up: tensor<?x2880xbf16>)
    -> tensor<?x2880xbf16> {
  %0 = tile.geglu %gate, %up : tensor<?x2880xbf16>
  return %0 : tensor<?x2880xbf16>
}
