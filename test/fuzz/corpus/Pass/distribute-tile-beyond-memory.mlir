// options: --pass-pipeline=builtin.module(distribute,lower-tiles)
tile.program @edges(%rows: index, %x: memref<?x520xbf16, strided<[?, 1]>>,
                    %y: memref<?x520xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 768>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %s = tile.misalignment %x[%row] to 8 : memref<?x520xbf16, strided<[?, 1]>> -> tensor<1x1xi32>
  %0 = tile.load %x[%row, %c0] misaligned %s {alignment = 16 : i64, invariant}
      : memref<?x520xbf16, strided<[?, 1]>>, tensor<1x1xi32> -> tensor<1x4611686018427387904xbf16>
  tile.store %0, %y[%row, %c0] misaligned %s {alignment = 16 : i64}
      : tensor<1x4611686018427387904xbf16>, memref<?x520xbf16, strided<[?, 1]>>, tensor<1x1xi32>
  tile.return
}
