// RUN: tile-opt %s --lower-to-nvvm -verify-diagnostics -split-input-file

// expected-error @below {{is not tiled; run the 'tile' pass first}}
tile.kernel @untiled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{argument 1 of type 'memref<?x8xf32>' is not lowered; run the 'lower-tiles' pass first}}
tile.program @of_tiles(%rows: index, %x: memref<?x8xf32>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  tile.return
}
