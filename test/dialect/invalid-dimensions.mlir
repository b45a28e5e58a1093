// RUN: tile-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{'tile.program' op has named dimensions, so it has no leading dimensions nor row spaces}}
tile.program @leading(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64}, leading = 1 : i64, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has named dimensions, so it has no leading dimensions nor row spaces}}
tile.program @spaces(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64}, spaces = 2 : i64, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{has schedule #tile.launch<persistent = 1>, which leaves fields to be chosen}}
tile.program @no_threads(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<persistent = 1>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has 2 dimensions but only 1 arguments}}
tile.program @more_dimensions_than_arguments(%n: index) attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 0 is the size of a dimension and must be an index, not 'i64'}}
tile.program @size_type(%n: i64) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has named dimensions, so 'programs' must say into which parts they are cut}}
tile.program @no_parts(%n: index) attributes {dimensions = ["n"], schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{has a program for each 1 : i64 of dimension "m", which is no length of a dimension}}
tile.program @parts_of_no_dimension(%n: index) attributes {dimensions = ["n"], programs = {m = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{has calls for each 65 : i64 of dimension "m", which is no length of a dimension}}
tile.program @least_of_no_dimension(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64}, least = {m = 65 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{has a program for each 0 : i64 of dimension "n", which is no length of a dimension}}
tile.program @empty_parts(%n: index) attributes {dimensions = ["n"], programs = {n = 0 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 of type 'memref<?xf32>' needs 'tile.dimensions' with a name or a size for each dimension}}
tile.program @unnamed_operand(%n: index, %x: memref<?xf32>) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{needs 'tile.dimensions' with a name or a size for each dimension}}
tile.program @operand_rank(%n: index, %x: memref<?x8xf32, strided<[?, 1]>> {tile.dimensions = ["n"]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 has dimension "m", which the program does not have}}
tile.program @unknown_dimension(%n: index, %x: memref<?xf32> {tile.dimensions = ["m"]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 has dimension 4 : i64 of 'memref<8xf32>', which is neither a name nor the static size}}
tile.program @other_size(%n: index, %x: memref<8xf32> {tile.dimensions = [4]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 has dimension 32 : i64 of}}
tile.program @dimension_of_map(%n: index, %x: !tile.tensor_map<memref<?x64xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128> {tile.dimensions = ["n", 32]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 of type 'memref<?x8xf32>' must be 'strided', without an offset and with a last stride of 1, or have one dimension and no layout}}
tile.program @operand_without_strides(%n: index, %x: memref<?x8xf32> {tile.dimensions = ["n", 8]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{must be 'strided', without an offset and with a last stride of 1}}
tile.program @operand_with_gaps(%n: index, %x: memref<?x8xf32, strided<[?, 2]>> {tile.dimensions = ["n", 8]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{must be 'strided', without an offset and with a last stride of 1}}
tile.program @operand_with_offset(%n: index, %x: memref<?x8xf32, strided<[?, 1], offset: ?>> {tile.dimensions = ["n", 8]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{or have one dimension and no layout}}
tile.program @number_as_operand(%n: index, %x: memref<f32> {tile.dimensions = []}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 of type 'f32' is no operand in memory}}
tile.program @scalar_as_operand(%n: index, %x: f32) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 of type 'index' is no operand in memory}}
tile.program @index_as_operand(%n: index, %x: index) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 has the unknown attribute 'tile.dimension'}}
tile.program @unknown_attribute(%n: index, %x: memref<?xf32> {tile.dimensions = ["n"], tile.dimension = 1}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

tile.program @rank(%n: index, %x: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["n", "n"]},
    %y: memref<?xf32> {tile.dimensions = ["n"]}) attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

func.func @launch_rank(%x: tensor<?x?x?xf32>) -> tensor<?xf32> {
  // expected-error @below {{has a 'tensor<?x?x?xf32>' where program @rank takes a 'memref<?x?xf32, strided<[?, 1]>>'}}
  %0 = tile.launch [@rank](%x) : (tensor<?x?x?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

tile.program @sizes(%n: index, %m: index, %x: memref<?xf32> {tile.dimensions = ["n"]},
    %y: memref<?xf32> {tile.dimensions = ["m"]})
    attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

func.func @launch_of_unknown_size(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{has a result with dimension "m" of program @sizes, which no input has}}
  %0 = tile.launch [@sizes](%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

tile.program @indices(%n: index, %x: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["n", "n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  // expected-error @below {{'tile.load' op takes 2 indices into 'memref<?x?xf32, strided<[?, 1]>>', but has 1}}
  %0 = tile.load %x[%n] : memref<?x?xf32, strided<[?, 1]>> -> tensor<32x8xf32>
  tile.return
}

// -----

tile.program @four_indices(%n: index,
    %x: memref<?x?x?x8xf32, strided<[?, ?, ?, 1]>> {tile.dimensions = ["n", "n", "n", 8]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  // expected-error @below {{'tile.load' op takes 4 indices into 'memref<?x?x?x8xf32, strided<[?, ?, ?, 1]>>', but has 2}}
  %0 = tile.load %x[%n, %n] : memref<?x?x?x8xf32, strided<[?, ?, ?, 1]>> -> tensor<32x8xf32>
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has two dimensions "n"}}
tile.program @twice(%n: index, %m: index, %x: memref<?xf32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n", "n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has a variant for an alignment of 16, which is no power of two below the 16 of the variant before}}
tile.program @alignment_of_the_program(%m: index, %n: index,
    %x: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "n"], tile.alignment = 16 : i64})
    attributes {dimensions = ["m", "n"], programs = {m = 32 : i64}, alignments = array<i64: 16>,
                schedule = #tile.launch<threads = 64>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has a variant for an alignment of 6, which is no power of two below the 16 of the variant before}}
tile.program @alignment_no_power(%m: index, %n: index,
    %x: memref<?x?xbf16, strided<[?, 1]>> {tile.dimensions = ["m", "n"], tile.alignment = 16 : i64})
    attributes {dimensions = ["m", "n"], programs = {m = 32 : i64}, alignments = array<i64: 6>,
                schedule = #tile.launch<threads = 64>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has variants for 'alignments', but argument 2 is copied in boxes, whose alignment is always 16}}
tile.program @alignments_of_boxes(%m: index, %n: index,
    %x: !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [32, 64], swizzle = 128> {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 32 : i64}, alignments = array<i64: 4>,
                schedule = #tile.launch<threads = 64>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has 'alignments', which are for programs over named dimensions}}
tile.program @alignments_of_rows(%m: index, %x: memref<?x8xf32, strided<[?, 1]>>)
    attributes {leading = 1 : i64, alignments = array<i64: 4>,
                schedule = #tile.rows<rows = 1, threads = 32, vector = 4, columns = 8>} {
  tile.return
}
