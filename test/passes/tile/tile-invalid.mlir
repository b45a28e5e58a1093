// RUN: tile-opt %s --tile -verify-diagnostics -split-input-file

// expected-error @below {{has no schedule; run the 'schedule' pass first}}
tile.kernel @unscheduled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.launch [@unscheduled](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// What threads combine by themselves has a number for each.
// expected-error @below {{schedule #tile.rows<rows = 1, threads = 96, vector = 4, columns = 256> does not fit sm_90: 1 rows of 64 vectors do not divide evenly among 96 threads}}
tile.kernel @uneven(%x: tensor<?x1000xf32>) -> tensor<?x1xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 96, vector = 4, columns = 256>} {
  %0 = tile.reduce add %x : tensor<?x1000xf32> -> tensor<?x1xf32>
  tile.return %0 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x1000xf32>) -> tensor<?x1xf32> {
  %0 = tile.launch [@uneven](%x) : (tensor<?x1000xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}

// -----

// expected-error @below {{schedule #tile.rows<threads = 128, persistent = 4, stages = 2> leaves fields to be chosen; run the 'schedule' pass first}}
tile.kernel @incomplete(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {schedule = #tile.rows<threads = 128, persistent = 4, stages = 2>} {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.launch [@incomplete](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{schedule #tile.rows<rows = 1, threads = 32, columns = 32> leaves fields to be chosen; run the 'schedule' pass first}}
tile.kernel @incomplete_where_unaligned(%x: tensor<?x32xf32>) -> tensor<?x32xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>,
                unaligned_schedule = #tile.rows<rows = 1, threads = 32, columns = 32>} {
  %0 = arith.addf %x, %x : tensor<?x32xf32>
  tile.return %0 : tensor<?x32xf32>
}
func.func @f(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = tile.launch [@incomplete_where_unaligned](%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// expected-error @below {{a row of 261, which the vector of 8 does not divide, is loaded ahead in 2 stages at most, not 3}}
tile.kernel @three_stages(%x: tensor<?x261xbf16>) -> tensor<?x1xf32> attributes {
    schedule = #tile.rows<rows = 1, threads = 64, vector = 8, columns = 512, persistent = 1, stages = 3>,
    unaligned_schedule = #tile.rows<rows = 1, threads = 64, vector = 1, columns = 320, persistent = 1>} {
  %0 = arith.extf %x : tensor<?x261xbf16> to tensor<?x261xf32>
  %1 = tile.reduce add %0 : tensor<?x261xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %1 partial : tensor<?x1xf32> -> tensor<?x1xf32>
  tile.return %2 : tensor<?x1xf32>
}
func.func @f(%x: tensor<?x261xbf16>) -> tensor<?x1xf32> {
  %0 = tile.launch [@three_stages](%x) : (tensor<?x261xbf16>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
