// options: --pass-pipeline=builtin.module(lower-to-nvvm)
tile.program @programs(%p: !llvm.ptr<1>)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %count = tile.program_count
  %id = tile.program_id

  %0 = arith.subi %count, %id : index
  %1 = arith.index_cast %0 : index to i64
  llvm.store %1, %p : i64, !llvm.ptr<1>
  tile.return
}
  %count = tile.program_count