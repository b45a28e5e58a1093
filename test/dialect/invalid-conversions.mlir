// RUN: tile-opt %s -verify-diagnostics -split-input-file

func.func @other_shape(%x: tensor<16x8xf32, #tile.mma<warps = 1>>) {
  // expected-error @below {{which is another tile}}
  %0 = tile.convert_layout %x : tensor<16x8xf32, #tile.mma<warps = 1>> -> tensor<16x16xf32, #tile.mma<warps = 1>>
  return
}

// -----

func.func @other_type(%x: tensor<16x8xf32, #tile.mma<warps = 1>>) {
  // expected-error @below {{which is another tile}}
  %0 = tile.convert_layout %x : tensor<16x8xf32, #tile.mma<warps = 1>> -> tensor<16x8xbf16, #tile.mma<warps = 1>>
  return
}

// -----

func.func @no_layout(%x: tensor<16x8xf32, #tile.mma<warps = 1>>) {
  // expected-error @below {{'tile.convert_layout' op converts 'tensor<16x8xf32>', which has no layout}}
  %0 = tile.convert_layout %x : tensor<16x8xf32, #tile.mma<warps = 1>> -> tensor<16x8xf32>
  return
}

// -----

func.func @of_bits(%x: tensor<16x8xi1, #tile.mma<warps = 1>>) {
  // expected-error @below {{whose elements have no whole bytes}}
  %0 = tile.convert_layout %x : tensor<16x8xi1, #tile.mma<warps = 1>> -> tensor<16x8xi1, #tile.blocked<vector = 1, threadRows = 4, threadColumns = 8>>
  return
}

// -----

!blocks = tensor<16x16xf32, #tile.blocked<vector = 1, threadRows = 4, threadColumns = 8, blocks = 2>>
func.func @of_blocks(%x: tensor<16x16xf32, #tile.mma<warps = 1>>) {
  // expected-error @below {{whose layout is of several blocks or of groups}}
  %0 = tile.convert_layout %x : tensor<16x16xf32, #tile.mma<warps = 1>> -> !blocks
  return
}
