// RUN: tile-opt %s -verify-diagnostics -split-input-file

func.func @reglu_types(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{'tile.reglu' op requires the same type for all operands and results}}
  %0 = "tile.reglu"(%x, %y) : (tensor<?x8xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @reglu_integers(%x: tensor<?x8xi32>) {
  // expected-error @below {{operand #0 must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<?x8xi32>'}}
  %0 = tile.reglu %x, %x : tensor<?x8xi32>
  return
}

// -----

func.func @swiglu_types(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) {
  // expected-error @below {{'tile.swiglu' op requires the same type for all operands and results}}
  %0 = "tile.swiglu"(%x, %y) : (tensor<?x8xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @swiglu_integers(%x: tensor<?x8xi32>) {
  // expected-error @below {{operand #0 must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<?x8xi32>'}}
  %0 = tile.swiglu %x, %x : tensor<?x8xi32>
  return
}

// -----

func.func @relu_squared_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.relu_squared' op requires the same type for all operands and results}}
  %0 = "tile.relu_squared"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @relu_squared_vector(%x: tensor<8xf32>) {
  // expected-error @below {{must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<8xf32>'}}
  %0 = tile.relu_squared %x : tensor<8xf32>
  return
}

// -----

func.func @gelu_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.gelu' op requires the same type for all operands and results}}
  %0 = "tile.gelu"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @gelu_vector(%x: tensor<8xf32>) {
  // expected-error @below {{must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<8xf32>'}}
  %0 = tile.gelu %x : tensor<8xf32>
  return
}

// -----

func.func @silu_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.silu' op requires the same type for all operands and results}}
  %0 = "tile.silu"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @silu_vector(%x: tensor<8xf32>) {
  // expected-error @below {{must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<8xf32>'}}
  %0 = tile.silu %x : tensor<8xf32>
  return
}

// -----

func.func @softmax_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.softmax' op requires the same type for all operands and results}}
  %0 = "tile.softmax"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @softmax_vector(%x: tensor<8xf32>) {
  // expected-error @below {{must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<8xf32>'}}
  %0 = tile.softmax %x : tensor<8xf32>
  return
}

// -----

func.func @log_softmax_type(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.log_softmax' op requires the same type for all operands and results}}
  %0 = "tile.log_softmax"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @log_softmax_vector(%x: tensor<8xf32>) {
  // expected-error @below {{must be row tensor of f16, bf16, f32 or f64 (at least one leading dimension and a static last dimension of at least 1), but got 'tensor<8xf32>'}}
  %0 = tile.log_softmax %x : tensor<8xf32>
  return
}

// -----

func.func @add_bias_length(%x: tensor<?x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'tile.add_bias' op bias of type 'tensor<4xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0 = tile.add_bias %x, %b : tensor<?x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @add_bias_rows(%x: tensor<?x8xf32>) {
  // expected-error @below {{operand #1 must be row vector of f16, bf16, f32 or f64 (one static dimension of at least 1), but got 'tensor<?x8xf32>'}}
  %0 = tile.add_bias %x, %x : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_weight(%x: tensor<?x8xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{'tile.layer_norm' op weight of type 'tensor<4xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0 = tile.layer_norm %x, %w : tensor<?x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %b: tensor<9xf32>) {
  // expected-error @below {{'tile.layer_norm' op bias of type 'tensor<9xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0 = tile.layer_norm %x, %w bias(%b) : tensor<?x8xf32>, tensor<8xf32>, tensor<9xf32>
  return
}

// -----

func.func @layer_norm_eps(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.layer_norm' op eps must not be negative, but is -1.000000e-05}}
  %0 = tile.layer_norm %x {eps = -1.0e-5} : tensor<?x8xf32>
  return
}

// -----

func.func @add_rms_norm_weight(%x: tensor<?x8xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{'tile.add_rms_norm' op weight of type 'tensor<4xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0, %1 = tile.add_rms_norm %x, %x, %w : tensor<?x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @add_rms_norm_eps(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'tile.add_rms_norm' op eps must not be negative, but is -1.000000e+00}}
  %0, %1 = tile.add_rms_norm %x, %x, %w {eps = -1.0} : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @add_rms_norm_residual(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'tile.add_rms_norm' op residual of type 'tensor<?x4xf32>' does not have the shape of the input of type 'tensor<?x8xf32>'}}
  %0, %1 = tile.add_rms_norm %x, %y, %w : tensor<?x8xf32> + tensor<?x4xf32>, tensor<8xf32>
  return
}

// -----

func.func @add_rms_norm_precisions(%x: tensor<?x8xf32>, %y: tensor<?x8xf64>) {
  // expected-error @below {{'tile.add_rms_norm' op residual of type 'tensor<?x8xf64>' is not computed in the precision of the input of type 'tensor<?x8xf32>'}}
  %0, %1 = tile.add_rms_norm %x, %y : tensor<?x8xf32> + tensor<?x8xf64>
  return
}

// -----

func.func @rms_norm_groups(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.rms_norm' op rows of the input of type 'tensor<?x8xf32>' are not 3 groups of several columns of one size}}
  %0 = tile.rms_norm %x {groups = 3} : tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_single_columns(%x: tensor<?x8xf32>) {
  // expected-error @below {{'tile.rms_norm' op rows of the input of type 'tensor<?x8xf32>' are not 8 groups of several columns of one size}}
  %0 = tile.rms_norm %x {groups = 8} : tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_bias(%x: tensor<?x8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'tile.rms_norm' op bias of type 'tensor<4xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0 = tile.rms_norm %x bias(%b) : tensor<?x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @rope_odd(%q: tensor<?x?x8xf32>, %c: tensor<1x?x3xf32>) {
  // expected-error @below {{'tile.rope' op rotary size of 3 must be even, and no larger than the rows of the input of type 'tensor<?x?x8xf32>'}}
  %0 = tile.rope %q, %c, %c {rotary = 3} : tensor<?x?x8xf32>, tensor<1x?x3xf32>
  return
}

// -----

func.func @rope_of_many_pieces(%q: tensor<?x4096xf32>, %c: tensor<?x1xf32>) {
  // expected-error @below {{'tile.rope' op turns 2 elements of rows of 4096, which takes these apart into 4096 pieces; 1024 are the most}}
  %0 = tile.rope %q, %c, %c interleaved {rotary = 2} : tensor<?x4096xf32>, tensor<?x1xf32>
  return
}

// -----

func.func @rope_beyond(%q: tensor<?x?x8xf32>, %c: tensor<1x?x8xf32>) {
  // expected-error @below {{'tile.rope' op rotary size of 16 must be even}}
  %0 = tile.rope %q, %c, %c {rotary = 16} : tensor<?x?x8xf32>, tensor<1x?x8xf32>
  return
}

// -----

func.func @rope_interleaved(%q: tensor<?x?x9xf32>, %c: tensor<1x?x3xf32>) {
  // expected-error @below {{'tile.rope' op interleaved pairs of the input of type 'tensor<?x?x9xf32>' need rows of an even length}}
  %0 = tile.rope %q, %c, %c interleaved {rotary = 6} : tensor<?x?x9xf32>, tensor<1x?x3xf32>
  return
}

// -----

func.func @rope_length(%q: tensor<?x?x8xf32>, %c: tensor<1x?x2xf32>) {
  // expected-error @below {{'tile.rope' op cosine of type 'tensor<1x?x2xf32>' must have rows of the rotary size, 8, or of its half}}
  %0 = tile.rope %q, %c, %c : tensor<?x?x8xf32>, tensor<1x?x2xf32>
  return
}

// -----

func.func @rope_rank(%q: tensor<?x?x8xf32>, %c: tensor<?x4xf32>) {
  // expected-error @below {{'tile.rope' op cosine of type 'tensor<?x4xf32>' does not have the rank of the input of type 'tensor<?x?x8xf32>'; shared leading dimensions have the size 1}}
  %0 = tile.rope %q, %c, %c : tensor<?x?x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @rope_leading(%q: tensor<?x?x8xf32>, %c: tensor<2x?x4xf32>) {
  // expected-error @below {{'tile.rope' op cosine of type 'tensor<2x?x4xf32>' does not have the leading sizes of the input of type 'tensor<?x?x8xf32>', nor 1 where they are shared}}
  %0 = tile.rope %q, %c, %c : tensor<?x?x8xf32>, tensor<2x?x4xf32>
  return
}

// -----

func.func @rope_sine(%q: tensor<?x?x8xf32>, %c: tensor<1x?x4xf32>, %s: tensor<1x?x8xf32>) {
  // expected-error @below {{'tile.rope' op failed to verify that all of {cosine, sine} have same type}}
  %0 = "tile.rope"(%q, %c, %s) : (tensor<?x?x8xf32>, tensor<1x?x4xf32>, tensor<1x?x8xf32>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @cross_entropy_leading(%x: tensor<?x?x8xf32>, %t: tensor<?x1xi64>) {
  // expected-error @below {{'tile.cross_entropy' op targets of type 'tensor<?x1xi64>' do not have the leading sizes of the logits of type 'tensor<?x?x8xf32>'}}
  %0:5 = tile.cross_entropy %x, %t : tensor<?x?x8xf32>, tensor<?x1xi64>
  return
}

// -----

func.func @cross_entropy_floats(%x: tensor<?x8xf32>, %t: tensor<?x1xf32>) {
  // expected-error @below {{operand #1 must be statistic of i32 or i64 (at least one leading dimension and a last dimension of 1), but got 'tensor<?x1xf32>'}}
  %0:5 = tile.cross_entropy %x, %t : tensor<?x8xf32>, tensor<?x1xf32>
  return
}

// -----

func.func @cross_entropy_row_of_targets(%x: tensor<?x8xf32>, %t: tensor<?x2xi64>) {
  // expected-error @below {{operand #1 must be statistic of i32 or i64 (at least one leading dimension and a last dimension of 1), but got 'tensor<?x2xi64>'}}
  %0:5 = tile.cross_entropy %x, %t : tensor<?x8xf32>, tensor<?x2xi64>
  return
}

// -----

func.func @cross_entropy_weights(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>, %w: tensor<4xf32>) {
  // expected-error @below {{'tile.cross_entropy' op weights of type 'tensor<4xf32>' does not have the row length of the logits of type 'tensor<?x8xf32>'}}
  %0:5 = tile.cross_entropy %x, %t weights(%w) : tensor<?x8xf32>, tensor<?x1xi64>, tensor<4xf32>
  return
}

// -----

func.func @cross_entropy_smoothing(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>) {
  // expected-error @below {{'tile.cross_entropy' op label_smoothing must be from 0 to 1, but is 1.500000e+00}}
  %0:5 = tile.cross_entropy %x, %t {label_smoothing = 1.5} : tensor<?x8xf32>, tensor<?x1xi64>
  return
}

// -----

func.func @cross_entropy_soft_cap(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>) {
  // expected-error @below {{'tile.cross_entropy' op soft_cap must be positive, or 0 for none, but is -1.000000e+00}}
  %0:5 = tile.cross_entropy %x, %t {soft_cap = -1.0} : tensor<?x8xf32>, tensor<?x1xi64>
  return
}

// -----

func.func @cross_entropy_temperature(%x: tensor<?x8xf32>, %t: tensor<?x1xi64>) {
  // expected-error @below {{'tile.cross_entropy' op temperature must be positive, but is 0.000000e+00}}
  %0:5 = tile.cross_entropy %x, %t {temperature = 0.0} : tensor<?x8xf32>, tensor<?x1xi64>
  return
}

// -----

func.func @cross_entropy_vector(%x: tensor<8xf32>, %t: tensor<?x1xi64>) {
  // expected-error @below {{logits must be a row tensor}}
  %0:5 = tile.cross_entropy %x, %t : tensor<8xf32>, tensor<?x1xi64>
  return
}

// -----

func.func @linear_length(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>) {
  // expected-error @below {{'tile.linear' op weight of type 'tensor<8x4xf32>' does not have the row length of the input of type 'tensor<?x8xf32>'}}
  %0 = tile.linear %x, %w : tensor<?x8xf32>, tensor<8x4xf32>
  return
}

// -----

func.func @linear_bias(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{'tile.linear' op bias of type 'tensor<8xf32>' does not have the row length of the result of type 'tensor<?x4xf32>'}}
  %0 = tile.linear %x, %w, %b : tensor<?x8xf32>, tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @linear_elements(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>) {
  // expected-error @below {{'tile.linear' op failed to verify that all of {input, weight} have same element type}}
  %0 = tile.linear %x, %w : tensor<?x8xf32>, tensor<4x8xbf16>
  return
}

// -----

func.func @linear_columns(%x: tensor<?x8xf32>, %w: tensor<?x8xf32>) {
  // expected-error @below {{operand #1 must be matrix of f16, bf16, f32 or f64 (two static dimensions of at least 1), but got 'tensor<?x8xf32>'}}
  %0 = tile.linear %x, %w : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @linear_vector(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{input must be a row tensor, and weight a matrix}}
  %0 = tile.linear %x, %w : tensor<?x8xf32>, tensor<8xf32>
  return
}
