// RUN: tile-opt %s -verify-diagnostics -split-input-file

tile.program @counts(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op has 1 regions for 2 numbers of warps and 2 of threads}}
  tile.roles warps [4, 4] threads [1, 128] {
  }
  tile.return
}

// -----

tile.program @five_roles(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 320>} {
  // expected-error @below {{'tile.roles' op has 5 regions, and a block has barriers for 4}}
  tile.roles warps [2, 2, 2, 2, 2] threads [1, 1, 1, 1, 1] {
  }, {
  }, {
  }, {
  }, {
  }
  tile.return
}

// -----

tile.program @more_threads_than_warps(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op gives 4 warps a role of 129 threads, which do not fit in them}}
  tile.roles warps [4, 4] threads [1, 129] {
  }, {
  }
  tile.return
}

// -----

tile.program @no_threads(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op gives 4 warps a role of 0 threads, which do not fit in them}}
  tile.roles warps [4, 4] threads [0, 128] {
  }, {
  }
  tile.return
}

// -----

tile.program @half_a_warp(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op has a role of 16 threads, which are neither one nor whole warps of a warpgroup nor whole warpgroups}}
  tile.roles warps [4, 4] threads [16, 128] {
  }, {
  }
  tile.return
}

// -----

tile.program @one_warpgroup_and_a_half(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op has a role of 192 threads, which are neither one nor}}
  tile.roles warps [2, 6] threads [1, 192] {
  }, {
  }
  tile.return
}

// -----

tile.program @other_threads_than_the_block(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 384>} {
  // expected-error @below {{'tile.roles' op has roles for 256 threads, but the block has 384}}
  tile.roles warps [4, 4] threads [1, 128] {
  }, {
  }
  tile.return
}

// -----

tile.program @numbers_of_registers(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op has 2 regions for 1 numbers of registers}}
  tile.roles warps [4, 4] threads [1, 128] registers [40] {
  }, {
  }
  tile.return
}

// -----

tile.program @odd_registers(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op gives each thread 100 registers, which are no multiple of 8 from 24 to 256}}
  tile.roles warps [4, 4] threads [1, 128] registers [40, 100] {
  }, {
  }
  tile.return
}

// -----

tile.program @few_registers(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op gives each thread 16 registers, which are no multiple of 8 from 24 to 256}}
  tile.roles warps [4, 4] threads [1, 128] registers [16, 104] {
  }, {
  }
  tile.return
}

// -----

tile.program @registers_of_warps(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 192>} {
  // expected-error @below {{'tile.roles' op sets the registers of 2 warps, which are no whole warpgroup of 4}}
  tile.roles warps [4, 2] threads [1, 32] registers [40, 104] {
  }, {
  }
  tile.return
}

// -----

tile.program @registers_of_a_shared_warpgroup(%n: index) attributes {dimensions = ["n"],
    programs = {n = 1 : i64}, schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op gives each thread 104 registers in a warpgroup where other roles have 40}}
  tile.roles warps [2, 6] threads [1, 32] registers [40, 104] {
  }, {
  }
  tile.return
}

// -----

tile.program @warpgroup_in_the_middle(%n: index) attributes {dimensions = ["n"],
    programs = {n = 1 : i64}, schedule = #tile.launch<threads = 256>} {
  // expected-error @below {{'tile.roles' op has a role of 128 threads that begins with warp 2, which is not the first one of a warpgroup}}
  tile.roles warps [2, 4, 2] threads [1, 128, 1] {
  }, {
  }, {
  }
  tile.return
}

// -----

tile.program @turns_of_two_roles(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 512>} {
  // expected-error @below {{'tile.roles' op has 2 roles whose warpgroups take turns, but a block has barriers for those of one}}
  tile.roles warps [8, 8] threads [256, 256] {
    tile.take_turn
    tile.pass_turn
  }, {
    tile.pass_turn
  }
  tile.return
}

// -----

tile.program @all_registers(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 384>} {
  // expected-error @below {{'tile.roles' op gives its threads 66560 registers, of which a multiprocessor has 65536}}
  tile.roles warps [4, 8] threads [1, 256] registers [40, 240] {
  }, {
  }
  tile.return
}

// -----

tile.program @roles_in_roles(%n: index) attributes {dimensions = ["n"], programs = {n = 1 : i64},
    schedule = #tile.launch<threads = 256>} {
  tile.roles warps [8] threads [256] {
    // expected-error @below {{'tile.roles' op is part of a role: its warps cannot part again}}
    tile.roles warps [4, 4] threads [1, 128] {
    }, {
    }
  }
  tile.return
}

// -----

func.func @no_arrivals() {
  // expected-error @below {{'tile.make_barriers' op waits for 0 arrivals, which are not from 1 to 1048575}}
  %0 = tile.make_barriers arrivals 0 : !tile.barriers<1>
  return
}

// -----

func.func @many_arrivals() {
  // expected-error @below {{'tile.make_barriers' op waits for 1048576 arrivals}}
  %0 = tile.make_barriers arrivals 1048576 : !tile.barriers<1>
  return
}

// -----

!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_to_other_memory(%x: !map, %b: memref<2x64x64xbf16>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.copy_box' op copies boxes of 'memref<2x64x64xbf16>', which is no buffer in '#tile.shared' memory}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<2x64x64xbf16>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_to_tile(%x: !map, %b: memref<64x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.copy_box' op copies boxes of 'memref<64x64xbf16, #tile.shared<swizzle = 128>>', which is no buffer}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<64x64xbf16, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_indices(%x: !map, %b: memref<2x64x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.copy_box' op has 1 indices of 'memref<?x?xbf16, strided<[?, 1]>>'}}
  tile.copy_box %x[%i] to %b[%i] arrive %f[%i]
      : !map, memref<2x64x64xbf16, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_indices(%x: !map, %b: memref<2x64x64xindex, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x64x64xindex, #tile.shared<swizzle = 128>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<2x64x64xindex, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_any_rows(%x: !map, %b: memref<2x?x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x?x64xbf16, #tile.shared<swizzle = 128>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] row %i arrive %f[%i]
      : !map, memref<2x?x64xbf16, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_rows(%x: !map, %b: memref<2x128x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x128x64xbf16, #tile.shared<swizzle = 128>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<2x128x64xbf16, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_part_of_rows(%x: !map, %b: memref<2x96x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x96x64xbf16, #tile.shared<swizzle = 128>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] row %i arrive %f[%i]
      : !map, memref<2x96x64xbf16, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_element_type(%x: !map, %b: memref<2x64x64xf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x64x64xf16, #tile.shared<swizzle = 128>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<2x64x64xf16, #s>, !tile.barriers<1>
  return
}

// -----

!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @copy_swizzle(%x: !map, %b: memref<2x64x64xbf16, #tile.shared<swizzle = 64>>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x64x64xbf16, #tile.shared<swizzle = 64>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<2x64x64xbf16, #tile.shared<swizzle = 64>>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 32], swizzle = 128>
func.func @copy_narrow_boxes(%x: !map, %b: memref<2x64x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{of which no slots of 'memref<2x64x64xbf16, #tile.shared<swizzle = 128>>' are made}}
  tile.copy_box %x[%i, %i] to %b[%i] arrive %f[%i]
      : !map, memref<2x64x64xbf16, #s>, !tile.barriers<1>
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @store_indices(%x: !map, %b: memref<2x64x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.store_box' op has 1 indices of}}
  tile.store_box %b[%i] to %x[%i] : memref<2x64x64xbf16, #s>, !map
  return
}

// -----

#s = #tile.shared<swizzle = 128>
!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @store_rows(%x: !map, %b: memref<2x128x64xbf16, #s>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.store_box' op copies boxes of}}
  tile.store_box %b[%i] to %x[%i, %i] : memref<2x128x64xbf16, #s>, !map
  return
}

// -----

!map = !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>, box = [64, 64], swizzle = 128>
func.func @store_from_other_memory(%x: !map, %b: memref<2x64x64xbf16>, %f: !tile.barriers<1>, %i: index) {
  // expected-error @below {{'tile.store_box' op copies boxes of 'memref<2x64x64xbf16>', which is no buffer in '#tile.shared' memory}}
  tile.store_box %b[%i] to %x[%i, %i] : memref<2x64x64xbf16>, !map
  return
}

// -----

// expected-error @below {{there are 1 to 1024 barriers, not 0}}
func.func private @no_barrier(!tile.barriers<0>)

// -----

// expected-error @below {{there are 1 to 1024 barriers, not 1025}}
func.func private @many_barriers(!tile.barriers<1025>)

// -----

// expected-error @below {{copies take 1 to 5 dimensions, not those of 'memref<?x?x?x?x?x8xbf16>'}}
func.func private @map_of_number(!tile.tensor_map<memref<?x?x?x?x?x8xbf16>, box = [1, 1, 1, 1, 1, 8], swizzle = 0>)

// -----

// expected-error @below {{a box of 1 dimensions is no part of 'memref<?x?xbf16>'}}
func.func private @map_rank(!tile.tensor_map<memref<?x?xbf16>, box = [64], swizzle = 128>)

// -----

// expected-error @below {{a box has 1 to 256 elements along each dimension, not 0}}
func.func private @map_empty_box(!tile.tensor_map<memref<?x?xbf16>, box = [0, 64], swizzle = 128>)

// -----

// expected-error @below {{a box has 1 to 256 elements along each dimension, not 257}}
func.func private @map_large_box(!tile.tensor_map<memref<?x?xbf16>, box = [257, 64], swizzle = 128>)

// -----

// expected-error @below {{a swizzle has 0, 32, 64 or 128 bytes, not 16}}
func.func private @map_swizzle(!tile.tensor_map<memref<?x?xbf16>, box = [64, 64], swizzle = 16>)

// -----

// expected-error @below {{'memref<?x?xindex>' has neither integers nor floats}}
func.func private @map_elements(!tile.tensor_map<memref<?x?xindex>, box = [64, 64], swizzle = 128>)

// -----

// expected-error @below {{rows of a box have a multiple of 16 bytes, at most those of the swizzle, not 24}}
func.func private @map_bytes(!tile.tensor_map<memref<?x?xbf16>, box = [64, 12], swizzle = 0>)

// -----

// expected-error @below {{rows of a box have a multiple of 16 bytes, at most those of the swizzle, not 256}}
func.func private @map_wide_box(!tile.tensor_map<memref<?x?xbf16>, box = [64, 128], swizzle = 128>)

// -----

// expected-error @below {{a block has 1 to 32 warps, not 0}}
func.func private @no_warps(tensor<64x64xf32, #tile.mma<warps = 0>>)

// -----

// expected-error @below {{a block has 1 to 32 warps, not 33}}
func.func private @many_warps(tensor<64x64xf32, #tile.mma<warps = 33>>)

// -----

// expected-error @below {{a layout describes a tile of two static dimensions}}
func.func private @mma_rank(tensor<64xf32, #tile.mma<warps = 4>>)

// -----

// expected-error @below {{a layout describes a tile of two static dimensions}}
func.func private @mma_dynamic(tensor<?x64xf32, #tile.mma<warps = 4>>)

// -----

// expected-error @below {{32 rows do not divide into 16 for each of 4 warps}}
func.func private @mma_rows(tensor<32x64xf32, #tile.mma<warps = 4>>)

// -----

// expected-error @below {{12 columns do not divide into pieces of 8}}
func.func private @mma_columns(tensor<64x12xf32, #tile.mma<warps = 4>>)

// -----

// expected-error @below {{a panel has 32, 64 or 128 bytes, not 16}}
func.func private @shared_swizzle(memref<64x64xbf16, #tile.shared<swizzle = 16>>)

// -----

func.func @buffer_offset() {
  // expected-error @below {{'tile.buffer' op begins at 512, which is no multiple of the 1024 bytes after which the swizzle repeats}}
  %0 = tile.buffer {offset = 512 : i64} : memref<1x64x64xbf16, #tile.shared<swizzle = 128>>
  return
}

// -----

func.func @buffer_rows() {
  // expected-error @below {{does not consist of panels of 128 bytes and a multiple of 8 rows}}
  %0 = tile.buffer {offset = 0 : i64} : memref<1x12x64xbf16, #tile.shared<swizzle = 128>>
  return
}

// -----

func.func @buffer_columns() {
  // expected-error @below {{does not consist of panels of 128 bytes and a multiple of 8 rows}}
  %0 = tile.buffer {offset = 0 : i64} : memref<1x64x32xbf16, #tile.shared<swizzle = 128>>
  return
}

// -----

func.func @expect_less_than_nothing(%barriers: !tile.barriers<4>, %i: index) {
  // expected-error @below {{'tile.expect' op announces -16 bytes, which are no multiple of 16 from 0 to 1048575}}
  tile.expect -16 bytes at %barriers[%i] : !tile.barriers<4>
  return
}

// -----

func.func @expect_part_of_a_copy(%barriers: !tile.barriers<4>, %i: index) {
  // expected-error @below {{'tile.expect' op announces 24 bytes, which are no multiple of 16 from 0 to 1048575}}
  tile.expect 24 bytes at %barriers[%i] : !tile.barriers<4>
  return
}

// -----

func.func @expect_too_much(%barriers: !tile.barriers<4>, %i: index) {
  // expected-error @below {{'tile.expect' op announces 1048576 bytes, which are no multiple of 16 from 0 to 1048575}}
  tile.expect 1048576 bytes at %barriers[%i] : !tile.barriers<4>
  return
}
