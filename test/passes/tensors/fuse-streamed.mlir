// RUN: tile-opt %s --fuse | FileCheck %s

// The scores, their powers and all of the softmax share the kernel of the last
// product, which rounds them.
// CHECK-LABEL: tile.kernel @attention_kernel(
// CHECK-SAME: -> tensor<?x?x64xbf16>
// CHECK: %[[P:.*]] = arith.divf %{{.*}} : tensor<?x?x?xf32>
// CHECK: tile.dot %[[P]], %{{.*}} contract [1, 0] : tensor<?x?x?xf32>, tensor<?x?x64xbf16>
// CHECK-NOT: tile.kernel
// CHECK: func.func @attention(
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

// Statistics that follow from the rows may leave the kernel, and so may what is
// computed of them.
// CHECK-LABEL: tile.kernel @log_sum_exp_kernel(
// CHECK-SAME: -> (tensor<?x64xf32>, tensor<?x1xf32>)
// CHECK: math.log
// CHECK-NOT: tile.kernel
// CHECK: func.func @log_sum_exp(
func.func @log_sum_exp(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x1xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %m = tile.reduce max %s : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %s, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  %log = math.log %l : tensor<?x1xf32>
  %lse = arith.addf %m, %log : tensor<?x1xf32>
  return %o, %lse : tensor<?x64xf32>, tensor<?x1xf32>
}

// The loop that goes along the rows of a factor leaves it for others as well,
// unless it has to wait for a sum.
// CHECK-LABEL: tile.kernel @returned_kernel(
// CHECK-SAME: -> (tensor<?x64xf32>, tensor<?x?xf32>)
// CHECK: %[[P:.*]] = math.exp
// CHECK: tile.dot %[[P]], %{{.*}} : tensor<?x?xf32>, tensor<?x64xbf16>
// CHECK-NOT: tile.kernel
// CHECK: func.func @returned(
func.func @returned(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> (tensor<?x64xf32>, tensor<?x?xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o, %p : tensor<?x64xf32>, tensor<?x?xf32>
}

// Powers over their sum, needed as a whole, lie in memory, rounded for the
// product.
// CHECK-LABEL: tile.kernel @powers_kernel1(
// CHECK: arith.truncf %{{.*}} : tensor<?x?xf32> to tensor<?x?xbf16>
// CHECK-LABEL: tile.kernel @powers_kernel2(
// CHECK: tile.dot %{{.*}} : tensor<?x?xbf16>, tensor<?x64xbf16>
func.func @powers(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> (tensor<?x64xf32>, tensor<?x?xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %e = math.exp %s : tensor<?x?xf32>
  %l = tile.reduce add %e : tensor<?x?xf32> -> tensor<?x1xf32>
  %ls = tile.broadcast %l like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %e, %ls : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o, %p : tensor<?x64xf32>, tensor<?x?xf32>
}

// The scores would be computed twice: once for the sum of squares, and once to be
// divided by it.
// CHECK-LABEL: tile.kernel @two_loops_kernel0(
// CHECK-NOT: tile.reduce
// CHECK-LABEL: tile.kernel @two_loops_kernel1(
// CHECK: tile.reduce
// CHECK-LABEL: tile.kernel @two_loops_kernel2(
func.func @two_loops(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %ss = arith.mulf %s, %s : tensor<?x?xf32>
  %t = tile.reduce add %ss : tensor<?x?xf32> -> tensor<?x1xf32>
  %ts = tile.broadcast %t like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %p = arith.divf %s, %ts : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// More columns than one program has: each program would compute the rows again.
// CHECK-LABEL: tile.kernel @wide_kernel0(
// CHECK-LABEL: tile.kernel @wide_kernel1(
func.func @wide(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x?xf32>
  %p = math.exp %s : tensor<?x?xf32>
  %o = tile.dot %p, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x512xf32> -> tensor<?x512xf32>
  return %o : tensor<?x512xf32>
}

// -----

// A product whose factors are one value reads it from memory: only the left
// factor may be computed in the product's kernel.
// CHECK-LABEL: tile.kernel @gram_kernel0(
// CHECK:         tile.dot
// CHECK-NOT:     tile.dot
// CHECK-LABEL: tile.kernel @gram_kernel1(
// CHECK-SAME:      %[[Y:[^:]*]]: tensor<?x7x5xf32>) -> tensor<?x5x5xf32>
// CHECK:         tile.dot %[[Y]], %[[Y]]
func.func @gram(%x: tensor<?x7x2xf32>, %w: tensor<5x2xf32>) -> tensor<?x5x5xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x7x2xf32>, tensor<5x2xf32> -> tensor<?x7x5xf32>
  %1 = tile.dot %0, %0 contract [0, 0] : tensor<?x7x5xf32>, tensor<?x7x5xf32> -> tensor<?x5x5xf32>
  return %1 : tensor<?x5x5xf32>
}

// Scores that are added up over a batch are there only behind the loop over the batch: they
// are in memory.
// CHECK-LABEL: tile.kernel @sum_over_batch_kernel0(
// CHECK:         tile.dot
// CHECK:         math.exp
// CHECK:         tile.return
// CHECK-LABEL: tile.kernel @sum_over_batch_kernel1(
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    tile.return
func.func @sum_over_batch(%q: tensor<3x?x7xf32>, %k: tensor<3x2x7xf32>, %v: tensor<64x2xf32>)
    -> tensor<?x64xf32> {
  %0 = tile.dot %q, %k contract [1, 1] : tensor<3x?x7xf32>, tensor<3x2x7xf32> -> tensor<?x2xf32>
  %1 = math.exp %0 : tensor<?x2xf32>
  %2 = tile.dot %1, %v contract [1, 1] : tensor<?x2xf32>, tensor<64x2xf32> -> tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}

// Two products that scale by one constant have nothing else in common: the first does not
// wait for the second one's right factor, which has its sizes.
// CHECK-LABEL: tile.kernel @common_constant_kernel0(
// CHECK-NOT:     tile.dot
// CHECK:       tile.kernel @common_constant_kernel1(
// CHECK:         tile.dot %{{.*}} contract [1, 0]
// CHECK-NOT:     tile.dot
// CHECK:       tile.kernel @common_constant_kernel2(
// CHECK:         tile.dot %{{.*}} contract [1, 1]
// CHECK-LABEL: func.func @common_constant(
func.func @common_constant(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %number = arith.constant 0.125 : f32
  %one = arith.constant 1.0 : f32
  %scale = tile.broadcast %number like %x : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %0 = arith.mulf %x, %scale : tensor<?x64xf32>
  %1 = tile.dot %0, %w contract [1, 0] : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %2 = tile.broadcast %one like %1 : f32, tensor<?x64xf32> -> tensor<?x64xf32>
  %3 = tile.dot %2, %w contract [1, 1] : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  %4 = arith.mulf %3, %scale : tensor<?x64xf32>
  return %1, %4 : tensor<?x64xf32>, tensor<?x64xf32>
}

// A product whose right factor has the sizes of another product of the left factor does
// not compute the left factor: its kernel would wait for itself.
// CHECK-LABEL: tile.kernel @sizes_of_gram_kernel0(
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    tile.return
// CHECK-LABEL: tile.kernel @sizes_of_gram_kernel1(
// CHECK:         tile.dot %[[LEFT:.*]], %[[LEFT]] contract [0, 0]
// CHECK-LABEL: tile.kernel @sizes_of_gram_kernel2(
// CHECK-NEXT:    tile.dot
// CHECK-NEXT:    tile.return
func.func @sizes_of_gram(%x: tensor<?x7x2xf32>, %w: tensor<5x2xf32>)
    -> (tensor<?x5x5xf32>, tensor<?x7x5xf32>) {
  %one = arith.constant 1.0 : f32
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x7x2xf32>, tensor<5x2xf32> -> tensor<?x7x5xf32>
  %1 = tile.dot %0, %0 contract [0, 0] : tensor<?x7x5xf32>, tensor<?x7x5xf32> -> tensor<?x5x5xf32>
  %2 = tile.broadcast %one like %1 : f32, tensor<?x5x5xf32> -> tensor<?x5x5xf32>
  %3 = tile.dot %0, %2 contract [1, 1] : tensor<?x7x5xf32>, tensor<?x5x5xf32> -> tensor<?x7x5xf32>
  return %1, %3 : tensor<?x5x5xf32>, tensor<?x7x5xf32>
}

// A program of rows of a length that only a call knows goes along their columns, and
// leaves no partial results: another kernel adds up the sums of all rows.
// CHECK-LABEL: tile.kernel @sum_of_all_kernel0(
// CHECK-SAME:    -> tensor<?x?x1xf32>
// CHECK-NOT:     tile.reduce_rows
// CHECK-LABEL: tile.kernel @sum_of_all_kernel1(
// CHECK-SAME:    %[[SUMS:.*]]: tensor<?x?x1xf32>
// CHECK:         tile.reduce_rows add %[[SUMS]] partial
// CHECK-LABEL: func.func @sum_of_all(
func.func @sum_of_all(%x: tensor<?x?x?xf32>) -> tensor<1xf32> {
  %0 = arith.mulf %x, %x : tensor<?x?x?xf32>
  %1 = tile.reduce add %0 : tensor<?x?x?xf32> -> tensor<?x?x1xf32>
  %2 = tile.reduce_rows add %1 : tensor<?x?x1xf32> -> tensor<1xf32>
  return %2 : tensor<1xf32>
}
