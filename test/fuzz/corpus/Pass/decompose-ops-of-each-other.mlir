// options: --pass-pipeline=builtin.module(decompose)
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
^unreached:
  %0 = arith.negf %1 : tensor<?x8xf32>
  %1 = arith.negf %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
