// options: --pass-pipeline=builtin.module(lower-to-host)
#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>
tile.program @functions(%p: !llvm.ptr, %q: !llvm.ptr) attributes {leading = 0 : i64, schedule = #schedule} {
  %x = llvm.load %p : !llvm.ptr -> vector<8xf32>
  %0 = math.erf %x : vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  tile.return
}
