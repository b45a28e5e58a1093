// RUN: tile-opt %s --expand-math -verify-diagnostics

tile.program @unknown(%p: !llvm.ptr<1>, %x: f32, %n: i32)
    attributes {leading = 0 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  // expected-error @below {{'math.fpowi' op cannot be computed on sm_90}}
  %0 = math.fpowi %x, %n : f32, i32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  tile.return
}
