// RUN: not tile-opt %s --schedule='schedule="linear: #tile.rows<rows = 2>"' 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not tile-opt %s --schedule='schedule="linear: #tile.launch<threads = 32>"' 2>&1 | FileCheck %s --check-prefix=LAUNCH
// RUN: not tile-opt %s --schedule='schedule="linear: persistent = 2"' 2>&1 | FileCheck %s --check-prefix=FIELD
// RUN: not tile-opt %s --schedule='schedule="#tile.matmul<rows = 64>; #tile.matmul<columns = 64>"' 2>&1 | FileCheck %s --check-prefix=TWICE

// KIND: error: in the schedule 'linear: #tile.rows<rows = 2>': kernel 'linear' takes a schedule #tile.matmul, not #tile.rows<rows = 2>
// LAUNCH: error: in the schedule 'linear: #tile.launch<threads = 32>': #tile.launch<threads = 32> is not the schedule of a kernel
// FIELD: error: in the schedule 'linear: persistent = 2': duplicate or unknown struct parameter name: persistent
// TWICE: error: in the schedule '#tile.matmul<rows = 64>; #tile.matmul<columns = 64>': fields for every kernel are given twice
tile.kernel @linear(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
