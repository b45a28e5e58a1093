// RUN: tile-opt %s --differentiate='gradients=all' --fuse | FileCheck %s

// Which keys a query sees is said by a number of each query and by one of each
// key. Kernels with queries for their rows compute the first condition, that with
// keys for its rows the second one. A maximum that a number limits is above minus
// infinity, and a sum in which that number's power is, above 0.
// CHECK-LABEL: tile.kernel @ranges_kernel(
// CHECK-SAME: %[[FIRST:[^:]*]]: tensor<?x1xi32>, %{{[^:]*}}: tensor<?x64xbf16>)
// CHECK: tile.broadcast %[[FIRST]]
// CHECK: arith.cmpi sge
// CHECK-NOT: arith.cmpi
// CHECK-NOT: tile.either
// CHECK: math.exp
// CHECK-LABEL: tile.kernel @ranges_backward_kernel1(
// CHECK-SAME: %[[FIRST:[^:]*]]: tensor<?x1xi32>,{{.*}}: tensor<?x1xf32> {tile.above = 0xFFF0000000000000 : f64},
// CHECK: tile.broadcast %[[FIRST]]
// CHECK: arith.cmpi sge
// CHECK-NOT: arith.cmpi
// CHECK: math.exp
// CHECK-LABEL: tile.kernel @ranges_backward_kernel2(
// CHECK-SAME: %[[END:[^:]*]]: tensor<1x?xi32>,{{.*}}: tensor<?x1xf32> {tile.above = 0xFFF0000000000000 : f64},
// CHECK: tile.broadcast %[[END]]
// CHECK: arith.cmpi slt
// CHECK-NOT: arith.cmpi
// CHECK: math.exp
func.func @ranges(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>,
                  %first: tensor<?x1xi32>, %end: tensor<1x?xi32>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %firsts = tile.broadcast %first like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %ends = tile.broadcast %end like %s : tensor<1x?xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %by_query = arith.cmpi sge, %key, %firsts : tensor<?x?xi32>
  %by_key = arith.cmpi slt, %query, %ends : tensor<?x?xi32>
  %seen = arith.andi %by_query, %by_key {tile.either} : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %lowest = arith.constant -3.0e38 : f32
  %sink = tile.broadcast %lowest like %m : f32, tensor<?x1xf32> -> tensor<?x1xf32>
  %limited = arith.maximumf %m, %sink : tensor<?x1xf32>
  %largest = tile.stop_gradient %limited : tensor<?x1xf32>
  %ms = tile.broadcast %largest like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %below = arith.subf %sink, %largest : tensor<?x1xf32>
  %own = math.exp %below : tensor<?x1xf32>
  %total = arith.addf %l, %own : tensor<?x1xf32>
  %ls = tile.broadcast %total like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// Without that number, nothing is known of either.
// CHECK-LABEL: func.func @plain_backward(
// CHECK-NOT: tile.above
func.func @plain(%x: tensor<?x64xf32>, %y: tensor<?x1xf32>) -> tensor<?x64xf32> {
  %m = tile.reduce max %x : tensor<?x64xf32> -> tensor<?x1xf32>
  %larger = arith.maximumf %m, %y : tensor<?x1xf32>
  %largest = tile.stop_gradient %larger : tensor<?x1xf32>
  %ms = tile.broadcast %largest like %x : tensor<?x1xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  %d = arith.subf %x, %ms : tensor<?x64xf32>
  %e = math.exp %d : tensor<?x64xf32>
  %l = tile.reduce add %e : tensor<?x64xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %x : tensor<?x1xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  %p = arith.divf %e, %ls : tensor<?x64xf32>
  return %p : tensor<?x64xf32>
}
