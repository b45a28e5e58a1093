// RUN: tile-opt %s -verify-diagnostics -split-input-file

func.func @load_misaligned_rows(%x: memref<?x9xf32>, %s: tensor<1x1xi32>, %i: index) {
  // expected-error @below {{'tile.load' op is misaligned by 'tensor<1x1xi32>', not by an i32 for each row of 'tensor<4x16xf32>'}}
  %0 = tile.load %x[%i, %i] misaligned %s : memref<?x9xf32>, tensor<1x1xi32> -> tensor<4x16xf32>
  return
}

// -----

func.func @store_misaligned_by_floats(%t: tensor<4x16xf32>, %x: memref<?x9xf32>, %s: tensor<4x1xf32>, %i: index) {
  // expected-error @below {{'tile.store' op is misaligned by 'tensor<4x1xf32>', not by an i32 for each row}}
  tile.store %t, %x[%i, %i] misaligned %s : tensor<4x16xf32>, memref<?x9xf32>, tensor<4x1xf32>
  return
}

// -----

#groups = #tile.blocked<vector = 4, threadRows = 1, threadColumns = 4, group = 4>
func.func @mask_misaligned_groups(%t: tensor<1x16xf32, #groups>, %s: tensor<1x1xi32>, %i: index) {
  // expected-error @below {{'tile.mask' op is misaligned, but 'tensor<1x16xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 4, group = 4>>' does not have an element for each column}}
  %0 = tile.mask %t from %i misaligned %s limit 9 else 0.0 : f32 : tensor<1x16xf32, #groups>, tensor<1x1xi32>
  return
}

// -----

func.func @mask_other(%t: tensor<1x8xf32>, %i: index) {
  // expected-error @below {{'tile.mask' op has 0 : i32 for elements of 'tensor<1x8xf32>'}}
  %0 = tile.mask %t from %i limit 8 else 0 : i32 : tensor<1x8xf32>
  return
}

// -----

func.func @mask_rows_other(%t: tensor<2x8xi32>, %i: index) {
  // expected-error @below {{'tile.mask_rows' op has 0.000000e+00 : f32 for elements of 'tensor<2x8xi32>'}}
  %0 = tile.mask_rows %t from %i limit %i else 0.0 : f32 : tensor<2x8xi32>
  return
}

// -----

func.func @copy_ahead_buffer(%x: memref<?x64xf32>, %b: memref<2x1x32xf32>, %i: index) {
  // expected-error @below {{'tile.copy_ahead' op has 'memref<2x1x32xf32>' for tiles of type 'tensor<1x64xf32>'}}
  tile.copy_ahead %x[%i, %i] to %b[%i] {tile = tensor<1x64xf32>} : memref<?x64xf32>, memref<2x1x32xf32>
  return
}

// -----

func.func @copy_ahead_of_any_size(%x: memref<?x64xf32>, %b: memref<2x1x64xf32>, %i: index) {
  // expected-error @below {{'tile.copy_ahead' op copies tiles of static sizes, not 'tensor<?x64xf32>'}}
  tile.copy_ahead %x[%i, %i] to %b[%i] {tile = tensor<?x64xf32>} : memref<?x64xf32>, memref<2x1x64xf32>
  return
}

// -----

func.func @copy_ahead_element_type(%x: memref<?x64xf16>, %b: memref<2x1x64xf32>, %i: index) {
  // expected-error @below {{'tile.copy_ahead' op moves between 'tensor<1x64xf32>' and 'memref<?x64xf16>', whose element types differ}}
  tile.copy_ahead %x[%i, %i] to %b[%i] {tile = tensor<1x64xf32>} : memref<?x64xf16>, memref<2x1x64xf32>
  return
}

// -----

func.func @keep_element_type(%t: tensor<1x64xf32>, %b: memref<2x1x64xf16>, %i: index) {
  // expected-error @below {{'tile.keep' op has 'memref<2x1x64xf16>' for tiles of type 'tensor<1x64xf32>'}}
  tile.keep %t, %b[%i] : tensor<1x64xf32>, memref<2x1x64xf16>
  return
}

// -----

func.func @take_rank(%b: memref<1x64xf32>, %i: index) {
  // expected-error @below {{'tile.take' op has 'memref<1x64xf32>' for tiles of type 'tensor<1x64xf32>'}}
  %0 = tile.take %b[%i] : memref<1x64xf32> -> tensor<1x64xf32>
  return
}

// -----

func.func @buffer_of_any_size() {
  // expected-error @below {{'tile.buffer' op of type 'memref<?x1x64xf32>' is not a number of tiles of static sizes}}
  %0 = tile.buffer {offset = 0 : i64} : memref<?x1x64xf32>
  return
}

// -----

func.func @buffer_ahead() {
  // expected-error @below {{'tile.buffer' op begins at -16, ahead of the memory}}
  %0 = tile.buffer {offset = -16 : i64} : memref<2x1x64xf32>
  return
}

// -----

func.func @is_done_integer(%f: memref<1xi32>, %x: memref<?x8xf32>) {
  // expected-error @below {{'tile.is_done' op compares a float with 1, not an element of 'memref<1xi32>'}}
  %0 = tile.is_done %f, %x to %x : memref<1xi32>, memref<?x8xf32> to memref<?x8xf32>
  return
}

// -----

func.func @fold_to_columns(%t: tensor<1x256xf32>) {
  // expected-error @below {{'tile.fold' op has 'tensor<1x32xf32>', which does not have a number for each thread along the rows of 'tensor<1x256xf32>'}}
  %0 = tile.fold max %t : tensor<1x256xf32> -> tensor<1x32xf32>
  return
}

// -----

func.func @any_of_floats(%t: tensor<64x1xf32, #tile.mma<warps = 4>>) {
  // expected-error @below {{'tile.any' op asks for elements that are true, of which 'tensor<64x1xf32, #tile.mma<warps = 4>>' has none}}
  %0 = tile.any %t : tensor<64x1xf32, #tile.mma<warps = 4>>
  return
}

// -----

func.func @any_without_a_layout(%t: tensor<64x1xi1>) {
  // expected-error @below {{'tile.any' op asks each warp for its own rows, but 'tensor<64x1xi1>' has no layout of products}}
  %0 = tile.any %t : tensor<64x1xi1>
  return
}

// -----

// In the layout of products each thread keeps a pair of each row.
#sum = #tile.mma<warps = 4>
func.func @fold_products(%t: tensor<64x128xf32, #sum>) {
  // expected-error @below {{'tile.fold' op combines 'tensor<64x128xf32, #tile.mma<warps = 4>>' to 'tensor<64x8xf32, #tile.mma<warps = 4>>', not to 'tensor<64x16xf32, #tile.mma<warps = 4>>'}}
  %0 = tile.fold add %t : tensor<64x128xf32, #sum> -> tensor<64x16xf32, #sum>
  return
}

// -----

#threads = #tile.blocked<vector = 1, threadRows = 1, threadColumns = 32>
func.func @fold_integers(%t: tensor<1x256xi32>) {
  // expected-error @below {{'tile.fold' op combines floats, not elements of 'tensor<1x32xi32}}
  %0 = tile.fold max %t : tensor<1x256xi32> -> tensor<1x32xi32, #threads>
  return
}

// -----

#threads = #tile.blocked<vector = 1, threadRows = 1, threadColumns = 32>
#others = #tile.blocked<vector = 4, threadRows = 1, threadColumns = 64>
func.func @spread_to_other_threads(%t: tensor<1x32xf32, #threads>) {
  // expected-error @below {{'tile.spread' op has 'tensor<1x32xf32, #tile.blocked<vector = 1, threadRows = 1, threadColumns = 32>>', which does not have a number for each thread along the rows of 'tensor<1x256xf32, #tile.blocked<vector = 4, threadRows = 1, threadColumns = 64>>'}}
  %0 = tile.spread %t : tensor<1x32xf32, #threads> -> tensor<1x256xf32, #others>
  return
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 of type 'vector<8xf32>' is no tensor; a 'tile.program' has operands in memory}}
tile.kernel @neither(%x: vector<8xf32>) {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 has a row for each band, so it cannot be read for each row}}
tile.kernel @bands_of_itself(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = tile.repeat_bands %x of 128 like %x : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  tile.return %0 : tensor<?x2xf32>
}

// -----

tile.kernel @partial_for_nobody(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'tile.reduce_rows' op is a partial result, which its kernel has to return once and use for nothing else}}
  %0 = tile.reduce_rows max %x partial : tensor<?x64xf32> -> tensor<?x64xf32>
  tile.return %x : tensor<?x64xf32>
}

// -----

func.func @pieces_beyond_any_length(%x: tensor<?x4611686018427387904xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{4 pieces of type 'tensor<?x4611686018427387904xf32>' are not a row of type 'tensor<?x8xf32>'}}
  %0 = tile.join %x, %x, %x, %x : tensor<?x4611686018427387904xf32>, tensor<?x4611686018427387904xf32>, tensor<?x4611686018427387904xf32>, tensor<?x4611686018427387904xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
