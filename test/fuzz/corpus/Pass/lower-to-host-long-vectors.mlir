// options: --pass-pipeline=builtin.module(lower-to-host)
#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>
tile.program @polynomials(%p: !llvm.ptr<1>, %x: vector<1048576xf64>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.sin %x : vector<1048576xf64>
  %1 = math.erfc %0 : vector<1048576xf64>
  %2 = math.cos %1 : vector<1048576xf64>
  %3 = math.log %2 : vector<1048576xf64>
  %4 = math.sin %3 : vector<1048576xf64>
  %5 = math.cos %4 : vector<1048576xf64>
  llvm.store %5, %p : vector<1048576xf64>, !llvm.ptr<1>
  tile.return
}
tile.program @sine(%p: !llvm.ptr<1>, %x: vector<1048576xf64>)
    attributes {leading = 0 : i64, schedule = #schedule} {
  %0 = math.sin %x : vector<1048576xf64>
  llvm.store %0, %p : vector<1048576xf64>, !llvm.ptr<1>
  tile.return
}
