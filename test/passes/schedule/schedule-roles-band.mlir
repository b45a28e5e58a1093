// RUN: tile-opt %s --fuse=target=sm_90a --schedule=target=sm_90a -split-input-file | FileCheck %s

// A window of 128 keys shows three steps of 64 to the rows of one warpgroup, and four
// to those of two. So blocks have one warpgroup that multiplies, and a multiprocessor
// three blocks, of which some multiply while another begins or ends a tile.
// CHECK-LABEL: tile.kernel @narrow_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 64, columns = 64, depth = 64, threads = 256, vector = 2, stages = 2, roles = 2, cluster = 1, steps = 1, resident = 3>
func.func @narrow(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// Of 512 keys these are nine and ten steps: more warpgroups share what is copied.
// CHECK-LABEL: tile.kernel @wide_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 64, depth = 128, threads = 384, vector = 2, stages = 3, roles = 2, cluster = 1>
func.func @wide(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %c = arith.constant 512 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// Whoever pins the rows of two warpgroups has one block of them.
// CHECK-LABEL: tile.kernel @pinned_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 128, columns = 64, depth = 64, threads = 384, vector = 2, stages = 2, roles = 2, cluster = 1, steps = 1>
func.func @pinned(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>) -> tensor<?x64xf32> attributes {tile.schedule = #tile.matmul<rows = 128>} {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

// Eight matrices that share the streamed factors have eight rows each in a tile, of which
// a window of 128 shows 135 neighbouring keys, in one step.
// CHECK-LABEL: tile.kernel @grouped_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 64, columns = 64, depth = 144, threads = 256, vector = 2, stages = 2, roles = 2, cluster = 1, steps = 1, resident = 2, matrices = 8>
func.func @grouped(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x1x?x64xbf16>, %v: tensor<?x1x?x64xbf16>, %sinks: tensor<?x8x1x1xf32>) -> tensor<?x8x?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x8x?x64xbf16>, tensor<?x1x?x64xbf16> -> tensor<?x8x?x?xf32>
  %row = tile.iota over [2] like %s : tensor<?x8x?x1xi32>, tensor<?x8x?x?xf32>
  %key = tile.iota like %s : tensor<?x8x?x?xi32>, tensor<?x8x?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x8x?x1xi32>, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x8x?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x8x?x1xi32> -> tensor<?x8x?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x8x?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x8x?x1xi32>, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x8x?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x8x?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x8x?x?xi1>, tensor<?x8x?x?xf32>
  %m = tile.reduce max %x : tensor<?x8x?x?xf32> -> tensor<?x8x?x1xf32>
  %sink = tile.broadcast %sinks like %m : tensor<?x8x1x1xf32>, tensor<?x8x?x1xf32> -> tensor<?x8x?x1xf32>
  %largest = arith.maximumf %m, %sink : tensor<?x8x?x1xf32>
  %ms = tile.broadcast %largest like %s : tensor<?x8x?x1xf32>, tensor<?x8x?x?xf32> -> tensor<?x8x?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x8x?x?xf32>
  %e = math.exp %d : tensor<?x8x?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x8x?x?xf32>, tensor<?x1x?x64xbf16> -> tensor<?x8x?x64xf32>
  %r = arith.truncf %o : tensor<?x8x?x64xf32> to tensor<?x8x?x64xbf16>
  return %r : tensor<?x8x?x64xbf16>
}

// -----

// Of three matrices no tile has as many rows each.
// CHECK-LABEL: tile.kernel @odd_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 64, columns = 64, depth = 64, threads = 256, vector = 2, stages = 2, roles = 2, cluster = 1, steps = 1, resident = 3>
func.func @odd(%q: tensor<?x3x?x64xbf16>, %k: tensor<?x1x?x64xbf16>, %v: tensor<?x1x?x64xbf16>, %sinks: tensor<?x3x1x1xf32>) -> tensor<?x3x?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x3x?x64xbf16>, tensor<?x1x?x64xbf16> -> tensor<?x3x?x?xf32>
  %row = tile.iota over [2] like %s : tensor<?x3x?x1xi32>, tensor<?x3x?x?xf32>
  %key = tile.iota like %s : tensor<?x3x?x?xi32>, tensor<?x3x?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x3x?x1xi32>, tensor<?x3x?x?xf32> -> tensor<?x3x?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x3x?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x3x?x1xi32> -> tensor<?x3x?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x3x?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x3x?x1xi32>, tensor<?x3x?x?xf32> -> tensor<?x3x?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x3x?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x3x?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x3x?x?xf32> -> tensor<?x3x?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x3x?x?xi1>, tensor<?x3x?x?xf32>
  %m = tile.reduce max %x : tensor<?x3x?x?xf32> -> tensor<?x3x?x1xf32>
  %sink = tile.broadcast %sinks like %m : tensor<?x3x1x1xf32>, tensor<?x3x?x1xf32> -> tensor<?x3x?x1xf32>
  %largest = arith.maximumf %m, %sink : tensor<?x3x?x1xf32>
  %ms = tile.broadcast %largest like %s : tensor<?x3x?x1xf32>, tensor<?x3x?x?xf32> -> tensor<?x3x?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x3x?x?xf32>
  %e = math.exp %d : tensor<?x3x?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x3x?x?xf32>, tensor<?x1x?x64xbf16> -> tensor<?x3x?x64xf32>
  %r = arith.truncf %o : tensor<?x3x?x64xf32> to tensor<?x3x?x64xbf16>
  return %r : tensor<?x3x?x64xbf16>
}

// -----

// Rows of the program are keys, of which a window shows each to 128 queries. They see
// several steps of these, whose products begin while another step is computed.
// CHECK-LABEL: tile.kernel @transposed_kernel(
// CHECK-SAME:    schedule = #tile.matmul<rows = 64, columns = 64, depth = 64, threads = 256, vector = 2, stages = 3, roles = 2, cluster = 1, steps = 2, resident = 2>
func.func @transposed(%q: tensor<?x64xbf16>, %k: tensor<?x64xbf16>, %v: tensor<?x64xbf16>, %do: tensor<?x64xbf16>, %lse: tensor<?x1xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %lses = tile.broadcast %lse like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %lses : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %dp = tile.dot %do, %v contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %ds = arith.mulf %e, %dp : tensor<?x?xf32>
  %dv = tile.dot %e, %do contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  %dk = tile.dot %ds, %q contract [0, 0] : tensor<?x?xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %dk, %dv : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// The sums of an instruction for 256 columns take more registers than each thread of two
// blocks would have.
// CHECK-LABEL: tile.kernel @large_kernel(
// CHECK-NOT:     resident
// CHECK:         tile.return
func.func @large(%q: tensor<?x256xbf16>, %k: tensor<?x256xbf16>, %v: tensor<?x256xbf16>) -> tensor<?x256xf32> {
  %s = tile.dot %q, %k contract [1, 1] : tensor<?x256xbf16>, tensor<?x256xbf16> -> tensor<?x?xf32>
  %row = tile.iota over [0] like %s : tensor<?x1xi32>, tensor<?x?xf32>
  %key = tile.iota like %s : tensor<?x?xi32>, tensor<?x?xf32>
  %query = tile.broadcast %row like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?xi32>
  %c = arith.constant 128 : i32
  %cs = tile.broadcast %c like %row : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %least = arith.subi %row, %cs : tensor<?x1xi32>
  %leasts = tile.broadcast %least like %s : tensor<?x1xi32>, tensor<?x?xf32> -> tensor<?x?xi32>
  %after = arith.cmpi sgt, %key, %leasts : tensor<?x?xi32>
  %seen = arith.andi %before, %after : tensor<?x?xi1>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, tensor<?x?xf32> -> tensor<?x?xf32>
  %x = arith.select %seen, %s, %hidden : tensor<?x?xi1>, tensor<?x?xf32>
  %m = tile.reduce max %x : tensor<?x?xf32> -> tensor<?x1xf32>
  %ms = tile.broadcast %m like %s : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %d = arith.subf %x, %ms : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %o = tile.dot %e, %v contract [1, 0] : tensor<?x?xf32>, tensor<?x256xbf16> -> tensor<?x256xf32>
  return %o : tensor<?x256xf32>
}
