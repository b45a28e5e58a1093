// RUN: tile-opt %s --lower-tiles=target=sm_90a --canonicalize --cse -split-input-file | FileCheck %s

// A thread has two rows, 8 apart. It combines what it holds of each, and then the
// four lanes of the row do. The first lane of a row stores the only column. What
// lies beyond the operand, which nobody writes, is loaded from its first element,
// and zero.
// CHECK-LABEL: tile.program @reduce(
// CHECK-SAME:      %[[M:[^:]*]]: index, %[[N:[^:]*]]: index, %[[X:[^:]*]]: !llvm.ptr<1> {{[^}]*}}}, %[[XSTRIDE:[^:]*]]: index,
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[NEAR:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[FAR:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[LANES:.*]] = arith.constant 32 : i32
// CHECK:         %[[OF_ROW:.*]] = arith.remui %{{.*}}, %[[C4]]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[OF_ROW]], %{{.*}}
// CHECK-NEXT:    %[[COLUMN:.*]] = arith.addi %[[N]], %[[FIRST]]
// CHECK-NEXT:    %[[LAST:.*]] = arith.minui %[[COLUMN]], %[[N]]
// CHECK-NEXT:    %[[LEFT:.*]] = arith.subi %[[N]], %[[LAST]]
// CHECK-NEXT:    %[[ROW:.*]] = arith.addi %[[M]], %{{.*}}
// CHECK-NEXT:    %[[IS_ROW:.*]] = arith.cmpi ult, %[[ROW]], %[[M]]
// CHECK-NEXT:    %[[IN_ROW:.*]] = arith.select %[[IS_ROW]], %[[LEFT]], %[[C0]]
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ugt, %[[IN_ROW]], %[[C0]]
// CHECK-NEXT:    %[[ROWS:.*]] = arith.muli %[[ROW]], %[[XSTRIDE]]
// CHECK-NEXT:    %[[PLACE:.*]] = arith.addi %[[COLUMN]], %[[ROWS]]
// CHECK-NEXT:    %[[OFFSET:.*]] = arith.select %[[INSIDE]], %[[PLACE]], %[[C0]]
// CHECK-NEXT:    %[[OFFSET64:.*]] = arith.index_castui %[[OFFSET]] : index to i64
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.getelementptr %[[X]][%[[OFFSET64]]]
// CHECK-NEXT:    %[[LOADED:.*]] = llvm.load %[[ADDRESS]]
// CHECK-NEXT:    arith.select %[[INSIDE]], %[[LOADED]], %[[ZERO]]
// CHECK-NEXT:    %[[INSIDE1:.*]] = arith.cmpi ugt, %[[IN_ROW]], %[[C1]]
// CHECK-NEXT:    %[[BYTES:.*]] = arith.select %[[INSIDE1]], %[[C4]], %[[C0]]
// CHECK-NEXT:    %[[BYTES32:.*]] = arith.index_castui %[[BYTES]] : index to i32
// CHECK-NEXT:    llvm.getelementptr %[[ADDRESS]][%[[BYTES32]]]
// CHECK-COUNT-7: llvm.load
// CHECK-NOT:     llvm.load
// CHECK:         %[[OWN:.*]] = arith.maximumf %{{.*}} : vector<2xf32>
// CHECK-NEXT:    %[[LANE:.*]] = vector.reduction <maximumf>, %[[OWN]]
// CHECK-NEXT:    %[[OTHER:[^,]*]], %{{.*}} = gpu.shuffle xor %[[LANE]], %[[NEAR]], %[[LANES]]
// CHECK-NEXT:    %[[PAIR:.*]] = arith.maximumf %[[LANE]], %[[OTHER]]
// CHECK-NEXT:    %[[OTHER:[^,]*]], %{{.*}} = gpu.shuffle xor %[[PAIR]], %[[FAR]], %[[LANES]]
// CHECK-NEXT:    %[[MAX:.*]] = arith.maximumf %[[PAIR]], %[[OTHER]]
// CHECK:         vector.reduction <maximumf>
// CHECK-COUNT-2: gpu.shuffle
// CHECK-NOT:     gpu.shuffle
// CHECK:         %[[IS_FIRST:.*]] = arith.cmpi eq, %[[FIRST]], %[[C0]]
// CHECK:         %[[STORES:.*]] = arith.andi %{{.*}}, %[[IS_FIRST]]
// CHECK:         %[[VALUE:.*]] = vector.broadcast %[[MAX]]
// CHECK-NEXT:    %[[MASK:.*]] = vector.broadcast %[[STORES]]
// CHECK-NEXT:    llvm.intr.masked.store %[[VALUE]], %{{.*}}, %[[MASK]]
!matrix = memref<?x?xf32, strided<[?, 1]>>
tile.program @reduce(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]},
    %y: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%m, %n] {invariant} : !matrix -> tensor<64x16xf32, #tile.mma<warps = 4>>
  %1 = tile.reduce max %0 : tensor<64x16xf32, #tile.mma<warps = 4>> -> tensor<64x1xf32, #tile.mma<warps = 4>>
  tile.store %1, %y[%m, %c0] : tensor<64x1xf32, #tile.mma<warps = 4>>, !matrix
  tile.return
}

// -----

// Each lane has the columns of a row in each row, and repeats a row's number along
// it; tiles of 128 rows repeat the warps. Of a load that reads what nobody writes,
// the instruction may be another one; of what somebody may write, nothing beyond
// the operand is read. A row is stored by the first of the lanes
// that hold it, of the first warp.
// CHECK-LABEL: tile.program @spread(
// CHECK-COUNT-2: llvm.load {{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK:         %[[ROW:.*]] = vector.from_elements %{{.*}} : vector<2xf32>
// CHECK-COUNT-4: %{{.*}} = llvm.intr.masked.load %{{.*}} {alignment = 4 : i32} : {{.*}} -> vector<1xf32>
// CHECK-COUNT-4: %{{.*}} = vector.broadcast %{{.*}} : f32 to vector<2xf32>
// CHECK-COUNT-4: %{{.*}} = arith.addf %[[ROW]], %{{.*}} : vector<2xf32>
// CHECK-NOT:     arith.addf
// CHECK-COUNT-8: llvm.intr.masked.store
// CHECK-DAG:     %[[IS_FIRST:.*]] = arith.cmpi eq
// CHECK-DAG:     %[[STORES:.*]] = arith.andi %{{.*}}, %[[IS_FIRST]]
// CHECK-COUNT-2: llvm.intr.masked.store
// CHECK-NOT:     llvm.intr.masked.store
!matrix = memref<?x?xf32, strided<[?, 1]>>
tile.program @spread(%m: index, %n: index, %v: memref<?xf32> {tile.dimensions = ["n"], tile.readonly},
    %x: !matrix {tile.dimensions = ["m", "n"]}, %y: !matrix {tile.dimensions = ["m", "n"]},
    %z: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 128 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %0 = tile.load %v[%n] {invariant} : memref<?xf32> -> tensor<1x8xf32, #tile.mma<warps = 4>>
  %1 = tile.broadcast %0 : tensor<1x8xf32, #tile.mma<warps = 4>> -> tensor<128x8xf32, #tile.mma<warps = 4>>
  %2 = tile.load %x[%m, %c0] : !matrix -> tensor<128x1xf32, #tile.mma<warps = 4>>
  %3 = tile.broadcast %2 : tensor<128x1xf32, #tile.mma<warps = 4>> -> tensor<128x8xf32, #tile.mma<warps = 4>>
  %4 = arith.addf %1, %3 : tensor<128x8xf32, #tile.mma<warps = 4>>
  tile.store %4, %y[%m, %n] : tensor<128x8xf32, #tile.mma<warps = 4>>, !matrix
  tile.store %0, %z[%n] : tensor<1x8xf32, #tile.mma<warps = 4>>, memref<?xf32>
  tile.return
}

// -----

// Numbers of columns count up within a piece, numbers of rows do not. The second
// half of the columns are the second half of each row's pieces.
// CHECK-LABEL: tile.program @numbers(
// CHECK-SAME:      %[[M:[^:]*]]: index,
// CHECK-DAG:     %[[STEPS:.*]] = arith.constant dense<[0, 1]> : vector<2xi32>
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[C24:.*]] = arith.constant 24 : index
// CHECK:         %[[CHUNK2:.*]] = arith.addi %{{.*}}, %[[C16]]
// CHECK-NEXT:    %[[FROM2:.*]] = arith.addi %[[M]], %[[CHUNK2]]
// CHECK-NEXT:    %[[NUMBER2:.*]] = arith.index_castui %[[FROM2]]
// CHECK-NEXT:    %[[START2:.*]] = vector.broadcast %[[NUMBER2]]
// CHECK-NEXT:    %[[COLUMNS2:.*]] = arith.addi %[[START2]], %[[STEPS]]
// CHECK-NEXT:    %[[CHUNK3:.*]] = arith.addi %{{.*}}, %[[C24]]
// CHECK:         %[[COLUMNS3:.*]] = arith.addi %{{.*}}, %[[STEPS]]
// CHECK:         %[[ROWS:.*]] = vector.broadcast %{{.*}} : i32 to vector<2xi32>
// CHECK:         arith.addi %[[COLUMNS2]], %[[ROWS]] : vector<2xi32>
tile.program @numbers(%m: index, %y: memref<?x?xi32, strided<[?, 1]>> {tile.dimensions = ["m", "m"]})
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %0 = tile.iota from %m : tensor<64x32xi32, #tile.mma<warps = 4>>
  %1, %2 = tile.split %0 : tensor<64x32xi32, #tile.mma<warps = 4>>
      -> tensor<64x16xi32, #tile.mma<warps = 4>>, tensor<64x16xi32, #tile.mma<warps = 4>>
  %3 = tile.iota_rows from %m : tensor<64x16xi32, #tile.mma<warps = 4>>
  %4 = arith.addi %2, %3 : tensor<64x16xi32, #tile.mma<warps = 4>>
  tile.store %4, %y[%m, %c0] : tensor<64x16xi32, #tile.mma<warps = 4>>, memref<?x?xi32, strided<[?, 1]>>
  tile.return
}

// -----

// A thread adds up its pairs of each of its rows, of two chunks of columns, and
// meets no other thread. Rows of two repetitions stay apart.
// CHECK-LABEL: tile.program @fold(
// CHECK-COUNT-4: arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK-NOT:     arith.addf
// CHECK-NOT:     gpu.shuffle
// CHECK:         tile.return
!matrix = memref<?x?xf32, strided<[?, 1]>>
tile.program @fold(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]},
    %y: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 128 : i64},
                schedule = #tile.launch<threads = 128>} {
  %0 = tile.load %x[%m, %n] : !matrix -> tensor<128x16xf32, #tile.mma<warps = 4>>
  %1 = tile.fold add %0 : tensor<128x16xf32, #tile.mma<warps = 4>> -> tensor<128x8xf32, #tile.mma<warps = 4>>
  tile.store %1, %y[%m, %n] : tensor<128x8xf32, #tile.mma<warps = 4>>, !matrix
  tile.return
}

// -----

// A thread asks for its two rows, and then its warp for those of all its threads.
// CHECK-LABEL: tile.program @any(
// CHECK:         %[[MASK:.*]] = arith.constant -1 : i32
// CHECK:         %[[OWN:.*]] = arith.ori %
// CHECK:         nvvm.vote.sync any %[[MASK]], %[[OWN]] -> i1
!matrix = memref<?x?xf32, strided<[?, 1]>>
tile.program @any(%m: index, %n: index, %x: !matrix {tile.dimensions = ["m", "n"]},
    %y: !matrix {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %0 = tile.load %x[%m, %n] : !matrix -> tensor<64x16xf32, #tile.mma<warps = 4>>
  %1 = tile.reduce max %0 : tensor<64x16xf32, #tile.mma<warps = 4>> -> tensor<64x1xf32, #tile.mma<warps = 4>>
  %zero = arith.constant dense<0.0> : tensor<64x1xf32, #tile.mma<warps = 4>>
  %2 = arith.cmpf ogt, %1, %zero : tensor<64x1xf32, #tile.mma<warps = 4>>
  %3 = tile.any %2 : tensor<64x1xi1, #tile.mma<warps = 4>>
  scf.if %3 {
    tile.store %0, %y[%m, %n] : tensor<64x16xf32, #tile.mma<warps = 4>>, !matrix
  }
  tile.return
}

// -----

// Two tiles side by side: in each of the two repetitions of the rows, the pieces of
// the first tile come ahead of those of the second one.
// CHECK-LABEL: tile.program @join(
// CHECK-DAG:     %[[ONES:.*]] = arith.constant dense<1.000000e+00> : vector<2xf32>
// CHECK-DAG:     %[[TWOS:.*]] = arith.constant dense<2.000000e+00> : vector<2xf32>
// CHECK-DAG:     %[[L0:.*]] = llvm.extractelement %[[ONES]]
// CHECK-DAG:     %[[R0:.*]] = llvm.extractelement %[[TWOS]]
// CHECK:         tile.wgmma_fence of %[[L0]], %[[L1:.*]], %[[L0]], %[[L1]], %[[R0]], %[[R1:.*]], %[[R0]], %[[R1]], %[[L0]], %[[L1]], %[[L0]], %[[L1]], %[[R0]], %[[R1]], %[[R0]], %[[R1]] : f32
#l = #tile.mma<warps = 4>
!part = tensor<128x8xf32, #l>
!whole = tensor<128x16xf32, #l>
tile.program @join(%m: index)
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %left = tile.broadcast %one : f32 -> !part
  %right = tile.broadcast %two : f32 -> !part
  %whole = tile.join %left, %right : !part, !part -> !whole
  %begun = tile.begin_dots %whole : !whole -> !tile.pending<!whole>
  tile.return
}

// -----

// Elements of 16 bits are kept by matrices of 8 x 8, four at once: lanes 0 to 15
// give the addresses of the rows of one chunk, the others those of the next. Bits 7
// to 9 of an address are combined with bits 4 to 6.
// CHECK-LABEL: tile.program @keep(
// CHECK-SAME:      %[[SLOT:[^:]*]]: index,
// CHECK-DAG:     %[[BUFFER:.*]] = llvm.mlir.addressof @keep_shared
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 4096 : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[BITS:.*]] = arith.constant 48 : index
// CHECK:         %[[OFFSET:.*]] = arith.muli %[[SLOT]], %[[BYTES]]
// CHECK-NEXT:    %[[OFFSET32:.*]] = arith.index_castui %[[OFFSET]]
// CHECK-NEXT:    %[[TILE:.*]] = llvm.getelementptr %[[BUFFER]][%[[OFFSET32]]]
// CHECK:         %[[OF_CHUNK:.*]] = arith.remui %[[LANE:.*]], %[[C16]]
// CHECK-NEXT:    %[[ROW:.*]] = arith.addi %{{.*}}, %[[OF_CHUNK]]
// CHECK-NEXT:    %[[CHUNK:.*]] = arith.divui %[[LANE]], %[[C16]]
// CHECK-NEXT:    %[[BYTE:.*]] = arith.muli %[[CHUNK]], %[[C16]]
// CHECK-NEXT:    %[[ROWS:.*]] = arith.muli %[[ROW]], %[[C64]]
// CHECK-NEXT:    %[[WITHIN:.*]] = arith.addi %[[ROWS]], %[[BYTE]]
// CHECK-NEXT:    %[[SHIFTED:.*]] = arith.divui %[[WITHIN]], %[[C8]]
// CHECK-NEXT:    %[[SWIZZLE:.*]] = arith.andi %[[SHIFTED]], %[[BITS]]
// CHECK-NEXT:    %[[SWIZZLED:.*]] = arith.xori %[[WITHIN]], %[[SWIZZLE]]
// CHECK:         %[[ADDRESS:.*]] = llvm.getelementptr %[[TILE]]
// CHECK-NEXT:    nvvm.stmatrix %[[ADDRESS]], %[[A:.*]], %[[A]], %[[B:.*]], %[[B]] {
// CHECK:         %[[NEXT:.*]] = arith.xori %[[SWIZZLED]], %[[C32]]
// CHECK-NEXT:    %[[NEXT32:.*]] = arith.index_castui %[[NEXT]]
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.getelementptr %[[TILE]][%[[NEXT32]]]
// CHECK:         nvvm.stmatrix %[[ADDRESS]]
// CHECK-NOT:     nvvm.stmatrix
!slots = memref<2x64x32xbf16, #tile.shared<swizzle = 64>>
tile.program @keep(%m: index, %v: memref<?xbf16> {tile.dimensions = ["m"]})
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  %0 = tile.load %v[%m] : memref<?xbf16> -> tensor<1x32xbf16, #tile.mma<warps = 4>>
  %1 = tile.broadcast %0 : tensor<1x32xbf16, #tile.mma<warps = 4>> -> tensor<64x32xbf16, #tile.mma<warps = 4>>
  tile.keep %1, %buffer[%m] : tensor<64x32xbf16, #tile.mma<warps = 4>>, !slots
  tile.return
}

// -----

// Transposed, each element is stored by itself: neighbours of a thread in two
// rows of the slot, and its rows of the tile in two columns.
// CHECK-LABEL: tile.program @keep_transposed(
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK-NOT:     llvm.store
!slots = memref<1x16x64xf32, #tile.shared<swizzle = 128>>
tile.program @keep_transposed(%m: index, %v: memref<?xf32> {tile.dimensions = ["m"]})
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  %0 = tile.load %v[%m] : memref<?xf32> -> tensor<1x16xf32, #tile.mma<warps = 4>>
  %1 = tile.broadcast %0 : tensor<1x16xf32, #tile.mma<warps = 4>> -> tensor<64x16xf32, #tile.mma<warps = 4>>
  tile.keep %1, %buffer[%c0] transposed : tensor<64x16xf32, #tile.mma<warps = 4>>, !slots
  tile.return
}

// -----

// Wider elements are kept piece by piece.
// CHECK-LABEL: tile.program @keep_floats(
// CHECK-NOT:     nvvm.stmatrix
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
// CHECK-NOT:     llvm.store
!slots = memref<1x64x16xf32, #tile.shared<swizzle = 64>>
tile.program @keep_floats(%m: index, %v: memref<?xf32> {tile.dimensions = ["m"]})
    attributes {dimensions = ["m"], programs = {m = 64 : i64},
                schedule = #tile.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = tile.buffer {offset = 0 : i64} : !slots
  %0 = tile.load %v[%m] : memref<?xf32> -> tensor<1x16xf32, #tile.mma<warps = 4>>
  %1 = tile.broadcast %0 : tensor<1x16xf32, #tile.mma<warps = 4>> -> tensor<64x16xf32, #tile.mma<warps = 4>>
  tile.keep %1, %buffer[%c0] : tensor<64x16xf32, #tile.mma<warps = 4>>, !slots
  tile.return
}

// -----

// With the alignment of a pair, a thread loads two neighbours of 16 bits together.
// The last element of a row of odd length, which has no neighbour, is loaded once.
// CHECK-LABEL: tile.program @pairs(
// CHECK:         %[[SINGLE:.*]] = llvm.intr.masked.load {{.*}} {alignment = 2 : i32}
// CHECK:         %[[PAIR:.*]] = llvm.intr.masked.load {{.*}} {alignment = 4 : i32} {{.*}} vector<1xi32>
// CHECK:         %[[NEXT:.*]] = llvm.intr.masked.load {{.*}} {alignment = 4 : i32} {{.*}} vector<1xi32>
// CHECK-NOT:     load
tile.program @pairs(%n: index, %v: memref<?xbf16> {tile.dimensions = ["n"], tile.alignment = 8 : i64},
    %y: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 16 : i64}, schedule = #tile.launch<threads = 32>} {
  %c16 = arith.constant 16 : index
  %program = tile.program_id
  %column = arith.muli %program, %c16 : index
  %0 = tile.load %v[%column] {invariant} : memref<?xbf16> -> tensor<1x16xbf16, #tile.mma<warps = 1>>
  %1 = arith.extf %0 : tensor<1x16xbf16, #tile.mma<warps = 1>> to tensor<1x16xf32, #tile.mma<warps = 1>>
  tile.store %1, %y[%column] : tensor<1x16xf32, #tile.mma<warps = 1>>, memref<?xf32>
  tile.return
}
