// RUN: tile-opt %s --fuse --schedule=target=sm_80 --tile=target=sm_80 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: tile-opt %s --fuse --schedule=target=host --tile=target=host --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,HOST

// What has an element for each key is computed in the loop over keys. The keys
// and the values of the next step are copied apart from each other, and all sums
// are relative to the maximum so far. Powers are those of 2 on a GPU.
// CHECK-LABEL: tile.program @attention_kernel(
// CHECK-SAME: tile.dimensions = ["b0", "m", 64]
// CHECK-SAME: tile.dimensions = ["b0", "k", 64]
// CHECK-SAME: tile.dimensions = ["b0", "k", "n"]
// CHECK-SAME: tile.dimensions = ["b0", "m", "n"]
// GPU: tile.copy_tile
// GPU: tile.wait_copies 2
// GPU: %[[Q:.*]] = tile.take
// CHECK: scf.for
// CHECK-SAME: iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}})
// GPU: tile.wait_copies 1
// GPU: tile.synchronize
// GPU: tile.copy_tile
// GPU: tile.dot %[[Q]], %{{.*}} contract [1, 1]
// HOST: tile.load_dot %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} contract [1, 1]
// CHECK: %[[PART:.*]] = tile.reduce max
// CHECK: %[[NEW:.*]] = arith.maximumf %[[M]], %[[PART]]
// HOST: %[[LESS:.*]] = arith.subf %[[M]], %[[NEW]]
// HOST: %[[POWER:.*]] = math.exp %[[LESS]]
// GPU: %[[IN_LOGS:.*]] = arith.mulf %{{.*}}, %[[LOG2E:.*]] : tensor<128x1xf32
// GPU: %[[BASE:.*]] = arith.maximumf %[[IN_LOGS]], %
// GPU: arith.mulf %[[M]], %[[LOG2E]]
// GPU: %[[LESS:.*]] = arith.subf %{{.*}}, %[[BASE]]
// GPU: %[[SCALE:.*]] = math.exp2 %[[LESS]]
// HOST: %[[SCALE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[POWER]]
// HOST: arith.mulf %[[L]], %[[SCALE]]
// HOST: %[[E:.*]] = math.exp
// GPU: %[[MINUS:.*]] = arith.negf %[[BASE]]
// GPU: %[[ALL:.*]] = tile.broadcast %[[MINUS]]
// GPU: %[[X:.*]] = math.fma %{{.*}}, %{{.*}}, %[[ALL]]
// GPU: %[[E:.*]] = math.exp2 %[[X]]
// GPU: %[[SCALES:.*]] = tile.broadcast %[[SCALE]]
// GPU: %[[BEFORE:.*]] = arith.mulf %[[L]], %[[SCALES]] : tensor<128x8xf32
// HOST: tile.reduce add %[[E]]
// GPU: %[[OWN:.*]] = tile.fold add %[[E]]
// GPU: arith.addf %[[BEFORE]], %[[OWN]]
// CHECK: %[[OLD:.*]] = arith.mulf %[[O]], %{{.*}}
// CHECK: %[[P:.*]] = arith.truncf %[[E]]
// GPU: tile.wait_copies 1
// GPU: tile.synchronize
// GPU: tile.copy_tile
// GPU: tile.take %{{.*}} transposed
// GPU: tile.dot %{{.*}}, %{{.*}}, %[[OLD]] contract [1, 1]
// HOST: tile.load_dot %[[P]], %{{.*}}, %[[OLD]] contract [1, 0]
// CHECK: scf.yield
// The sum, which threads have left apart until here, divides behind the loop.
// GPU: tile.reduce add
// CHECK: arith.divf
func.func @attention(%q: tensor<?x?x64xbf16>, %k: tensor<?x?x64xbf16>, %v: tensor<?x?x64xbf16>) -> tensor<?x?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x?x64xbf16>, tensor<?x?x64xbf16> -> tensor<?x?x?xf32>
  %m = tile.reduce max %s : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?x?xf32>
  %e = math.exp %d : tensor<?x?x?xf32>
  %l = tile.reduce add %e : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x?x1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16> -> tensor<?x?x64xf32>
  %r = arith.truncf %o : tensor<?x?x64xf32> to tensor<?x?x64xbf16>
  return %r : tensor<?x?x64xbf16>
}

// Rows of a length that only a call knows: a loop for the sum, and one for what
// it divides.
// CHECK-LABEL: tile.program @scores_kernel1(
// CHECK: scf.for
// CHECK: tile.reduce add
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: tile.store
// CHECK: tile.return
func.func @scores(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>) -> tensor<?x?xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %t = tile.reduce add %s : tensor<?x?xf32> -> tensor<?x1xf32>
  %ts = tile.broadcast %t like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %s, %ts : tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}
