// RUN: tile-opt %s --tile=target=sm_120 -split-input-file -verify-diagnostics

// The product takes 24 KiB of shared memory, and the tile that is stored 128.
// expected-error @below {{schedule #tile.matmul<rows = 256, columns = 128, depth = 16, threads = 256, vector = 2, stages = 2> does not fit sm_120: 131072 bytes of the tile are more than the 101376 of a block's shared memory; use fewer 'rows' or 'columns'}}
tile.kernel @large_tile(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 256, columns = 128, depth = 16, threads = 256, vector = 2, stages = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.launch [@large_tile](%x, %w) : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{takes a schedule #tile.matmul, not #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>}}
tile.kernel @schedule_of_rows(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.launch [@schedule_of_rows](%x, %w) : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule #tile.matmul<rows = 16, columns = 16, threads = 32, vector = 2, stages = 2> leaves fields to be chosen; run the 'schedule' pass first}}
tile.kernel @no_depth(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 16, columns = 16, threads = 32, vector = 2, stages = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.launch [@no_depth](%x, %w) : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule #tile.matmul<rows = 16, columns = 40, depth = 16, threads = 32, vector = 2, stages = 2> does not fit sm_120: 'columns' is 40}}
tile.kernel @odd_columns(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 16, columns = 40, depth = 16, threads = 32, vector = 2, stages = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.launch [@odd_columns](%x, %w) : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{takes a schedule #tile.matmul, not #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>}}
tile.kernel @unaligned_of_rows(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 16, columns = 16, depth = 16, threads = 32, vector = 2, stages = 2>,
                unaligned_schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.launch [@unaligned_of_rows](%x, %w) : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{is for few rows, where warps have roles; use 'roles = 2', or leave it out of 'few_rows_schedules'}}
tile.kernel @few_rows_without_roles(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #tile.matmul<rows = 16, columns = 16, depth = 16, threads = 32, vector = 2, stages = 2>,
                few_rows = array<i64: 64>,
                few_rows_schedules = [#tile.matmul<rows = 16, columns = 16, depth = 16, threads = 32, vector = 2, stages = 2>]} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<96x64xbf16> -> tensor<?x96xf32>
  tile.return %0 : tensor<?x96xf32>
}
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = tile.launch [@few_rows_without_roles](%x, %w) : (tensor<?x64xbf16>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
