// options: --pass-pipeline=builtin.module(distribute,lower-tiles)
tile.program @loop(%rows: index, %x: memref<?x256xf16, strided<[?, 1000]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<1000x256xf16>
  %0 = scf.for %i = %c0 to %rows step %c1 iter_args(%sum = %zero) -> tensor<1000x256xf16> {
    %1 = tile.load %x[%i, %c0] : memref<?x256xf16, strided<[?, 1000]>> -> tensor<1000x256xf16>
    %2 = arith.addf %sum, %sum : tensor<1000x256xf16>
    scf.yield %2 : tensor<1000x256xf16>
  }
  tile.store %0, %x[%c0, %c0] : tensor<1000x256xf16>, memref<?x256xf16, strided<[?, 1000]>>
  tile.return
}