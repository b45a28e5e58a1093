// options: --pass-pipeline=builtin.module(distribute{target=host},lower-tiles{target=host},expand-math{target=host},cse,lower-to-host)
tile.program @interleaved(%rows: index, %x: memref<?x512xbf16, strided<[?, 1]>>,
                          %y: memref<?x512xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64}
      : memref<?x512xbf16, strided<[?, 1]>> -> tensor<1x512xbf16>
  %even, %odd = tile.split interleaved %0 : tensor<1x512xbf16> -> tensor<1x256xbf16>, tensor<1x256xbf16>
  %1 = tile.join interleaved %odd, %even : tensor<1x256xbf16>, tensor<1x256xbf16> -> tensor<1x512xbf16>
  tile.store %1, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<1x512xbf16>, memref<?x512xbf16, strided<[?, 1]>>
  tile.return
}
tile.program @three_of_one(%rows: index, %x: memref<?x96xindex, strided<[?, 1]>>,
                           %y: memref<?x96xindex, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x96xindex, strided<[?, 1]>> -> tensor<1x96xindex>
  %1, %2, %3 = tile.split interleaved %0 : tensor<1x96xindex> -> tensor<1x32xindex>, tensor<1x32xindex>, tensor<1x32xindex>
  %4 = tile.join interleaved %3, %1, %2 : tensor<1x32xindex>, tensor<1x32xindex>, tensor<1x32xindex> -> tensor<1x96xindex>
  tile.store %4, %y[%row, %c0] : tensor<1x96xindex>, memref<?x96xindex, strided<[?, 1]>>
  tile.return
}
