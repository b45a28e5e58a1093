// RUN: tile-opt %s "--differentiate=gradients=all together" -verify-diagnostics -split-input-file

// expected-error @below {{'func.func' op first result of type 'tensor<?x8xi32>' has no gradient}}
func.func @integers(%x: tensor<?x8xf32>) -> tensor<?x8xi32> {
  %0 = arith.fptosi %x : tensor<?x8xf32> to tensor<?x8xi32>
  return %0 : tensor<?x8xi32>
}

// -----

// expected-error @below {{'func.func' op returns nothing, so there is nothing to compute}}
func.func @nothing(%x: tensor<?x8xf32>) {
  return
}
