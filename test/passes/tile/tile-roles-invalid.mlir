// RUN: tile-opt %s --tile=target=sm_90a -split-input-file -verify-diagnostics

// Some drivers cannot run programs with roles, and some operands have no boxes.
// expected-error @below {{has no schedule for misaligned operands, which warps with roles cannot read; run the 'schedule' pass, or add an 'unaligned_schedule'}}
tile.kernel @without_unaligned(%x: tensor<?x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.matmul<rows = 128, columns = 256, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xbf16>, tensor<1024x512xbf16> -> tensor<?x1024xf32>
  tile.return %0 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@without_unaligned](%x, %w) : (tensor<?x512xbf16>, tensor<1024x512xbf16>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// -----

// expected-error @below {{is for misaligned operands, which warps with roles cannot read; leave 'roles' out of it}}
tile.kernel @unaligned_with_roles(%x: tensor<?x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.matmul<rows = 128, columns = 256, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 2>,
                unaligned_schedule = #tile.matmul<rows = 128, columns = 256, depth = 64, threads = 384, vector = 2, stages = 4, roles = 2, cluster = 2>} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xbf16>, tensor<1024x512xbf16> -> tensor<?x1024xf32>
  tile.return %0 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@unaligned_with_roles](%x, %w) : (tensor<?x512xbf16>, tensor<1024x512xbf16>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// -----

// expected-error @below {{has schedules for few rows, but its warps have no roles; add 'roles = 2' to its schedule, or leave out 'few_rows_schedules'}}
tile.kernel @few_rows_of_plain(%x: tensor<?x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<?x1024xf32>
    attributes {schedule = #tile.matmul<rows = 128, columns = 128, depth = 32, threads = 128, vector = 2, stages = 4, roles = 1, cluster = 1>,
                few_rows = array<i64: 64>,
                few_rows_schedules = [#tile.matmul<rows = 64, columns = 64, depth = 64, threads = 256, vector = 2, stages = 8, roles = 2, cluster = 1, split = 1>]} {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x512xbf16>, tensor<1024x512xbf16> -> tensor<?x1024xf32>
  tile.return %0 : tensor<?x1024xf32>
}
func.func @f(%x: tensor<?x512xbf16>, %w: tensor<1024x512xbf16>) -> tensor<?x1024xf32> {
  %0 = tile.launch [@few_rows_of_plain](%x, %w) : (tensor<?x512xbf16>, tensor<1024x512xbf16>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}
