// options: --pass-pipeline=builtin.module(schedule)
tile.kernel @functions(%p: !llvm.ptr, %x: vector<8xf32>) {
  %0 = math.exp %x : vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  tile.return
}
