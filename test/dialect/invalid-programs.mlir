// RUN: tile-opt %s -verify-diagnostics -split-input-file

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op must return nothing: its results are operands in memory}}
tile.program @tiled_with_result(%rows: index) -> tensor<4x8xf32>
    attributes {leading = 1 : i64, schedule = #schedule} {
  %cst = arith.constant dense<0.0> : tensor<4x8xf32>
  tile.return %cst : tensor<4x8xf32>
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op has 2 leading dimensions but only 1 arguments}}
tile.program @more_sizes_than_arguments(%rows: index)
    attributes {leading = 2 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op has -1 leading dimensions}}
tile.program @negative_leading() attributes {leading = -1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{argument 0 is the size of a leading dimension and must be an index, not 'i64'}}
tile.program @size_type(%rows: i64) attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op has 0 row spaces; a program has one or more}}
tile.program @no_space(%rows: index)
    attributes {leading = 1 : i64, spaces = 0 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op takes the size of dimension 1 ahead of merging, which does not ascend below the 7 leading ones that there may be}}
tile.program @sizes_twice(%rows: index, %n: index, %m: index)
    attributes {leading = 1 : i64, unmerged_sizes = array<i64: 1, 1>, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{takes the size of dimension 7 ahead of merging, which does not ascend}}
tile.program @size_of_no_dimension(%rows: index, %n: index)
    attributes {leading = 1 : i64, unmerged_sizes = array<i64: 7>, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{takes 3 sizes but has only 2 arguments}}
tile.program @more_unmerged_sizes_than_arguments(%rows: index, %n: index)
    attributes {leading = 1 : i64, unmerged_sizes = array<i64: 0, 1>, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @iota_of_rows(%rows: index)
    attributes {leading = 1 : i64, schedule = #schedule} {
  // expected-error @below {{'tile.iota' op numbers the rows of tensors; 'tile.iota_rows' numbers those of a tile}}
  %0 = tile.iota over [0] : tensor<4x1xi32>
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{has 1 leading dimensions in each of 2 row spaces but only 1 arguments}}
tile.program @more_spaces_than_arguments(%rows: index)
    attributes {leading = 1 : i64, spaces = 2 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{argument 1 is the size of a leading dimension and must be an index, not 'memref<8xf32>'}}
tile.program @size_type_of_space(%rows: index, %x: memref<8xf32>)
    attributes {leading = 1 : i64, spaces = 2 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{argument 2 is of row space 2, but there are 2}}
tile.program @space_of_argument(%rows0: index, %rows1: index,
    %x: memref<?x8xf32, strided<[?, 1]>> {tile.space = 2 : i64})
    attributes {leading = 1 : i64, spaces = 2 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @space_of_load(%rows: index, %x: memref<?x8xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #schedule} {
  %program = tile.program_id
  // expected-error @below {{'tile.load' op is of row space 1, but the program has 1}}
  %0 = tile.load %x[%program, %program] {space = 1 : i64} : memref<?x8xf32, strided<[?, 1]>> -> tensor<1x8xf32>
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @space_of_store(%rows: index, %x: memref<?x8xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #schedule} {
  %program = tile.program_id
  %0 = tile.load %x[%program, %program] : memref<?x8xf32, strided<[?, 1]>> -> tensor<1x8xf32>
  // expected-error @below {{'tile.store' op is of row space -1, but the program has 1}}
  tile.store %0, %x[%program, %program] {space = -1 : i64} : tensor<1x8xf32>, memref<?x8xf32, strided<[?, 1]>>
  tile.return
}

// -----

tile.program @space_of_misalignment(%rows: index, %x: memref<?x9xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 128>} {
  %program = tile.program_id
  // expected-error @below {{'tile.misalignment' op is of row space 1, but the program has 1}}
  %0 = tile.misalignment %x[%program] to 4 {space = 1 : i64} : memref<?x9xf32, strided<[?, 1]>> -> tensor<1x1xi32>
  tile.return
}

// -----

tile.program @misalignment_of_other_vectors(%rows: index, %x: memref<?x9xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 2, columns = 64>} {
  %program = tile.program_id
  // expected-error @below {{'tile.misalignment' op is to a multiple of 4 elements, but the schedule's vectors have 2}}
  %0 = tile.misalignment %x[%program] to 4 : memref<?x9xf32, strided<[?, 1]>> -> tensor<1x1xi32>
  tile.return
}

// -----

tile.program @exchange_with_nobody(%rows: index, %x: memref<?x512xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 64, vector = 4, columns = 512, cluster = 4>} {
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%c0, %c0] : memref<?x512xf32, strided<[?, 1]>> -> tensor<1x512xf32>
  %1 = tile.reduce max %0 : tensor<1x512xf32> -> tensor<1x1xf32>
  // expected-error @below {{'tile.exchange' op has 2 results for each operand, but 4 blocks are in the schedule's cluster}}
  %2:2 = tile.exchange %1 : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  tile.return
}

// -----

// expected-error @below {{'tile.program' op requires attribute 'schedule'}}
tile.program @unscheduled(%rows: index) attributes {leading = 1 : i64} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op requires attribute 'leading'}}
tile.program @no_leading(%rows: index) attributes {schedule = #schedule} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op goes through rows, whose schedule is a #tile.rows, not #tile.launch<threads = 32>}}
tile.program @schedule_of_dimensions(%rows: index)
    attributes {leading = 1 : i64, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has schedule #tile.rows<threads = 128, persistent = 4, stages = 2>, which leaves fields to be chosen; 'rows', 'threads', 'vector' and 'columns' must be given}}
tile.program @incomplete(%rows: index)
    attributes {leading = 1 : i64, schedule = #tile.rows<threads = 128, persistent = 4, stages = 2>} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op has 'column_blocks' 0, which must be 1 or more}}
tile.program @no_column_blocks(%rows: index)
    attributes {column_blocks = 0 : i64, leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op combines rows, which takes two row spaces, but has 1}}
tile.program @combines_in_one_space(%rows: index)
    attributes {combines = array<i64: 0>, leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op combines rows over dimension 1, which does not ascend below the 1 leading ones}}
tile.program @combines_beyond_leading(%rows: index, %others: index)
    attributes {combines = array<i64: 1>, leading = 1 : i64, schedule = #schedule, spaces = 2 : i64} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op argument 1 has the unknown attribute 'tile.read_only'}}
tile.program @misspelled(%rows: index, %x: memref<?x8xf32> {tile.read_only})
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op argument 1 has 'tile.partial' true, which takes no value}}
tile.program @mark_with_value(%rows: index, %x: memref<?x8xf32> {tile.partial = true})
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op argument 1 has 'tile.alignment' 0 : i64, which is not an i64 of at least 1}}
tile.program @no_alignment(%rows: index, %x: memref<?x8xf32> {tile.alignment = 0 : i64})
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

// expected-error @below {{'tile.program' op argument 1 has an alignment of 35 bytes, which is no power of two up to 4294967296}}
tile.program @odd_alignment(%rows: index, %x: memref<?x8xf32> {tile.alignment = 35 : i64})
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @p(%rows: index, %x: memref<?x8xf32>)
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}
func.func @launch_with_another_operand(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.launch' op has 2 operands and results, but program @p takes 1 in memory}}
  %0 = tile.launch [@p](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @p(%rows: index, %x: memref<?x8xf32>, %y: memref<?x8xbf16>)
    attributes {leading = 1 : i64, schedule = #schedule} {
  tile.return
}
func.func @launch_of_another_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.launch' op has a 'tensor<?x8xf32>' where program @p takes a 'memref<?x8xbf16>'}}
  %0 = tile.launch [@p](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @launches(%rows: index) attributes {leading = 1 : i64, schedule = #schedule} {
  // expected-error @below {{'tile.launch' op cannot be part of a kernel}}
  tile.launch [@launches]() : () -> ()
  tile.return
}

// -----

#schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>

tile.program @returns(%rows: index) attributes {leading = 1 : i64, schedule = #schedule} {
  %0 = arith.constant dense<0.0> : tensor<1x8xf32>
  // expected-error @below {{'tile.return' op returns 'tensor<1x8xf32>' from a program of type '(index) -> ()'}}
  tile.return %0 : tensor<1x8xf32>
}
