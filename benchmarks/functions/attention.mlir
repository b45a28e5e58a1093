// Causal attention with sinks, heads of 128, as `bastile.ops.attention` makes it:
// batch, heads of keys, heads of queries that share them, positions, elements.
module {
  func.func @attention(%arg0: tensor<?x?x?x?x128xbf16> {tile.name = "query"}, %arg1: tensor<?x?x1x?x128xbf16> {tile.name = "key"}, %arg2: tensor<?x?x1x?x128xbf16> {tile.name = "value"}, %arg3: tensor<?x?x?x1x1xf32> {tile.name = "sinks"}) -> tensor<?x?x?x?x128xbf16> {
    %0 = tile.dot %arg0, %arg1 contract [1, 1] : tensor<?x?x?x?x128xbf16>, tensor<?x?x1x?x128xbf16> -> tensor<?x?x?x?x?xf32>
    %cst = arith.constant 1.250000e-01 : f32
    %1 = tile.broadcast %cst like %0 : f32, tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
    %2 = arith.mulf %0, %1 : tensor<?x?x?x?x?xf32>
    %3 = tile.iota over [3] like %2 : tensor<?x?x?x?x1xi32>, tensor<?x?x?x?x?xf32>
    %4 = tile.iota like %2 : tensor<?x?x?x?x?xi32>, tensor<?x?x?x?x?xf32>
    %5 = tile.broadcast %3 like %4 : tensor<?x?x?x?x1xi32>, tensor<?x?x?x?x?xi32> -> tensor<?x?x?x?x?xi32>
    %6 = arith.cmpi sle, %4, %5 : tensor<?x?x?x?x?xi32>
    %cst_0 = arith.constant 0xFF800000 : f32
    %7 = tile.broadcast %cst_0 like %6 : f32, tensor<?x?x?x?x?xi1> -> tensor<?x?x?x?x?xf32>
    %8 = arith.select %6, %2, %7 : tensor<?x?x?x?x?xi1>, tensor<?x?x?x?x?xf32>
    %9 = tile.reduce max %8 : tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x1xf32>
    %10 = tile.broadcast %arg3 like %9 : tensor<?x?x?x1x1xf32>, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xf32>
    %11 = arith.maximumf %9, %10 : tensor<?x?x?x?x1xf32>
    %cst_1 = arith.constant -3.40282347E+38 : f32
    %12 = tile.broadcast %cst_1 like %11 : f32, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xf32>
    %13 = arith.maximumf %11, %12 : tensor<?x?x?x?x1xf32>
    %14 = tile.stop_gradient %13 : tensor<?x?x?x?x1xf32>
    %15 = tile.broadcast %14 like %8 : tensor<?x?x?x?x1xf32>, tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
    %16 = arith.subf %8, %15 : tensor<?x?x?x?x?xf32>
    %17 = math.exp %16 : tensor<?x?x?x?x?xf32>
    %18 = tile.reduce add %17 : tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x1xf32>
    %19 = tile.broadcast %arg3 like %14 : tensor<?x?x?x1x1xf32>, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xf32>
    %20 = arith.subf %19, %14 : tensor<?x?x?x?x1xf32>
    %21 = math.exp %20 : tensor<?x?x?x?x1xf32>
    %22 = arith.addf %18, %21 : tensor<?x?x?x?x1xf32>
    %cst_2 = arith.constant 7.88860905E-31 : f32
    %23 = tile.broadcast %cst_2 like %22 : f32, tensor<?x?x?x?x1xf32> -> tensor<?x?x?x?x1xf32>
    %24 = arith.addf %22, %23 : tensor<?x?x?x?x1xf32>
    %25 = tile.broadcast %24 like %17 : tensor<?x?x?x?x1xf32>, tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
    %26 = arith.divf %17, %25 : tensor<?x?x?x?x?xf32>
    %27 = tile.dot %26, %arg2 contract [1, 0] : tensor<?x?x?x?x?xf32>, tensor<?x?x1x?x128xbf16> -> tensor<?x?x?x?x128xf32>
    %28 = arith.truncf %27 : tensor<?x?x?x?x128xf32> to tensor<?x?x?x?x128xbf16>
    return %28 : tensor<?x?x?x?x128xbf16>
  }
}