// RUN: tile-opt %s -verify-diagnostics -split-input-file

//===----------------------------------------------------------------------===//
// tile.geglu
//===----------------------------------------------------------------------===//

func.func @geglu_limit_zero(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.geglu' op limit must be positive, but is 0.000000e+00; 'unlimited' leaves the clamps out}}
  %0 = tile.geglu %x, %x {limit = 0.0} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_limit_negative(%x: tensor<?x8xf32>) {
  // expected-error @below {{limit must be positive, but is -7.000000e+00}}
  %0 = tile.geglu %x, %x {limit = -7.0} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_limit_nan(%x: tensor<?x8xf32>) {
  // expected-error @below {{limit must be positive, but is nan}}
  %0 = tile.geglu %x, %x {limit = 0x7FF8000000000000 : f64} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_limit_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{attribute 'limit' failed to satisfy constraint: 64-bit float attribute}}
  %0 = tile.geglu %x, %x {limit = 7} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_unlimited_limit(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.geglu' op has both 'limit' and 'unlimited'}}
  %0 = tile.geglu %x, %x {limit = 5.0, unlimited} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_tanh_alpha(%x: tensor<?x8xf32>) {
  // expected-error @below {{takes 'alpha', 'limit' and 'unlimited' only with the form 'gpt_oss', not with 'tanh'}}
  %0 = tile.geglu %x, %x form(tanh) {alpha = 1.0} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_erf_limit(%x: tensor<?x8xf32>) {
  // expected-error @below {{only with the form 'gpt_oss', not with 'erf'}}
  %0 = tile.geglu %x, %x form(erf) {limit = 5.0} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_tanh_unlimited(%x: tensor<?x8xf32>) {
  // expected-error @below {{only with the form 'gpt_oss', not with 'tanh'}}
  %0 = tile.geglu %x, %x form(tanh) {unlimited} : tensor<?x8xf32>
  return
}

// -----

func.func @geglu_shapes(%gate: tensor<?x8xf32>, %up: tensor<?x16xf32>) {
  // expected-error @below {{'tile.geglu' op requires the same type for all operands and results}}
  %0 = "tile.geglu"(%gate, %up) : (tensor<?x8xf32>, tensor<?x16xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @geglu_types(%gate: tensor<?x8xf32>, %up: tensor<?x8xbf16>) {
  // expected-error @below {{requires the same type for all operands and results}}
  %0 = "tile.geglu"(%gate, %up) : (tensor<?x8xf32>, tensor<?x8xbf16>) -> tensor<?x8xf32>
  return
}

// -----

func.func @geglu_i32(%x: tensor<?x8xi32>) {
  // expected-error @below {{operand #0 must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<?x8xi32>'}}
  %0 = tile.geglu %x, %x : tensor<?x8xi32>
  return
}

// -----

func.func @geglu_f8(%x: tensor<?x8xf8E4M3FN>) {
  // expected-error @below {{operand #0 must be row tensor of f16, bf16, f32 or f64}}
  %0 = tile.geglu %x, %x : tensor<?x8xf8E4M3FN>
  return
}

// -----

func.func @geglu_row_of_length_zero(%x: tensor<?x0xf32>) {
  // expected-error @below {{static last dimension of at least 1), but got 'tensor<?x0xf32>'}}
  %0 = tile.geglu %x, %x : tensor<?x0xf32>
  return
}

// -----

func.func @geglu_dynamic_row(%x: tensor<?x?xf32>) {
  // expected-error @below {{static last dimension of at least 1), but got 'tensor<?x?xf32>'}}
  %0 = tile.geglu %x, %x : tensor<?x?xf32>
  return
}

// -----

func.func @geglu_rank_one(%x: tensor<8xf32>) {
  // expected-error @below {{at least one leading dimension and a static last dimension of at least 1), but got 'tensor<8xf32>'}}
  %0 = tile.geglu %x, %x : tensor<8xf32>
  return
}

// -----

func.func @geglu_unranked(%x: tensor<*xf32>) {
  // expected-error @below {{invalid kind of type specified: expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0 = tile.geglu %x, %x : tensor<*xf32>
  return
}

// -----

func.func @geglu_form(%x: tensor<?x8xf32>) {
  // expected-error @below {{gpt_oss, tanh, erf}}
  %0 = tile.geglu %x, %x form(relu) : tensor<?x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.rms_norm
//===----------------------------------------------------------------------===//

func.func @rms_norm_weight_length(%x: tensor<?x8xf32>, %w: tensor<9xf32>) {
  // expected-error @below {{'tile.rms_norm' op weight of type 'tensor<9xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0 = tile.rms_norm %x, %w : tensor<?x8xf32>, tensor<9xf32>
  return
}

// -----

func.func @rms_norm_weight_rank(%x: tensor<?x8xf32>, %w: tensor<?x8xf32>) {
  // expected-error @below {{operand #1 must be row vector of f16, bf16, f32 or f64 (one static dimension of at least 1), but got 'tensor<?x8xf32>'}}
  %0 = tile.rms_norm %x, %w : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_weight_dynamic(%x: tensor<?x8xf32>, %w: tensor<?xf32>) {
  // expected-error @below {{operand #1 must be row vector of f16, bf16, f32 or f64}}
  %0 = tile.rms_norm %x, %w : tensor<?x8xf32>, tensor<?xf32>
  return
}

// -----

func.func @rms_norm_weight_type(%x: tensor<?x8xf32>, %w: tensor<8xi8>) {
  // expected-error @below {{operand #1 must be row vector of f16, bf16, f32 or f64}}
  %0 = tile.rms_norm %x, %w : tensor<?x8xf32>, tensor<8xi8>
  return
}

// -----

func.func @rms_norm_eps(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.rms_norm' op eps must not be negative, but is -1.000000e-05}}
  %0 = tile.rms_norm %x {eps = -1.0e-5} : tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_eps_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{attribute 'eps' failed to satisfy constraint: 64-bit float attribute}}
  %0 = tile.rms_norm %x {eps = 1.0e-5 : f32} : tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_i32(%x: tensor<?x8xi32>) {
  // expected-error @below {{operand #0 must be row tensor of f16, bf16, f32 or f64}}
  %0 = tile.rms_norm %x : tensor<?x8xi32>
  return
}

// -----

func.func @rms_norm_rank_one(%x: tensor<8xf32>) {
  // expected-error @below {{operand #0 must be row tensor of f16, bf16, f32 or f64}}
  %0 = tile.rms_norm %x : tensor<8xf32>
  return
}

// -----

func.func @rms_norm_result(%x: tensor<?x8xf32>) {
  // expected-error @below {{failed to verify that all of {input, result} have same type}}
  %0 = "tile.rms_norm"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.broadcast
//===----------------------------------------------------------------------===//

func.func @broadcast_element_type(%s: f32, %x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.broadcast' op source of type 'f32' and result of type 'tensor<?x8xf16>' have different element types}}
  %0 = tile.broadcast %s like %x : f32, tensor<?x8xf32> -> tensor<?x8xf16>
  return
}

// -----

func.func @broadcast_without_like(%s: f32) {
  // expected-error @below {{result of type 'tensor<?x8xf32>' has dynamic sizes; name a tensor that has them with 'like'}}
  %0 = tile.broadcast %s : f32 -> tensor<?x8xf32>
  return
}

// -----

func.func @broadcast_like_rank(%s: f32, %x: tensor<?x?x8xf32>) {
  // expected-error @below {{result of type 'tensor<?x8xf32>' does not have the leading sizes of 'like' of type 'tensor<?x?x8xf32>'}}
  %0 = tile.broadcast %s like %x : f32, tensor<?x?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @broadcast_like_leading(%s: f32, %x: tensor<4x8xf32>) {
  // expected-error @below {{result of type 'tensor<5x8xf32>' does not have the leading sizes of 'like' of type 'tensor<4x8xf32>'}}
  %0 = tile.broadcast %s like %x : f32, tensor<4x8xf32> -> tensor<5x8xf32>
  return
}

// -----

func.func @broadcast_vector_length(%v: tensor<4xf32>, %x: tensor<?x8xf32>) {
  // expected-error @below {{cannot repeat a source of type 'tensor<4xf32>' to a result of type 'tensor<?x8xf32>'}}
  %0 = tile.broadcast %v like %x : tensor<4xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @broadcast_statistic_leading(%s: tensor<3x1xf32>, %x: tensor<?x8xf32>) {
  // expected-error @below {{cannot repeat a source of type 'tensor<3x1xf32>' to a result of type 'tensor<?x8xf32>'}}
  %0 = tile.broadcast %s like %x : tensor<3x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @broadcast_rows(%s: tensor<2x8xf32>) {
  // expected-error @below {{cannot repeat a source of type 'tensor<2x8xf32>' to a result of type 'tensor<4x8xf32>'}}
  %0 = tile.broadcast %s : tensor<2x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_row_of_other_rows(%s: tensor<1x3x8xf32>, %x: tensor<4x2x8xf32>) {
  // expected-error @below {{cannot repeat a source of type 'tensor<1x3x8xf32>' to a result of type 'tensor<4x2x8xf32>'}}
  %0 = tile.broadcast %s like %x : tensor<1x3x8xf32>, tensor<4x2x8xf32> -> tensor<4x2x8xf32>
  return
}

// -----

func.func @broadcast_index(%s: index, %x: tensor<?x8xi32>) {
  // expected-error @below {{operand #0 must be floating-point or signless integer or ranked tensor of any type values, but got 'index'}}
  %0 = tile.broadcast %s like %x : index, tensor<?x8xi32> -> tensor<?x8xi32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.split and tile.join
//===----------------------------------------------------------------------===//

func.func @split_in_one(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.split' op needs two pieces or more, but has 1}}
  %0 = tile.split %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @split_unequal(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.split' op has pieces of different types: 'tensor<?x2xf32>' and 'tensor<?x6xf32>'}}
  %0, %1 = tile.split %x : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x6xf32>
  return
}

// -----

func.func @split_length(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.split' op 2 pieces of type 'tensor<?x3xf32>' are not a row of type 'tensor<?x8xf32>'}}
  %0, %1 = tile.split %x : tensor<?x8xf32> -> tensor<?x3xf32>, tensor<?x3xf32>
  return
}

// -----

func.func @split_leading(%x: tensor<?x?x8xf32>) {
  // expected-error @below {{2 pieces of type 'tensor<?x4xf32>' are not a row of type 'tensor<?x?x8xf32>'}}
  %0, %1 = tile.split %x : tensor<?x?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @split_element_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{2 pieces of type 'tensor<?x4xf16>' are not a row of type 'tensor<?x8xf32>'}}
  %0, %1 = tile.split interleaved %x : tensor<?x8xf32> -> tensor<?x4xf16>, tensor<?x4xf16>
  return
}

// -----

func.func @piece_of_none(%x: tensor<8x8xf32>) {
  // expected-error @below {{takes piece 2 of 2 along dimension 0 of 'tensor<8x8xf32>', which has none}}
  %0 = tile.piece %x dimension 0[2 of 2] : tensor<8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @piece_of_unknown_size(%x: tensor<?x8xf32>) {
  // expected-error @below {{cuts dimension 0 of 'tensor<?x8xf32>' into 2 pieces; its size must be static and a multiple of that}}
  %0 = tile.piece %x dimension 0[1 of 2] : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @interleaved_columns(%x: tensor<?x8xf32>) {
  // expected-error @below {{interleaves pieces along the last dimension of 'tensor<?x8xf32>', whose elements must stay neighbours}}
  %0 = tile.piece %x dimension 1[1 of 2] interleaved : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @piece_type(%x: tensor<8x8xf32>) {
  // expected-error @below {{of 'tensor<8x8xf32>' is a 'tensor<4x8xf32>', not a 'tensor<8x4xf32>'}}
  %0 = tile.piece %x dimension 0[1 of 2] : tensor<8x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @split_of_nothing(%x: tensor<?x0xf32>) {
  // expected-error @below {{'tile.split' op has pieces of type 'tensor<?x0xf32>'; rows and pieces have a static length of at least 1}}
  %0, %1 = tile.split %x : tensor<?x0xf32> -> tensor<?x0xf32>, tensor<?x0xf32>
  return
}

// -----

func.func @split_of_number(%x: tensor<f32>) {
  // expected-error @below {{'tile.split' op has pieces of type 'tensor<f32>'}}
  %0, %1 = tile.split %x : tensor<f32> -> tensor<f32>, tensor<f32>
  return
}

// -----

func.func @split_into_contiguous_parts(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.split' op has 2 parts of contiguous pieces; only interleaved pieces are those of a part}}
  %0:4 = tile.split parts(2) %x : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @split_into_unequal_parts(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.split' op 4 pieces are not 3 parts of as many interleaved pieces, two or more}}
  %0:4 = tile.split interleaved parts(3) %x : tensor<?x8xf32> -> tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @split_into_no_parts(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.split' op 2 pieces are not 0 parts of as many interleaved pieces, two or more}}
  %0:2 = tile.split interleaved parts(0) %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @join_of_parts_of_one(%x: tensor<?x2xf32>) {
  // expected-error @below {{'tile.join' op 2 pieces are not 2 parts of as many interleaved pieces, two or more}}
  %0 = tile.join interleaved parts(2) %x, %x : tensor<?x2xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @join_of_one(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.join' op needs two pieces or more, but has 1}}
  %0 = tile.join %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @join_unequal(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{'tile.join' op has pieces of different types: 'tensor<?x8xf32>' and 'tensor<?x4xf32>'}}
  %0 = tile.join %x, %y : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x12xf32>
  return
}

// -----

func.func @join_length(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.join' op 2 pieces of type 'tensor<?x8xf32>' are not a row of type 'tensor<?x8xf32>'}}
  %0 = tile.join %x, %x : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.iota and tile.stop_gradient
//===----------------------------------------------------------------------===//

func.func @iota_shape(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.iota' op result of type 'tensor<4x8xi32>' does not have the leading sizes of 'like' of type 'tensor<?x8xf32>'}}
  %0 = tile.iota like %x : tensor<4x8xi32>, tensor<?x8xf32>
  return
}

// -----

func.func @iota_of_unknown_rows() {
  // expected-error @below {{'tile.iota' op result of type 'tensor<?x8xi32>' has dynamic sizes; name a tensor that has them with 'like'}}
  %0 = tile.iota : tensor<?x8xi32>
  return
}

// -----

func.func @iota_element_type() {
  // expected-error @below {{result #0 must be ranked tensor of 32-bit signless integer values, but got 'tensor<1x8xf32>'}}
  %0 = tile.iota : tensor<1x8xf32>
  return
}

// -----

func.func @iota_of_columns_over(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.iota' op numbers rows over [1], which are not leading dimensions of 'tensor<?x1xi32>' that follow each other}}
  %0 = tile.iota over [1] like %x : tensor<?x1xi32>, tensor<?x8xf32>
  return
}

// -----

func.func @iota_over_strangers(%x: tensor<?x?x?x8xf32>) {
  // expected-error @below {{numbers rows over [0, 2], which are not leading dimensions}}
  %0 = tile.iota over [0, 2] like %x : tensor<?x?x?x1xi32>, tensor<?x?x?x8xf32>
  return
}

// -----

func.func @iota_over_nothing(%x: tensor<?x8xf32>) {
  // expected-error @below {{numbers rows over [], which are not leading dimensions}}
  %0 = tile.iota over [] like %x : tensor<?x1xi32>, tensor<?x8xf32>
  return
}

// -----

func.func @iota_over_negative(%x: tensor<?x8xf32>) {
  // expected-error @below {{numbers rows over [-1], which are not leading dimensions}}
  %0 = tile.iota over [-1] like %x : tensor<?x1xi32>, tensor<?x8xf32>
  return
}

// -----

func.func @iota_of_rows_in_columns(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.iota' op gives each row one number, so its result has rows of length 1, not 'tensor<?x8xi32>'; 'tile.broadcast' repeats it}}
  %0 = tile.iota over [0] like %x : tensor<?x8xi32>, tensor<?x8xf32>
  return
}

// -----

func.func @iota_of_rows_from_a_column(%column: index) {
  // expected-error @below {{'tile.iota' op numbers the rows of tensors; 'tile.iota_rows' numbers those of a tile}}
  %0 = tile.iota over [0] from %column : tensor<4x1xi32>
  return
}

// -----

func.func @stop_gradient_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.stop_gradient' op requires the same type for all operands and results}}
  %0 = "tile.stop_gradient"(%x) : (tensor<?x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.reduce_rows
//===----------------------------------------------------------------------===//

func.func @reduce_rows_length(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.reduce_rows' op combines the rows of 'tensor<?x8xf32>' to 'tensor<8xf32>', not to 'tensor<4xf32>'}}
  %0 = tile.reduce_rows add %x : tensor<?x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_rows_partial(%x: tensor<?x8xf32>) {
  // expected-error @below {{combines the rows of 'tensor<?x8xf32>' to 'tensor<?x8xf32>', not to 'tensor<8xf32>'}}
  %0 = tile.reduce_rows add %x partial : tensor<?x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @reduce_rows_tile(%x: tensor<4x8xf32>) {
  // expected-error @below {{combines the rows of 'tensor<4x8xf32>' to 'tensor<1x8xf32>', not to 'tensor<1x1xf32>'}}
  %0 = tile.reduce_rows max %x : tensor<4x8xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @reduce_no_rows(%x: tensor<?x4x8xf32>) {
  // expected-error @below {{combines no rows of 'tensor<?x4x8xf32>': some leading size of the result is to be 1}}
  %0 = tile.reduce_rows add %x : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @reduce_rows_to_others(%x: tensor<?x?x8xf32>) {
  // expected-error @below {{combines the rows of 'tensor<?x?x8xf32>' to 'tensor<1x?x8xf32>', not to 'tensor<1x3x8xf32>'}}
  %0 = tile.reduce_rows add %x : tensor<?x?x8xf32> -> tensor<1x3x8xf32>
  return
}

// -----

func.func @reduce_rows_element_type(%x: tensor<?x8xbf16>) {
  // expected-error @below {{operand #0 must be row tensor of f32 or f64}}
  %0 = tile.reduce_rows add %x : tensor<?x8xbf16> -> tensor<8xbf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.reduce
//===----------------------------------------------------------------------===//

func.func @reduce_result_length(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.reduce' op cannot reduce 'tensor<?x8xf32>' to 8 groups of columns of one size}}
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @reduce_result_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{to 'tensor<?x1xf32>', not to 'tensor<?x1xf64>'}}
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf64>
  return
}

// -----

// Reductions run in the precision that formulas are computed in.
func.func @reduce_bf16(%x: tensor<?x8xbf16>) {
  // expected-error @below {{operand #0 must be row tensor of f32 or f64 (at least one leading dimension and a last dimension of at least 1), but got 'tensor<?x8xbf16>'}}
  %0 = tile.reduce add %x : tensor<?x8xbf16> -> tensor<?x1xbf16>
  return
}

// -----

func.func @reduce_rank_one(%x: tensor<8xf32>) {
  // expected-error @below {{operand #0 must be row tensor of f32 or f64}}
  %0 = tile.reduce add %x : tensor<8xf32> -> tensor<1xf32>
  return
}

// -----

func.func @reduce_kind(%x: tensor<?x8xf32>) {
  // expected-error @below {{add, max, min}}
  %0 = tile.reduce mul %x : tensor<?x8xf32> -> tensor<?x1xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.kernel, tile.return
//===----------------------------------------------------------------------===//

// expected-error @below {{'tile.kernel' op has no body}}
tile.kernel @kernel_without_body(tensor<?x8xf32>) -> tensor<?x8xf32>

// -----

// expected-error @below {{'tile.kernel' op has a body of 2 blocks; a kernel is one block of ops on whole tensors}}
tile.kernel @kernel_of_two_blocks(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
^bb1(%y: tensor<?x8xf32>):
  tile.return %y : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 of type 'tensor<?x8xi1>' cannot lie in memory, where elements have whole bytes; compute it in the kernels that need it}}
tile.kernel @condition(%c: tensor<?x8xi1>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = arith.select %c, %x, %x : tensor<?x8xi1>, tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// -----

// A row is scaled by the sum of another of the same length.
// expected-error @below {{'tile.kernel' op goes along two dimensions of columns; a kernel has one, and groups of its columns. If they are one, give the kernel a 'space' that says so; otherwise make two kernels}}
tile.kernel @columns_of_one_length(
    // expected-note @below {{the columns of 'tensor<?x8xf32>' are one}}
    %x: tensor<?x8xf32>,
    // expected-note @below {{and those of 'tensor<?x8xf32>' are another}}
    %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = arith.mulf %y, %1 : tensor<?x8xf32>
  tile.return %2 : tensor<?x8xf32>
}

// -----

// Half as many columns are not the groups of a row that they have nothing to do
// with.
// expected-error @below {{'tile.kernel' op goes along two dimensions of columns}}
tile.kernel @columns_of_two_lengths(
    // expected-note @below {{the columns of 'tensor<?x8xf32>' are one}}
    %x: tensor<?x8xf32>,
    // expected-note @below {{and those of 'tensor<?x4xf32>' are another}}
    %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %y : tensor<?x1xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = arith.mulf %y, %1 : tensor<?x4xf32>
  tile.return %2 : tensor<?x4xf32>
}

// -----

// What is only repeated to be summed may have any columns that are as many.
// expected-error @below {{'tile.kernel' op goes along two dimensions of columns}}
tile.kernel @repeated_columns(
    // expected-note @below {{the columns of 'tensor<?x8xf32>' are one}}
    %x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  // expected-note @below {{and those of 'tensor<?x4xf32>' are another}}
  %1 = tile.broadcast %0 like %0 : tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x4xf32>
  %2 = tile.reduce add %1 : tensor<?x4xf32> -> tensor<?x1xf32>
  tile.return %2 : tensor<?x1xf32>
}

// -----

tile.kernel @repeated_along_rows(%x: tensor<?x8xf32>) -> tensor<?x1xf32> {
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x1xf32>
  %1 = tile.broadcast %0 like %0 : tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x8xf32>
  %2 = tile.reduce add %1 : tensor<?x8xf32> -> tensor<?x1xf32>
  tile.return %2 : tensor<?x1xf32>
}

// -----

// A square weight and its transpose.
// expected-error @below {{'tile.kernel' op goes along two dimensions of columns}}
tile.kernel @square_weights(
    // expected-note @below {{the columns of 'tensor<8x8xf32>' are one}}
    %w: tensor<8x8xf32>,
    // expected-note @below {{and those of 'tensor<8x8xf32>' are another}}
    %t: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
    attributes {space = #tile.space<[n = 8, k = 8], arguments = [(n, k), (k, n)],
        results = [(n, k), (k, n)], values = [(n, k), (k, n)]>} {
  %0 = arith.negf %w : tensor<8x8xf32>
  %1 = arith.negf %t : tensor<8x8xf32>
  tile.return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Contiguous halves and interleaved ones.
// expected-error @below {{'tile.kernel' op goes along two dimensions of columns}}
tile.kernel @halves(
    %x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>)
    attributes {space = #tile.space<[r = ?, c = 4, w = pieces(c, 2), e = 4],
        arguments = [(r, w), (r, w)], results = [(r, c), (r, e)],
        values = [(r, c), (r, c), (r, e), (r, e), (r, c), (r, e)]>} {
  // expected-note @below {{the columns of 'tensor<?x4xf32>' are one}}
  %low, %high = tile.split %x : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  // expected-note @below {{and those of 'tensor<?x4xf32>' are another}}
  %even, %odd = tile.split interleaved %y : tensor<?x8xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  %0 = arith.addf %low, %high : tensor<?x4xf32>
  %1 = arith.addf %even, %odd : tensor<?x4xf32>
  tile.return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

tile.kernel @rows_of_size_one(%x: tensor<?x1x8xf32>) -> tensor<?x1x8xf32> {
  // expected-error @below {{'tile.reduce_rows' op combines rows over dimensions of size 1 alone, which changes nothing; leave it out}}
  %0 = tile.reduce_rows add %x : tensor<?x1x8xf32> -> tensor<?x1x8xf32>
  tile.return %0 : tensor<?x1x8xf32>
}

// -----

tile.kernel @numbers_combined_rows(%x: tensor<?x?x8xf32>) -> tensor<1x?x8xf32> {
  // expected-error @below {{'tile.iota' op numbers rows in a kernel that combines some of them, which goes through them in another order; number them in a kernel of its own}}
  %0 = tile.iota over [0] like %x : tensor<?x?x1xi32>, tensor<?x?x8xf32>
  %1 = arith.sitofp %0 : tensor<?x?x1xi32> to tensor<?x?x1xf32>
  %2 = tile.broadcast %1 like %x : tensor<?x?x1xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %3 = arith.mulf %x, %2 : tensor<?x?x8xf32>
  %4 = tile.reduce_rows add %3 : tensor<?x?x8xf32> -> tensor<1x?x8xf32>
  tile.return %4 : tensor<1x?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op result 0 of type 'tensor<?x8xi1>' cannot lie in memory}}
tile.kernel @leaves_condition(%x: tensor<?x8xf32>) -> tensor<?x8xi1> {
  %0 = arith.cmpf oeq, %x, %x : tensor<?x8xf32>
  tile.return %0 : tensor<?x8xi1>
}

// -----

tile.kernel @return_type(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'tile.return' op returns 'tensor<?x4xf32>' from a kernel of type '(tensor<?x8xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>'}}
  tile.return %y : tensor<?x4xf32>
}

// -----

tile.kernel @return_count(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{from a kernel of type '(tensor<?x8xf32>) -> tensor<?x8xf32>'}}
  tile.return
}

// -----

func.func @return_outside() {
  // expected-error @below {{'tile.return' op expects parent op to be one of 'tile.kernel, tile.program'}}
  tile.return
}

// -----

//===----------------------------------------------------------------------===//
// tile.launch
//===----------------------------------------------------------------------===//

func.func @launch_unknown(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.launch' op refers to @nowhere, which does not exist}}
  %0 = tile.launch [@nowhere](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @launch_nothing(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.launch' op names no kernel}}
  %0 = tile.launch [](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

tile.kernel @k(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}
func.func @launch_type(%x: tensor<?x4xf32>) {
  // expected-error @below {{does not fit kernel @k of type '(tensor<?x8xf32>) -> tensor<?x8xf32>'}}
  %0 = tile.launch [@k](%x) : (tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

tile.kernel @k(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}
func.func @launch_several(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.launch' op names kernel @k and others; only programs are variants of each other}}
  %0 = tile.launch [@k, @k](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.launch' op refers to @f, which is neither a kernel nor a program}}
  tile.launch [@f](%x) : (tensor<?x8xf32>) -> ()
  return
}

// -----

func.func @launch_scalar(%s: f32) {
  // expected-error @below {{operand #0 must be variadic of ranked tensor of any type values, but got 'f32'}}
  tile.launch [@k](%s) : (f32) -> ()
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.misalignment
//===----------------------------------------------------------------------===//

func.func @misalignment_of_vector(%w: memref<8xf32>, %i: index) {
  // expected-error @below {{'tile.misalignment' op is of rows, which 'memref<8xf32>' does not have}}
  %0 = tile.misalignment %w[%i] to 4 : memref<8xf32> -> tensor<1x1xi32>
  return
}

// -----

func.func @misalignment_phase(%x: memref<?x9xf32>, %i: index) {
  // expected-error @below {{'tile.misalignment' op is to a multiple of 6 elements, which is no power of two above 1}}
  %0 = tile.misalignment %x[%i] to 6 : memref<?x9xf32> -> tensor<1x1xi32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.load, tile.store, tile.mask
//===----------------------------------------------------------------------===//

func.func @load_rank(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{'tile.load' op moves a tile of two dimensions, not 'tensor<8xf32>'}}
  %0 = tile.load %x[%i, %i] : memref<?x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @load_element_type(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{moves between 'tensor<1x8xf16>' and 'memref<?x8xf32>', whose element types differ}}
  %0 = tile.load %x[%i, %i] : memref<?x8xf32> -> tensor<1x8xf16>
  return
}

// -----

func.func @load_indices(%x: memref<?x?x8xf32>, %i: index) {
  // expected-error @below {{takes 2 indices into 'memref<?x?x8xf32>', but has 3}}
  %0 = tile.load %x[%i, %i, %i] : memref<?x?x8xf32> -> tensor<1x8xf32>
  return
}

// -----

func.func @load_vector_indices(%w: memref<8xf32>, %i: index) {
  // expected-error @below {{takes 1 indices into 'memref<8xf32>', but has 2}}
  %0 = tile.load %w[%i, %i] : memref<8xf32> -> tensor<1x8xf32>
  return
}

// -----

func.func @load_vector_rows(%w: memref<8xf32>, %i: index) {
  // expected-error @below {{moves one row of 'memref<8xf32>', not 'tensor<2x8xf32>'}}
  %0 = tile.load %w[%i] : memref<8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @load_dynamic_tile(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{result #0 must be statically shaped tensor of any type values, but got 'tensor<?x8xf32>'}}
  %0 = tile.load %x[%i, %i] : memref<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @store_rank(%t: tensor<8xf32>, %x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{'tile.store' op moves a tile of two dimensions, not 'tensor<8xf32>'}}
  tile.store %t, %x[%i, %i] : tensor<8xf32>, memref<?x8xf32>
  return
}

// -----

func.func @store_element_type(%t: tensor<1x8xf16>, %x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{whose element types differ}}
  tile.store %t, %x[%i, %i] : tensor<1x8xf16>, memref<?x8xf32>
  return
}

// -----

func.func @store_indices(%t: tensor<1x8xf32>, %x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{takes 2 indices into 'memref<?x8xf32>', but has 1}}
  tile.store %t, %x[%i] : tensor<1x8xf32>, memref<?x8xf32>
  return
}

// -----

func.func @store_vector_rows(%t: tensor<2x8xf32>, %w: memref<8xf32>, %i: index) {
  // expected-error @below {{moves one row of 'memref<8xf32>', not 'tensor<2x8xf32>'}}
  tile.store %t, %w[%i] : tensor<2x8xf32>, memref<8xf32>
  return
}

// -----

func.func @load_piece_beyond(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{'tile.load' op moves a piece of 4 columns from column 6 on, which is not within the rows of 'memref<?x8xf32>'}}
  %0 = tile.load %x[%i, %i] {offset = 6 : i64, length = 4 : i64} : memref<?x8xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @load_piece_before(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{moves a piece of 4 columns from column -1 on}}
  %0 = tile.load %x[%i, %i] {offset = -1 : i64, length = 4 : i64} : memref<?x8xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @load_piece_empty(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{moves a piece of 0 columns from column 4 on}}
  %0 = tile.load %x[%i, %i] {offset = 4 : i64, length = 0 : i64} : memref<?x8xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @load_offset_alone(%x: memref<?x8xf32>, %i: index) {
  // expected-error @below {{'tile.load' op has the offset 4, but no 'length' of the piece there}}
  %0 = tile.load %x[%i, %i] {offset = 4 : i64} : memref<?x8xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @store_piece_beyond(%t: tensor<1x4xf32>, %w: memref<8xf32>, %i: index) {
  // expected-error @below {{'tile.store' op moves a piece of 9 columns from column 0 on, which is not within the rows of 'memref<8xf32>'}}
  tile.store %t, %w[%i] {length = 9 : i64} : tensor<1x4xf32>, memref<8xf32>
  return
}

// -----

func.func @mask_dynamic(%t: tensor<?x8xf32>, %i: index) {
  // expected-error @below {{operand #0 must be statically shaped tensor of any type values, but got 'tensor<?x8xf32>'}}
  %0 = tile.mask %t from %i limit 8 else 0.0 : f32 : tensor<?x8xf32>
  return
}

// -----

func.func @mask_rows_dynamic(%t: tensor<?x8xf32>, %i: index) {
  // expected-error @below {{operand #0 must be statically shaped tensor of any type values, but got 'tensor<?x8xf32>'}}
  %0 = tile.mask_rows %t from %i limit %i else 0.0 : f32 : tensor<?x8xf32>
  return
}

// -----

func.func @copy_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.copy' op requires the same type for all operands and results}}
  %0 = "tile.copy"(%x) : (tensor<?x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

// expected-error @below {{schedule field 'threads' must be from 0 to 16777216, but is -32}}
func.func @schedule_negative() attributes {tile.schedule = #tile.rows<threads = -32>} {
  return
}

// -----

// expected-error @below {{schedule field 'rows' must be from 0 to 16777216, but is 4611686018427387904}}
func.func @schedule_overflow() attributes {tile.schedule = #tile.rows<rows = 4611686018427387904>} {
  return
}

// -----

// expected-error @below {{schedule field 'vector' must be a power of two up to 16, but is 12}}
func.func @schedule_vector() attributes {tile.schedule = #tile.rows<vector = 12>} {
  return
}

// -----

// expected-error @below {{schedule field 'vector' must be a power of two up to 16, but is 32}}
func.func @schedule_wide_vector() attributes {tile.schedule = #tile.rows<vector = 32>} {
  return
}

// -----

// expected-error @below {{duplicate or unknown struct parameter name: thread}}
func.func @schedule_field() attributes {tile.schedule = #tile.rows<thread = 32>} {
  return
}

// -----

// expected-error @below {{duplicate or unknown struct parameter name: rows}}
func.func @schedule_twice() attributes {tile.schedule = #tile.rows<rows = 1, rows = 2>} {
  return
}

// -----

// expected-error @below {{layout fields must be at least 1}}
func.func @layout_zero(%t: tensor<4x8xf32, #tile.blocked<vector = 0, threadRows = 1, threadColumns = 4>>) {
  return
}

// -----

// expected-error @below {{a layout describes a tile of two static dimensions}}
func.func @layout_rank(%t: tensor<8xf32, #tile.blocked<vector = 2, threadRows = 1, threadColumns = 4>>) {
  return
}

// -----

// expected-error @below {{a layout describes a tile of two static dimensions}}
func.func @layout_dynamic(%t: tensor<?x8xf32, #tile.blocked<vector = 2, threadRows = 1, threadColumns = 4>>) {
  return
}

// -----

// expected-error @below {{3 rows do not divide into 2 rows of threads}}
func.func @layout_rows(%t: tensor<3x8xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4>>) {
  return
}

// -----

// expected-error @below {{12 columns do not divide into pieces of 2 for 4 threads}}
func.func @layout_columns(%t: tensor<2x12xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4>>) {
  return
}

// -----

// expected-error @below {{layout fields must be at least 1}}
func.func @layout_no_blocks(%t: tensor<4x8xf32, #tile.blocked<vector = 2, threadRows = 1, threadColumns = 4, blocks = 0>>) {
  return
}

// -----

// expected-error @below {{24 columns do not divide into pieces of 2 for 4 threads in each of 2 blocks}}
func.func @layout_blocks(%t: tensor<2x24xf32, #tile.blocked<vector = 2, threadRows = 2, threadColumns = 4, blocks = 2>>) {
  return
}

// -----

// expected-error @below {{schedule field 'cluster' must be from 0 to 16777216, but is -2}}
func.func @schedule_cluster() attributes {tile.schedule = #tile.rows<cluster = -2>} {
  return
}

// -----

// expected-error @below {{schedule field 'stages' must be at most 8, but is 9}}
func.func @schedule_stages() attributes {tile.schedule = #tile.rows<stages = 9>} {
  return
}

// -----

func.func @exchange_of_some(%a: tensor<1x1xf32>, %b: tensor<1x1xf32>) {
  // expected-error @below {{'tile.exchange' op has 3 results for 2 operands, not as many for each of them}}
  %0:3 = tile.exchange %a, %b : (tensor<1x1xf32>, tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
  return
}

// -----

func.func @exchange_of_another_type(%a: tensor<1x1xf32>) {
  // expected-error @below {{'tile.exchange' op gives 'tensor<1x1xf32>' to other blocks as 'tensor<1x1xi32>'}}
  %0:2 = tile.exchange %a : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xi32>)
  return
}

// -----

func.func @reduce_groups_of_different_sizes(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.reduce' op cannot reduce 'tensor<?x8xf32>' to 3 groups of columns of one size}}
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @reduce_groups_of_other_rows(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.reduce' op reduces 'tensor<?x8xf32>' to 'tensor<?x2xf32>', not to 'tensor<4x2xf32>'}}
  %0 = tile.reduce add %x : tensor<?x8xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @broadcast_groups(%s: tensor<?x3xf32>, %x: tensor<?x8xf32>) {
  // expected-error @below {{cannot repeat a source of type 'tensor<?x3xf32>' to a result of type 'tensor<?x8xf32>'}}
  %0 = tile.broadcast %s like %x : tensor<?x3xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// tile.quantize, tile.dequantize
//===----------------------------------------------------------------------===//

func.func @quantize_shape(%x: tensor<?x8xbf16>) {
  // expected-error @below {{'tile.quantize' op result of type 'tensor<?x4xf8E4M3FN>' does not have the shape of the input of type 'tensor<?x8xbf16>'}}
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x4xf8E4M3FN>, tensor<?x1xf32>
  return
}

// -----

func.func @quantize_format(%x: tensor<?x8xbf16>) {
  // expected-error @below {{'tile.quantize' op result of type 'tensor<?x8xf8E5M2>' does not have the format e4m3; name it by 'format'}}
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x8xf8E5M2>, tensor<?x1xf32>
  return
}

// -----

func.func @quantize_scale(%x: tensor<?x8xbf16>) {
  // expected-error @below {{'tile.quantize' op scale of type 'tensor<?x3xf32>' must be one number for all rows of type 'tensor<?x8xbf16>', or for each row, or for groups of its columns of one size}}
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x8xf8E4M3FN>, tensor<?x3xf32>
  return
}

// -----

func.func @quantize_scale_of_elements(%x: tensor<?x8xbf16>) {
  // expected-error @below {{scale of type 'tensor<?x8xf32>' must be one number for all rows}}
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x8xf8E4M3FN>, tensor<?x8xf32>
  return
}

// -----

func.func @quantize_precision(%x: tensor<?x8xbf16>) {
  // expected-error @below {{'tile.quantize' op scale of type 'tensor<?x1xf64>' does not have the precision that an input of type 'tensor<?x8xbf16>' is computed in}}
  %q, %s = tile.quantize %x : tensor<?x8xbf16> -> tensor<?x8xf8E4M3FN>, tensor<?x1xf64>
  return
}

// -----

func.func @quantize_least(%x: tensor<?x8xbf16>) {
  // expected-error @below {{'tile.quantize' op min_amax must not be negative, but is -1.0}}
  %q, %s = tile.quantize %x {min_amax = -1.0}
      : tensor<?x8xbf16> -> tensor<?x8xf8E4M3FN>, tensor<?x1xf32>
  return
}

// -----

func.func @dequantize_scale(%x: tensor<?x8xf8E4M3FN>, %s: tensor<8xf32>) {
  // expected-error @below {{'tile.dequantize' op scale of type 'tensor<8xf32>' must be one number for all rows of type 'tensor<?x8xf8E4M3FN>'}}
  %0 = tile.dequantize %x, %s : tensor<?x8xf8E4M3FN>, tensor<8xf32> -> tensor<?x8xbf16>
  return
}

// -----

func.func @dequantize_shape(%x: tensor<?x8xf8E4M3FN>, %s: tensor<1xf32>) {
  // expected-error @below {{'tile.dequantize' op result of type 'tensor<?x4xbf16>' does not have the shape of the input of type 'tensor<?x8xf8E4M3FN>'}}
  %0 = tile.dequantize %x, %s : tensor<?x8xf8E4M3FN>, tensor<1xf32> -> tensor<?x4xbf16>
  return
}

// -----

func.func @broadcast_of_nothing(%s: tensor<2x0xf32>) -> tensor<4x0xf32> {
  // expected-error @below {{'tile.broadcast' op cannot repeat a source of type 'tensor<2x0xf32>' to a result of type 'tensor<4x0xf32>'}}
  %0 = tile.broadcast %s : tensor<2x0xf32> -> tensor<4x0xf32>
  return %0 : tensor<4x0xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 1 of type 'tensor<8xindex>' has neither integers nor floats as elements}}
tile.kernel @elements(%x: tensor<?x8xf32>, %w: tensor<8xindex>) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 of type 'tensor<?x0xf32>' has no row length from 1 to 2147483648}}
tile.kernel @no_columns(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  tile.return %x : tensor<?x0xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 of type 'tensor<?xf32>' has no row length from 1 to 2147483648}}
tile.kernel @any_columns(%x: tensor<?xf32>) -> tensor<?xf32> {
  tile.return %x : tensor<?xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 of type 'tensor<?x4611686018427387904xf32>' has no row length from 1 to 2147483648}}
tile.kernel @huge(%x: tensor<?x4611686018427387904xf32>) -> tensor<?x4611686018427387904xf32> {
  tile.return %x : tensor<?x4611686018427387904xf32>
}

// -----

// expected-error @below {{layout fields must be at most 1048576, a group 16777216}}
func.func private @huge_layout(tensor<1x24xf32, #tile.blocked<vector = 4611686018427387904, threadRows = 1, threadColumns = 4>>)

// -----

tile.kernel @launches_itself(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'tile.launch' op cannot be part of a kernel}}
  %0 = tile.launch [@launches_itself](%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  tile.return %0 : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 has 'tile.in_place' 1 : i64, which is the number of no result of type 'tensor<?x8xf32>'}}
tile.kernel @in_place_of_no_result(%x: tensor<?x8xf32> {tile.in_place = 1 : i64}) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{'tile.kernel' op argument 0 has the unknown attribute 'tile.readonly'}}
tile.kernel @unknown_attribute(%x: tensor<?x8xf32> {tile.readonly}) -> tensor<?x8xf32> {
  tile.return %x : tensor<?x8xf32>
}
