// RUN: tile-opt %s --tile -verify-diagnostics

// expected-error @below {{has no schedule; run the 'schedule' pass first}}
tile.kernel @unscheduled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.launch [@unscheduled](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
