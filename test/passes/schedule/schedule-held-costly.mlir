// RUN: tile-opt %s --fuse=target=sm_90a --schedule=target=sm_90a -split-input-file | FileCheck %s

// Where a costly formula is held by blocks of few threads, several on a
// multiprocessor, a thread holds 32 elements of one tensor if two blocks hold the row
// then, and half as many of a longer row: this formula would spill 32.
// CHECK-LABEL: tile.kernel @crowded_kernel(
// CHECK-SAME:    schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 32768, cluster = 8>
func.func @crowded(%arg0: tensor<?x32768xbf16>, %arg1: tensor<32768xbf16>, %arg2: tensor<32768xbf16>) -> (tensor<?x32768xbf16>, tensor<?x32768xbf16>) {
  %0 = arith.extf %arg0 : tensor<?x32768xbf16> to tensor<?x32768xf32>
  %cst = arith.constant 2.000000e+00 : f32
  %1 = tile.broadcast %cst like %arg0 : f32, tensor<?x32768xbf16> -> tensor<?x32768xf32>
  %2 = arith.mulf %0, %1 : tensor<?x32768xf32>
  %3 = math.sin %2 : tensor<?x32768xf32>
  %4 = arith.mulf %3, %3 : tensor<?x32768xf32>
  %5 = tile.reduce add %4 : tensor<?x32768xf32> -> tensor<?x1xf32>
  %cst_0 = arith.constant 3.276800e+04 : f32
  %6 = tile.broadcast %cst_0 like %5 : f32, tensor<?x1xf32> -> tensor<?x1xf32>
  %7 = arith.divf %5, %6 : tensor<?x1xf32>
  %8 = math.log1p %7 : tensor<?x1xf32>
  %9 = tile.broadcast %8 like %3 : tensor<?x1xf32>, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %10 = arith.mulf %3, %9 : tensor<?x32768xf32>
  %cst_1 = arith.constant 4.000000e+00 : f32
  %11 = tile.broadcast %cst_1 like %10 : f32, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %12 = arith.mulf %10, %11 : tensor<?x32768xf32>
  %13 = math.erf %12 : tensor<?x32768xf32>
  %14 = arith.mulf %13, %13 : tensor<?x32768xf32>
  %cst_2 = arith.constant -5.000000e-01 : f32
  %15 = tile.broadcast %cst_2 like %14 : f32, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %16 = arith.mulf %14, %15 : tensor<?x32768xf32>
  %17 = math.exp %16 : tensor<?x32768xf32>
  %18 = arith.extf %arg1 : tensor<32768xbf16> to tensor<32768xf32>
  %cst_3 = arith.constant 1.000000e+00 : f32
  %19 = tile.broadcast %cst_3 like %arg1 : f32, tensor<32768xbf16> -> tensor<32768xf32>
  %20 = arith.addf %18, %19 : tensor<32768xf32>
  %21 = tile.broadcast %20 like %17 : tensor<32768xf32>, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %22 = arith.mulf %17, %21 : tensor<?x32768xf32>
  %23 = arith.extf %arg2 : tensor<32768xbf16> to tensor<32768xf32>
  %cst_4 = arith.constant 1.000000e+00 : f32
  %24 = tile.broadcast %cst_4 like %arg2 : f32, tensor<32768xbf16> -> tensor<32768xf32>
  %25 = arith.addf %23, %24 : tensor<32768xf32>
  %26 = tile.broadcast %25 like %22 : tensor<32768xf32>, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %27 = arith.mulf %22, %26 : tensor<?x32768xf32>
  %cst_5 = arith.constant 5.000000e-01 : f32
  %28 = tile.broadcast %cst_5 like %27 : f32, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %29 = arith.mulf %27, %28 : tensor<?x32768xf32>
  %cst_6 = arith.constant -0.707106769 : f32
  %30 = tile.broadcast %cst_6 like %27 : f32, tensor<?x32768xf32> -> tensor<?x32768xf32>
  %31 = arith.mulf %27, %30 : tensor<?x32768xf32>
  %32 = math.erfc %31 : tensor<?x32768xf32>
  %33 = arith.mulf %29, %32 : tensor<?x32768xf32>
  %34 = arith.truncf %33 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  %35 = arith.truncf %13 : tensor<?x32768xf32> to tensor<?x32768xbf16>
  return %34, %35 : tensor<?x32768xbf16>, tensor<?x32768xbf16>
}
