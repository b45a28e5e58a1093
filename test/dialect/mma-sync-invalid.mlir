// RUN: tile-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{24 rows of 16 columns do not divide into 16 rows of 16}}
func.func private @rows(tensor<24x16xbf16, #tile.mma_rhs>)

// -----

// expected-error @below {{16 rows of 8 columns do not divide into 16 rows of 16}}
func.func private @columns(tensor<16x8xbf16, #tile.mma_rhs>)

// -----

func.func @take_of_floats(%buffer: memref<2x16x32xf32, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.take' op takes 'tensor<16x32xf32, #tile.mma_rhs>' from 'memref<2x16x32xf32, #tile.shared<swizzle = 128>>', not pieces of 4 bytes from '#tile.shared' memory}}
  %0 = tile.take %buffer[%i] : memref<2x16x32xf32, #tile.shared<swizzle = 128>> -> tensor<16x32xf32, #tile.mma_rhs>
  return
}

// -----

func.func @take_of_indices(%buffer: memref<2x16x32xindex, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.take' op takes 'tensor<16x32xindex, #tile.mma_rhs>' from 'memref<2x16x32xindex, #tile.shared<swizzle = 128>>', not pieces of 4 bytes from '#tile.shared' memory}}
  %0 = tile.take %buffer[%i] : memref<2x16x32xindex, #tile.shared<swizzle = 128>> -> tensor<16x32xindex, #tile.mma_rhs>
  return
}

// -----

func.func @take_not_transposed(%buffer: memref<2x16x64xbf16, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.take' op has 'memref<2x16x64xbf16, #tile.shared<swizzle = 128>>' for tiles of type 'tensor<64x16xbf16, #tile.mma_rhs>'}}
  %0 = tile.take %buffer[%i] : memref<2x16x64xbf16, #tile.shared<swizzle = 128>> -> tensor<64x16xbf16, #tile.mma_rhs>
  return
}

// -----

func.func @take_transposed_blocked(%buffer: memref<2x16x64xbf16, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.take' op transposes a tile for 'tensor<64x16xbf16>', which is no operand of products of 16 bits}}
  %0 = tile.take %buffer[%i] transposed : memref<2x16x64xbf16, #tile.shared<swizzle = 128>> -> tensor<64x16xbf16>
  return
}

// -----

func.func @take_transposed_warps(%buffer: memref<2x16x128xbf16, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.take' op transposes 'memref<2x16x128xbf16, #tile.shared<swizzle = 128>>' to 'tensor<128x16xbf16, #tile.mma<warps = 8>>', but only elements of 16 bits are transposed, where the rows of all warps together fit in the swizzle}}
  %0 = tile.take %buffer[%i] transposed : memref<2x16x128xbf16, #tile.shared<swizzle = 128>> -> tensor<128x16xbf16, #tile.mma<warps = 8>>
  return
}

// -----

func.func @dot_pends(%a: tensor<16x16xbf16, #tile.mma<warps = 1>>, %b: tensor<16x16xbf16, #tile.mma_rhs>) {
  // expected-error @below {{'tile.dot' op of operands in registers gives its sum at once, as 'tensor<16x16xf32, #tile.mma<warps = 1>>'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<16x16xbf16, #tile.mma<warps = 1>>, tensor<16x16xbf16, #tile.mma_rhs> -> !tile.pending<tensor<16x16xf32, #tile.mma<warps = 1>>>
  return
}

// -----

func.func @dot_of_left_operands(%a: tensor<16x16xbf16, #tile.mma<warps = 1>>) {
  // expected-error @below {{'tile.dot' op multiplies 'tensor<16x16xbf16, #tile.mma<warps = 1>>' and 'tensor<16x16xbf16, #tile.mma<warps = 1>>' from registers; the layouts are '#tile.mma' of the sum's warps and '#tile.mma_rhs', with pieces of 4 bytes}}
  %0 = tile.dot %a, %a contract [1, 1] : tensor<16x16xbf16, #tile.mma<warps = 1>>, tensor<16x16xbf16, #tile.mma<warps = 1>> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @dot_of_columns(%a: tensor<16x16xbf16, #tile.mma<warps = 1>>, %b: tensor<16x16xbf16, #tile.mma_rhs>) {
  // expected-error @below {{'tile.dot' op contracts the dimensions [1, 0] of operands in registers, not [1, 1]}}
  %0 = tile.dot %a, %b contract [1, 0] : tensor<16x16xbf16, #tile.mma<warps = 1>>, tensor<16x16xbf16, #tile.mma_rhs> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @dot_of_floats(%a: tensor<16x16xf32, #tile.mma<warps = 1>>, %b: tensor<16x16xf32, #tile.mma_rhs>) {
  // expected-error @below {{'tile.dot' op multiplies bf16, f16, f8E4M3FN or f8E5M2, not 'f32'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<16x16xf32, #tile.mma<warps = 1>>, tensor<16x16xf32, #tile.mma_rhs> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @dot_of_other_sizes(%a: tensor<16x32xbf16, #tile.mma<warps = 1>>, %b: tensor<16x16xbf16, #tile.mma_rhs>) {
  // expected-error @below {{over [1, 1] is no 'tensor<16x16xf32, #tile.mma<warps = 1>>'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<16x32xbf16, #tile.mma<warps = 1>>, tensor<16x16xbf16, #tile.mma_rhs> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @copy_to_other_memory(%x: memref<?x?xbf16, strided<[?, 1]>>, %buffer: memref<2x16x64xbf16, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error @below {{'tile.copy_tile' op copies tiles of 'memref<2x16x64xbf16, #gpu.address_space<workgroup>>', which is no buffer in '#tile.shared' memory}}
  tile.copy_tile %x[%i, %i] to %buffer[%i] : memref<?x?xbf16, strided<[?, 1]>>, memref<2x16x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_of_other_elements(%x: memref<?x?xf16, strided<[?, 1]>>, %buffer: memref<2x16x64xbf16, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.copy_tile' op moves between 'memref<?x?xf16, strided<[?, 1]>>' and 'memref<2x16x64xbf16, #tile.shared<swizzle = 128>>', whose element types differ}}
  tile.copy_tile %x[%i, %i] to %buffer[%i] : memref<?x?xf16, strided<[?, 1]>>, memref<2x16x64xbf16, #tile.shared<swizzle = 128>>
  return
}

// -----

func.func @store_at_one_index(%x: memref<?x?xbf16, strided<[?, 1]>>, %buffer: memref<2x16x64xbf16, #tile.shared<swizzle = 128>>, %i: index) {
  // expected-error @below {{'tile.store_tile' op has 1 indices of 'memref<?x?xbf16, strided<[?, 1]>>', not one for each of two or more dimensions}}
  tile.store_tile %buffer[%i] to %x[%i] : memref<2x16x64xbf16, #tile.shared<swizzle = 128>>, memref<?x?xbf16, strided<[?, 1]>>
  return
}

// -----

tile.program @copy_in_rows(%rows: index, %x: memref<?x64xbf16, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 64>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : memref<2x16x64xbf16, #tile.shared<swizzle = 128>>
  // expected-error @below {{'tile.copy_tile' op is part of a program without named dimensions}}
  tile.copy_tile %x[%c0, %c0] to %buffer[%c0] : memref<?x64xbf16, strided<[?, 1]>>, memref<2x16x64xbf16, #tile.shared<swizzle = 128>>
  tile.return
}

// -----

// expected-error @below {{a piece of products has 2 or 4 elements, not 3}}
func.func private @vector(tensor<16x24xbf16, #tile.mma<warps = 1, vector = 3>>)

// -----

// expected-error @below {{a piece of products has 2 or 4 elements, not 8}}
func.func private @rhs_vector(tensor<16x64xbf16, #tile.mma_rhs<vector = 8>>)

// -----

// expected-error @below {{24 columns do not divide into pieces of 16}}
func.func private @columns_of_bytes(tensor<16x24xf8E5M2, #tile.mma<warps = 1, vector = 4>>)

// -----

// expected-error @below {{16 rows of 16 columns do not divide into 16 rows of 32}}
func.func private @rhs_columns_of_bytes(tensor<16x16xf8E5M2, #tile.mma_rhs<vector = 4>>)

// -----

func.func @dot_of_bytes_in_pairs(%a: tensor<16x32xf8E5M2, #tile.mma<warps = 1>>, %b: tensor<16x32xf8E5M2, #tile.mma_rhs<vector = 4>>) {
  // expected-error @below {{from registers; the layouts are '#tile.mma' of the sum's warps and '#tile.mma_rhs', with pieces of 4 bytes}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<16x32xf8E5M2, #tile.mma<warps = 1>>, tensor<16x32xf8E5M2, #tile.mma_rhs<vector = 4>> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @dot_of_types(%a: tensor<16x32xbf16, #tile.mma<warps = 1>>, %b: tensor<16x32xf16, #tile.mma_rhs>) {
  // expected-error @below {{over [1, 1] is no 'tensor<16x16xf32, #tile.mma<warps = 1>>'}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<16x32xbf16, #tile.mma<warps = 1>>, tensor<16x32xf16, #tile.mma_rhs> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @dot_to_pieces_of_4(%a: tensor<16x32xf8E5M2, #tile.mma<warps = 1, vector = 4>>, %b: tensor<16x32xf8E5M2, #tile.mma_rhs<vector = 4>>) {
  // expected-error @below {{sums to 'tensor<16x16xf32, #tile.mma<warps = 1, vector = 4>>', not to float32 with a '#tile.mma' layout}}
  %0 = tile.dot %a, %b contract [1, 1] : tensor<16x32xf8E5M2, #tile.mma<warps = 1, vector = 4>>, tensor<16x32xf8E5M2, #tile.mma_rhs<vector = 4>> -> tensor<16x16xf32, #tile.mma<warps = 1, vector = 4>>
  return
}

// -----

func.func @take_bytes_transposed(%buffer: memref<2x32x64xf8E5M2, #tile.shared<swizzle = 64>>, %i: index) {
  // expected-error @below {{transposes a tile for 'tensor<64x32xf8E5M2, #tile.mma_rhs<vector = 4>>', which is no operand of products of 16 bits}}
  %0 = tile.take %buffer[%i] transposed : memref<2x32x64xf8E5M2, #tile.shared<swizzle = 64>> -> tensor<64x32xf8E5M2, #tile.mma_rhs<vector = 4>>
  return
}
