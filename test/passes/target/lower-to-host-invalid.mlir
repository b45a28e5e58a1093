// RUN: tile-opt %s --lower-to-host -verify-diagnostics -split-input-file

// expected-error @below {{is not tiled; run the 'tile' pass first}}
tile.kernel @untiled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{argument 1 of type 'memref<?x8xf32>' is not lowered; run the 'lower-tiles' pass first}}
tile.kernel @of_tiles(%rows: index, %x: memref<?x8xf32>)
    attributes {leading = 1 : i64} {
  tile.return
}

// -----

tile.kernel @long_vectors(%p: !llvm.ptr, %x: vector<1048576xf64>)
    attributes {leading = 0 : i64} {
  // expected-error @below {{'math.erf' op has a vector of type 'vector<1048576xf64>'; at most 4096 elements are compiled}}
  %0 = math.erf %x : vector<1048576xf64>
  llvm.store %0, %p : vector<1048576xf64>, !llvm.ptr
  tile.return
}
