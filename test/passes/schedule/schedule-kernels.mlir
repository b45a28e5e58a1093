// Fields can be pinned in the kernels of one name. What is for one kernel takes
// the place of what is for all, and reaches the kernels that only finish what
// others began.

// RUN: tile-opt %s --schedule="schedule='g: rows = 2'" | FileCheck %s --check-prefix=ONE
// ONE: tile.kernel @f{{.*}} attributes {schedule = #tile.rows<rows = 1, threads = 128,
// ONE: tile.kernel @g{{.*}} attributes {schedule = #tile.rows<rows = 2, threads = 128,

// RUN: tile-opt %s --schedule="schedule='g:rows=2; f : threads = 96'" | FileCheck %s --check-prefix=EACH
// EACH: tile.kernel @f{{.*}} attributes {schedule = #tile.rows<rows = 1, threads = 96,
// EACH: tile.kernel @g{{.*}} attributes {schedule = #tile.rows<rows = 2, threads = 128,

// RUN: tile-opt %s --schedule="schedule='threads = 96; g: rows = 2'" | FileCheck %s --check-prefix=BOTH
// BOTH: tile.kernel @f{{.*}} attributes {schedule = #tile.rows<rows = 1, threads = 96,
// BOTH: tile.kernel @g{{.*}} attributes {schedule = #tile.rows<rows = 2, threads = 128,

// What is pinned for all is so for operands of any alignment.

// RUN: tile-opt %s --schedule="schedule='threads = 96; g: rows = 2'" | FileCheck %s --check-prefix=UNALIGNED
// UNALIGNED:     tile.kernel @f
// UNALIGNED-NOT: unaligned_schedule
// UNALIGNED:     tile.kernel @g{{.*}} unaligned_schedule =

// A kernel that is not named keeps its attribute.

// RUN: sed 's/tensor<?x2880xbf16>) -> tensor<?x2880xbf16> {/tensor<?x2880xbf16>) -> tensor<?x2880xbf16> attributes {schedule = #tile.rows<rows = 4>} {/' %s > %t.mlir
// RUN: tile-opt %t.mlir --schedule="schedule='g: rows = 2'" | FileCheck %s --check-prefix=ATTRIBUTE
// ATTRIBUTE: tile.kernel @f{{.*}} attributes {schedule = #tile.rows<rows = 4,
// ATTRIBUTE: tile.kernel @g{{.*}} attributes {schedule = #tile.rows<rows = 2,

// RUN: tilec %root/examples/add_rms_norm.mlir --grad --emit=scheduled --schedule='add_rms_norm_backward_kernel1: threads=256' | FileCheck %s --check-prefix=COMBINES
// COMBINES: tile.kernel @add_rms_norm_kernel({{.*}} threads = 192,
// COMBINES: tile.kernel @add_rms_norm_backward_kernel1({{.*}} threads = 256,

// RUN: not tile-opt %s --schedule="schedule='h: rows = 2'" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: in the schedule 'h: rows = 2': there is no kernel 'h'; there are f, g

// RUN: not tile-opt %s --schedule="schedule='g: rows = 2; g: rows = 1'" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: in the schedule 'g: rows = 2; g: rows = 1': fields for 'g' are given twice

// RUN: not tile-opt %s --schedule="schedule='rows = 2; rows = 1'" 2>&1 | FileCheck %s --check-prefix=ALL-TWICE
// ALL-TWICE: error: in the schedule 'rows = 2; rows = 1': fields for every kernel are given twice

// RUN: not tile-opt %s --schedule="schedule='g: row = 2'" 2>&1 | FileCheck %s --check-prefix=FIELD
// FIELD: error: in the schedule 'g: row = 2': duplicate or unknown struct parameter name: row

tile.kernel @f(%x: tensor<?x2880xbf16>) -> tensor<?x2880xbf16> {
  %0 = arith.addf %x, %x : tensor<?x2880xbf16>
  tile.return %0 : tensor<?x2880xbf16>
}

tile.kernel @g(%x: tensor<?x2880xbf16>) -> tensor<?x2880xbf16> {
  %0 = arith.mulf %x, %x : tensor<?x2880xbf16>
  tile.return %0 : tensor<?x2880xbf16>
}
