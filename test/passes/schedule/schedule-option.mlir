// What the option says is read as the attribute is, and reported as the user
// wrote it.

// RUN: not tile-opt %s --schedule="schedule='rows = x'" 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: error: in the schedule 'rows = x': expected integer value
// VALUE-NOT: error:

// RUN: not tile-opt %s --schedule="schedule='row = 2'" 2>&1 | FileCheck %s --check-prefix=FIELD
// FIELD: error: in the schedule 'row = 2': duplicate or unknown struct parameter name: row
// FIELD-NOT: error:

// RUN: not tile-opt %s --schedule="schedule='rows = 2,'" 2>&1 | FileCheck %s --check-prefix=COMMA
// COMMA: error: in the schedule 'rows = 2,': expected valid keyword
// COMMA-NOT: error:

// RUN: not tile-opt %s --schedule="schedule='vector = 5'" 2>&1 | FileCheck %s --check-prefix=VECTOR
// VECTOR: error: in the schedule 'vector = 5': schedule field 'vector' must be a power of two up to 16, but is 5

// RUN: not tile-opt %s --schedule="schedule='reread = cache'" 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: error: in the schedule 'reread = cache': expected one of [unset, memory, shared]{{.*}}, got: cache

// RUN: not tile-opt %s --schedule="schedule='rows = 1> junk'" 2>&1 | FileCheck %s --check-prefix=TRAILING
// TRAILING: error: in the schedule 'rows = 1> junk': found trailing characters

// RUN: not tile-opt %s --schedule="schedule='columns = 8, rows = 0'" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not tile-opt %s --schedule="schedule='#tile.rows<columns = 8, rows = 0>'" 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: in the schedule '{{.*}}': 'rows' is 0, which pins nothing; leave it out, and it is chosen

// RUN: not tile-opt %s --schedule=target=sm_1 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'sm_1', expected one of: {{.*}}sm_90{{.*}}host

tile.kernel @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}
