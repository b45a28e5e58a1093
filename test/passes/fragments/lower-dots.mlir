// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// A product of 256 rows by two warpgroups, of which each takes the 64 rows behind
// the other's, and then those 128 rows further down. Each step is over 32 bytes of
// the contracted dimension; those of the second panel begin behind the first one.
// Sums of the same rows follow each other.
// CHECK-LABEL: tile.program @k_major(
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 8192 : index
// CHECK-DAG:     %[[A:.*]] = llvm.mlir.addressof @k_major_shared
// CHECK-DAG:     %[[B:.*]] = llvm.getelementptr %[[A]][65536]
// CHECK:         scf.while
// CHECK:         %[[BEGIN:.*]]:64 = tile.wgmma_fence of %
// CHECK:         tile.wgmma_fence{{$}}
// CHECK-NEXT:    %[[WARPGROUP:.*]] = arith.divui %{{.*}}, %[[C4]]
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.muli %[[WARPGROUP]], %[[ROWS]]
// CHECK-NEXT:    %[[OFFSET32:.*]] = arith.index_castui %[[OFFSET]]
// CHECK-NEXT:    %[[OWN:.*]] = llvm.getelementptr %[[A]][%[[OFFSET32]]]
// CHECK-NEXT:    %[[S0:.*]]:32 = "tile.wgmma"(%[[BEGIN]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S1:.*]]:32 = "tile.wgmma"(%[[BEGIN]]#32, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 16384, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S2:.*]]:32 = "tile.wgmma"(%[[S0]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 32, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 32, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S3:.*]]:32 = "tile.wgmma"(%[[S1]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 16416, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 32, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S4:.*]]:32 = "tile.wgmma"(%[[S2]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 64, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 64, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S5:.*]]:32 = "tile.wgmma"(%[[S3]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 16448, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 64, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S6:.*]]:32 = "tile.wgmma"(%[[S4]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 96, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 96, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S7:.*]]:32 = "tile.wgmma"(%[[S5]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 16480, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 96, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S8:.*]]:32 = "tile.wgmma"(%[[S6]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 32768, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8192, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S9:.*]]:32 = "tile.wgmma"(%[[S7]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 49152, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8192, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S10:.*]]:32 = "tile.wgmma"(%[[S8]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 32800, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8224, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S11:.*]]:32 = "tile.wgmma"(%[[S9]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 49184, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8224, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S12:.*]]:32 = "tile.wgmma"(%[[S10]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 32832, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8256, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S13:.*]]:32 = "tile.wgmma"(%[[S11]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 49216, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8256, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S14:.*]]:32 = "tile.wgmma"(%[[S12]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 32864, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8288, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK-NEXT:    %[[S15:.*]]:32 = "tile.wgmma"(%[[S13]]#0, {{.*}}, %[[OWN]], %[[B]])
// CHECK-SAME:      a_matrix = #tile.shared_matrix<offset = 49248, stride = 1024, swizzle = 128>, b_matrix = #tile.shared_matrix<offset = 8288, stride = 1024, swizzle = 128>, columns = 64 : i64, element_type = bf16
// CHECK:         nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT:    tile.wgmma_wait 1 of %[[S14]]#0, {{.*}}, %[[S14]]#31, %[[S15]]#0, {{.*}}, %[[S15]]#31 : f32
#s = #tile.shared<swizzle = 128>
!slots_a = memref<1x256x128xbf16, #s>
!slots_b = memref<1x64x128xbf16, #s>
!a = memref<256x128xbf16, #s>
!b = memref<64x128xbf16, #s>
!sum = tensor<256x64xf32, #tile.mma<warps = 8>>
!pending = !tile.pending<tensor<256x64xf32, #tile.mma<warps = 8>>>
tile.program @k_major(%m: index)
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %a_slots = tile.buffer {offset = 0 : i64} : !slots_a
  %b_slots = tile.buffer {offset = 65536 : i64} : !slots_b
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  %a, %b = tile.await %full[%c0] parity %c0 of %a_slots, %b_slots : !tile.barriers<1>, !slots_a, !slots_b -> !a, !b
  %zeros = arith.constant dense<0.0> : !sum
  %begin = tile.begin_dots %zeros : !sum -> !pending
  %dots = tile.dot %a, %b, %begin contract [1, 1] : !a, !b, !pending -> !pending
  %sum = tile.wait_dots 1 of %dots : (!pending) -> !sum
  tile.return
}

// -----

// Both operands are contracted along their rows, so that the other dimension is
// the contiguous one: its panels of 64 bytes are `leading` bytes apart. A
// warpgroup's 64 rows are two panels of the left operand.
// CHECK-LABEL: tile.program @transposed(
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 4096 : index
// CHECK:         arith.muli %{{.*}}, %[[ROWS]]
// CHECK:         "tile.wgmma"(%[[A:.*]], %[[B:.*]]) <{a_matrix = #tile.shared_matrix<leading = 2048, stride = 512, swizzle = 64, transposed = true>, b_matrix = #tile.shared_matrix<leading = 2048, stride = 512, swizzle = 64, transposed = true>, columns = 96
// CHECK:         "tile.wgmma"({{.*}}, %[[A]], %[[B]]) <{a_matrix = #tile.shared_matrix<offset = 1024, leading = 2048, stride = 512, swizzle = 64, transposed = true>, b_matrix = #tile.shared_matrix<offset = 1024, leading = 2048, stride = 512, swizzle = 64, transposed = true>, columns = 96
// CHECK:         nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT:    tile.wgmma_wait 0{{$}}
#s = #tile.shared<swizzle = 64>
!slots_a = memref<1x32x128xbf16, #s>
!slots_b = memref<1x32x96xbf16, #s>
!a = memref<32x128xbf16, #s>
!b = memref<32x96xbf16, #s>
!pending = !tile.pending<tensor<128x96xf32, #tile.mma<warps = 8>>>
tile.program @transposed(%m: index)
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %a_slots = tile.buffer {offset = 0 : i64} : !slots_a
  %b_slots = tile.buffer {offset = 65536 : i64} : !slots_b
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  %a, %b = tile.await %full[%c0] parity %c0 of %a_slots, %b_slots : !tile.barriers<1>, !slots_a, !slots_b -> !a, !b
  %dots = tile.dot %a, %b contract [0, 0] : !a, !b -> !pending
  tile.wait_dots 0 : () -> ()
  tile.return
}

// -----

// Sums of some columns of elements of 8 bits, of two types: 64 rows of the right
// operand further on. A row in shared memory has the 128 bytes of four steps.
// CHECK-LABEL: tile.program @part(
// CHECK:         %[[S0:.*]]:16 = "tile.wgmma"(%[[A:.*]], %[[B:.*]]) <{a_matrix = #tile.shared_matrix<stride = 1024, swizzle = 128>, b_element_type = f8E5M2, b_matrix = #tile.shared_matrix<offset = 8192, stride = 1024, swizzle = 128>, columns = 32 : i64, element_type = f8E4M3FN
// CHECK-NEXT:    "tile.wgmma"(%[[S0]]#0, {{.*}}, %[[A]], %[[B]]) <{a_matrix = #tile.shared_matrix<offset = 32, stride = 1024, swizzle = 128>, b_element_type = f8E5M2, b_matrix = #tile.shared_matrix<offset = 8224, stride = 1024, swizzle = 128>
// CHECK-NEXT:    "tile.wgmma"{{.*}} b_matrix = #tile.shared_matrix<offset = 8256
// CHECK-NEXT:    "tile.wgmma"{{.*}} b_matrix = #tile.shared_matrix<offset = 8288
// CHECK-NEXT:    nvvm.wgmma.commit.group.sync.aligned
#s = #tile.shared<swizzle = 128>
!slots_a = memref<1x64x128xf8E4M3FN, #s>
!slots_b = memref<1x96x128xf8E5M2, #s>
!a = memref<64x128xf8E4M3FN, #s>
!b = memref<96x128xf8E5M2, #s>
!pending = !tile.pending<tensor<64x32xf32, #tile.mma<warps = 4>>>
tile.program @part(%m: index)
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %a_slots = tile.buffer {offset = 0 : i64} : !slots_a
  %b_slots = tile.buffer {offset = 8192 : i64} : !slots_b
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  %a, %b = tile.await %full[%c0] parity %c0 of %a_slots, %b_slots : !tile.barriers<1>, !slots_a, !slots_b -> !a, !b
  %dots = tile.dot %a, %b contract [1, 1] column 64 : !a, !b -> !pending
  tile.wait_dots 0 : () -> ()
  tile.return
}

// -----

// The left operand's pairs of elements become registers, four for each step: 16
// columns of both rows. They pass through the fence and, where the wait returns
// them, through the wait, which a tile of one column anchors.
// CHECK-LABEL: tile.program @fragments(
// CHECK-DAG:     %[[COLUMNS0:.*]] = vector.from_elements %{{.*}} : vector<2xf16>
// CHECK-DAG:     %[[LOW:.*]] = llvm.bitcast %[[COLUMNS0]] : vector<2xf16> to i32
// CHECK:         %[[LEFT:.*]]:16 = tile.wgmma_fence of %[[LOW]], %[[LOW]], %[[LOW8:[^,]*]], %[[LOW8]], %[[HIGH:[^,]*]], %[[HIGH]], %[[HIGH8:[^,]*]], %[[HIGH8]], %[[LOW]],
// CHECK-NEXT:    %[[UPPER0:.*]]:32 = "tile.wgmma"(%[[LEFT]]#0, %[[LEFT]]#1, %[[LEFT]]#2, %[[LEFT]]#3, %[[B:[^)]*]]) <{b_matrix = #tile.shared_matrix<leading = 4096, stride = 1024, swizzle = 128, transposed = true>, columns = 64 : i64, element_type = f16
// CHECK-NEXT:    %[[LOWER0:.*]]:32 = "tile.wgmma"(%[[LEFT]]#8, %[[LEFT]]#9, %[[LEFT]]#10, %[[LEFT]]#11, %[[B]]) <{b_matrix = #tile.shared_matrix<leading = 4096,
// CHECK-NEXT:    %[[UPPER:.*]]:32 = "tile.wgmma"(%[[UPPER0]]#0, {{.*}}, %[[LEFT]]#4, %[[LEFT]]#5, %[[LEFT]]#6, %[[LEFT]]#7, %[[B]]) <{b_matrix = #tile.shared_matrix<offset = 2048, leading = 4096,
// CHECK-NEXT:    %[[LOWER:.*]]:32 = "tile.wgmma"(%[[LOWER0]]#0, {{.*}}, %[[LEFT]]#12, %[[LEFT]]#13, %[[LEFT]]#14, %[[LEFT]]#15, %[[B]]) <{b_matrix = #tile.shared_matrix<offset = 2048, leading = 4096,
// CHECK-NEXT:    nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT:    %[[RESULTS:.*]]:88 = tile.wgmma_wait 0 of %[[UPPER]]#0, {{.*}}, %[[LOWER]]#31, %[[LOW]], {{.*}} anchors 4
// CHECK-COUNT-64: llvm.insertelement
// CHECK-NEXT:    llvm.bitcast %[[RESULTS]]#64 : i32 to vector<2xf16>
// CHECK-COUNT-15: llvm.bitcast
// CHECK-NOT:     llvm.bitcast
#s = #tile.shared<swizzle = 128>
!slots_b = memref<1x32x64xf16, #s>
!b = memref<32x64xf16, #s>
!sum = tensor<128x64xf32, #tile.mma<warps = 4>>
!pending = !tile.pending<tensor<128x64xf32, #tile.mma<warps = 4>>>
!left = tensor<128x32xf16, #tile.mma<warps = 4>>
!row = tensor<128x1xf32, #tile.mma<warps = 4>>
tile.program @fragments(%m: index, %x: memref<?xf16> {tile.dimensions = ["m"]}, %y: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["m", "m"]})
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %b_slots = tile.buffer {offset = 0 : i64} : !slots_b
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  %b = tile.await %full[%c0] parity %c0 of %b_slots : !tile.barriers<1>, !slots_b -> !b
  %values = tile.load %x[%c0] : memref<?xf16> -> tensor<1x32xf16, #tile.mma<warps = 4>>
  %left = tile.broadcast %values : tensor<1x32xf16, #tile.mma<warps = 4>> -> !left
  %row = tile.load %y[%c0, %c0] : memref<?x?xf32, strided<[?, 1]>> -> !row
  %dots = tile.dot %left, %b contract [1, 0] : !left, !b -> !pending
  %sum, %left2, %row2 = tile.wait_dots 0 of %dots after %left, %row : (!pending, !left, !row) -> (!sum, !left, !row)
  tile.store %sum, %y[%c0, %c0] : !sum, memref<?x?xf32, strided<[?, 1]>>
  tile.store %row2, %y[%c0, %c0] : !row, memref<?x?xf32, strided<[?, 1]>>
  %w = arith.extf %left2 : !left to tensor<128x32xf32, #tile.mma<warps = 4>>
  tile.store %w, %y[%c0, %c0] : tensor<128x32xf32, #tile.mma<warps = 4>>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}
