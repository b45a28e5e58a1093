// RUN: tile-opt %s --distribute -verify-diagnostics -split-input-file

// Two columns share an element, and a thread would hold four.
tile.program @groups_of_part_vectors(%rows: index, %x: memref<?x128xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  // expected-error @below {{'tile.load' op has a tile of type 'tensor<1x128xf32>', which #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256> cannot deal to threads: a group of 2 columns does not divide into pieces of 4}}
  %0 = tile.load %x[%id, %c0] : memref<?x128xf32, strided<[?, 1]>> -> tensor<1x128xf32>
  tile.return
}

// -----

tile.program @rank() attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  // expected-error @below {{cannot deal to threads: tiles have two dimensions}}
  %0 = arith.constant dense<0.0> : tensor<128xf32>
  tile.return
}

// -----

// A thread has a number for each vector of the columns that a group stands for.
tile.program @groups_of_many_vectors(%rows: index, %x: memref<?x128xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 1048576>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  // expected-error @below {{cannot deal to threads: each would hold 1048576 vectors, and at most 16384 are compiled}}
  %0 = tile.load %x[%id, %c0] : memref<?x128xf32, strided<[?, 1]>> -> tensor<128x128xf32>
  tile.return
}
