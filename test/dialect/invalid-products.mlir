// RUN: tile-opt %s -verify-diagnostics -split-input-file

#s = #tile.shared<swizzle = 128>
func.func @await_more_tiles(%b: !tile.barriers<1>, %i: index, %m: memref<2x64x64xbf16, #s>) {
  // expected-error @below {{'tile.await' op has 2 tiles of 1 buffers}}
  %0, %1 = tile.await %b[%i] parity %i of %m : !tile.barriers<1>, memref<2x64x64xbf16, #s>
      -> memref<64x64xbf16, #s>, memref<64x64xbf16, #s>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @more_tiles(%i: index, %m: memref<2x64x64xbf16, #s>) {
  // expected-error @below {{'tile.get_tiles' op has 2 tiles of 1 buffers}}
  %0, %1 = tile.get_tiles %m[%i] : memref<2x64x64xbf16, #s>
      -> memref<64x64xbf16, #s>, memref<64x64xbf16, #s>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @await_shape(%b: !tile.barriers<1>, %i: index, %m: memref<2x64x64xbf16, #s>) {
  // expected-error @below {{'tile.await' op takes 'memref<64x32xbf16, #tile.shared<swizzle = 128>>' from 'memref<2x64x64xbf16, #tile.shared<swizzle = 128>>', which is no slot of it}}
  %0 = tile.await %b[%i] parity %i of %m : !tile.barriers<1>, memref<2x64x64xbf16, #s> -> memref<64x32xbf16, #s>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @await_element_type(%b: !tile.barriers<1>, %i: index, %m: memref<2x64x64xbf16, #s>) {
  // expected-error @below {{'tile.await' op takes 'memref<64x64xf16, #tile.shared<swizzle = 128>>' from 'memref<2x64x64xbf16, #tile.shared<swizzle = 128>>', which is no slot of it}}
  %0 = tile.await %b[%i] parity %i of %m : !tile.barriers<1>, memref<2x64x64xbf16, #s> -> memref<64x64xf16, #s>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @await_memory(%b: !tile.barriers<1>, %i: index, %m: memref<2x64x64xbf16, #s>) {
  // expected-error @below {{'tile.await' op takes 'memref<64x64xbf16, #tile.shared<swizzle = 64>>' from 'memref<2x64x64xbf16, #tile.shared<swizzle = 128>>', which is no slot of it}}
  %0 = tile.await %b[%i] parity %i of %m : !tile.barriers<1>, memref<2x64x64xbf16, #s> -> memref<64x64xbf16, #tile.shared<swizzle = 64>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @await_rank(%b: !tile.barriers<1>, %i: index, %m: memref<64x64xbf16, #s>) {
  // expected-error @below {{'tile.await' op takes 'memref<64xbf16, #tile.shared<swizzle = 128>>' from 'memref<64x64xbf16, #tile.shared<swizzle = 128>>', which is no slot of it}}
  %0 = tile.await %b[%i] parity %i of %m : !tile.barriers<1>, memref<64x64xbf16, #s> -> memref<64xbf16, #s>
  return
}

// -----

func.func @await_other_memory(%b: !tile.barriers<1>, %i: index, %m: memref<2x64x64xbf16>) {
  // expected-error @below {{'tile.await' op takes 'memref<64x64xbf16>' from 'memref<2x64x64xbf16>', which is no slot of it}}
  %0 = tile.await %b[%i] parity %i of %m : !tile.barriers<1>, memref<2x64x64xbf16> -> memref<64x64xbf16>
  return
}

// -----

#l = #tile.mma<warps = 4>
func.func @begin_other_tile(%t: tensor<64x64xf32, #l>) {
  // expected-error @below {{'tile.begin_dots' op gives 'tensor<64x64xf32, #tile.mma<warps = 4>>' to products as '!tile.pending<tensor<64x32xf32, #tile.mma<warps = 4>>>'}}
  %0 = tile.begin_dots %t : tensor<64x64xf32, #l> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

func.func @begin_without_layout(%t: tensor<64x64xf32>) {
  // expected-error @below {{'tile.begin_dots' op sums to 'tensor<64x64xf32>', not to float32 with a '#tile.mma' layout}}
  %0 = tile.begin_dots %t : tensor<64x64xf32> -> !tile.pending<tensor<64x64xf32>>
  return
}

// -----

func.func @begin_narrow(%t: tensor<64x64xbf16, #tile.mma<warps = 4>>) {
  // expected-error @below {{not to float32 with a '#tile.mma' layout}}
  %0 = tile.begin_dots %t : tensor<64x64xbf16, #tile.mma<warps = 4>> -> !tile.pending<tensor<64x64xbf16, #tile.mma<warps = 4>>>
  return
}

// -----

func.func @begin_of_warps(%t: tensor<32x64xf32, #tile.mma<warps = 2>>) {
  // expected-error @below {{'tile.begin_dots' op is of 2 warps, which are no whole warpgroups}}
  %0 = tile.begin_dots %t : tensor<32x64xf32, #tile.mma<warps = 2>> -> !tile.pending<tensor<32x64xf32, #tile.mma<warps = 2>>>
  return
}

// -----

func.func @begin_row(%t: tensor<1x64xf32, #tile.mma<warps = 4>>) {
  // expected-error @below {{'tile.begin_dots' op sums to 'tensor<1x64xf32, #tile.mma<warps = 4>>', which has a single row or column}}
  %0 = tile.begin_dots %t : tensor<1x64xf32, #tile.mma<warps = 4>> -> !tile.pending<tensor<1x64xf32, #tile.mma<warps = 4>>>
  return
}

// -----

func.func @begin_column(%t: tensor<64x1xf32, #tile.mma<warps = 4>>) {
  // expected-error @below {{which has a single row or column}}
  %0 = tile.begin_dots %t : tensor<64x1xf32, #tile.mma<warps = 4>> -> !tile.pending<tensor<64x1xf32, #tile.mma<warps = 4>>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @dot_without_layout(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op sums to 'tensor<64x32xf32>', not to float32 with a '#tile.mma' layout}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_narrow_sum(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{not to float32 with a '#tile.mma' layout}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xbf16, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
func.func @dot_of_warps(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op is of 2 warps, which are no whole warpgroups}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #tile.mma<warps = 2>>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_a_row(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{which has a single row or column}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<1x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_contracts_one(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op contracts the dimensions [1], not one of each operand}}
  %0 = tile.dot %a, %b contract [1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_contracts_third(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op contracts the dimensions [2, 1], not one of each operand}}
  %0 = tile.dot %a, %b contract [2, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_slots(%a: memref<1x64x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{of which some is no tile in '#tile.shared' memory}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<1x64x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_other_memory(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16>) {
  // expected-error @below {{of which some is no tile in '#tile.shared' memory}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_left_of_other_memory(%a: memref<64x64xbf16>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{of which some is no tile in '#tile.shared' memory}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_floats(%a: memref<64x64xf32, #s>, %b: memref<32x64xf32, #s>) {
  // expected-error @below {{'tile.dot' op multiplies bf16, f16, f8E4M3FN or f8E5M2, not 'f32'}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xf32, #s>, memref<32x64xf32, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_transposes_bytes(%a: memref<64x64xf8E5M2, #s>, %b: memref<64x32xf8E5M2, #s>) {
  // expected-error @below {{'tile.dot' op of 'f8E5M2' takes both operands from shared memory and sums over their last dimensions}}
  %0 = tile.dot %a, %b contract [1, 0]
      : memref<64x64xf8E5M2, #s>, memref<64x32xf8E5M2, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_takes_bytes_from_registers(%a: tensor<64x64xf8E5M2, #l>, %b: memref<32x64xf8E5M2, #s>) {
  // expected-error @below {{'tile.dot' op of 'f8E5M2' takes both operands from shared memory}}
  %0 = tile.dot %a, %b contract [1, 1]
      : tensor<64x64xf8E5M2, #l>, memref<32x64xf8E5M2, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_transposed_registers(%a: tensor<64x64xbf16, #l>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op takes 'tensor<64x64xbf16, #tile.mma<warps = 4>>' from registers, whose layout is not that of}}
  %0 = tile.dot %a, %b contract [0, 1]
      : tensor<64x64xbf16, #l>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_two_types(%a: memref<64x64xbf16, #s>, %b: memref<32x64xf16, #s>) {
  // expected-error @below {{is no 'tensor<64x32xf32, #tile.mma<warps = 4>>'}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_two_depths(%a: memref<64x64xbf16, #s>, %b: memref<32x32xbf16, #s>) {
  // expected-error @below {{over [1, 1] is no 'tensor<64x32xf32, #tile.mma<warps = 4>>'}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x32xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_rows(%a: memref<128x64xbf16, #s>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{is no 'tensor<64x32xf32, #tile.mma<warps = 4>>'}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<128x64xbf16, #s>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_columns(%a: memref<64x64xbf16, #s>, %b: memref<16x64xbf16, #s>) {
  // expected-error @below {{is no 'tensor<64x32xf32, #tile.mma<warps = 4>>'}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<16x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_within_group(%a: memref<64x64xbf16, #s>, %b: memref<64x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op sums to 'tensor<64x32xf32, #tile.mma<warps = 4>>' from column 12 of 'memref<64x64xbf16, #tile.shared<swizzle = 128>>' on; products of warpgroups along the rows of 'b' may have a part of the columns that it has, from a multiple of 8 on}}
  %0 = tile.dot %a, %b contract [1, 1] column 12
      : memref<64x64xbf16, #s>, memref<64x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_beyond(%a: memref<64x64xbf16, #s>, %b: memref<64x64xbf16, #s>) {
  // expected-error @below {{from column 40 of}}
  %0 = tile.dot %a, %b contract [1, 1] column 40
      : memref<64x64xbf16, #s>, memref<64x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_part_of_rows(%a: memref<64x64xbf16, #s>, %b: memref<64x64xbf16, #s>) {
  // expected-error @below {{from column 32 of}}
  %0 = tile.dot %a, %b contract [1, 0] column 32
      : memref<64x64xbf16, #s>, memref<64x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_depth(%a: memref<8x64xbf16, #s>, %b: memref<8x32xbf16, #s>) {
  // expected-error @below {{'tile.dot' op sums 8 products for each of 32 columns; sums are of whole 32 bytes, in at most 256 columns}}
  %0 = tile.dot %a, %b contract [0, 0]
      : memref<8x64xbf16, #s>, memref<8x32xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_many_columns(%a: memref<64x64xbf16, #s>, %b: memref<512x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op sums 64 products for each of 512 columns; sums are of whole 32 bytes, in at most 256 columns}}
  %0 = tile.dot %a, %b contract [1, 1]
      : memref<64x64xbf16, #s>, memref<512x64xbf16, #s> -> !tile.pending<tensor<64x512xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_other_accumulator(%a: memref<64x64xbf16, #s>, %b: memref<32x64xbf16, #s>, %c: !tile.pending<tensor<128x32xf32, #l>>) {
  // expected-error @below {{'tile.dot' op adds to '!tile.pending<tensor<128x32xf32, #tile.mma<warps = 4>>>', but gives '!tile.pending<tensor<64x32xf32, #tile.mma<warps = 4>>>'}}
  %0 = tile.dot %a, %b, %c contract [1, 1]
      : memref<64x64xbf16, #s>, memref<32x64xbf16, #s>, !tile.pending<tensor<128x32xf32, #l>> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
#l = #tile.mma<warps = 4>
func.func @dot_of_other_registers(%a: tensor<64x64xbf16, #tile.mma<warps = 2>>, %b: memref<32x64xbf16, #s>) {
  // expected-error @below {{'tile.dot' op takes 'tensor<64x64xbf16, #tile.mma<warps = 2>>' from registers, whose layout is not that of}}
  %0 = tile.dot %a, %b contract [1, 1]
      : tensor<64x64xbf16, #tile.mma<warps = 2>>, memref<32x64xbf16, #s> -> !tile.pending<tensor<64x32xf32, #l>>
  return
}

// -----

func.func @wait_for_eight() {
  // expected-error @below {{'tile.wait_dots' op leaves 8 groups, which is not from 0 to 7}}
  tile.wait_dots 8 : () -> ()
  return
}

// -----

#l = #tile.mma<warps = 4>
func.func @wait_returns_nothing(%a: !tile.pending<tensor<64x32xf32, #l>>) {
  // expected-error @below {{'tile.wait_dots' op does not return the tiles of its sums and those that it comes after}}
  tile.wait_dots 0 of %a : (!tile.pending<tensor<64x32xf32, #l>>) -> ()
  return
}

// -----

#l = #tile.mma<warps = 4>
func.func @wait_returns_after_first(%a: !tile.pending<tensor<64x32xf32, #l>>, %t: tensor<64x1xf32, #l>) {
  // expected-error @below {{'tile.wait_dots' op does not return the tiles}}
  %0, %1 = tile.wait_dots 0 of %a after %t
      : (!tile.pending<tensor<64x32xf32, #l>>, tensor<64x1xf32, #l>) -> (tensor<64x1xf32, #l>, tensor<64x32xf32, #l>)
  return
}

// -----

// expected-error @below {{a swizzle has 0, 32, 64 or 128 bytes, not 16}}
func.func private @matrix_swizzle(tensor<1xf32, #tile.shared_matrix<swizzle = 16>>)

// -----

// expected-error @below {{8 bytes are no multiple of 16 below 262144}}
func.func private @matrix_offset(tensor<1xf32, #tile.shared_matrix<offset = 8>>)

// -----

// expected-error @below {{262144 bytes are no multiple of 16 below 262144}}
func.func private @matrix_leading(tensor<1xf32, #tile.shared_matrix<leading = 262144>>)

// -----

// expected-error @below {{-16 bytes are no multiple of 16 below 262144}}
func.func private @matrix_stride(tensor<1xf32, #tile.shared_matrix<stride = -16>>)

// -----

func.func @wait_registers_for_eight() {
  // expected-error @below {{'tile.wgmma_wait' op leaves 8 groups, which is not from 0 to 7}}
  tile.wgmma_wait 8
  return
}

// -----

func.func @more_anchors(%x: f32) {
  // expected-error @below {{'tile.wgmma_wait' op has 2 anchors among 1 values}}
  %0 = tile.wgmma_wait 0 of %x : f32 anchors 2
  return
}

// -----

func.func @anchor_type(%x: i32) {
  // expected-error @below {{'tile.wgmma_wait' op has an anchor of type 'i32', not of float32}}
  %0 = tile.wgmma_wait 0 of %x : i32 anchors 1
  return
}

// -----

func.func @wgmma_columns(%s: !llvm.ptr<3>) {
  // expected-error @below {{'tile.wgmma' op has 12 columns, which are no multiple of 8 up to 256}}
  %0:6 = "tile.wgmma"(%s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 12 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 0, 0, 1, 1>}>
      : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_results(%s: !llvm.ptr<3>) {
  // expected-error @below {{'tile.wgmma' op of 8 columns has 4 accumulators a thread, but 0 and 3 are given}}
  %0:3 = "tile.wgmma"(%s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 0, 0, 1, 1>}>
      : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32)
  return
}

// -----

func.func @wgmma_accumulators(%s: !llvm.ptr<3>, %x: f32) {
  // expected-error @below {{'tile.wgmma' op of 8 columns has 4 accumulators a thread, but 1 and 4 are given}}
  %0:4 = "tile.wgmma"(%x, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 1, 0, 1, 1>}>
      : (f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_element_type(%s: !llvm.ptr<3>) {
  // expected-error @below {{'tile.wgmma' op multiplies bf16, f16, f8E4M3FN or f8E5M2, not 'f32'}}
  %0:4 = "tile.wgmma"(%s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = f32, operandSegmentSizes = array<i32: 0, 0, 1, 1>}>
      : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_without_left(%s: !llvm.ptr<3>) {
  // expected-error @below {{'tile.wgmma' op takes its first operand from shared memory, with its layout, or from four registers}}
  %0:4 = "tile.wgmma"(%s) <{b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 0, 0, 0, 1>}>
      : (!llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @arrive_by_warps_elsewhere(%b: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.arrive' op is of each warp, in this block only}}
  tile.arrive at %b[%i] cluster warps : !tile.barriers<1>
  return
}

// -----

func.func @add_narrow_elements(%i: index, %b: memref<1x64x64xbf16, #tile.shared<swizzle = 128>>,
    %x: !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>) {
  // expected-error @below {{'tile.store_box' op adds elements of 'memref<1x64x64xbf16, #tile.shared<swizzle = 128>>', but only those of float32 are added}}
  tile.store_box %b[%i] to %x[%i, %i] add : memref<1x64x64xbf16, #tile.shared<swizzle = 128>>, !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
  return
}

// -----

func.func @transpose_narrow_elements(%i: index, %t: tensor<64x32xbf16, #tile.mma<warps = 4>>, %b: memref<1x32x64xbf16, #tile.shared<swizzle = 128>>) {
  // expected-error @below {{'tile.keep' op transposes 'tensor<64x32xbf16, #tile.mma<warps = 4>>' to 'memref<1x32x64xbf16, #tile.shared<swizzle = 128>>', but only tiles of sums are transposed, to '#tile.shared' memory}}
  tile.keep %t, %b[%i] transposed : tensor<64x32xbf16, #tile.mma<warps = 4>>, memref<1x32x64xbf16, #tile.shared<swizzle = 128>>
  return
}

// -----

func.func @put_more_numbers(%i: index, %m: memref<2x1xi32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{'tile.put_numbers' op has 2 numbers for slots of 'memref<2x1xi32, #gpu.address_space<workgroup>>'}}
  tile.put_numbers[%i, %i] to %m[%i] : memref<2x1xi32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_numbers_of_no_rows(%i: index, %x: memref<?xf32>, %m: memref<2x64xf32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{'tile.copy_numbers' op copies numbers of rows from 'memref<?xf32>' at 1 indices, which are no rows of f32}}
  tile.copy_numbers %x[%i] to %m[%i] : memref<?xf32>, memref<2x64xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_narrow_numbers(%i: index, %x: memref<?x1xbf16>, %m: memref<2x64xf32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{'tile.copy_numbers' op copies numbers of rows from 'memref<?x1xbf16>' at 2 indices, which are no rows of f32}}
  tile.copy_numbers %x[%i, %i] to %m[%i] : memref<?x1xbf16>, memref<2x64xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @take_numbers_of_a_longer_row(%i: index, %m: memref<2x32xf32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{'tile.take_numbers' op takes 'tensor<1x64xf32, #tile.mma<warps = 4>>' from slots of 'memref<2x32xf32, #gpu.address_space<workgroup>>', which are no row of a product's tile}}
  %0 = tile.take_numbers %m[%i] : memref<2x32xf32, #gpu.address_space<workgroup>> -> tensor<1x64xf32, #tile.mma<warps = 4>>
  return
}

// -----

func.func @get_more_numbers(%i: index, %m: memref<2x1xi32, #gpu.address_space<workgroup>>) {
  // expected-error @below {{'tile.get_numbers' op has 2 numbers for slots of 'memref<2x1xi32, #gpu.address_space<workgroup>>'}}
  %0, %1 = tile.get_numbers %m[%i] : memref<2x1xi32, #gpu.address_space<workgroup>> -> index, index
  return
}

// -----

func.func @wgmma_two_lefts(%s: !llvm.ptr<3>, %r: i32) {
  // expected-error @below {{'tile.wgmma' op takes its first operand from shared memory}}
  %0:4 = "tile.wgmma"(%r, %r, %r, %r, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 0, 4, 1, 1>}>
      : (i32, i32, i32, i32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_two_registers(%s: !llvm.ptr<3>, %r: i32) {
  // expected-error @below {{'tile.wgmma' op takes its first operand from shared memory}}
  %0:4 = "tile.wgmma"(%r, %r, %s) <{b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 0, 2, 0, 1>}>
      : (i32, i32, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_of_two_types(%s: !llvm.ptr<3>) {
  // expected-error @below {{'tile.wgmma' op multiplies 'bf16' by 'f8E5M2'; only f8E4M3FN and f8E5M2 may meet}}
  %0:4 = "tile.wgmma"(%s, %s) <{a_matrix = #tile.shared_matrix<>,
      b_matrix = #tile.shared_matrix<>, b_element_type = f8E5M2,
      columns = 8 : i64, element_type = bf16,
      operandSegmentSizes = array<i32: 0, 0, 1, 1>}>
      : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_transposes_bytes(%s: !llvm.ptr<3>) {
  // expected-error @below {{'tile.wgmma' op transposes operands of 16 bits, not of 'f8E5M2'}}
  %0:4 = "tile.wgmma"(%s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<transposed = true, swizzle = 128>, columns = 8 : i64,
      element_type = f8E5M2, operandSegmentSizes = array<i32: 0, 0, 1, 1>}>
      : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

func.func @wgmma_unordered(%s: !llvm.ptr<3>, %x: f32) {
  %y = arith.addf %x, %x : f32
  // expected-error @below {{'tile.wgmma' op adds to a value of arith.addf, which no 'tile.wgmma_fence' orders}}
  %0:4 = "tile.wgmma"(%y, %y, %y, %y, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}>
      : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}

// -----

// expected-error @below {{a tile of 4611686018427387904 rows of 8 columns is more than the registers of a block hold}}
func.func private @beyond_registers(tensor<4611686018427387904x8xf32, #tile.mma<warps = 4>>)

// -----

// expected-error @below {{an operand that is transposed has a swizzle}}
func.func private @transposed_without_swizzle() attributes {matrix = #tile.shared_matrix<stride = 128, transposed = true>}

// -----

func.func @wgmma_in_a_loop(%s: !llvm.ptr<3>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = arith.negf %x : f32
  %0:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y, %b = %y, %c = %y, %d = %y) -> (f32, f32, f32, f32) {
    // expected-error @below {{'tile.wgmma' op adds to a value of arith.negf, which no 'tile.wgmma_fence' orders}}
    %1:4 = "tile.wgmma"(%a, %b, %c, %d, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
        element_type = bf16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}> : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
    scf.yield %1#0, %1#1, %1#2, %1#3 : f32, f32, f32, f32
  }
  return
}

// -----

func.func @wgmma_of_an_iteration(%s: !llvm.ptr<3>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y:4 = tile.wgmma_fence of %x, %x, %x, %x : f32, f32, f32, f32
  %0:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y#0, %b = %y#1, %c = %y#2, %d = %y#3) -> (f32, f32, f32, f32) {
    // expected-error @below {{'tile.wgmma' op adds to a value of arith.negf, which no 'tile.wgmma_fence' orders}}
    %1:4 = "tile.wgmma"(%a, %b, %c, %d, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
        element_type = bf16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}> : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
    %2 = arith.negf %1#3 : f32
    scf.yield %1#0, %1#1, %1#2, %2 : f32, f32, f32, f32
  }
  return
}

// -----

func.func @wgmma_behind_a_branch(%s: !llvm.ptr<3>, %x: f32, %is: i1) {
  %y:4 = tile.wgmma_fence of %x, %x, %x, %x : f32, f32, f32, f32
  %z = arith.negf %x : f32
  cf.cond_br %is, ^products(%y#0, %y#1, %y#2, %y#3 : f32, f32, f32, f32), ^products(%y#0, %z, %y#2, %y#3 : f32, f32, f32, f32)
^products(%a: f32, %b: f32, %c: f32, %d: f32):
  // expected-error @below {{'tile.wgmma' op adds to a value of arith.negf, which no 'tile.wgmma_fence' orders}}
  %1:4 = "tile.wgmma"(%a, %b, %c, %d, %s, %s) <{a_matrix = #tile.shared_matrix<swizzle = 128>, b_matrix = #tile.shared_matrix<swizzle = 128>, columns = 8 : i64,
      element_type = bf16, operandSegmentSizes = array<i32: 4, 0, 1, 1>}> : (f32, f32, f32, f32, !llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  return
}
