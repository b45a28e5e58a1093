// RUN: tile-opt %s --differentiate='gradients=all' --fuse --schedule=target=sm_90a | FileCheck %s

// Each thread of the backward of this formula, in float32, would need three times the
// registers that it has where the most blocks of a cluster share a row, so that each
// thread has one vector of it, and not two.
// CHECK:      tile.kernel @crowded_backward_kernel
// CHECK-SAME: schedule = #tile.rows<rows = 1, threads = 352, vector = 4, columns = 45056, cluster = 8>
func.func @crowded(%arg0: tensor<?x11008xf32>, %arg1: tensor<?x11008xf32>, %arg2: tensor<?x11008xf32>, %arg3: tensor<?x11008xf32>, %arg4: tensor<?x11008xf32>) -> (tensor<?x11008xf32>, tensor<?x11008xf32>, tensor<?x11008xf32>) {
  %0 = math.absf %arg4 : tensor<?x11008xf32>
  %cst = arith.constant 1.000000e+00 : f32
  %1 = tile.broadcast %cst like %0 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %2 = arith.addf %0, %1 : tensor<?x11008xf32>
  %3 = arith.divf %arg4, %2 : tensor<?x11008xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %4 = tile.broadcast %cst_0 like %arg3 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %5 = arith.cmpf ogt, %arg3, %4 : tensor<?x11008xf32>
  %6 = arith.negf %arg3 : tensor<?x11008xf32>
  %7 = arith.select %5, %6, %arg3 : tensor<?x11008xi1>, tensor<?x11008xf32>
  %8 = math.exp %7 : tensor<?x11008xf32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %9 = tile.broadcast %cst_1 like %arg3 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %10 = arith.cmpf ole, %arg3, %9 : tensor<?x11008xf32>
  %11 = arith.select %10, %9, %arg3 : tensor<?x11008xi1>, tensor<?x11008xf32>
  %12 = math.log1p %8 : tensor<?x11008xf32>
  %13 = arith.addf %11, %12 : tensor<?x11008xf32>
  %14 = arith.mulf %arg0, %arg1 : tensor<?x11008xf32>
  %15 = math.absf %arg1 : tensor<?x11008xf32>
  %16 = tile.reduce max %15 : tensor<?x11008xf32> -> tensor<?x1xf32>
  %cst_2 = arith.constant 5.000000e-01 : f32
  %17 = tile.broadcast %cst_2 like %16 : f32, tensor<?x1xf32> -> tensor<?x1xf32>
  %18 = arith.addf %16, %17 : tensor<?x1xf32>
  %cst_3 = arith.constant 3.000000e+00 : f32
  %19 = tile.broadcast %cst_3 like %18 : f32, tensor<?x1xf32> -> tensor<?x1xf32>
  %20 = arith.divf %19, %18 : tensor<?x1xf32>
  %21 = tile.broadcast %20 like %14 : tensor<?x1xf32>, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %22 = arith.mulf %14, %21 : tensor<?x11008xf32>
  %23 = arith.addf %13, %22 : tensor<?x11008xf32>
  %cst_4 = arith.constant -5.000000e-01 : f32
  %24 = tile.broadcast %cst_4 like %arg2 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %25 = arith.mulf %arg2, %24 : tensor<?x11008xf32>
  %26 = arith.addf %23, %25 : tensor<?x11008xf32>
  %27 = arith.mulf %3, %3 : tensor<?x11008xf32>
  %28 = math.log1p %27 : tensor<?x11008xf32>
  %cst_5 = arith.constant 4.000000e+00 : f32
  %29 = tile.broadcast %cst_5 like %28 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %30 = arith.mulf %28, %29 : tensor<?x11008xf32>
  %31 = arith.addf %30, %26 : tensor<?x11008xf32>
  %32 = arith.mulf %31, %31 : tensor<?x11008xf32>
  %cst_6 = arith.constant 1.000000e+00 : f32
  %33 = tile.broadcast %cst_6 like %32 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %34 = arith.addf %32, %33 : tensor<?x11008xf32>
  %35 = arith.divf %3, %34 : tensor<?x11008xf32>
  %cst_7 = arith.constant 4.000000e+00 : f32
  %36 = tile.broadcast %cst_7 like %35 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %37 = arith.mulf %35, %36 : tensor<?x11008xf32>
  %38 = arith.mulf %37, %37 : tensor<?x11008xf32>
  %cst_8 = arith.constant -5.000000e-01 : f32
  %39 = tile.broadcast %cst_8 like %38 : f32, tensor<?x11008xf32> -> tensor<?x11008xf32>
  %40 = arith.mulf %38, %39 : tensor<?x11008xf32>
  %41 = math.exp %40 : tensor<?x11008xf32>
  return %41, %13, %26 : tensor<?x11008xf32>, tensor<?x11008xf32>, tensor<?x11008xf32>
}
