// RUN: tile-opt %s --fuse --schedule=target=sm_80 --tile=target=sm_80 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: tile-opt %s --fuse --schedule=target=host --tile=target=host --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,HOST

// The gradients of keys and values sum over queries: a program has rows of keys,
// and its loop goes over queries, which have the statistics. Tiles of scores have
// their rows along keys, so that the left factors of both sums are there as they
// are multiplied. The mask hides the queries ahead of the first key.
// CHECK-LABEL: tile.program @gradients_kernel(
// CHECK-SAME: tile.dimensions = ["k", 64]
// CHECK-SAME: tile.dimensions = ["m", 64]
// CHECK-SAME: tile.dimensions = ["k", 1]
// CHECK-SAME: tile.dimensions = ["k", "n"]
// CHECK-SAME: tile.dimensions = ["m", "n"]
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ROW:.*]] = arith.muli
// CHECK: %[[FROM:.*]] = arith.maxsi %{{.*}}, %[[ZERO]]
// CHECK: %[[FIRST:.*]] = arith.divui %[[FROM]], %
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// GPU: %[[LSE:.*]] = tile.load %{{.*}} {invariant, transposed} : {{.*}} -> tensor<1x
// GPU: %[[LOG2:.*]] = arith.mulf %[[LSE]], %
// GPU: %[[SAFE:.*]] = arith.maximumf %[[LOG2]], %
// GPU: %[[QUERIES:.*]] = tile.take {{.*}} -> tensor<32x32xbf16, #tile.mma_rhs>
// GPU: tile.dot %{{.*}}, %[[QUERIES]], {{.*}} -> tensor<128x32xf32
// HOST: tile.load_dot %{{.*}}, %{{.*}}, %{{.*}} contract [1, 1]
// CHECK: %[[KEY:.*]] = tile.iota_rows from
// CHECK: %[[QUERY:.*]] = tile.iota from
// HOST: %[[LSE:.*]] = tile.load %{{.*}} {invariant, transposed} : {{.*}} -> tensor<1x
// HOST: %[[ALL:.*]] = tile.broadcast %[[LSE]]
// GPU: %[[MINUS:.*]] = arith.negf %[[SAFE]]
// HOST: arith.subf %{{.*}}, %[[ALL]]
// HOST: %[[P:.*]] = math.exp
// GPU: %[[LESS:.*]] = tile.broadcast %[[MINUS]]
// GPU: %[[X:.*]] = math.fma %{{.*}}, %{{.*}}, %[[LESS]]
// GPU: %[[P:.*]] = math.exp2 %[[X]] fastmath<afn> :
// GPU: tile.dot {{.*}} -> tensor<128x64xf32
// HOST: tile.load_dot %{{.*}} contract [1, 0]
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

// A mask that hides all keys from some query: the statistic of that row may be
// minus infinity, and its powers NaN, which every key's sum has. So the loop
// leaves nothing out where the mask does so.
// CHECK-LABEL: tile.program @hidden_rows_kernel(
// CHECK-SAME: %[[Q:[^:]*]]: index
// CHECK: %[[HIDES:.*]] = arith.cmpi slt
// CHECK: %[[END:.*]] = arith.select %[[HIDES]], %[[Q]], %{{.*}} : index
// CHECK: %[[STEPS:.*]] = arith.ceildivui %[[END]], %
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[STEPS]]
func.func @hidden_rows(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %dy: tensor<?x64xbf16>, %lse: tensor<?x1xf32>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %seen = arith.cmpi sge, %key, %query : tensor<?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %ls = tile.broadcast %lse like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ls : tensor<?x?xf32>
  %p = math.exp %d : tensor<?x?xf32>
  %dv = tile.dot %p, %dy contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dv : tensor<?x64xf32>
}
