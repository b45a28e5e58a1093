// options: --target=host --grad --emit=asm
func.func @layout_blocks(%t: tensor<4611686018427387904x24xf32, #tile.blocked<vector = 4611686018427387904, threadRows = 4611686018427387904, threadColumns = 4, blocks = 4611686018427387904>>) {
  asm
}
