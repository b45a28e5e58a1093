// RUN: tile-opt %s --decompose --fuse | FileCheck %s

// A chain is one kernel, in which every input is read once.
// CHECK-LABEL: tile.kernel @chain_kernel(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[RESIDUAL:[^:]*]]: tensor<?x8xf32>, %[[W:[^:]*]]: tensor<8xf32>, %[[UP:[^:]*]]: tensor<?x8xf32>)
// CHECK-SAME:      -> (tensor<?x8xf32>, tensor<?x8xf32>)
// CHECK:         %[[SUM:.*]] = arith.addf %[[X]], %[[RESIDUAL]]
// CHECK:         math.rsqrt
// CHECK:         math.exp
// CHECK:         tile.return %[[SUM]], %{{.*}} : tensor<?x8xf32>, tensor<?x8xf32>
// CHECK-NOT:   tile.kernel
// CHECK-LABEL: func @chain(
// CHECK-SAME:      %[[X:[^:]*]]: tensor<?x8xf32>, %[[RESIDUAL:[^:]*]]: tensor<?x8xf32>, %[[W:[^:]*]]: tensor<8xf32>, %[[UP:[^:]*]]: tensor<?x8xf32>)
// CHECK-NEXT:    %[[LAUNCH:.*]]:2 = tile.launch [@chain_kernel](%[[X]], %[[RESIDUAL]], %[[W]], %[[UP]])
// CHECK-NEXT:    return %[[LAUNCH]]#0, %[[LAUNCH]]#1
func.func @chain(%x: tensor<?x8xf32>, %residual: tensor<?x8xf32>,
                 %w: tensor<8xf32>, %up: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %sum = arith.addf %x, %residual : tensor<?x8xf32>
  %norm = tile.rms_norm %sum, %w : tensor<?x8xf32>, tensor<8xf32>
  %result = tile.geglu %norm, %up : tensor<?x8xf32>
  return %sum, %result : tensor<?x8xf32>, tensor<?x8xf32>
}
