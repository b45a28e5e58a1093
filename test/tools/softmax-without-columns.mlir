// RUN: tile-run --grad --check --repeat=0 --shape=q=3x64 --shape=k=0x64 --shape=v=0x64 %s | FileCheck %s
// RUN: tile-run --emulate --target=sm_80 --grad --check --repeat=0 --shape=q=3x64 --shape=k=0x64 --shape=v=0x64 %s | FileCheck %s
// RUN: tile-run --emulate --target=sm_90a --grad --check --repeat=0 --shape=q=3x64 --shape=k=0x64 --shape=v=0x64 %s | FileCheck %s

// A row of no elements has no quotients, and a sum of them is 0. The kernel divides the
// whole sum, by a sum of powers that is 0 as well.
// CHECK-COUNT-4: PASS
// CHECK-NOT: FAIL
func.func @f(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %m = tile.reduce max %s : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xbf16>
  return %r : tensor<?x64xbf16>
}
