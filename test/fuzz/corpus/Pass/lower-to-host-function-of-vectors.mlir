// options: --pass-pipeline=builtin.module(lower-to-host)
tile.kernel @functions(%p: !llvm.ptr, %q: !llvm.ptr) attributes {leading = 0 : i64} {
  %x = llvm.load %p : !llvm.ptr -> vector<8xf32>
  %0 = math.erf %x : vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  tile.return
}
