// RUN: tile-opt %s --fuse -verify-diagnostics -split-input-file

// expected-error @below {{there is no function to compile}}
module {
}

// -----

// expected-error @below {{'memref.global' op cannot be compiled; only 'func.func' can}}
memref.global @table : memref<8xf32>
func.func @beside_global(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'builtin.module' op cannot be compiled}}
module @inner {
}
func.func @beside_module(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op has no body to compile}}
func.func private @external(tensor<?x8xf32>) -> tensor<?x8xf32>

// -----

// expected-error @below {{'func.func' op has the unknown attribute 'tile.shedule'}}
func.func @misspelled_attribute(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.shedule = #tile.rows<threads = 64>} {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{attribute 'tile.schedule' must be the schedule of a kernel, such as #tile.rows, but is #tile.launch<threads = 64>}}
func.func @schedule_of_program(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.schedule = #tile.launch<threads = 64>} {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{attribute 'tile.schedule' must be the schedule of a kernel, such as #tile.rows, but is "threads = 64"}}
func.func @schedule_as_text(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {tile.schedule = "threads = 64"} {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op must be a single block of straight-line code}}
func.func @control_flow(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  cf.br ^next
^next:
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @loop(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op cannot be part of a kernel}}
  %0 = scf.for %i = %c0 to %c1 step %c1 iter_args(%y = %x) -> tensor<?x8xf32> {
    scf.yield %y : tensor<?x8xf32>
  }
  return %0 : tensor<?x8xf32>
}

// -----

func.func @call(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'func.call' op cannot be part of a kernel}}
  %0 = call @call(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @program(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'tile.program_id' op cannot be part of a kernel}}
  %id = tile.program_id
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op returns nothing, so there is nothing to compute}}
func.func @no_results(%x: tensor<?x8xf32>) {
  return
}

// -----

// expected-error @below {{argument 0 of type 'tensor<?x8xi16>' must be a row tensor or row vector of f8E4M3FN, f8E5M2, f16, bf16, f32, f64, i8, i32 or i64 with a row length from 1 to 2147483648, which is static in a vector}}
func.func @integers(%x: tensor<?x8xi16>) -> tensor<?x8xi16> {
  %0 = arith.addi %x, %x : tensor<?x8xi16>
  return %0 : tensor<?x8xi16>
}

// -----

// No launch could take it.
func.func @rank(%x: tensor<?x8xf32>,
    // expected-error @below {{argument 1 of type 'tensor<?x1x1x1x1x1x1x1x8xf32>' has more than 8 dimensions; pass a view with some of them merged}}
    %y: tensor<?x1x1x1x1x1x1x1x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{argument 1 of type 'f32' must be a row tensor or row vector}}
func.func @scalar(%x: tensor<?x8xf32>, %s: f32) -> tensor<?x8xf32> {
  %0 = tile.broadcast %s like %x : f32, tensor<?x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{argument 1 of type 'memref<8xf32>' must be a row tensor or row vector}}
func.func @memref(%x: tensor<?x8xf32>, %m: memref<8xf32>) -> tensor<?x8xf32> {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{argument 0 of type 'tensor<?xf32>' must be a row tensor or row vector}}
func.func @dynamic_row(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-error @below {{argument 0 of type 'tensor<?x0xf32>' must be a row tensor or row vector}}
func.func @empty_row(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  %0 = arith.addf %x, %x : tensor<?x0xf32>
  return %0 : tensor<?x0xf32>
}

// -----

// expected-error @below {{argument 0 of type 'tensor<?x2147483649xf32>' must be a row tensor or row vector}}
func.func @long_row(%x: tensor<?x2147483649xf32>) -> tensor<?x2147483649xf32> {
  %0 = arith.addf %x, %x : tensor<?x2147483649xf32>
  return %0 : tensor<?x2147483649xf32>
}

// -----

// expected-error @below {{argument 0 of type 'tensor<?x8xf32, "sparse">' must be a row tensor or row vector}}
func.func @encoding(%x: tensor<?x8xf32, "sparse">) -> tensor<?x8xf32, "sparse"> {
  %0 = arith.addf %x, %x : tensor<?x8xf32, "sparse">
  return %0 : tensor<?x8xf32, "sparse">
}

// -----

func.func @wide_intermediate(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'arith.extf' op result of type 'tensor<?x8xf128>' cannot be computed}}
  %0 = arith.extf %x : tensor<?x8xf32> to tensor<?x8xf128>
  %1 = arith.truncf %0 : tensor<?x8xf128> to tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// -----

func.func @table(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @below {{'arith.constant' op has elements that differ; pass such a tensor as an argument}}
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = tile.broadcast %0 like %x
      : tensor<2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

func.func @constant() -> tensor<4x8xf32> {
  // expected-error @below {{'arith.constant' op depends on no row tensor among the arguments, so its rows are unknown}}
  %0 = arith.constant dense<1.0> : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @scalar_returned(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, f32) {
  %0 = arith.addf %x, %x : tensor<?x8xf32>
  %1 = arith.constant 1.0 : f32
  // expected-error @below {{result 1 of type 'f32' is neither a row tensor nor a row vector}}
  return %0, %1 : tensor<?x8xf32>, f32
}

// -----

func.func @truth_returned(%x: tensor<?x8xf32>) -> tensor<?x8xi1> {
  %0 = arith.cmpf uno, %x, %x : tensor<?x8xf32>
  // expected-error @below {{result 0 of type 'tensor<?x8xi1>' does not hold f8E4M3FN, f8E5M2, f16, bf16, f32, f64, i8, i32 or i64}}
  return %0 : tensor<?x8xi1>
}

// -----

// expected-error @below {{'func.func' op result 0 has 'tile.in_place' 2 : index, which is the number of no argument}}
func.func @in_place_of_nothing(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 2 : index}) {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op result 0 has 'tile.in_place' 0 : index, but is a 'tensor<?x8xf32>', and that argument a 'tensor<?x8xbf16>'}}
func.func @in_place_of_another_type(%x: tensor<?x8xbf16>)
    -> (tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = arith.extf %x : tensor<?x8xbf16> to tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op result 1 has 'tile.in_place' 0 : index, which another result has as well}}
func.func @twice_in_place(%x: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 0 : index},
        tensor<?x8xf32> {tile.in_place = 0 : index}) {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = math.sin %x : tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op result 1 cannot take the memory of argument 1, which would be overwritten while it is still read; leave out 'tile.in_place'}}
func.func @statistic_of_the_row(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>)
    -> (tensor<?x8xf32>, tensor<?x1xf32> {tile.in_place = 1 : index}) {
  // expected-note @below {{an element of it is read for several here}}
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  %2 = arith.addf %s, %s : tensor<?x1xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x1xf32>
}

// -----

// Each program of a part of the row would add to the statistic.
// expected-error @below {{'func.func' op result 1 cannot take the memory of argument 2, which}}
func.func @statistic_beside_rows(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %t: tensor<?x1xf32>)
    -> (tensor<?x8xf32>, tensor<?x1xf32> {tile.in_place = 2 : index}) {
  // expected-note @below {{longer rows are computed with it here}}
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  %2 = arith.addf %s, %t : tensor<?x1xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x1xf32>
}

// -----

// A row length that only a call knows may be longer than a statistic.
// expected-error @below {{'func.func' op result 1 cannot take the memory of argument 2, which}}
func.func @statistic_beside_dynamic_rows(%x: tensor<?x?xf32>, %s: tensor<?x1xf32>,
                                         %t: tensor<?x1xf32>)
    -> (tensor<?x?xf32>, tensor<?x1xf32> {tile.in_place = 2 : index}) {
  // expected-note @below {{longer rows are computed with it here}}
  %0 = tile.broadcast %s like %x : tensor<?x1xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %1 = arith.mulf %x, %0 : tensor<?x?xf32>
  %2 = arith.addf %s, %t : tensor<?x1xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?x1xf32>
}

// -----

// expected-error @below {{'func.func' op result 1 cannot take the memory of argument 1, which}}
func.func @scales_of_groups(%x: tensor<?x8xf32>, %s: tensor<?x2xf32>)
    -> (tensor<?x8xf32>, tensor<?x2xf32> {tile.in_place = 1 : index}) {
  // expected-note @below {{an element of it is read for several here}}
  %0 = tile.broadcast %s like %x : tensor<?x2xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = arith.mulf %x, %0 : tensor<?x8xf32>
  %2 = arith.addf %s, %s : tensor<?x2xf32>
  return %1, %2 : tensor<?x8xf32>, tensor<?x2xf32>
}

// -----

// expected-error @below {{'func.func' op result 0 cannot take the memory of argument 0, which}}
func.func @neighbours_apart(%x: tensor<?x8xf32>) -> (tensor<?x8xf32> {tile.in_place = 0 : index}) {
  // expected-note @below {{its rows are taken apart here otherwise than those of the result are put together}}
  %even, %odd = tile.split interleaved %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = tile.join %even, %odd : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op result 0 cannot take the memory of argument 1, which}}
func.func @read_later(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %y: tensor<?x16xf32>)
    -> (tensor<?x1xf32> {tile.in_place = 1 : index}, tensor<?x16xf32>) {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = arith.mulf %0, %s : tensor<?x1xf32>
  %2 = tile.broadcast %1 like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  // expected-note @below {{a kernel that needs the result, or another that overwrites what it reads, reads it here}}
  %3 = tile.broadcast %s like %y : tensor<?x1xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %4 = arith.divf %2, %3 : tensor<?x16xf32>
  %5 = arith.mulf %4, %y : tensor<?x16xf32>
  return %1, %5 : tensor<?x1xf32>, tensor<?x16xf32>
}

// -----

// expected-error @below {{'func.func' op result 0 has 'tile.in_place' true, which is the number of no argument}}
func.func @narrow_number(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 1 : i1}) {
  %0 = arith.addf %x, %y : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @bands_of_itself(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @below {{'tile.repeat_bands' op repeats each row of a tensor for a band, but the tensor has as many rows as the result}}
  %0 = tile.repeat_bands %x of 128 like %x : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x2xf32>
  // expected-note @below {{it is read row by row here}}
  %1 = arith.mulf %0, %x : tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// Elementwise ops that no target computes.
func.func @integral_power(%x: tensor<?x8xf32>, %n: tensor<?x8xi32>) -> tensor<?x8xf32> {
  // expected-error @below {{'math.fpowi' op cannot be part of a kernel; convert the exponent and use 'math.powf'}}
  %0 = math.fpowi %x, %n : tensor<?x8xf32>, tensor<?x8xi32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @power_of_integers(%x: tensor<?x8xi32>) -> tensor<?x8xi32> {
  // expected-error @below {{'math.ipowi' op cannot be part of a kernel; multiply, or convert both operands and use 'math.powf'}}
  %0 = math.ipowi %x, %x : tensor<?x8xi32>
  return %0 : tensor<?x8xi32>
}

// -----

func.func @scaled_cast(%x: tensor<?x8xf32>) -> tensor<?x8xf8E4M3FN> {
  // expected-error @below {{'arith.scaling_truncf' op cannot be part of a kernel; multiply by the scale before or after a cast}}
  %0 = arith.scaling_truncf %x, %x : tensor<?x8xf32>, tensor<?x8xf32> to tensor<?x8xf8E4M3FN>
  return %0 : tensor<?x8xf8E4M3FN>
}

// -----

func.func @two_results(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'math.sincos' op cannot be part of a kernel}}
  %0, %1 = math.sincos %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op argument 0 of type 'tensor<?x8xf32>' has 'tile.dimensions' ["r"], not a name or 1 for each dimension}}
func.func @too_few_names(%x: tensor<?x8xf32> {tile.dimensions = ["r"]}) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op argument 0 of type 'tensor<?x8xf32>' has 'tile.dimensions' ["r", 2], not a name or 1 for each dimension}}
func.func @size_for_name(%x: tensor<?x8xf32> {tile.dimensions = ["r", 2]}) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{'func.func' op argument 1 of type 'tensor<?x4xf32>' has 'tile.dimensions' ["r", "c"], but "c" has the size 8}}
func.func @two_sizes(%x: tensor<?x8xf32> {tile.dimensions = ["r", "c"]},
                     %y: tensor<?x4xf32> {tile.dimensions = ["r", "c"]})
    -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  return %x, %y : tensor<?x8xf32>, tensor<?x4xf32>
}
