// options: --pass-pipeline=builtin.module(distribute,lower-tiles)
tile.program @ahead(%rows: index, %x: memref<?x250xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 8, columns = 1048576, reread = shared>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %buffer = tile.buffer {offset = 0 : i64} : memref<2x1x256xbf16, #gpu.address_space<workgroup>>
  %s = tile.misalignment %x[%row] to 8 : memref<?x250xbf16, strided<[?, 1]>> -> tensor<1x1xi32>
  tile.copy_ahead %x[%row, %c0] misaligned %s to %buffer[%c0] {tile = tensor<1x256xbf16>}
      : memref<?x250xbf16, strided<[?, 1]>>, memref<2x1x256xbf16, #gpu.address_space<workgroup>>, tensor<1x1xi32>
  tile.commit_copies
  tile.return
}
