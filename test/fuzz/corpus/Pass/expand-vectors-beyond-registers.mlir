// options: --pass-pipeline=builtin.module(expand-math)
#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>
tile.program @sine(%p: !llvm.ptr<1>, %x: vector<2147483647xf32>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.sin %x : vector<2147483647xf32>
  llvm.store %0, %p : vector<2147483647xf32>, !llvm.ptr<1>
  tile.return
}
