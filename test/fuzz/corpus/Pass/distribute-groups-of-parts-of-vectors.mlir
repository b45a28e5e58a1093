// options: --pass-pipeline=builtin.module(distribute,lower-tiles)
tile.program @along_the_row(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                            %y: memref<?x128xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %0 = tile.load %x[%id, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %2 = tile.reduce max %0 : tensor<1x256xf32> -> tensor<1x128xf32>
  tile.store %2, %y[%id, %c0] : tensor<1x128xf32>, memref<?x128xf32, strided<[?, 1]>>
  tile.return
}
