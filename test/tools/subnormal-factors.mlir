// RUN: tile-run --emulate --target=sm_90a --grad --check --repeat=0 --shape=q=40x64 --shape=k=3x64 --shape=v=3x64 %s | FileCheck %s

// Powers relative to 12 more than the maximum are at most 6.2e-6. As float16, they are
// subnormal numbers, which lie 6e-8 apart: a factor may be off by half of that, whatever
// its size.
// CHECK-COUNT-4: PASS
// CHECK-NOT: FAIL
func.func @f(%q: tensor<?x64xf16>, %k: tensor<?x64xf16>, %v: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf16>, tensor<?x64xf16> -> tensor<?x?xf32>
  %m = tile.reduce max %s : tensor<?x?xf32> -> tensor<?x1xf32>
  %c = arith.constant 1.2e+01 : f32
  %cs = tile.broadcast %c like %m : f32, tensor<?x1xf32> -> tensor<?x1xf32>
  %n = arith.addf %m, %cs : tensor<?x1xf32>
  %ms = tile.broadcast %n like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf16> -> tensor<?x64xf32>
  %r = arith.truncf %o : tensor<?x64xf32> to tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}
