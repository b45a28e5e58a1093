// options: --pass-pipeline=builtin.module(expand-math)
tile.kernel @sine(%p: !llvm.ptr<1>, %x: vector<2147483647xf32>)
    attributes {leading = 0 : i64} {
  %0 = math.sin %x : vector<2147483647xf32>
  llvm.store %0, %p : vector<2147483647xf32>, !llvm.ptr<1>
  tile.return
}
