// RUN: tile-opt %s --schedule | FileCheck %s

// Formulas of so many ops that threads which wait for a row's reduction cost more
// than computing something again. Where a thread would hold 32 numbers of a row, and
// keep more than one value of each, a multiprocessor has registers for one row alone.

// Blocks of 256 threads with 64 bytes of the row each share it: another sweep would
// compute the formula again.
// CHECK-LABEL: @two_sweeps
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 16384, cluster = 2>
tile.kernel @two_sweeps(%x: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %f0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %e1 = math.tanh %f0 : tensor<?x16384xf32>
  %p1 = arith.mulf %e1, %f0 : tensor<?x16384xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x16384xf32>
  %e2 = math.tanh %q1 : tensor<?x16384xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x16384xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x16384xf32>
  %e3 = math.tanh %q2 : tensor<?x16384xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x16384xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x16384xf32>
  %e4 = math.tanh %q3 : tensor<?x16384xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x16384xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x16384xf32>
  %e5 = math.tanh %q4 : tensor<?x16384xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x16384xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x16384xf32>
  %e6 = math.tanh %q5 : tensor<?x16384xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x16384xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x16384xf32>
  %e7 = math.tanh %q6 : tensor<?x16384xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x16384xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x16384xf32>
  %e8 = math.tanh %q7 : tensor<?x16384xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x16384xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x16384xf32>
  %e9 = math.tanh %q8 : tensor<?x16384xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x16384xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x16384xf32>
  %e10 = math.tanh %q9 : tensor<?x16384xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x16384xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x16384xf32>
  %e11 = math.tanh %q10 : tensor<?x16384xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x16384xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x16384xf32>
  %e12 = math.tanh %q11 : tensor<?x16384xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x16384xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x16384xf32>
  %s0 = tile.reduce add %q12 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %g0 = arith.mulf %q12, %b0 : tensor<?x16384xf32>
  %h0 = arith.addf %g0, %e6 : tensor<?x16384xf32>
  %r = arith.truncf %h0 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %r : tensor<?x16384xbf16>
}

// So do two more sweeps.
// CHECK-LABEL: @three_sweeps
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 16384, cluster = 2>
tile.kernel @three_sweeps(%x: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %f0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %e1 = math.tanh %f0 : tensor<?x16384xf32>
  %p1 = arith.mulf %e1, %f0 : tensor<?x16384xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x16384xf32>
  %e2 = math.tanh %q1 : tensor<?x16384xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x16384xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x16384xf32>
  %e3 = math.tanh %q2 : tensor<?x16384xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x16384xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x16384xf32>
  %e4 = math.tanh %q3 : tensor<?x16384xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x16384xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x16384xf32>
  %e5 = math.tanh %q4 : tensor<?x16384xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x16384xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x16384xf32>
  %e6 = math.tanh %q5 : tensor<?x16384xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x16384xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x16384xf32>
  %e7 = math.tanh %q6 : tensor<?x16384xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x16384xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x16384xf32>
  %e8 = math.tanh %q7 : tensor<?x16384xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x16384xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x16384xf32>
  %e9 = math.tanh %q8 : tensor<?x16384xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x16384xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x16384xf32>
  %e10 = math.tanh %q9 : tensor<?x16384xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x16384xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x16384xf32>
  %e11 = math.tanh %q10 : tensor<?x16384xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x16384xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x16384xf32>
  %e12 = math.tanh %q11 : tensor<?x16384xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x16384xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x16384xf32>
  %s0 = tile.reduce add %q12 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %g0 = arith.mulf %q12, %b0 : tensor<?x16384xf32>
  %h0 = arith.addf %g0, %e6 : tensor<?x16384xf32>
  %s1 = tile.reduce add %h0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %b1 = tile.broadcast %s1 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %h1 = arith.mulf %h0, %b1 : tensor<?x16384xf32>
  %r = arith.truncf %h1 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %r : tensor<?x16384xbf16>
}

// Where a block that adds up rows waits for others of its cluster, two blocks of half
// the threads run on a multiprocessor.
// CHECK-LABEL: @sums
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 4, columns = 16384, persistent = 2, cluster = 8, stages = 2>
tile.kernel @sums(%x: tensor<?x16384xbf16>) -> (tensor<?x16384xbf16>, tensor<?x16384xf32>) {
  %f0 = arith.extf %x : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %e1 = math.tanh %f0 : tensor<?x16384xf32>
  %p1 = arith.mulf %e1, %f0 : tensor<?x16384xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x16384xf32>
  %e2 = math.tanh %q1 : tensor<?x16384xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x16384xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x16384xf32>
  %e3 = math.tanh %q2 : tensor<?x16384xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x16384xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x16384xf32>
  %e4 = math.tanh %q3 : tensor<?x16384xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x16384xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x16384xf32>
  %e5 = math.tanh %q4 : tensor<?x16384xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x16384xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x16384xf32>
  %e6 = math.tanh %q5 : tensor<?x16384xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x16384xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x16384xf32>
  %e7 = math.tanh %q6 : tensor<?x16384xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x16384xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x16384xf32>
  %e8 = math.tanh %q7 : tensor<?x16384xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x16384xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x16384xf32>
  %e9 = math.tanh %q8 : tensor<?x16384xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x16384xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x16384xf32>
  %e10 = math.tanh %q9 : tensor<?x16384xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x16384xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x16384xf32>
  %e11 = math.tanh %q10 : tensor<?x16384xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x16384xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x16384xf32>
  %e12 = math.tanh %q11 : tensor<?x16384xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x16384xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x16384xf32>
  %s0 = tile.reduce add %q12 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %g0 = arith.mulf %q12, %b0 : tensor<?x16384xf32>
  %h0 = arith.addf %g0, %e6 : tensor<?x16384xf32>
  %k1 = arith.mulf %h0, %q2 : tensor<?x16384xf32>
  %k2 = arith.mulf %k1, %q4 : tensor<?x16384xf32>
  %k3 = arith.mulf %k2, %q6 : tensor<?x16384xf32>
  %k4 = arith.mulf %k3, %q8 : tensor<?x16384xf32>
  %k5 = arith.mulf %k4, %q10 : tensor<?x16384xf32>
  %w = tile.reduce_rows add %k5 partial : tensor<?x16384xf32> -> tensor<?x16384xf32>
  %r = arith.truncf %h0 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %r, %w : tensor<?x16384xbf16>, tensor<?x16384xf32>
}

// Of several tensors a thread has 16 numbers each.
// CHECK-LABEL: @more_tensors
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 16384, cluster = 4>
tile.kernel @more_tensors(%x0: tensor<?x16384xbf16>, %x1: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %w0 = arith.extf %x0 : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %w1 = arith.extf %x1 : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %m1 = arith.mulf %w0, %w1 : tensor<?x16384xf32>
  %e1 = math.tanh %m1 : tensor<?x16384xf32>
  %p1 = arith.mulf %e1, %m1 : tensor<?x16384xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x16384xf32>
  %e2 = math.tanh %q1 : tensor<?x16384xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x16384xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x16384xf32>
  %e3 = math.tanh %q2 : tensor<?x16384xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x16384xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x16384xf32>
  %e4 = math.tanh %q3 : tensor<?x16384xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x16384xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x16384xf32>
  %e5 = math.tanh %q4 : tensor<?x16384xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x16384xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x16384xf32>
  %e6 = math.tanh %q5 : tensor<?x16384xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x16384xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x16384xf32>
  %e7 = math.tanh %q6 : tensor<?x16384xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x16384xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x16384xf32>
  %e8 = math.tanh %q7 : tensor<?x16384xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x16384xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x16384xf32>
  %e9 = math.tanh %q8 : tensor<?x16384xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x16384xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x16384xf32>
  %e10 = math.tanh %q9 : tensor<?x16384xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x16384xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x16384xf32>
  %e11 = math.tanh %q10 : tensor<?x16384xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x16384xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x16384xf32>
  %e12 = math.tanh %q11 : tensor<?x16384xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x16384xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x16384xf32>
  %e13 = math.tanh %q12 : tensor<?x16384xf32>
  %p13 = arith.mulf %e13, %q12 : tensor<?x16384xf32>
  %q13 = arith.addf %p13, %e13 : tensor<?x16384xf32>
  %e14 = math.tanh %q13 : tensor<?x16384xf32>
  %p14 = arith.mulf %e14, %q13 : tensor<?x16384xf32>
  %q14 = arith.addf %p14, %e14 : tensor<?x16384xf32>
  %s0 = tile.reduce add %q14 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %g0 = arith.mulf %q14, %b0 : tensor<?x16384xf32>
  %h0 = arith.addf %g0, %e6 : tensor<?x16384xf32>
  %r = arith.truncf %h0 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %r : tensor<?x16384xbf16>
}

// A loop finds a sum together with the maximum that it follows, where blocks would
// wait for each other twice.
// CHECK-LABEL: @following_sum
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 512, vector = 8, columns = 4096, cluster = 1, reread = shared>
tile.kernel @following_sum(%x0: tensor<?x16384xbf16>) -> tensor<?x16384xbf16> {
  %w0 = arith.extf %x0 : tensor<?x16384xbf16> to tensor<?x16384xf32>
  %e1 = math.tanh %w0 : tensor<?x16384xf32>
  %p1 = arith.mulf %e1, %w0 : tensor<?x16384xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x16384xf32>
  %e2 = math.tanh %q1 : tensor<?x16384xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x16384xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x16384xf32>
  %e3 = math.tanh %q2 : tensor<?x16384xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x16384xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x16384xf32>
  %e4 = math.tanh %q3 : tensor<?x16384xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x16384xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x16384xf32>
  %e5 = math.tanh %q4 : tensor<?x16384xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x16384xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x16384xf32>
  %e6 = math.tanh %q5 : tensor<?x16384xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x16384xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x16384xf32>
  %e7 = math.tanh %q6 : tensor<?x16384xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x16384xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x16384xf32>
  %e8 = math.tanh %q7 : tensor<?x16384xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x16384xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x16384xf32>
  %e9 = math.tanh %q8 : tensor<?x16384xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x16384xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x16384xf32>
  %e10 = math.tanh %q9 : tensor<?x16384xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x16384xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x16384xf32>
  %e11 = math.tanh %q10 : tensor<?x16384xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x16384xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x16384xf32>
  %e12 = math.tanh %q11 : tensor<?x16384xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x16384xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x16384xf32>
  %e13 = math.tanh %q12 : tensor<?x16384xf32>
  %p13 = arith.mulf %e13, %q12 : tensor<?x16384xf32>
  %q13 = arith.addf %p13, %e13 : tensor<?x16384xf32>
  %e14 = math.tanh %q13 : tensor<?x16384xf32>
  %p14 = arith.mulf %e14, %q13 : tensor<?x16384xf32>
  %q14 = arith.addf %p14, %e14 : tensor<?x16384xf32>
  %n0 = tile.reduce max %q14 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %n0 like %x0 : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %d0 = arith.subf %q14, %b0 : tensor<?x16384xf32>
  %e0 = math.exp %d0 : tensor<?x16384xf32>
  %s0 = tile.reduce add %e0 : tensor<?x16384xf32> -> tensor<?x1xf32>
  %c0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x16384xbf16> -> tensor<?x16384xf32>
  %g0 = arith.divf %e0, %c0 : tensor<?x16384xf32>
  %r = arith.truncf %g0 : tensor<?x16384xf32> to tensor<?x16384xbf16>
  tile.return %r : tensor<?x16384xbf16>
}

// A thread computes on one short row at a time.
// CHECK-LABEL: @short_rows
// CHECK-SAME:  schedule = #tile.rows<rows = 8, threads = 256, vector = 8, columns = 256>
tile.kernel @short_rows(%x0: tensor<?x256xbf16>, %x1: tensor<?x256xbf16>) -> tensor<?x256xbf16> {
  %w0 = arith.extf %x0 : tensor<?x256xbf16> to tensor<?x256xf32>
  %w1 = arith.extf %x1 : tensor<?x256xbf16> to tensor<?x256xf32>
  %m1 = arith.mulf %w0, %w1 : tensor<?x256xf32>
  %e1 = math.tanh %m1 : tensor<?x256xf32>
  %p1 = arith.mulf %e1, %m1 : tensor<?x256xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x256xf32>
  %e2 = math.tanh %q1 : tensor<?x256xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x256xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x256xf32>
  %e3 = math.tanh %q2 : tensor<?x256xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x256xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x256xf32>
  %e4 = math.tanh %q3 : tensor<?x256xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x256xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x256xf32>
  %e5 = math.tanh %q4 : tensor<?x256xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x256xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x256xf32>
  %e6 = math.tanh %q5 : tensor<?x256xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x256xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x256xf32>
  %e7 = math.tanh %q6 : tensor<?x256xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x256xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x256xf32>
  %e8 = math.tanh %q7 : tensor<?x256xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x256xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x256xf32>
  %e9 = math.tanh %q8 : tensor<?x256xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x256xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x256xf32>
  %e10 = math.tanh %q9 : tensor<?x256xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x256xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x256xf32>
  %e11 = math.tanh %q10 : tensor<?x256xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x256xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x256xf32>
  %e12 = math.tanh %q11 : tensor<?x256xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x256xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x256xf32>
  %e13 = math.tanh %q12 : tensor<?x256xf32>
  %p13 = arith.mulf %e13, %q12 : tensor<?x256xf32>
  %q13 = arith.addf %p13, %e13 : tensor<?x256xf32>
  %e14 = math.tanh %q13 : tensor<?x256xf32>
  %p14 = arith.mulf %e14, %q13 : tensor<?x256xf32>
  %q14 = arith.addf %p14, %e14 : tensor<?x256xf32>
  %s0 = tile.reduce add %q14 : tensor<?x256xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x256xbf16> -> tensor<?x256xf32>
  %g0 = arith.mulf %q14, %b0 : tensor<?x256xf32>
  %r = arith.truncf %g0 : tensor<?x256xf32> to tensor<?x256xbf16>
  tile.return %r : tensor<?x256xbf16>
}

// Rows that are added up have blocks of their own, which do not wait for each other.
// CHECK-LABEL: @own_blocks
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 2048, persistent = 3, stages = 2>
tile.kernel @own_blocks(%x0: tensor<?x2048xbf16>, %x1: tensor<?x2048xbf16>, %x2: tensor<?x2048xbf16>) -> (tensor<?x2048xbf16>, tensor<?x2048xf32>) {
  %w0 = arith.extf %x0 : tensor<?x2048xbf16> to tensor<?x2048xf32>
  %w1 = arith.extf %x1 : tensor<?x2048xbf16> to tensor<?x2048xf32>
  %w2 = arith.extf %x2 : tensor<?x2048xbf16> to tensor<?x2048xf32>
  %m1 = arith.mulf %w0, %w1 : tensor<?x2048xf32>
  %m2 = arith.mulf %m1, %w2 : tensor<?x2048xf32>
  %e1 = math.tanh %m2 : tensor<?x2048xf32>
  %p1 = arith.mulf %e1, %m2 : tensor<?x2048xf32>
  %q1 = arith.addf %p1, %e1 : tensor<?x2048xf32>
  %e2 = math.tanh %q1 : tensor<?x2048xf32>
  %p2 = arith.mulf %e2, %q1 : tensor<?x2048xf32>
  %q2 = arith.addf %p2, %e2 : tensor<?x2048xf32>
  %e3 = math.tanh %q2 : tensor<?x2048xf32>
  %p3 = arith.mulf %e3, %q2 : tensor<?x2048xf32>
  %q3 = arith.addf %p3, %e3 : tensor<?x2048xf32>
  %e4 = math.tanh %q3 : tensor<?x2048xf32>
  %p4 = arith.mulf %e4, %q3 : tensor<?x2048xf32>
  %q4 = arith.addf %p4, %e4 : tensor<?x2048xf32>
  %e5 = math.tanh %q4 : tensor<?x2048xf32>
  %p5 = arith.mulf %e5, %q4 : tensor<?x2048xf32>
  %q5 = arith.addf %p5, %e5 : tensor<?x2048xf32>
  %e6 = math.tanh %q5 : tensor<?x2048xf32>
  %p6 = arith.mulf %e6, %q5 : tensor<?x2048xf32>
  %q6 = arith.addf %p6, %e6 : tensor<?x2048xf32>
  %e7 = math.tanh %q6 : tensor<?x2048xf32>
  %p7 = arith.mulf %e7, %q6 : tensor<?x2048xf32>
  %q7 = arith.addf %p7, %e7 : tensor<?x2048xf32>
  %e8 = math.tanh %q7 : tensor<?x2048xf32>
  %p8 = arith.mulf %e8, %q7 : tensor<?x2048xf32>
  %q8 = arith.addf %p8, %e8 : tensor<?x2048xf32>
  %e9 = math.tanh %q8 : tensor<?x2048xf32>
  %p9 = arith.mulf %e9, %q8 : tensor<?x2048xf32>
  %q9 = arith.addf %p9, %e9 : tensor<?x2048xf32>
  %e10 = math.tanh %q9 : tensor<?x2048xf32>
  %p10 = arith.mulf %e10, %q9 : tensor<?x2048xf32>
  %q10 = arith.addf %p10, %e10 : tensor<?x2048xf32>
  %e11 = math.tanh %q10 : tensor<?x2048xf32>
  %p11 = arith.mulf %e11, %q10 : tensor<?x2048xf32>
  %q11 = arith.addf %p11, %e11 : tensor<?x2048xf32>
  %e12 = math.tanh %q11 : tensor<?x2048xf32>
  %p12 = arith.mulf %e12, %q11 : tensor<?x2048xf32>
  %q12 = arith.addf %p12, %e12 : tensor<?x2048xf32>
  %e13 = math.tanh %q12 : tensor<?x2048xf32>
  %p13 = arith.mulf %e13, %q12 : tensor<?x2048xf32>
  %q13 = arith.addf %p13, %e13 : tensor<?x2048xf32>
  %e14 = math.tanh %q13 : tensor<?x2048xf32>
  %p14 = arith.mulf %e14, %q13 : tensor<?x2048xf32>
  %q14 = arith.addf %p14, %e14 : tensor<?x2048xf32>
  %s0 = tile.reduce add %q14 : tensor<?x2048xf32> -> tensor<?x1xf32>
  %b0 = tile.broadcast %s0 like %x0 : tensor<?x1xf32>, tensor<?x2048xbf16> -> tensor<?x2048xf32>
  %g0 = arith.mulf %q14, %b0 : tensor<?x2048xf32>
  %w = tile.reduce_rows add %g0 partial : tensor<?x2048xf32> -> tensor<?x2048xf32>
  %r = arith.truncf %g0 : tensor<?x2048xf32> to tensor<?x2048xbf16>
  tile.return %r, %w : tensor<?x2048xbf16>, tensor<?x2048xf32>
}
