// options: --pass-pipeline=builtin.module(lower-to-nvvm)
tile.program @holds(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 256, vector = 8, columns = 4096, cluster = 2>} {
  %0 = llvm.load %p : !llvm.ptr<1> -> vector<96xindex>
  gpu.barrier
  llvm.store %0, %p : vector<96xindex>, !llvm.ptr<1>
  tile.return
}
