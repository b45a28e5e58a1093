// RUN: tile-run %s --grad --check --repeat=0 --shape=q=64x64 --shape=k=64x64 | FileCheck %s
// RUN: tile-run %s --grad --check --repeat=0 --shape=q=3x64 --shape=k=0x64 | FileCheck %s

// The gradient of a statistic sums a product along its rows, which are as long as those
// of the product's left factor in the first call.
// CHECK: gradients_backward {{.*}} grad_lse {{.*}} PASS
func.func @gradients(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %dy: tensor<?x64xbf16>, %lse: tensor<?x1xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %ls = tile.broadcast %lse like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ls : tensor<?x?xf32>
  %p = math.exp %d : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %dp = tile.dot %dy, %v contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %p, %dp : tensor<?x?xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dk, %dv : tensor<?x64xf32>, tensor<?x64xf32>
}
