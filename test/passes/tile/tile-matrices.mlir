// RUN: tile-opt %s --fuse=target=sm_90a --schedule=target=sm_90a --tile=target=sm_90a --canonicalize --cse | FileCheck %s

// Eight matrices share the streamed factors: 64 rows are 8 of each, which one box of the
// left factor has, and a warp's box of the result those of two matrices.
// CHECK-LABEL: tile.program @grouped_kernel(
// CHECK-SAME:    memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 8, 8, 64], swizzle = 128>
// CHECK-SAME:    memref<?x1x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 1, 48, 64], swizzle = 128>
// CHECK-SAME:    memref<?x8x1x1xf32, strided<[?, ?, ?, 1]>>
// CHECK-SAME:    memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>>, box = [1, 2, 8, 64], swizzle = 128>
// CHECK-SAME:    programs = {b0 = 8 : i64, b1 = 1 : i64, m = 8 : i64, n = 64 : i64}
func.func @grouped(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x1x?x64xbf16>, %v: tensor<?x1x?x64xbf16>, %sinks: tensor<?x8x1x1xf32>) -> tensor<?x8x?x64xbf16>
    attributes {tile.schedule = #tile.matmul<rows = 64, depth = 48, stages = 3, steps = 1, resident = 3, matrices = 8>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x8x?x64xbf16>, tensor<?x1x?x64xbf16> -> tensor<?x8x?x?xf32>
  %row = tile.iota over [2] like %s : tensor<?x8x?x1xi32>, tensor<?x8x?x?xf32>
  %key = tile.iota like %s : tensor<?x8x?x?xi32>, tensor<?x8x?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x8x?x1xi32>, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x8x?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x8x?x1xi32> -> tensor<?x8x?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x8x?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x8x?x1xi32>, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x8x?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x8x?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x8x?x?xi1>, tensor<?x8x?x?xf32>
  %m = tile.reduce max %x : tensor<?x8x?x?xf32> -> tensor<?x8x?x1xf32>
  %sink = tile.broadcast %sinks like %m : tensor<?x8x1x1xf32>, tensor<?x8x?x1xf32> -> tensor<?x8x?x1xf32>
  %largest = arith.maximumf %m, %sink : tensor<?x8x?x1xf32>
  %ms = tile.broadcast %largest like %s : tensor<?x8x?x1xf32>, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x8x?x?xf32>
  %e = math.exp %d : tensor<?x8x?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x8x?x?xf32>, tensor<?x1x?x64xbf16> -> tensor<?x8x?x64xf32>
  %r = arith.truncf %o : tensor<?x8x?x64xf32> to tensor<?x8x?x64xbf16>
  return %r : tensor<?x8x?x64xbf16>
}

// The role that copies: groups of eight matrices come one after the other, and each tile
// begins its steps with the first element that its mask shows.
// CHECK:       tile.roles
// CHECK:         scf.for %[[TILE:arg[0-9]+]] = %
// CHECK:           arith.divui %[[TILE]], %[[GROUPS:[0-9]+]] : index
// CHECK:           arith.remui %[[TILE]], %[[GROUPS]] : index
// CHECK:           tile.copy_box
// CHECK:           arith.maxsi %{{.*}}, %c0
// CHECK:           scf.for %[[STEP:arg[0-9]+]] = %c0 to
// CHECK:             %[[PLACE:.*]] = arith.muli %[[STEP]], %c48
// CHECK:             %[[KEY:.*]] = arith.addi %{{.*}}, %[[PLACE]]
// CHECK:             tile.copy_box {{.*}}, %[[KEY]], %c0]
// The other role: each row has its own sink, and its number in its matrix.
// CHECK:           %[[IN_TILE:.*]] = tile.iota_rows from %c0 : tensor<64x1xi32
// CHECK:           arith.remui %[[IN_TILE]], %{{.*}} : tensor<64x1xi32
// CHECK:           tile.load %{{.*}} : memref<?x8x1x1xf32, {{.*}} -> tensor<64x1xf32
