// options: --target=host
func.func @f(%x: tensor<?x4611686018427387904xf32>, %c: tensor<?x1xf32>, %s: tensor<?x1xf32>) -> tensor<?x4611686018427387904xf32> {
  %0 = tile.rope %x, %c, %s interleaved {rotary = 2 : i64} : tensor<?x4611686018427387904xf32>, tensor<?x1xf32>
  return %0 : tensor<?x4611686018427387904xf32>
}
