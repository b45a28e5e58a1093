// RUN: tile-opt %s --distribute --lower-tiles --canonicalize --cse -split-input-file | FileCheck %s

// A thread holds a vector for each time the layout repeats. Operands in memory
// are an address and the strides of the leading dimensions.
// CHECK-LABEL: tile.program @pieces(
// CHECK-SAME:      %{{[^:]*}}: index, %[[X:[^:]*]]: !llvm.ptr<1>, %[[XSTRIDE:[^:]*]]: index, %[[Y:[^:]*]]: !llvm.ptr<1>, %[[YSTRIDE:[^:]*]]: index)
// CHECK-DAG:     %[[VECTOR:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[ROW:.*]] = tile.program_id
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[THREAD]], %[[VECTOR]]
// CHECK-DAG:     %[[OFFSET:.*]] = arith.muli %[[ROW]], %[[XSTRIDE]]
// CHECK-DAG:     %[[OFFSET64:.*]] = arith.index_castui %[[OFFSET]] : index to i64
// CHECK-DAG:     %[[START:.*]] = llvm.getelementptr %[[X]][%[[OFFSET64]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
// CHECK-DAG:     %[[FIRST64:.*]] = arith.index_castui %[[FIRST]] : index to i64
// CHECK-DAG:     %[[XFIRST:.*]] = llvm.getelementptr %[[START]][%[[FIRST64]]]
// CHECK-DAG:     %[[XSECOND:.*]] = llvm.getelementptr %[[XFIRST]][128]
// CHECK-DAG:     %[[A:.*]] = llvm.load %[[XFIRST]] invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-DAG:     %[[B:.*]] = llvm.load %[[XSECOND]] invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-DAG:     %[[AA:.*]] = arith.addf %[[A]], %[[A]] : vector<4xf32>
// CHECK-DAG:     %[[BB:.*]] = arith.addf %[[B]], %[[B]] : vector<4xf32>
// What cannot lie beyond the operand is stored without a condition.
// CHECK-DAG:     llvm.store %[[AA]], %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK-DAG:     llvm.store %[[BB]], %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK-NOT:     masked.store
// CHECK:         tile.return
tile.program @pieces(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                     %y: memref<?x256xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64, invariant}
      : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %1 = arith.addf %0, %0 : tensor<1x256xf32>
  tile.store %1, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<1x256xf32>, memref<?x256xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Columns past the row's end are read from its last vector, and not written.
// CHECK-LABEL: tile.program @columns_beyond(
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 96 : index
// CHECK-DAG:     %[[LENGTH:.*]] = arith.constant 100 : index
// CHECK:         %[[COLUMN:.*]] = arith.muli
// CHECK-NEXT:    %[[CLAMPED:.*]] = arith.minui %[[COLUMN]], %[[LAST]]
// CHECK:         %[[CLAMPED64:.*]] = arith.index_castui %[[CLAMPED]] : index to i64
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%[[CLAMPED64]]]
// CHECK-NEXT:    llvm.load %[[ADDRESS]]
// CHECK:         %[[COLUMN64:.*]] = arith.index_castui %[[COLUMN]] : index to i64
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%[[COLUMN64]]]
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %[[COLUMN]], %[[LENGTH]]
// CHECK-NEXT:    %[[MASK:.*]] = vector.broadcast %[[INSIDE]] : i1 to vector<4xi1>
// CHECK-NEXT:    llvm.intr.masked.store %{{.*}}, %[[ADDRESS]], %[[MASK]] {alignment = 16 : i32}
// CHECK-NOT:     llvm.store
// CHECK:         tile.return
tile.program @columns_beyond(%rows: index, %x: memref<?x100xf32, strided<[?, 1]>>,
                             %y: memref<?x100xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64, invariant}
      : memref<?x100xf32, strided<[?, 1]>> -> tensor<1x128xf32>
  tile.store %0, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<1x128xf32>, memref<?x100xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Rows past the last one are read from it, and not written.
// CHECK-LABEL: tile.program @rows_beyond(
// CHECK-SAME:      %[[ROWS:[^:]*]]: index
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[THREADS:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[FIRST:.*]] = tile.program_id
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[POSITION:.*]] = arith.divui %[[THREAD]], %[[THREADS]]
// CHECK-DAG:     %[[ROW:.*]] = arith.addi %[[FIRST]], %[[POSITION]]
// CHECK-DAG:     %[[LAST:.*]] = arith.subi %[[ROWS]], %[[ONE]]
// CHECK-DAG:     %[[CLAMPED:.*]] = arith.minui %[[ROW]], %[[LAST]]
// CHECK-DAG:     arith.muli %[[CLAMPED]], %{{.*}} : index
// CHECK:         llvm.load
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %[[ROWS]]
// CHECK:         %[[MASK:.*]] = vector.broadcast %[[INSIDE]]
// CHECK-NEXT:    llvm.intr.masked.store %{{.*}}, %{{.*}}, %[[MASK]]
tile.program @rows_beyond(%rows: index, %x: memref<?x32xf32, strided<[?, 1]>>,
                          %y: memref<?x32xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 4, threads = 32, vector = 4, columns = 32>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64, invariant}
      : memref<?x32xf32, strided<[?, 1]>> -> tensor<4x32xf32>
  tile.store %0, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<4x32xf32>, memref<?x32xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A row's number is split into leading indices, the last of them fastest, once for
// the load and the store. Nothing is divided where the runtime has merged the leading
// dimensions into one.
// CHECK-LABEL: tile.program @leading(
// CHECK-SAME:      %[[COUNT:[^:]*]]: index, %[[SIZE:[^:]*]]: index, %{{[^:]*}}: !llvm.ptr<1>, %[[OUTER:[^:]*]]: index, %[[INNER:[^:]*]]: index
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[ROW:.*]] = tile.program_id
// CHECK:         %[[ISSPLIT:.*]] = arith.cmpi ne, %[[COUNT]], %[[ONE]]
// CHECK-NEXT:    %[[INDEX:.*]]:2 = scf.if %[[ISSPLIT]]
// CHECK-NEXT:      %[[J:.*]] = arith.remui %[[ROW]], %[[SIZE]]
// CHECK-NEXT:      %[[I:.*]] = arith.divui %[[ROW]], %[[SIZE]]
// CHECK-NEXT:      scf.yield %[[I]], %[[J]]
// CHECK:           scf.yield %[[ZERO]], %[[ROW]]
// CHECK-DAG:     %[[JOFFSET:.*]] = arith.muli %[[INDEX]]#1, %[[INNER]]
// CHECK-DAG:     %[[IOFFSET:.*]] = arith.muli %[[INDEX]]#0, %[[OUTER]]
// CHECK-DAG:     arith.addi %[[JOFFSET]], %[[IOFFSET]]
// CHECK:         llvm.load
// CHECK-NOT:     scf.if
// CHECK:         llvm.store
tile.program @leading(%i: index, %j: index, %x: memref<?x?x128xf32, strided<[?, ?, 1]>>,
                      %y: memref<?x?x128xf32, strided<[?, ?, 1]>>)
    attributes {leading = 2 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64}
      : memref<?x?x128xf32, strided<[?, ?, 1]>> -> tensor<1x128xf32>
  tile.store %0, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<1x128xf32>, memref<?x?x128xf32, strided<[?, ?, 1]>>
  tile.return
}

// -----

// Where a thread has several rows, the number of the tile's first row is divided, and
// the indices of the others differ from its indices in the last one alone, unless the
// tile goes beyond that index' last number.
// CHECK-LABEL: tile.program @leading_rows(
// CHECK-SAME:      %[[COUNT:[^:]*]]: index, %[[SIZE:[^:]*]]: index,
// CHECK-DAG:     %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[TILE:.*]] = tile.program_id
// CHECK-DAG:     %[[ROWS:.*]] = arith.muli %[[COUNT]], %[[SIZE]]
// CHECK-DAG:     %[[FIRST:.*]] = arith.minui %[[TILE]], %{{.*}} : index
// CHECK:         %[[LONG:.*]] = arith.cmpi uge, %[[SIZE]], %[[EIGHT]]
// CHECK-NEXT:    %[[INDEX:.*]]:2 = scf.if %[[LONG]]
// CHECK:           arith.divui %[[FIRST]], %[[SIZE]]
// CHECK:           scf.yield %[[SIZE]], %[[SIZE]]
// CHECK:         %[[END:.*]] = arith.addi %[[INDEX]]#1, %[[EIGHT]]
// CHECK-NEXT:    %[[NEAR:.*]] = arith.cmpi ule, %[[END]], %[[SIZE]]
// CHECK-NEXT:    %{{.*}}:2 = scf.if %[[NEAR]]
// CHECK-NEXT:      %[[BEHIND:.*]] = arith.subi %[[ROW:.*]], %[[FIRST]]
// CHECK-NEXT:      %[[J:.*]] = arith.addi %[[INDEX]]#1, %[[BEHIND]]
// CHECK-NEXT:      scf.yield %[[INDEX]]#0, %[[J]]
// CHECK:         } else {
// CHECK:           arith.divui %[[ROW]], %[[SIZE]]
// CHECK:         llvm.load
// CHECK:         scf.if %[[NEAR]]
// CHECK:         llvm.load
// CHECK-NOT:     scf.if
// CHECK-COUNT-2: llvm.intr.masked.store
tile.program @leading_rows(%i: index, %j: index, %x: memref<?x?x32xf32, strided<[?, ?, 1]>>,
                           %y: memref<?x?x32xf32, strided<[?, ?, 1]>>)
    attributes {leading = 2 : i64, schedule = #tile.rows<rows = 8, threads = 32, vector = 4, columns = 32>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x?x32xf32, strided<[?, ?, 1]>> -> tensor<8x32xf32>
  tile.store %0, %y[%row, %c0] : tensor<8x32xf32>, memref<?x?x32xf32, strided<[?, ?, 1]>>
  tile.return
}

// -----

// A row vector lies where each row's elements do: no row, no stride.
// CHECK-LABEL: tile.program @row_vector(
// CHECK-SAME:      %{{[^:]*}}: index, %[[W:[^:]*]]: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: index)
// CHECK:         %[[ADDRESS:.*]] = llvm.getelementptr %[[W]]
// CHECK-NEXT:    %[[V:.*]] = llvm.load %[[ADDRESS]]
// One load serves both rows of the thread.
// CHECK-NOT:     llvm.load
// CHECK-COUNT-2: llvm.intr.masked.store %[[V]]
tile.program @row_vector(%rows: index, %w: memref<128xf32>,
                         %y: memref<?x128xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %w[%c0] {alignment = 16 : i64} : memref<128xf32> -> tensor<1x128xf32>
  %1 = tile.broadcast %0 : tensor<1x128xf32> -> tensor<2x128xf32>
  tile.store %1, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<2x128xf32>, memref<?x128xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A reduction is a tree in the thread and a butterfly in the warp. One of the
// threads that hold the statistic stores it.
// CHECK-LABEL: tile.program @warp_reduction(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[WIDTH:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[D16:.*]] = arith.constant 16 : i32
// CHECK-DAG:     %[[D8:.*]] = arith.constant 8 : i32
// CHECK-DAG:     %[[D4:.*]] = arith.constant 4 : i32
// CHECK-DAG:     %[[D2:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[D1:.*]] = arith.constant 1 : i32
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         %[[A:.*]] = llvm.load
// CHECK:         %[[B:.*]] = llvm.load
// CHECK-NEXT:    %[[AB:.*]] = arith.addf %[[A]], %[[B]] : vector<4xf32>
// CHECK-NEXT:    %[[S:.*]] = vector.reduction <add>, %[[AB]] fastmath<reassoc> : vector<4xf32> into f32
// CHECK-NEXT:    %[[S16:.*]], %{{.*}} = gpu.shuffle xor %[[S]], %[[D16]], %[[WIDTH]] : f32
// CHECK-NEXT:    %[[T16:.*]] = arith.addf %[[S]], %[[S16]]
// CHECK-NEXT:    %[[S8:.*]], %{{.*}} = gpu.shuffle xor %[[T16]], %[[D8]], %[[WIDTH]]
// CHECK-NEXT:    %[[T8:.*]] = arith.addf %[[T16]], %[[S8]]
// CHECK-NEXT:    %[[S4:.*]], %{{.*}} = gpu.shuffle xor %[[T8]], %[[D4]], %[[WIDTH]]
// CHECK-NEXT:    %[[T4:.*]] = arith.addf %[[T8]], %[[S4]]
// CHECK-NEXT:    %[[S2:.*]], %{{.*}} = gpu.shuffle xor %[[T4]], %[[D2]], %[[WIDTH]]
// CHECK-NEXT:    %[[T2:.*]] = arith.addf %[[T4]], %[[S2]]
// CHECK-NEXT:    %[[S1:.*]], %{{.*}} = gpu.shuffle xor %[[T2]], %[[D1]], %[[WIDTH]]
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[T2]], %[[S1]]
// A warp needs neither shared memory nor a barrier.
// CHECK-NOT:     gpu.barrier
// CHECK-NOT:     !llvm.ptr<3>
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %[[ZERO]]
// CHECK:         %[[VALUE:.*]] = vector.broadcast %[[SUM]] : f32 to vector<1xf32>
// CHECK-NEXT:    %[[MASK:.*]] = vector.broadcast %[[FIRST]] : i1 to vector<1xi1>
// CHECK-NEXT:    llvm.intr.masked.store %[[VALUE]], %{{.*}}, %[[MASK]]
tile.program @warp_reduction(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                             %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %1 = tile.reduce add %0 : tensor<1x256xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A row held by part of a warp is shuffled among the lanes that hold it.
// CHECK-LABEL: tile.program @part_of_a_warp(
// CHECK-DAG:     %[[D4:.*]] = arith.constant 4 : i32
// CHECK:         gpu.shuffle xor %{{.*}}, %[[D4]],
// CHECK-COUNT-2: gpu.shuffle
// CHECK-NOT:     gpu.shuffle
// CHECK:         tile.return
tile.program @part_of_a_warp(%rows: index, %x: memref<?x32xf32, strided<[?, 1]>>,
                             %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 4, threads = 32, vector = 4, columns = 32>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x32xf32, strided<[?, 1]>> -> tensor<4x32xf32>
  %1 = tile.reduce max %0 : tensor<4x32xf32> -> tensor<4x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<4x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Across warps, the first lane of each leaves its result in shared memory, and
// after one barrier every thread reads those of its row.
// CHECK:       llvm.mlir.global internal @[[SCRATCH:.*]]() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<2 x f32>
// CHECK-LABEL: tile.program @two_warps(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[WARP:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[BASE:.*]] = llvm.mlir.addressof @[[SCRATCH]] : !llvm.ptr<3>
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK-COUNT-5: gpu.shuffle
// CHECK:         %[[PARTIAL:.*]] = arith.maximumf
// CHECK:         %[[LANE:.*]] = arith.remui %[[THREAD]], %[[WARP]]
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.divui %[[THREAD]], %[[WARP]]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %[[ZERO]]
// CHECK-NEXT:    scf.if %[[FIRST]] {
// CHECK-NEXT:      %[[NUMBER32:.*]] = arith.index_castui %[[NUMBER]] : index to i32
// CHECK-NEXT:      %[[SLOT:.*]] = llvm.getelementptr %[[BASE]][%[[NUMBER32]]]
// CHECK-NEXT:      llvm.store %[[PARTIAL]], %[[SLOT]] : f32, !llvm.ptr<3>
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    %[[A:.*]] = llvm.load %[[BASE]] {{.*}}: !llvm.ptr<3> -> f32
// CHECK-NEXT:    %[[SECOND:.*]] = llvm.getelementptr %[[BASE]][1]
// CHECK-NEXT:    %[[B:.*]] = llvm.load %[[SECOND]] {{.*}}: !llvm.ptr<3> -> f32
// CHECK-NEXT:    arith.maximumf %[[A]], %[[B]]
// CHECK-NOT:     gpu.barrier
// CHECK:         tile.return
tile.program @two_warps(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                        %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %1 = tile.reduce max %0 : tensor<1x256xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Of rows side by side, the threads of each wait for each other alone: the
// barriers that follow the block's own have the numbers of the rows. The warp's
// number, of which the row follows, is one for all lanes.
// CHECK:       llvm.mlir.global internal @{{.*}} : !llvm.array<6 x f32>
// CHECK-LABEL: tile.program @rows_side_by_side(
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[LANE0:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[THREADS:.*]] = arith.constant 64 : i32
// CHECK:         %[[SENT:.*]], %{{.*}} = gpu.shuffle idx %{{.*}}, %[[LANE0]],
// CHECK-NEXT:    %[[WARP:.*]] = arith.index_castui %[[SENT]]
// CHECK:         %[[ROW:.*]] = arith.divui %[[WARP]], %[[TWO]]
// CHECK-NOT:     gpu.barrier
// CHECK:         %[[NUMBER:.*]] = arith.addi %[[ROW]], %[[ONE]]
// CHECK-NEXT:    %[[NUMBER32:.*]] = arith.index_castui %[[NUMBER]]
// CHECK-NEXT:    nvvm.barrier id = %[[NUMBER32]] number_of_threads = %[[THREADS]]
// CHECK-NOT:     barrier
// CHECK:         tile.return
tile.program @rows_side_by_side(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                                %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 3, threads = 192, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<3x256xf32>
  %1 = tile.reduce max %0 : tensor<3x256xf32> -> tensor<3x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<3x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Of many warps, each lane reads one result, and the warp shuffles again.
// CHECK-LABEL: tile.program @many_warps(
// CHECK-COUNT-5: gpu.shuffle
// CHECK:         gpu.barrier
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     llvm.load
// CHECK-COUNT-5: gpu.shuffle
// CHECK-NOT:     gpu.shuffle
// CHECK-NOT:     gpu.barrier
// CHECK:         tile.return
tile.program @many_warps(%rows: index, %x: memref<?x4096xf32, strided<[?, 1]>>,
                         %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 1024, vector = 4, columns = 4096>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x4096xf32, strided<[?, 1]>> -> tensor<1x4096xf32>
  %1 = tile.reduce add %0 : tensor<1x4096xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Lanes past the last warp add nothing.
// CHECK-LABEL: tile.program @twelve_warps(
// CHECK-DAG:     %[[NEUTRAL:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[WARPS:.*]] = arith.constant 12 : index
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 11 : index
// CHECK:         gpu.barrier
// CHECK-NEXT:    arith.minui %{{.*}}, %[[LAST]]
// CHECK:         %[[PARTIAL:.*]] = llvm.load
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[WARPS]]
// CHECK-NEXT:    %[[VALUE:.*]] = arith.select %[[INSIDE]], %[[PARTIAL]], %[[NEUTRAL]]
// CHECK-NEXT:    gpu.shuffle xor %[[VALUE]],
tile.program @twelve_warps(%rows: index, %x: memref<?x1536xf32, strided<[?, 1]>>,
                           %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 384, vector = 4, columns = 1536>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x1536xf32, strided<[?, 1]>> -> tensor<1x1536xf32>
  %1 = tile.reduce add %0 : tensor<1x1536xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// In a loop a thread may come back while another still reads: two places take
// turns, so that one barrier is enough.
// CHECK:       llvm.mlir.global internal @reduction_in_loop_scratch0() {{.*}} : !llvm.array<4 x f32>
// CHECK-LABEL: tile.program @reduction_in_loop(
// CHECK-DAG:     %[[PLACE:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[BASE:.*]] = llvm.mlir.addressof @reduction_in_loop_scratch0
// CHECK:         scf.for
// CHECK-NOT:       gpu.barrier
// CHECK:           %[[COUNT:.*]] = llvm.load {{.*}} -> i32
// CHECK:           %[[TURN:.*]] = arith.andi %[[COUNT]], %{{.*}} : i32
// CHECK-NEXT:      %[[INDEX:.*]] = arith.index_castui %[[TURN]]
// CHECK-NEXT:      %[[FIRST:.*]] = arith.muli %[[INDEX]], %[[PLACE]]
// CHECK-NEXT:      %[[OFFSET:.*]] = arith.index_castui %[[FIRST]]
// CHECK-NEXT:      llvm.getelementptr %[[BASE]][%[[OFFSET]]]
// CHECK:           scf.if
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:         tile.return
tile.program @reduction_in_loop(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                                %y: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256, persistent = 1>} {
  %c0 = arith.constant 0 : index
  %id = tile.program_id
  %count = tile.program_count
  scf.for %row = %id to %rows step %count {
    %0 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
    %1 = tile.reduce max %0 : tensor<1x256xf32> -> tensor<1x1xf32>
    tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  }
  tile.return
}

// -----

// Two reductions use shared memory of their own: no barrier between them.
// CHECK-COUNT-2: llvm.mlir.global internal @{{.*}} : !llvm.array<2 x f32>
// CHECK-NOT:     llvm.mlir.global
// CHECK-LABEL: tile.program @two_reductions(
// CHECK-COUNT-2: gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         tile.return
tile.program @two_reductions(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>,
                             %y: memref<?x1xf32, strided<[?, 1]>>,
                             %z: memref<?x1xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %1 = tile.reduce max %0 : tensor<1x256xf32> -> tensor<1x1xf32>
  %2 = tile.reduce min %0 : tensor<1x256xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.store %2, %z[%row, %c0] : tensor<1x1xf32>, memref<?x1xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A mask selects a piece as a whole.
// CHECK-LABEL: tile.program @mask(
// CHECK-SAME:      %[[COLUMN:[^:]*]]: index
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant 1000 : index
// CHECK-DAG:     %[[OTHER:.*]] = arith.constant dense<0xFF800000> : vector<4xf32>
// CHECK:         %[[TILE:.*]] = llvm.load
// CHECK:         %[[POSITION:.*]] = arith.addi %[[COLUMN]], %{{.*}}
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %[[POSITION]], %[[LIMIT]]
// CHECK-NEXT:    arith.select %[[INSIDE]], %[[TILE]], %[[OTHER]] : vector<4xf32>
tile.program @mask(%column: index, %x: memref<?x128xf32, strided<[?, 1]>>,
                   %y: memref<?x128xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x128xf32, strided<[?, 1]>> -> tensor<1x128xf32>
  %1 = tile.mask %0 from %column limit 1000 else 0xFF800000 : f32 : tensor<1x128xf32>
  tile.store %1, %y[%row, %c0] : tensor<1x128xf32>, memref<?x128xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A statistic is one scalar for each row that the thread has part of, repeated
// into the row's vectors.
// CHECK-LABEL: tile.program @statistic(
// CHECK:         %[[S:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK:         %[[REPEATED:.*]] = vector.broadcast %[[S]] : f32 to vector<4xf32>
// CHECK-COUNT-2: arith.mulf %{{.*}}, %[[REPEATED]] : vector<4xf32>
tile.program @statistic(%rows: index, %s: memref<?x1xf32, strided<[?, 1]>>,
                        %x: memref<?x256xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %s[%row, %c0] : memref<?x1xf32, strided<[?, 1]>> -> tensor<1x1xf32>
  %1 = tile.broadcast %0 : tensor<1x1xf32> -> tensor<1x256xf32>
  %2 = tile.load %x[%row, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %3 = arith.mulf %2, %1 : tensor<1x256xf32>
  tile.store %3, %x[%row, %c0] : tensor<1x256xf32>, memref<?x256xf32, strided<[?, 1]>>
  tile.return
}

// -----

// What a loop carries becomes its pieces.
// CHECK-LABEL: tile.program @loop(
// CHECK:         scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>) {
tile.program @loop(%rows: index, %x: memref<?x256xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<1x256xf32>
  %0 = scf.for %i = %c0 to %rows step %c1 iter_args(%sum = %zero) -> tensor<1x256xf32> {
    %1 = tile.load %x[%i, %c0] : memref<?x256xf32, strided<[?, 1]>> -> tensor<1x256xf32>
    %2 = arith.addf %sum, %1 : tensor<1x256xf32>
    scf.yield %2 : tensor<1x256xf32>
  }
  tile.store %0, %x[%c0, %c0] : tensor<1x256xf32>, memref<?x256xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A piece of each row: columns count from its first, and end with its last.
// CHECK-LABEL: tile.program @piece_of_row(
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 96 : index
// CHECK-DAG:     %[[LENGTH:.*]] = arith.constant 100 : index
// CHECK:         %[[COLUMN:.*]] = arith.muli
// CHECK-NEXT:    %[[CLAMPED:.*]] = arith.minui %[[COLUMN]], %[[LAST]]
// CHECK:         %[[CLAMPED64:.*]] = arith.index_castui %[[CLAMPED]] : index to i64
// CHECK-NEXT:    %[[INPIECE:.*]] = llvm.getelementptr %{{.*}}[%[[CLAMPED64]]]
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.getelementptr %[[INPIECE]][200]
// CHECK-NEXT:    llvm.load %[[ADDRESS]]
// CHECK:         %[[COLUMN64:.*]] = arith.index_castui %[[COLUMN]] : index to i64
// CHECK-NEXT:    %[[INPIECE:.*]] = llvm.getelementptr %{{.*}}[%[[COLUMN64]]]
// CHECK-NEXT:    %[[ADDRESS:.*]] = llvm.getelementptr %[[INPIECE]][100]
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %[[COLUMN]], %[[LENGTH]]
// CHECK-NEXT:    %[[MASK:.*]] = vector.broadcast %[[INSIDE]]
// CHECK-NEXT:    llvm.intr.masked.store %{{.*}}, %[[ADDRESS]], %[[MASK]]
tile.program @piece_of_row(%rows: index, %x: memref<?x300xf32, strided<[?, 1]>>,
                           %y: memref<?x300xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64, invariant, offset = 200 : i64, length = 100 : i64}
      : memref<?x300xf32, strided<[?, 1]>> -> tensor<1x128xf32>
  tile.store %0, %y[%row, %c0] {alignment = 16 : i64, offset = 100 : i64, length = 100 : i64}
      : tensor<1x128xf32>, memref<?x300xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A piece that whole tiles cover is neither clamped nor masked, whatever its row.
// CHECK-LABEL: tile.program @whole_piece(
// CHECK-NOT:     arith.minui
// CHECK-NOT:     masked.store
// CHECK:         tile.return
tile.program @whole_piece(%rows: index, %x: memref<?x300xf32, strided<[?, 1]>>,
                          %y: memref<?x300xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {offset = 100 : i64, length = 128 : i64}
      : memref<?x300xf32, strided<[?, 1]>> -> tensor<1x128xf32>
  tile.store %0, %y[%row, %c0] {offset = 0 : i64, length = 128 : i64}
      : tensor<1x128xf32>, memref<?x300xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A thread's vector of the wide tile holds its vectors of both pieces. The wide
// tile's columns are clamped as a whole vector, too.
// CHECK-LABEL: tile.program @interleaved(
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 192 : index
// CHECK:         arith.minui %{{.*}}, %[[LAST]]
// CHECK:         %[[WIDE:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
// CHECK-NEXT:    %[[EVEN:.*]] = vector.shuffle %[[WIDE]], %[[WIDE]] [0, 2, 4, 6] : vector<8xf32>, vector<8xf32>
// CHECK-NEXT:    %[[ODD:.*]] = vector.shuffle %[[WIDE]], %[[WIDE]] [1, 3, 5, 7] : vector<8xf32>, vector<8xf32>
// CHECK-NEXT:    %[[DIFFERENCE:.*]] = arith.subf %[[EVEN]], %[[ODD]] : vector<4xf32>
// CHECK-NEXT:    %[[JOIN:.*]] = vector.interleave %[[DIFFERENCE]], %[[EVEN]] : vector<4xf32> -> vector<8xf32>
// CHECK:         masked.store %[[JOIN]]
tile.program @interleaved(%rows: index, %x: memref<?x200xf32, strided<[?, 1]>>,
                          %y: memref<?x200xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] {alignment = 16 : i64}
      : memref<?x200xf32, strided<[?, 1]>> -> tensor<1x256xf32>
  %1, %2 = tile.split interleaved %0 : tensor<1x256xf32> -> tensor<1x128xf32>, tensor<1x128xf32>
  %3 = arith.subf %1, %2 : tensor<1x128xf32>
  %4 = tile.join interleaved %3, %1 : tensor<1x128xf32>, tensor<1x128xf32> -> tensor<1x256xf32>
  tile.store %4, %y[%row, %c0] {alignment = 16 : i64}
      : tensor<1x256xf32>, memref<?x200xf32, strided<[?, 1]>>
  tile.return
}

// -----

// Pieces of one element are scalars.
// CHECK-LABEL: tile.program @interleaved_scalars(
// CHECK:         %[[A:.*]] = llvm.load {{.*}} -> vector<3xf32>
// CHECK:         %[[B:.*]] = llvm.load {{.*}} -> vector<3xf32>
// CHECK-DAG:     %[[A0:.*]] = vector.extract %[[A]][0] : f32 from vector<3xf32>
// CHECK-DAG:     %[[A1:.*]] = vector.extract %[[A]][1]
// CHECK-DAG:     %[[A2:.*]] = vector.extract %[[A]][2]
// CHECK-DAG:     %[[B2:.*]] = vector.extract %[[B]][2]
// CHECK-DAG:     %[[JOIN:.*]] = vector.from_elements %[[A2]], %[[A0]], %[[A1]] : vector<3xf32>
// CHECK-DAG:     %[[OTHER:.*]] = vector.from_elements %[[B2]], %{{.*}}, %{{.*}} : vector<3xf32>
// CHECK-DAG:     llvm.store %[[JOIN]]
// CHECK-DAG:     llvm.store %[[OTHER]]
tile.program @interleaved_scalars(%rows: index, %x: memref<?x192xf32, strided<[?, 1]>>,
                                  %y: memref<?x192xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 64>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x192xf32, strided<[?, 1]>> -> tensor<1x192xf32>
  %1, %2, %3 = tile.split interleaved %0
      : tensor<1x192xf32> -> tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>
  %4 = tile.join interleaved %3, %1, %2
      : tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x192xf32>
  tile.store %4, %y[%row, %c0] : tensor<1x192xf32>, memref<?x192xf32, strided<[?, 1]>>
  tile.return
}

// -----

// More than two vectors go element by element.
// CHECK-LABEL: tile.program @interleaved_three(
// CHECK:         %[[WIDE:.*]] = llvm.load {{.*}} -> vector<6xf32>
// CHECK-DAG:     %[[A:.*]] = vector.shuffle %[[WIDE]], %[[WIDE]] [0, 3]
// CHECK-DAG:     %[[NEGATED:.*]] = arith.negf %[[A]]
// CHECK-DAG:     %[[A0:.*]] = vector.extract %[[NEGATED]][0]
// CHECK-DAG:     %[[A1:.*]] = vector.extract %[[NEGATED]][1]
// CHECK-DAG:     %[[B0:.*]] = vector.extract %[[WIDE]][1]
// CHECK-DAG:     %[[B1:.*]] = vector.extract %[[WIDE]][4]
// CHECK-DAG:     %[[C0:.*]] = vector.extract %[[WIDE]][2]
// CHECK-DAG:     %[[C1:.*]] = vector.extract %[[WIDE]][5]
// CHECK:         vector.from_elements %[[C0]], %[[A0]], %[[B0]], %[[C1]], %[[A1]], %[[B1]] : vector<6xf32>
tile.program @interleaved_three(%rows: index, %x: memref<?x192xf32, strided<[?, 1]>>,
                                %y: memref<?x192xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 2, columns = 64>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %x[%row, %c0] : memref<?x192xf32, strided<[?, 1]>> -> tensor<1x192xf32>
  %1, %2, %3 = tile.split interleaved %0
      : tensor<1x192xf32> -> tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>
  %4 = arith.negf %1 : tensor<1x64xf32>
  %5 = tile.join interleaved %3, %4, %2
      : tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x192xf32>
  tile.store %5, %y[%row, %c0] : tensor<1x192xf32>, memref<?x192xf32, strided<[?, 1]>>
  tile.return
}

// -----

// A vector of consecutive numbers for each repeat of the layout, the same for
// all rows of a thread.
// CHECK-LABEL: tile.program @iota(
// CHECK-SAME:      %{{[^:]*}}: index, %[[FROM:[^:]*]]: index
// CHECK-DAG:     %[[STEPS:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
// CHECK-DAG:     %[[REPEAT:.*]] = arith.constant 128 : index
// CHECK:         %[[COLUMN:.*]] = arith.muli
// CHECK-DAG:     %[[FIRST:.*]] = arith.addi %[[FROM]], %[[COLUMN]] : index
// CHECK-DAG:     %[[FIRST32:.*]] = arith.index_castui %[[FIRST]] : index to i32
// CHECK-DAG:     %[[START:.*]] = vector.broadcast %[[FIRST32]] : i32 to vector<4xi32>
// CHECK-DAG:     %[[A:.*]] = arith.addi %[[START]], %[[STEPS]] : vector<4xi32>
// CHECK-DAG:     %[[NEXT:.*]] = arith.addi %[[COLUMN]], %[[REPEAT]]
// CHECK-DAG:     %[[SECOND:.*]] = arith.addi %[[FROM]], %[[NEXT]] : index
// CHECK-DAG:     %[[SECOND32:.*]] = arith.index_castui %[[SECOND]] : index to i32
// CHECK-DAG:     %[[START2:.*]] = vector.broadcast %[[SECOND32]] : i32 to vector<4xi32>
// CHECK-DAG:     %[[B:.*]] = arith.addi %[[START2]], %[[STEPS]] : vector<4xi32>
// CHECK:         masked.store %[[A]],
// CHECK:         masked.store %[[B]],
// CHECK:         masked.store %[[A]],
// CHECK:         masked.store %[[B]],
tile.program @iota(%rows: index, %from: index, %y: memref<?x256xi32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 2, threads = 32, vector = 4, columns = 256>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.iota from %from : tensor<2x256xi32>
  tile.store %0, %y[%row, %c0] : tensor<2x256xi32>, memref<?x256xi32, strided<[?, 1]>>
  tile.return
}

// -----

// The rows of a thread follow each other at the distance of the layout; rows that
// the threads of a warp share have one number.
// CHECK-LABEL: tile.program @iota_rows(
// CHECK-SAME:      %{{[^:]*}}: index, %[[FIRST:[^:]*]]: index
// CHECK-DAG:     %[[STEP:.*]] = arith.constant 4 : index
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK-NEXT:    %[[A:.*]] = arith.index_castui %[[ROW]] : index to i32
// CHECK-NEXT:    %[[NEXT:.*]] = arith.addi %[[ROW]], %[[STEP]] : index
// CHECK-NEXT:    %[[B:.*]] = arith.index_castui %[[NEXT]] : index to i32
// CHECK-NEXT:    vector.broadcast %[[A]] : i32 to vector<4xi32>
// CHECK-NEXT:    vector.broadcast %[[B]] : i32 to vector<4xi32>
// CHECK:         tile.return
tile.program @iota_rows(%rows: index, %first: index, %y: memref<?x128xi32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 8, threads = 128, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.iota_rows from %first : tensor<8x1xi32>
  %1 = tile.broadcast %0 : tensor<8x1xi32> -> tensor<8x128xi32>
  tile.store %1, %y[%row, %c0] : tensor<8x128xi32>, memref<?x128xi32, strided<[?, 1]>>
  tile.return
}

// -----

// Integers move, spread, compare and are masked as numbers do.
// CHECK-LABEL: tile.program @integers(
// CHECK-DAG:     %[[OTHER:.*]] = arith.constant dense<-1> : vector<4xi32>
// CHECK-DAG:     %[[TARGET:.*]] = llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK-DAG:     %[[MASKED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[OTHER]] : vector<4xi32>
// CHECK-DAG:     %[[NARROW:.*]] = arith.trunci %[[TARGET]] : i64 to i32
// CHECK-DAG:     %[[TARGETS:.*]] = vector.broadcast %[[NARROW]] : i32 to vector<4xi32>
// CHECK-DAG:     %[[HIT:.*]] = arith.cmpi eq, %[[MASKED]], %[[TARGETS]] : vector<4xi32>
// CHECK-DAG:     %[[BYTES:.*]] = arith.extui %[[HIT]] : vector<4xi1> to vector<4xi8>
// CHECK:         llvm.store %[[BYTES]], %{{.*}} {alignment = 1 : i64} : vector<4xi8>
tile.program @integers(%rows: index, %target: memref<?x1xi64, strided<[?, 1]>>,
                       %y: memref<?x128xi8, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %c0 = arith.constant 0 : index
  %row = tile.program_id
  %0 = tile.load %target[%row, %c0] : memref<?x1xi64, strided<[?, 1]>> -> tensor<1x1xi64>
  %1 = arith.trunci %0 : tensor<1x1xi64> to tensor<1x1xi32>
  %2 = tile.broadcast %1 : tensor<1x1xi32> -> tensor<1x128xi32>
  %3 = tile.iota from %c0 : tensor<1x128xi32>
  %4 = tile.mask %3 from %c0 limit 100 else -1 : i32 : tensor<1x128xi32>
  %5 = arith.cmpi eq, %4, %2 : tensor<1x128xi32>
  %6 = arith.extui %5 : tensor<1x128xi1> to tensor<1x128xi8>
  tile.store %6, %y[%row, %c0] : tensor<1x128xi8>, memref<?x128xi8, strided<[?, 1]>>
  tile.return
}
