// RUN: tilec %s --target=sm_90a -o - | FileCheck %s

// The bits that a mask tests stand next to the scores that they hide, two at a time:
// 64 of them would take more predicates than there are.
// CHECK-LABEL: .entry masked_kernel(
// CHECK:       and.b32 %[[BIT1:r[0-9]+]], %[[WORD:r[0-9]+]], 512;
// CHECK-NEXT:  and.b32 %[[BIT0:r[0-9]+]], %[[WORD]], 256;
// CHECK-NEXT:  setp.eq.b32 %[[P0:p[0-9]+]], %[[BIT0]], 0;
// CHECK-NEXT:  setp.eq.b32 %[[P1:p[0-9]+]], %[[BIT1]], 0;
// CHECK-NOT:   setp
// CHECK:       selp.f32 {{.*}}, 0fFF800000, {{.*}}, %[[P1]];
// CHECK-NOT:   setp
// CHECK:       selp.f32 {{.*}}, 0fFF800000, {{.*}}, %[[P0]];
func.func @masked(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
