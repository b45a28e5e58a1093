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

// LLVM knows some functions of vectors, the library those of numbers.
tile.kernel @function(%p: !llvm.ptr, %x: vector<8xf32>)
    attributes {leading = 0 : i64} {
  // expected-error @below {{'math.erf' op is computed for numbers and not for 'vector<8xf32>'; run the 'expand-math' pass first}}
  %0 = math.erf %x : vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  tile.return
}
