// RUN: tile-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{argument 1 of type 'memref<?xf32>' has counters, which are a 'memref<?xi32>' with lengths of parts of dimensions and without 'tile.dimensions'}}
tile.program @of_floats(%n: index, %c: memref<?xf32> {tile.counters = {n = 1 : i64}})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 of type 'memref<?xi32>' has counters}}
tile.program @without_parts(%n: index, %c: memref<?xi32> {tile.counters})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{argument 1 of type 'memref<?xi32>' has counters}}
tile.program @with_dimensions(%n: index, %c: memref<?xi32> {tile.counters = {n = 1 : i64}, tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{has counters for each 64 : i64 of dimension "m", which is no length of a dimension}}
tile.program @of_no_dimension(%n: index, %c: memref<?xi32> {tile.counters = {m = 64 : i64}})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}

// -----

// expected-error @below {{'tile.program' op has counters without named dimensions}}
tile.program @over_rows(%rows: index, %c: memref<?xi32> {tile.counters = {rows = 1 : i64}})
    attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1, threads = 32, vector = 1, columns = 32>} {
  tile.return
}

// -----

tile.program @waits_for_numbers(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  // expected-error @below {{'tile.await_count' op takes counters from 'memref<?xi32>', which is no operand with 'tile.counters'}}
  tile.await_count %x[%n] reaches %n : memref<?xi32>
  tile.return
}

// -----

tile.program @releases_numbers(%n: index, %x: memref<?xi32> {tile.dimensions = ["n"]})
    attributes {dimensions = ["n"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  // expected-error @below {{'tile.release_count' op takes counters from 'memref<?xi32>', which is no operand with 'tile.counters'}}
  tile.release_count %x[%n] to %n : memref<?xi32>
  tile.return
}

// -----

tile.program @p(%n: index, %m: index, %x: memref<?xf32> {tile.dimensions = ["n"]},
    %c: memref<?xi32> {tile.counters = {m = 64 : i64}})
    attributes {dimensions = ["n", "m"], programs = {n = 1 : i64}, schedule = #tile.launch<threads = 32>} {
  tile.return
}
func.func @f(%x: tensor<?xf32>) {
  // expected-error @below {{has a result with dimension "m" of program @p, which no input has}}
  %0 = tile.launch [@p](%x) : (tensor<?xf32>) -> tensor<?xi32>
  return
}
