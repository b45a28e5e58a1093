// RUN: tile-opt %s --schedule | FileCheck %s

// What outlives a reduction takes registers: here sixteen numbers of each element. A
// thread has vectors half as wide.
// CHECK-LABEL: @many_kept
// CHECK-SAME:  schedule = #tile.rows<rows = 4, threads = 256, vector = 4, columns = 256, persistent = 2, stages = 2>,
tile.kernel @many_kept(%x: tensor<?x256xbf16>) -> tensor<?x256xf32> {
  %a = arith.extf %x : tensor<?x256xbf16> to tensor<?x256xf32>
  %v0 = math.sin %a : tensor<?x256xf32>
  %v1 = math.sin %v0 : tensor<?x256xf32>
  %v2 = math.sin %v1 : tensor<?x256xf32>
  %v3 = math.sin %v2 : tensor<?x256xf32>
  %v4 = math.sin %v3 : tensor<?x256xf32>
  %v5 = math.sin %v4 : tensor<?x256xf32>
  %v6 = math.sin %v5 : tensor<?x256xf32>
  %v7 = math.sin %v6 : tensor<?x256xf32>
  %v8 = math.sin %v7 : tensor<?x256xf32>
  %v9 = math.sin %v8 : tensor<?x256xf32>
  %v10 = math.sin %v9 : tensor<?x256xf32>
  %v11 = math.sin %v10 : tensor<?x256xf32>
  %v12 = math.sin %v11 : tensor<?x256xf32>
  %v13 = math.sin %v12 : tensor<?x256xf32>
  %v14 = math.sin %v13 : tensor<?x256xf32>
  %v15 = math.sin %v14 : tensor<?x256xf32>
  %s = tile.reduce add %v15 : tensor<?x256xf32> -> tensor<?x1xf32>
  %b = tile.broadcast %s like %a : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %m0 = arith.mulf %b, %v0 : tensor<?x256xf32>
  %m1 = arith.mulf %m0, %v1 : tensor<?x256xf32>
  %m2 = arith.mulf %m1, %v2 : tensor<?x256xf32>
  %m3 = arith.mulf %m2, %v3 : tensor<?x256xf32>
  %m4 = arith.mulf %m3, %v4 : tensor<?x256xf32>
  %m5 = arith.mulf %m4, %v5 : tensor<?x256xf32>
  %m6 = arith.mulf %m5, %v6 : tensor<?x256xf32>
  %m7 = arith.mulf %m6, %v7 : tensor<?x256xf32>
  %m8 = arith.mulf %m7, %v8 : tensor<?x256xf32>
  %m9 = arith.mulf %m8, %v9 : tensor<?x256xf32>
  %m10 = arith.mulf %m9, %v10 : tensor<?x256xf32>
  %m11 = arith.mulf %m10, %v11 : tensor<?x256xf32>
  %m12 = arith.mulf %m11, %v12 : tensor<?x256xf32>
  %m13 = arith.mulf %m12, %v13 : tensor<?x256xf32>
  %m14 = arith.mulf %m13, %v14 : tensor<?x256xf32>
  %m15 = arith.mulf %m14, %v15 : tensor<?x256xf32>
  %p = tile.reduce_rows add %m15 partial : tensor<?x256xf32> -> tensor<?x256xf32>
  tile.return %p : tensor<?x256xf32>
}

// Eight numbers leave room for whole vectors.
// CHECK-LABEL: @few_kept
// CHECK-SAME:  schedule = #tile.rows<rows = 8, threads = 256, vector = 8, columns = 256, persistent = 2, stages = 2>,
tile.kernel @few_kept(%x: tensor<?x256xbf16>) -> tensor<?x256xf32> {
  %a = arith.extf %x : tensor<?x256xbf16> to tensor<?x256xf32>
  %v0 = math.sin %a : tensor<?x256xf32>
  %v1 = math.sin %v0 : tensor<?x256xf32>
  %v2 = math.sin %v1 : tensor<?x256xf32>
  %v3 = math.sin %v2 : tensor<?x256xf32>
  %v4 = math.sin %v3 : tensor<?x256xf32>
  %v5 = math.sin %v4 : tensor<?x256xf32>
  %v6 = math.sin %v5 : tensor<?x256xf32>
  %v7 = math.sin %v6 : tensor<?x256xf32>
  %s = tile.reduce add %v7 : tensor<?x256xf32> -> tensor<?x1xf32>
  %b = tile.broadcast %s like %a : tensor<?x1xf32>, tensor<?x256xf32> -> tensor<?x256xf32>
  %m0 = arith.mulf %b, %v0 : tensor<?x256xf32>
  %m1 = arith.mulf %m0, %v1 : tensor<?x256xf32>
  %m2 = arith.mulf %m1, %v2 : tensor<?x256xf32>
  %m3 = arith.mulf %m2, %v3 : tensor<?x256xf32>
  %m4 = arith.mulf %m3, %v4 : tensor<?x256xf32>
  %m5 = arith.mulf %m4, %v5 : tensor<?x256xf32>
  %m6 = arith.mulf %m5, %v6 : tensor<?x256xf32>
  %m7 = arith.mulf %m6, %v7 : tensor<?x256xf32>
  %p = tile.reduce_rows add %m7 partial : tensor<?x256xf32> -> tensor<?x256xf32>
  tile.return %p : tensor<?x256xf32>
}

// More blocks share a long row whose threads would spill much.
// CHECK-LABEL: @many_of_long_rows
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 448, vector = 4, columns = 14336, persistent = 1, cluster = 8, stages = 2>,
tile.kernel @many_of_long_rows(%x: tensor<?x14336xbf16>) -> tensor<?x14336xf32> {
  %a = arith.extf %x : tensor<?x14336xbf16> to tensor<?x14336xf32>
  %v0 = math.sin %a : tensor<?x14336xf32>
  %v1 = math.sin %v0 : tensor<?x14336xf32>
  %v2 = math.sin %v1 : tensor<?x14336xf32>
  %v3 = math.sin %v2 : tensor<?x14336xf32>
  %v4 = math.sin %v3 : tensor<?x14336xf32>
  %v5 = math.sin %v4 : tensor<?x14336xf32>
  %v6 = math.sin %v5 : tensor<?x14336xf32>
  %v7 = math.sin %v6 : tensor<?x14336xf32>
  %v8 = math.sin %v7 : tensor<?x14336xf32>
  %v9 = math.sin %v8 : tensor<?x14336xf32>
  %v10 = math.sin %v9 : tensor<?x14336xf32>
  %v11 = math.sin %v10 : tensor<?x14336xf32>
  %v12 = math.sin %v11 : tensor<?x14336xf32>
  %v13 = math.sin %v12 : tensor<?x14336xf32>
  %v14 = math.sin %v13 : tensor<?x14336xf32>
  %v15 = math.sin %v14 : tensor<?x14336xf32>
  %s = tile.reduce add %v15 : tensor<?x14336xf32> -> tensor<?x1xf32>
  %b = tile.broadcast %s like %a : tensor<?x1xf32>, tensor<?x14336xf32> -> tensor<?x14336xf32>
  %m0 = arith.mulf %b, %v0 : tensor<?x14336xf32>
  %m1 = arith.mulf %m0, %v1 : tensor<?x14336xf32>
  %m2 = arith.mulf %m1, %v2 : tensor<?x14336xf32>
  %m3 = arith.mulf %m2, %v3 : tensor<?x14336xf32>
  %m4 = arith.mulf %m3, %v4 : tensor<?x14336xf32>
  %m5 = arith.mulf %m4, %v5 : tensor<?x14336xf32>
  %m6 = arith.mulf %m5, %v6 : tensor<?x14336xf32>
  %m7 = arith.mulf %m6, %v7 : tensor<?x14336xf32>
  %m8 = arith.mulf %m7, %v8 : tensor<?x14336xf32>
  %m9 = arith.mulf %m8, %v9 : tensor<?x14336xf32>
  %m10 = arith.mulf %m9, %v10 : tensor<?x14336xf32>
  %m11 = arith.mulf %m10, %v11 : tensor<?x14336xf32>
  %m12 = arith.mulf %m11, %v12 : tensor<?x14336xf32>
  %m13 = arith.mulf %m12, %v13 : tensor<?x14336xf32>
  %m14 = arith.mulf %m13, %v14 : tensor<?x14336xf32>
  %m15 = arith.mulf %m14, %v15 : tensor<?x14336xf32>
  %p = tile.reduce_rows add %m15 partial : tensor<?x14336xf32> -> tensor<?x14336xf32>
  tile.return %p : tensor<?x14336xf32>
}

// Two blocks would leave each thread of single elements half the registers that it needs.
// CHECK-LABEL: @singles
// CHECK-SAME:  schedule = #tile.rows<rows = 1, threads = 416, vector = 1, columns = 2080, persistent = 1, stages = 2>,
tile.kernel @singles(%x: tensor<?x2049xbf16>, %y0: tensor<?x2049xbf16>, %y1: tensor<?x2049xbf16>, %y2: tensor<?x2049xbf16>) -> tensor<?x2049xf32> {
  %a = arith.extf %x : tensor<?x2049xbf16> to tensor<?x2049xf32>
  %s = tile.reduce add %a : tensor<?x2049xf32> -> tensor<?x1xf32>
  %b = tile.broadcast %s like %a : tensor<?x1xf32>, tensor<?x2049xf32> -> tensor<?x2049xf32>
  %c = arith.mulf %a, %b : tensor<?x2049xf32>
  %v0 = math.sin %c : tensor<?x2049xf32>
  %v1 = math.sin %v0 : tensor<?x2049xf32>
  %v2 = math.sin %v1 : tensor<?x2049xf32>
  %v3 = math.sin %v2 : tensor<?x2049xf32>
  %v4 = math.sin %v3 : tensor<?x2049xf32>
  %v5 = math.sin %v4 : tensor<?x2049xf32>
  %v6 = math.sin %v5 : tensor<?x2049xf32>
  %v7 = math.sin %v6 : tensor<?x2049xf32>
  %v8 = math.sin %v7 : tensor<?x2049xf32>
  %v9 = math.sin %v8 : tensor<?x2049xf32>
  %v10 = math.sin %v9 : tensor<?x2049xf32>
  %v11 = math.sin %v10 : tensor<?x2049xf32>
  %v12 = math.sin %v11 : tensor<?x2049xf32>
  %v13 = math.sin %v12 : tensor<?x2049xf32>
  %m0 = arith.mulf %a, %v0 : tensor<?x2049xf32>
  %m1 = arith.mulf %m0, %v1 : tensor<?x2049xf32>
  %m2 = arith.mulf %m1, %v2 : tensor<?x2049xf32>
  %m3 = arith.mulf %m2, %v3 : tensor<?x2049xf32>
  %m4 = arith.mulf %m3, %v4 : tensor<?x2049xf32>
  %m5 = arith.mulf %m4, %v5 : tensor<?x2049xf32>
  %m6 = arith.mulf %m5, %v6 : tensor<?x2049xf32>
  %m7 = arith.mulf %m6, %v7 : tensor<?x2049xf32>
  %m8 = arith.mulf %m7, %v8 : tensor<?x2049xf32>
  %m9 = arith.mulf %m8, %v9 : tensor<?x2049xf32>
  %m10 = arith.mulf %m9, %v10 : tensor<?x2049xf32>
  %m11 = arith.mulf %m10, %v11 : tensor<?x2049xf32>
  %m12 = arith.mulf %m11, %v12 : tensor<?x2049xf32>
  %m13 = arith.mulf %m12, %v13 : tensor<?x2049xf32>
  %e0 = arith.extf %y0 : tensor<?x2049xbf16> to tensor<?x2049xf32>
  %f0 = arith.addf %m13, %e0 : tensor<?x2049xf32>
  %e1 = arith.extf %y1 : tensor<?x2049xbf16> to tensor<?x2049xf32>
  %f1 = arith.addf %f0, %e1 : tensor<?x2049xf32>
  %e2 = arith.extf %y2 : tensor<?x2049xbf16> to tensor<?x2049xf32>
  %f2 = arith.addf %f1, %e2 : tensor<?x2049xf32>
  %p = tile.reduce_rows add %f2 partial : tensor<?x2049xf32> -> tensor<?x2049xf32>
  tile.return %p : tensor<?x2049xf32>
}
