// RUN: tile-opt %s | tile-opt | FileCheck %s
// RUN: tile-opt %s --mlir-print-op-generic | tile-opt | FileCheck %s

!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
!rows = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [16, 64], swizzle = 128>
!slots = memref<4x64x64xbf16, #tile.shared<swizzle = 128>>
!tile = memref<64x64xbf16, #tile.shared<swizzle = 128>>
!sum = tensor<64x64xf32, #tile.mma<warps = 4>>
!left = tensor<64x64xbf16, #tile.mma<warps = 4>>
!row = tensor<64x1xf32, #tile.mma<warps = 4>>
!pending = !tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>>

// CHECK-LABEL: tile.program @dimensions(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[K:[^:]*]]: index,
// CHECK-SAME:      %[[X:[^:]*]]: !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128> {tile.dimensions = ["m", "k"]},
// CHECK-SAME:      %[[ROWS:[^:]*]]: !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [16, 64], swizzle = 128> {tile.dimensions = ["m", "k"]},
// CHECK-SAME:      %[[Y:[^:]*]]: memref<?x64xf32, strided<[?, 1]>> {tile.dimensions = ["m", 64]})
// CHECK-SAME:      attributes {dimensions = ["m", "k"], programs = {m = 64 : i64}, schedule = #tile.launch<threads = 256, cluster = 2, persistent = 1>}
tile.program @dimensions(%m: index, %k: index, %x: !map {tile.dimensions = ["m", "k"]},
    %rows: !rows {tile.dimensions = ["m", "k"]}, %y: memref<?x64xf32, strided<[?, 1]>> {tile.dimensions = ["m", 64]})
    attributes {dimensions = ["m", "k"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 256, cluster = 2, persistent = 1>} {
  // CHECK: %[[RANK:.*]] = tile.block_rank
  %rank = tile.block_rank
  // CHECK: %[[BUFFER:.*]] = tile.buffer {offset = 0 : i64} : memref<4x64x64xbf16, #tile.shared<swizzle = 128>>
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  // CHECK: %[[HELD:.*]] = tile.buffer {offset = 32768 : i64} : memref<2x64x64xf32, #tile.held>
  %held = tile.buffer {offset = 32768 : i64} : memref<2x64x64xf32, #tile.held>
  // CHECK: %[[FULL:.*]] = tile.make_barriers arrivals 2 : <4>
  %full = tile.make_barriers arrivals 2 : !tile.barriers<4>
  // CHECK: %[[NUMBERS:.*]] = tile.make_numbers : memref<2x4xi32, #gpu.address_space<workgroup>>
  %numbers = tile.make_numbers : memref<2x4xi32, #gpu.address_space<workgroup>>
  // CHECK: tile.announce_block
  tile.announce_block
  // CHECK: tile.await_blocks
  tile.await_blocks
  // CHECK: %[[STATISTICS:.*]] = tile.make_numbers : memref<4x64xf32, #gpu.address_space<workgroup>>
  %statistics = tile.make_numbers : memref<4x64xf32, #gpu.address_space<workgroup>>
  // CHECK: tile.synchronize cluster
  tile.synchronize cluster
  // CHECK: tile.roles warps [4, 4] threads [1, 128] registers [40, 232] {
  tile.roles warps [4, 4] threads [1, 128] registers [40, 232] {
    // CHECK: tile.put_numbers[%[[M]], %[[K]]] to %[[NUMBERS]][%[[RANK]]] : memref<2x4xi32, #gpu.address_space<workgroup>>
    tile.put_numbers[%m, %k] to %numbers[%rank] : memref<2x4xi32, #gpu.address_space<workgroup>>
    // CHECK: tile.expect 8192 bytes at %[[FULL]][%[[RANK]]] : <4>
    tile.expect 8192 bytes at %full[%rank] : !tile.barriers<4>
    // CHECK: tile.copy_box %[[X]][%[[M]], %[[K]]] to %[[BUFFER]][%[[RANK]]] arrive %[[FULL]][%[[RANK]]] :
    tile.copy_box %x[%m, %k] to %buffer[%rank] arrive %full[%rank] : !map, !slots, !tile.barriers<4>
    // CHECK: tile.copy_box %[[X]][%[[M]], %[[K]]] to %[[BUFFER]][%[[RANK]]] row %[[M]] arrive %[[FULL]][%[[RANK]]] blocks %[[K]] :
    tile.copy_box %x[%m, %k] to %buffer[%rank] row %m arrive %full[%rank] blocks %k : !map, !slots, !tile.barriers<4>
    // CHECK: tile.copy_numbers %[[Y]][%[[M]], %[[K]]] to %[[STATISTICS]][%[[RANK]]] : memref<?x64xf32, strided<[?, 1]>>, memref<4x64xf32, #gpu.address_space<workgroup>>
    tile.copy_numbers %y[%m, %k] to %statistics[%rank] : memref<?x64xf32, strided<[?, 1]>>, memref<4x64xf32, #gpu.address_space<workgroup>>
  // CHECK: }, {
  }, {
    // CHECK: tile.take_numbers %[[STATISTICS]][%[[RANK]]] : memref<4x64xf32, #gpu.address_space<workgroup>> -> tensor<1x64xf32, #tile.mma<warps = 4>>
    %numbers_of_rows = tile.take_numbers %statistics[%rank] : memref<4x64xf32, #gpu.address_space<workgroup>> -> tensor<1x64xf32, #tile.mma<warps = 4>>
    // CHECK: tile.synchronize
    // CHECK-NOT: cluster
    tile.synchronize
    // CHECK: tile.arrive at %[[FULL]][%[[RANK]]] : <4>
    tile.arrive at %full[%rank] : !tile.barriers<4>
    // CHECK: tile.arrive at %[[FULL]][%[[RANK]]] cluster : <4>
    tile.arrive at %full[%rank] cluster : !tile.barriers<4>
    // CHECK: %{{.*}}:2 = tile.get_numbers %[[NUMBERS]][%[[RANK]]] : memref<2x4xi32, #gpu.address_space<workgroup>> -> index, index
    %first, %second = tile.get_numbers %numbers[%rank] : memref<2x4xi32, #gpu.address_space<workgroup>> -> index, index
    // CHECK: tile.arrive at %[[FULL]][%[[RANK]]] warps : <4>
    tile.arrive at %full[%rank] warps : !tile.barriers<4>
    // CHECK: tile.await %[[FULL]][%[[RANK]]] parity %[[K]] : <4>
    tile.await %full[%rank] parity %k : !tile.barriers<4>
    // CHECK: %[[A:.*]]:2 = tile.await %[[FULL]][%[[RANK]]] parity %[[K]] of %[[BUFFER]], %[[BUFFER]] : <4>, memref<4x64x64xbf16, #tile.shared<swizzle = 128>>, memref<4x64x64xbf16, #tile.shared<swizzle = 128>> -> memref<64x64xbf16, #tile.shared<swizzle = 128>>, memref<64x64xbf16, #tile.shared<swizzle = 128>>
    %a, %b = tile.await %full[%rank] parity %k of %buffer, %buffer
        : !tile.barriers<4>, !slots, !slots -> !tile, !tile
    // CHECK: tile.get_tiles %[[BUFFER]], %[[BUFFER]][%[[RANK]]] : memref<4x64x64xbf16, #tile.shared<swizzle = 128>>, memref<4x64x64xbf16, #tile.shared<swizzle = 128>> -> memref<64x64xbf16, #tile.shared<swizzle = 128>>, memref<64x64xbf16, #tile.shared<swizzle = 128>>
    %known_a, %known_b = tile.get_tiles %buffer, %buffer[%rank] : !slots, !slots -> !tile, !tile
    // CHECK: tile.take_turn
    tile.take_turn
    // CHECK: %[[DOT:.*]] = tile.dot %[[A]]#0, %[[A]]#1 contract [1, 0] : memref<64x64xbf16, #tile.shared<swizzle = 128>>, memref<64x64xbf16, #tile.shared<swizzle = 128>> -> !tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>>
    %dot = tile.dot %a, %b contract [1, 0] : !tile, !tile -> !pending
    // CHECK: tile.dot %[[A]]#0, %[[A]]#1 contract [1, 1] column 32 : memref<64x64xbf16
    %part = tile.dot %a, %b contract [1, 1] column 32 : !tile, !tile -> !tile.pending<tensor<64x32xf32, #tile.mma<warps = 4>>>
    // CHECK: tile.pass_turn
    tile.pass_turn
    // CHECK: tile.wait_dots 1 : () -> ()
    tile.wait_dots 1 : () -> ()
    // CHECK: %[[SUM:.*]] = tile.wait_dots 0 of %[[DOT]] : (!tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>>) -> tensor<64x64xf32, #tile.mma<warps = 4>>
    %sum = tile.wait_dots 0 of %dot : (!pending) -> !sum
    // CHECK: %[[ROW:.*]] = tile.reduce add %[[SUM]]
    %row = tile.reduce add %sum : !sum -> !row
    %narrow = arith.truncf %sum : !sum to !left
    // CHECK: %[[BEGIN:.*]] = tile.begin_dots %[[SUM]] : tensor<64x64xf32, #tile.mma<warps = 4>> -> <tensor<64x64xf32, #tile.mma<warps = 4>>>
    %begin = tile.begin_dots %sum : !sum -> !pending
    // CHECK: %[[MORE:.*]] = tile.dot %{{.*}}, %[[A]]#1, %[[BEGIN]] contract [1, 1] : tensor<64x64xbf16, #tile.mma<warps = 4>>, memref<64x64xbf16, #tile.shared<swizzle = 128>>, !tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>> -> !tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>>
    %more = tile.dot %narrow, %b, %begin contract [1, 1] : !left, !tile, !pending -> !pending
    // CHECK: %{{.*}}:2 = tile.wait_dots 0 of %[[MORE]] after %[[ROW]] : (!tile.pending<tensor<64x64xf32, #tile.mma<warps = 4>>>, tensor<64x1xf32, #tile.mma<warps = 4>>) -> (tensor<64x64xf32, #tile.mma<warps = 4>>, tensor<64x1xf32, #tile.mma<warps = 4>>)
    %all, %same = tile.wait_dots 0 of %more after %row : (!pending, !row) -> (!sum, !row)
    // CHECK: tile.keep %{{.*}}, %[[BUFFER]][%[[RANK]]]
    tile.keep %narrow, %buffer[%rank] : !left, !slots
    // CHECK: tile.send %[[SUM]] to %[[HELD]][%[[RANK]]] block %[[K]] arrive %[[FULL]][%[[M]]] : tensor<64x64xf32, #tile.mma<warps = 4>>, memref<2x64x64xf32, #tile.held>, <4>
    tile.send %sum to %held[%rank] block %k arrive %full[%m] : !sum, memref<2x64x64xf32, #tile.held>, !tile.barriers<4>
    // CHECK: tile.take %[[HELD]][%[[RANK]]] : memref<2x64x64xf32, #tile.held> -> tensor<64x64xf32, #tile.mma<warps = 4>>
    %sent = tile.take %held[%rank] : memref<2x64x64xf32, #tile.held> -> !sum
    // CHECK: tile.fence_shared
    tile.fence_shared
    // CHECK: tile.store_box %[[BUFFER]][%[[RANK]]] to %[[X]][%[[M]], %[[K]]] :
    tile.store_box %buffer[%rank] to %x[%m, %k] : !slots, !map
    // CHECK: tile.wait_stores 0
    // CHECK-NOT: warp
    tile.wait_stores 0
    // CHECK: tile.store_box %[[BUFFER]][%[[RANK]]] to %[[ROWS]][%[[M]], %[[K]]] warp :
    tile.store_box %buffer[%rank] to %rows[%m, %k] warp : !slots, !rows
    // CHECK: tile.wait_stores 1 warp
    tile.wait_stores 1 warp
    // CHECK: tile.store %{{.*}}, %[[Y]][%[[M]], %[[K]]]
    tile.store %all, %y[%m, %k] : !sum, memref<?x64xf32, strided<[?, 1]>>
  }
  tile.return
}

// CHECK-LABEL: func @registers(
// CHECK-SAME:      %[[S:.*]]: !llvm.ptr<3>, %[[X:.*]]: f32, %[[R:.*]]: i32
func.func @registers(%s: !llvm.ptr<3>, %x: f32, %r: i32) {
  // CHECK: %[[SUMS:.*]]:5 = tile.wgmma_fence of %[[X]], %[[X]], %[[X]], %[[X]], %[[R]] : f32, f32, f32, f32, i32
  %0:5 = tile.wgmma_fence of %x, %x, %x, %x, %r : f32, f32, f32, f32, i32
  // CHECK: "tile.wgmma"(%[[SUMS]]#0, %[[SUMS]]#1, %[[SUMS]]#2, %[[SUMS]]#3, %[[S]], %[[S]]) <{a_matrix = #tile.shared_matrix<offset = 32, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<leading = 4096, stride = 512, swizzle = 64, transposed = true>, columns = 8 : i64, element_type = f16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}>
  %1:4 = "tile.wgmma"(%0#0, %0#1, %0#2, %0#3, %s, %s) <{
      a_matrix = #tile.shared_matrix<offset = 32, stride = 1024, swizzle = 128>,
      b_matrix = #tile.shared_matrix<leading = 4096, stride = 512, swizzle = 64, transposed = true>,
      columns = 8 : i64, element_type = f16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}>
      : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  // CHECK: "tile.wgmma"(%[[R]], %[[R]], %[[R]], %[[SUMS]]#4, %[[S]]) <{b_matrix = #tile.shared_matrix<>, columns = 8 : i64, element_type = f8E4M3FN, operandSegmentSizes = array<i32: 0, 4, 0, 1>}>
  %2:4 = "tile.wgmma"(%r, %r, %r, %0#4, %s) <{
      b_matrix = #tile.shared_matrix<>,
      columns = 8 : i64, element_type = f8E4M3FN, operandSegmentSizes = array<i32: 0, 4, 0, 1>}>
      : (i32, i32, i32, i32, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  // CHECK: tile.wgmma_wait 0 of %{{.*}}, %[[X]] : f32, f32 anchors 1
  %3:2 = tile.wgmma_wait 0 of %1#0, %x : f32, f32 anchors 1
  // CHECK: tile.wgmma_fence{{$}}
  tile.wgmma_fence
  // CHECK: tile.wgmma_wait 3{{$}}
  tile.wgmma_wait 3
  return
}

// Sums pass through loops and branches, and from one loop to the next.
// CHECK-LABEL: func @products_in_loops
func.func @products_in_loops(%s: !llvm.ptr<3>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y:4 = tile.wgmma_fence of %x, %x, %x, %x : f32, f32, f32, f32
  %0:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y#0, %b = %y#1, %c = %y#2, %d = %y#3) -> (f32, f32, f32, f32) {
    // CHECK: "tile.wgmma"
    %1:4 = "tile.wgmma"(%a, %b, %c, %d, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
        element_type = bf16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}> : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
    scf.yield %1#0, %1#1, %1#2, %1#3 : f32, f32, f32, f32
  }
  // CHECK: "tile.wgmma"
  %2:4 = "tile.wgmma"(%0#0, %0#1, %0#2, %0#3, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}> : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// CHECK-LABEL: func.func @adds(
// CHECK-SAME:      %[[SUM:[^:]*]]: tensor<64x32xf32, #tile.mma<warps = 4>>, %[[SLOTS:[^:]*]]: memref<1x32x64xf32, #tile.shared<swizzle = 128>>,
// CHECK-SAME:      %[[MAP:[^:]*]]: !tile.tensor_map<{{.*}}>, %[[I:[^:]*]]: index)
func.func @adds(%sum: tensor<64x32xf32, #tile.mma<warps = 4>>, %slots: memref<1x32x64xf32, #tile.shared<swizzle = 128>>,
                %map: !tile.tensor_map<memref<?x?xf32, strided<[?, 1]>>, box = [32, 32], swizzle = 128>, %i: index) {
  // CHECK: tile.keep %[[SUM]], %[[SLOTS]][%[[I]]] transposed : tensor<64x32xf32, #tile.mma<warps = 4>>, memref<1x32x64xf32, #tile.shared<swizzle = 128>>
  tile.keep %sum, %slots[%i] transposed : tensor<64x32xf32, #tile.mma<warps = 4>>, memref<1x32x64xf32, #tile.shared<swizzle = 128>>
  // CHECK: tile.store_box %[[SLOTS]][%[[I]]] to %[[MAP]][%[[I]], %[[I]]] add :
  tile.store_box %slots[%i] to %map[%i, %i] add : memref<1x32x64xf32, #tile.shared<swizzle = 128>>, !tile.tensor_map<memref<?x?xf32, strided<[?, 1]>>, box = [32, 32], swizzle = 128>
  return
}
