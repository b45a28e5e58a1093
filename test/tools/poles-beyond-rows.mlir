// RUN: tile-run %s --check --grad --rows=3 --repeat=0 | FileCheck %s
// RUN: tile-run %s --check --grad --rows=3 --repeat=0 --emulate | FileCheck %s

// Scores with a bias that is infinite in the column behind the last one: what a
// vector or a thread has beyond the row is no part of the sum of powers.
// CHECK: {{^f .* PASS$}}
// CHECK: {{^f_backward .* PASS$}}
// CHECK: {{^g .* PASS$}}
// CHECK: {{^g_backward .* PASS$}}
func.func @f(%x: tensor<?x63xf32>) -> tensor<?x63xf32> {
  %i = tile.iota like %x : tensor<?x63xi32>, tensor<?x63xf32>
  %n = arith.constant 63 : i32
  %nb = tile.broadcast %n like %i : i32, tensor<?x63xi32> -> tensor<?x63xi32>
  %left = arith.subi %nb, %i : tensor<?x63xi32>
  %f = arith.sitofp %left : tensor<?x63xi32> to tensor<?x63xf32>
  %one = arith.constant 1.0 : f32
  %ones = tile.broadcast %one like %x : f32, tensor<?x63xf32> -> tensor<?x63xf32>
  %g = arith.divf %ones, %f : tensor<?x63xf32>
  %y = arith.addf %x, %g : tensor<?x63xf32>
  %r = tile.softmax %y : tensor<?x63xf32>
  return %r : tensor<?x63xf32>
}

func.func @g(%x: tensor<?x1004xbf16>) -> tensor<?x1004xbf16> {
  %i = tile.iota like %x : tensor<?x1004xi32>, tensor<?x1004xbf16>
  %n = arith.constant 1004 : i32
  %nb = tile.broadcast %n like %i : i32, tensor<?x1004xi32> -> tensor<?x1004xi32>
  %left = arith.subi %nb, %i : tensor<?x1004xi32>
  %f = arith.sitofp %left : tensor<?x1004xi32> to tensor<?x1004xf32>
  %l = math.log %f : tensor<?x1004xf32>
  %xf = arith.extf %x : tensor<?x1004xbf16> to tensor<?x1004xf32>
  %y = arith.subf %xf, %l : tensor<?x1004xf32>
  %s = tile.softmax %y : tensor<?x1004xf32>
  %r = arith.truncf %s : tensor<?x1004xf32> to tensor<?x1004xbf16>
  return %r : tensor<?x1004xbf16>
}
