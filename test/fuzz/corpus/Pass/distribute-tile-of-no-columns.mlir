// options: --pass-pipeline=builtin.module(distribute,lower-tiles)
tile.program @integers(%rows: index, %target: memref<?x1xi64, strided<[?, 1]>>,
                       %y: memref<?x0xi8, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %target[%row, %c0] : memref<?x1xi64, strided<[?, 1]>> -> tensor<1x1xi64>
  %1 = arith.trunci %0 : tensor<1x1xi64> to tensor<1x1xi32>
  %2 = tile.broadcast %1 : tensor<1x1xi32> -> tensor<1x0xi32>
  %3 = tile.iota from %c0 : tensor<1x0xi32>
  %4 = tile.mask %3 from %c0 limit 100 else -1 : i32 : tensor<1x0xi32>
  %5 = arith.cmpi eq, %4, %2 : tensor<1x0xi32>
  %6 = arith.extui %5 : tensor<1x0xi1> to tensor<1x0xi8>
  tile.store %6, %y[%row, %c0] : tensor<1x0xi8>, memref<?x0xi8, strided<[?, 1]>>
  tile.return
}
