// options: --pass-pipeline=builtin.module(distribute,lower-tiles)
tile.program @columns_equal(%rows: index, %target: memref<?x128xi32, strided<[?, 128]>>,
                            %y: memref<?x128xi8, strided<[?, 128]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 1048576>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %target[%row, %c0] : memref<?x128xi32, strided<[?, 128]>> -> tensor<128x128xi32>
  %1 = tile.broadcast %0 : tensor<128x128xi32> -> tensor<128x128xi32>
  %2 = tile.iota from %c0 : tensor<128x128xi32>
  %3 = arith.cmpi eq, %2, %1 : tensor<128x128xi32>
  %4 = arith.extui %3 : tensor<128x128xi1> to tensor<128x128xi8>
  tile.return
}
