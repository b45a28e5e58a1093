// RUN: tile-opt %s -verify-diagnostics -split-input-file

func.func @send_to_shared(%i: index, %m: memref<2x64x64xf32, #tile.shared<swizzle = 128>>, %t: tensor<64x64xf32, #tile.mma<warps = 4>>, %b: !tile.barriers<1>) {
  // expected-error @below {{'tile.send' op sends a tile to 'memref<2x64x64xf32, #tile.shared<swizzle = 128>>', which is no buffer in '#tile.held' memory}}
  tile.send %t to %m[%i] block %i arrive %b[%i] : tensor<64x64xf32, #tile.mma<warps = 4>>, memref<2x64x64xf32, #tile.shared<swizzle = 128>>, !tile.barriers<1>
  return
}

// -----

func.func @send_other_size(%i: index, %m: memref<2x64x32xf32, #tile.held>, %t: tensor<64x64xf32, #tile.mma<warps = 4>>, %b: !tile.barriers<1>) {
  // expected-error @below {{'tile.send' op has 'memref<2x64x32xf32, #tile.held>' for tiles of type 'tensor<64x64xf32, #tile.mma<warps = 4>>'}}
  tile.send %t to %m[%i] block %i arrive %b[%i] : tensor<64x64xf32, #tile.mma<warps = 4>>, memref<2x64x32xf32, #tile.held>, !tile.barriers<1>
  return
}

// -----

func.func @send_narrow(%i: index, %m: memref<2x64x64xbf16, #tile.held>, %t: tensor<64x64xbf16, #tile.mma<warps = 4>>, %b: !tile.barriers<1>) {
  // expected-error @below {{'tile.send' op moves 'tensor<64x64xbf16, #tile.mma<warps = 4>>', but only sums of products lie in '#tile.held' memory}}
  tile.send %t to %m[%i] block %i arrive %b[%i] : tensor<64x64xbf16, #tile.mma<warps = 4>>, memref<2x64x64xbf16, #tile.held>, !tile.barriers<1>
  return
}

// -----

func.func @keep_statistics(%i: index, %m: memref<2x64x1xf32, #tile.held>, %t: tensor<64x1xf32, #tile.mma<warps = 4>>) {
  // expected-error @below {{'tile.keep' op moves 'tensor<64x1xf32, #tile.mma<warps = 4>>', but only sums of products lie in '#tile.held' memory}}
  tile.keep %t, %m[%i] : tensor<64x1xf32, #tile.mma<warps = 4>>, memref<2x64x1xf32, #tile.held>
  return
}

// -----

func.func @take_rows(%i: index, %m: memref<2x1x64xf32, #tile.held>) {
  // expected-error @below {{'tile.take' op moves 'tensor<1x64xf32>', but only sums of products lie in '#tile.held' memory}}
  %0 = tile.take %m[%i] : memref<2x1x64xf32, #tile.held> -> tensor<1x64xf32>
  return
}

// -----

tile.program @send_without_cluster(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 128>} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #tile.mma<warps = 4>>
  %m = tile.buffer {offset = 0 : i64} : memref<2x64x64xf32, #tile.held>
  %b = tile.make_barriers arrivals 1 : !tile.barriers<1>
  // expected-error @below {{'tile.send' op sends a tile to another block, but the schedule has no cluster}}
  tile.send %zero to %m[%n] block %n arrive %b[%n] : tensor<64x64xf32, #tile.mma<warps = 4>>, memref<2x64x64xf32, #tile.held>, !tile.barriers<1>
  tile.return
}
