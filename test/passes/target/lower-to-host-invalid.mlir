// RUN: tile-opt %s --lower-to-host -verify-diagnostics -split-input-file

// expected-error @below {{is not tiled; run the 'tile' pass first}}
tile.kernel @untiled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{argument 1 of type 'memref<?x8xf32>' is not lowered; run the 'lower-tiles' pass first}}
tile.program @of_tiles(%rows: index, %x: memref<?x8xf32>)
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @long_vectors(%p: !llvm.ptr, %x: vector<1048576xf64>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  // expected-error @below {{'math.erf' op has a vector of type 'vector<1048576xf64>'; at most 4096 elements are compiled}}
  %0 = math.erf %x : vector<1048576xf64>
  llvm.store %0, %p : vector<1048576xf64>, !llvm.ptr
  tile.return
}
