// options: --pass-pipeline=builtin.module(lower-to-host)
tile.program @functions(%p: !llvm.ptr, %q: !llvm.ptr) attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %x = llvm.load %p : !llvm.ptr -> vector<8xf8E5M2>
  %0 = math.erf %x : vector<8xf8E5M2>
  llvm.store %0, %p : vector<8xf8E5M2>, !llvm.ptr
  tile.return
}
