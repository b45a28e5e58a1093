// RUN: tile-opt %s --lower-to-nvvm -split-input-file | FileCheck %s

// A kernel becomes a function that a launch can name, of as many threads as its
// schedule says. Pointers carry what is known of the operands.
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME:      %{{[^:]*}}: i64,
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{[^:]*}}: i64,
// CHECK-SAME:      %{{[^:]*}}: !llvm.ptr<1> {llvm.align = 4 : i64, llvm.noalias}, %{{[^:]*}}: i64)
// CHECK-SAME:      nvvm.kernel, nvvm.reqntid = array<i32: 96, 1, 1>
// CHECK:         llvm.return
tile.program @kernel(%rows: index,
    %x: !llvm.ptr<1> {tile.alignment = 16 : i64, tile.readonly}, %xs: index,
    %y: !llvm.ptr<1> {tile.alignment = 4 : i64}, %ys: index)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 96, vector = 4, columns = 384>} {
  tile.return
}

// The launch metadata stands for the function.
// CHECK-NOT: func.func
func.func @launcher(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.launch [@kernel](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Programs are blocks, numbered along the grid's first dimension.
// CHECK-LABEL: llvm.func @programs(
// CHECK-SAME:      %[[P:[^:]*]]: !llvm.ptr<1>
// CHECK-DAG:     %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-DAG:     %[[ID:.*]] = llvm.zext %[[BLOCK]] : i32 to i64
// CHECK-DAG:     %[[BLOCKS:.*]] = nvvm.read.ptx.sreg.nctaid.x : i32
// CHECK-DAG:     %[[COUNT:.*]] = llvm.zext %[[BLOCKS]] : i32 to i64
// CHECK:         llvm.sub %[[COUNT]], %[[ID]] : i64
tile.program @programs(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %id = tile.program_id
  %count = tile.program_count
  %0 = arith.subi %count, %id : index
  %1 = arith.index_cast %0 : index to i64
  llvm.store %1, %p : i64, !llvm.ptr<1>
  tile.return
}

// -----

// A cluster runs a program together.
// CHECK-LABEL: llvm.func @clusters(
// CHECK-SAME:      nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK-SAME:      nvvm.reqntid = array<i32: 32, 1, 1>
// CHECK-NOT:     ctaid.x
// CHECK-DAG:     nvvm.read.ptx.sreg.clusterid.x : i32
// CHECK-DAG:     nvvm.read.ptx.sreg.nclusterid.x : i32
// CHECK-DAG:     nvvm.read.ptx.sreg.cluster.ctaid.x range <i32, 0, 2> : i32
// CHECK:         llvm.return
tile.program @clusters(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 64, cluster = 2>} {
  %id = tile.program_id
  %count = tile.program_count
  %rank = gpu.cluster_block_id x upper_bound 2
  %0 = arith.subi %count, %id : index
  %1 = arith.addi %0, %rank : index
  %2 = arith.index_cast %1 : index to i64
  llvm.store %2, %p : i64, !llvm.ptr<1>
  tile.return
}

// -----

// CHECK-LABEL: llvm.func @threads(
// CHECK-DAG:     nvvm.read.ptx.sreg.tid.x
// CHECK-DAG:     nvvm.barrier
// CHECK:         nvvm.shfl.sync bfly
tile.program @threads(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %distance = arith.constant 16 : i32
  %width = arith.constant 32 : i32
  %thread = gpu.thread_id x
  gpu.barrier
  %0, %valid = gpu.shuffle xor %x, %distance, %width : f32
  %1 = arith.index_cast %thread : index to i64
  %2 = llvm.getelementptr %p[%1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  llvm.store %0, %2 : f32, !llvm.ptr<1>
  tile.return
}

// -----

// Approximations become the instructions of the GPU.
// CHECK-LABEL: llvm.func @functions(
// CHECK:         llvm.intr.exp2(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>}
// CHECK:         llvm.intr.sqrt(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>}
// CHECK:         llvm.fdiv %{{.*}} {fastmathFlags = #llvm.fastmath<afn>}
// CHECK-NOT:     llvm.call
// CHECK:         llvm.return
tile.program @functions(%p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = math.exp2 %x fastmath<afn> : f32
  %1 = math.sqrt %0 fastmath<afn> : f32
  %2 = arith.divf %0, %1 fastmath<afn> : f32
  llvm.store %2, %p : f32, !llvm.ptr<1>
  tile.return
}

// -----

// Loops and conditions become branches.
// CHECK-LABEL: llvm.func @control_flow(
// CHECK-NOT:     scf.
// CHECK:         llvm.cond_br
// CHECK:         llvm.return
tile.program @control_flow(%rows: index, %p: !llvm.ptr<1>, %x: f32)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %rows step %c1 {
    llvm.store %x, %p : f32, !llvm.ptr<1>
  }
  tile.return
}

// -----

// A launch that may overlap the one before waits for it ahead of all else, and
// lets the next one come after that: by then, what ran before both has ended.
// CHECK-LABEL: llvm.func @between(
// CHECK-NEXT:    nvvm.griddepcontrol wait
// CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
// CHECK:         nvvm.read.ptx.sreg.ctaid.x
tile.program @between(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>, overlap_next, overlap_previous} {
  %id = tile.program_id
  %0 = arith.index_cast %id : index to i64
  llvm.store %0, %p : i64, !llvm.ptr<1>
  tile.return
}

// -----

// Programs that load ahead have registers for as many blocks as are launched.
// CHECK-LABEL: llvm.func @ahead(
// CHECK-SAME:      nvvm.minctasm = 4 : i32
tile.program @ahead(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 128, vector = 1, columns = 128, persistent = 4, stages = 2>} {
  tile.return
}

// -----

// One that stays on its multiprocessor may have all of the registers there.
// CHECK-LABEL: llvm.func @stays(
// CHECK-SAME:      nvvm.minctasm = 1 : i32
tile.program @stays(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 128, vector = 1, columns = 128, persistent = 1>} {
  tile.return
}

// -----

// Those that each combine all rows of some columns share one, with each other or with
// the launch before.
// CHECK-LABEL: llvm.func @combines(
// CHECK-NOT:       minctasm
// CHECK:           llvm.return
tile.program @combines(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 128, vector = 1, columns = 128, persistent = 1>, row_programs = 1, column_blocks = 4} {
  tile.return
}

// -----

// Blocks of a cluster wait for each other, so that others have to run meanwhile: with
// 1024 threads, a thread has 64 registers.
// CHECK-LABEL: llvm.func @waits(
// CHECK-SAME:      nvvm.minctasm = 4 : i32
tile.program @waits(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 2>} {
  %0 = llvm.load %p : !llvm.ptr<1> -> vector<32xf32>
  gpu.barrier
  llvm.store %0, %p : vector<32xf32>, !llvm.ptr<1>
  tile.return
}

// -----

// A thread that holds more while it waits has the registers for that, and fewer
// blocks run.
// CHECK-LABEL: llvm.func @holds(
// CHECK-SAME:      nvvm.minctasm = 2 : i32
tile.program @holds(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 2>} {
  %0 = llvm.load %p : !llvm.ptr<1> -> vector<96xf32>
  gpu.barrier
  llvm.store %0, %p : vector<96xf32>, !llvm.ptr<1>
  tile.return
}

// -----

// What was widened counts as it was loaded.
// CHECK-LABEL: llvm.func @widens(
// CHECK-SAME:      nvvm.minctasm = 4 : i32
tile.program @widens(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 2>} {
  %0 = llvm.load %p : !llvm.ptr<1> -> vector<96xbf16>
  %1 = arith.extf %0 : vector<96xbf16> to vector<96xf32>
  gpu.barrier
  llvm.store %1, %p : vector<96xf32>, !llvm.ptr<1>
  tile.return
}
