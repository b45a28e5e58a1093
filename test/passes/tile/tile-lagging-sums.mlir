// RUN: tile-opt %s --fuse --schedule=target=sm_90 --tile=target=sm_90 --canonicalize --cse | FileCheck %s

// Products of 128 columns stay relative to an earlier maximum, the reference: where no
// row of a warp has grown by more than 8 in units of log 2, powers are relative to the
// reference of the step before, and the products are not multiplied. Behind the loop,
// the sums are made relative to the maximum.
// CHECK-LABEL: tile.program @lagging_kernel(
// CHECK-DAG:   %[[MOST:.*]] = arith.constant dense<8.000000e+00> : tensor<128x1xf32
// CHECK:       %[[LOOP:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[SUM:.*]] = %{{.*}}, %[[OLD:.*]] = %{{.*}}) ->
// CHECK:       %[[GROWTH:.*]] = arith.subf %[[NEWEST:.*]], %[[OLD]]
// CHECK:       %[[LARGE:.*]] = arith.cmpf ogt, %[[GROWTH]], %[[MOST]]
// CHECK:       %[[ANY:.*]] = tile.any %[[LARGE]]
// CHECK:       %[[ALL:.*]] = tile.broadcast %[[ANY]]
// CHECK:       %[[NEW:.*]] = arith.select %[[ALL]], %[[NEWEST]], %[[OLD]]
// CHECK:       %[[LESS:.*]] = arith.subf %[[OLD]], %[[NEW]]
// CHECK:       %[[SCALE:.*]] = math.exp2 %[[LESS]]
// CHECK:       scf.if %[[ANY]]
// CHECK-NEXT:    %[[SCALES:.*]] = tile.broadcast %[[SCALE]]
// CHECK-NEXT:    %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[SCALES]]
// CHECK-NEXT:    scf.yield %[[SCALED]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield %[[SUM]]
// CHECK:       scf.yield {{.*}}, %[[NEW]] :
// CHECK:       %[[LEFT:.*]] = arith.subf %[[LOOP]]#3, %
// CHECK:       math.exp2 %[[LEFT]]
func.func @lagging(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x128xbf16>) -> tensor<?x128xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %c = arith.constant 0.125 : f32
  %cs = tile.broadcast %c like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %y = arith.mulf %s, %cs : tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %y, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x128xbf16> -> tensor<?x128xf32>
  %r = arith.truncf %o : tensor<?x128xf32> to tensor<?x128xbf16>
  return %r : tensor<?x128xbf16>
}
