// Part of Bastile, under the MIT License. See LICENSE.

// Attention with a sink, within a window, as it is traced from its formula.
module {
  func.func @attention(%arg0: tensor<?x?x?x?x64xbf16> {tile.name = "query"}, %arg1: tensor<?x?x1x?x64xbf16> {tile.name = "key"}, %arg2: tensor<?x?x1x?x64xbf16> {tile.name = "value"}, %arg3: tensor<?x?x?x1x1xbf16> {tile.name = "sinks"}) -> tensor<?x?x?x?x64xbf16> {
    %0 = tile.dot %arg0, %arg1 contract [1, 1] : tensor<?x?x?x?x64xbf16>, tensor<?x?x1x?x64xbf16> -> tensor<?x?x?x?x?xf32>
    %cst = arith.constant 1.250000e-01 : f32
    %1 = tile.broadcast %cst like %0 : f32, tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
    %2 = arith.mulf %0, %1 : tensor<?x?x?x?x?xf32>
    %3 = tile.iota over [3] like %2 : tensor<?x?x?x?x1xi32>, tensor<?x?x?x?x?xf32>
    %4 = tile.iota like %2 : tensor<?x?x?x?x?xi32>, tensor<?x?x?x?x?xf32>
    %5 = tile.broadcast %3 like %4 : tensor<?x?x?x?x1xi32>, tensor<?x?x?x?x?xi32> -> tensor<?x?x?x?x?xi32>
    %6 = arith.cmpi sle, %4, %5 : tensor<?x?x?x?x?xi32>
    %c127_i32 = arith.constant 127 : i32
    %7 = tile.broadcast %c127_i32 like %3 : i32, tensor<?x?x?x?x1xi32> -> tensor<?x?x?x?x1xi32>
    %8 = arith.subi %3, %7 : tensor<?x?x?x?x1xi32>
    %9 = tile.broadcast %8 like %4 : tensor<?x?x?x?x1xi32>, tensor<?x?x?x?x?xi32> -> tensor<?x?x?x?x?xi32>
    %10 = arith.cmpi sge, %4, %9 : tensor<?x?x?x?x?xi32>
    %11 = arith.andi %6, %10 : tensor<?x?x?x?x?xi1>
    %cst_0 = arith.constant 0xFF800000 : f32
    %12 = tile.broadcast %cst_0 like %11 : f32, tensor<?x?x?x?x?xi1> -> tensor<?x?x?x?x?xf32>
    %13 = arith.select %11, %2, %12 : tensor<?x?x?x?x?xi1>, tensor<?x?x?x?x?xf32>
    %14 = tile.reduce max %13 : tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x1xf32>
    %15 = tile.broadcast %arg3 like %14 : tensor<?x?x?x1x1xbf16>, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xbf16>
    %16 = arith.extf %15 : tensor<?x?x?x?x1xbf16> to tensor<?x?x?x?x1xf32>
    %17 = arith.maximumf %14, %16 : tensor<?x?x?x?x1xf32>
    %cst_1 = arith.constant -3.40282347E+38 : f32
    %18 = tile.broadcast %cst_1 like %17 : f32, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xf32>
    %19 = arith.maximumf %17, %18 : tensor<?x?x?x?x1xf32>
    %20 = tile.stop_gradient %19 : tensor<?x?x?x?x1xf32>
    %21 = tile.broadcast %20 like %13 : tensor<?x?x?x?x1xf32>, tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
    %22 = arith.subf %13, %21 : tensor<?x?x?x?x?xf32>
    %23 = math.exp %22 : tensor<?x?x?x?x?xf32>
    %24 = tile.reduce add %23 : tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x1xf32>
    %25 = tile.broadcast %arg3 like %20 : tensor<?x?x?x1x1xbf16>, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xbf16>
    %26 = arith.extf %25 : tensor<?x?x?x?x1xbf16> to tensor<?x?x?x?x1xf32>
    %27 = arith.subf %26, %20 : tensor<?x?x?x?x1xf32>
    %28 = math.exp %27 : tensor<?x?x?x?x1xf32>
    %29 = arith.addf %24, %28 : tensor<?x?x?x?x1xf32>
    %cst_2 = arith.constant -3.40282347E+38 : f32
    %30 = tile.broadcast %cst_2 like %20 : f32, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xf32>
    %31 = arith.subf %30, %20 : tensor<?x?x?x?x1xf32>
    %32 = math.exp %31 : tensor<?x?x?x?x1xf32>
    %33 = arith.addf %29, %32 : tensor<?x?x?x?x1xf32>
    %34 = tile.broadcast %33 like %23 : tensor<?x?x?x?x1xf32>, tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
    %35 = arith.divf %23, %34 : tensor<?x?x?x?x?xf32>
    %36 = tile.dot %35, %arg2 contract [1, 0] : tensor<?x?x?x?x?xf32>, tensor<?x?x1x?x64xbf16> -> tensor<?x?x?x?x64xf32>
    %37 = arith.truncf %36 : tensor<?x?x?x?x64xf32> to tensor<?x?x?x?x64xbf16>
    return %37 : tensor<?x?x?x?x64xbf16>
  }
}
