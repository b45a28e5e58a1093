// RUN: tile-run %s --check --repeat=0 --shape=x=4x0 --shape=c=1x0 | FileCheck %s
// RUN: tile-run %s --check --repeat=0 --shape=x=4x3 --shape=c=1x3 | FileCheck %s

// CHECK: f {{.*}} result0 {{.*}} PASS
func.func @f(%x: tensor<?x?xf32>, %c: tensor<1x?xf32>) -> tensor<?x?xf32> {
  %b = tile.broadcast %c like %x : tensor<1x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %y = arith.addf %x, %b : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
