//===- ThreadOps.td - Products and counters of threads ------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Instructions that the NVVM dialect lacks: those of a warpgroup in a form in
// which values pass through them, and waits of one block for another. They stay
// ops until LLVM IR is printed, so that no pass and no emulator has to read
// assembly.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_THREADOPS_TD
#define BASTILE_DIALECT_THREADOPS_TD

include "dialect/TileAttributes.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SharedMatrixAttr : Tile_Attr<"SharedMatrix", "shared_matrix"> {
  let summary = "How an operand of a product lies in shared memory";
  let description = [{
    The operand begins `offset` bytes behind the address that is given beside
    it. Rows of its contiguous dimension, `swizzle` bytes long each (16 without
    a swizzle), lie in groups of eight, one row after the other. Groups are
    `stride` bytes apart; pieces of `swizzle` bytes along the contiguous
    dimension are `leading` bytes apart. The contiguous dimension is the one
    that is contracted, or the other one if the operand is `transposed`.

    With a `swizzle` of 128, 64 or 32 bytes, bits 4 to 6, 4 to 5 or 4 of the
    address are combined by exclusive or with bits 7 to 9, 7 to 8 or 7, as
    copies of tensors do.
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "0">:$offset,
                        DefaultValuedParameter<"int64_t", "0">:$leading,
                        DefaultValuedParameter<"int64_t", "0">:$stride,
                        DefaultValuedParameter<"int64_t", "0">:$swizzle,
                        DefaultValuedParameter<"bool", "false">:$transposed);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

/// An instruction through which registers pass, so that nothing which reads
/// them can come before it.
class Tile_PassThroughOp<string mnemonic>
    : Tile_Op<mnemonic, [AllTypesMatch<["values", "results"]>]> {
  let results = (outs Variadic<AnyType>:$results);
}

def Tile_WgmmaFenceOp : Tile_PassThroughOp<"wgmma_fence"> {
  let summary = "orders registers before the products that follow";
  let description = [{
    Products of the warpgroup that come later see the registers `values` as they
    are now. A product's accumulators come from a fence or from the product
    before.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "(`of` $values^ `:` type($values))? attr-dict";
}

def Tile_WgmmaWaitOp : Tile_PassThroughOp<"wgmma_wait"> {
  let summary = "waits for all groups of products but the last `pending`";
  let description = [{
    `results` are the registers `values` once the products that have been waited
    for have written them. `nvvm.wgmma.commit.group.sync.aligned` makes a group
    of the products that the warpgroup has begun since the last one.

    The last `anchors` of the values are float32 numbers that must be there
    before the wait begins. The assembler moves arithmetic behind a wait if only
    values pass through it, and so work that is meant to fill the time of the
    products; it cannot do so with what these numbers depend on.
  }];
  let arguments = (ins Variadic<AnyType>:$values, I64Attr:$pending,
                       DefaultValuedAttr<I64Attr, "0">:$anchors);
  let assemblyFormat = [{
    $pending (`of` $values^ `:` type($values))? (`anchors` $anchors^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_WgmmaOp : Tile_Op<"wgmma", [AttrSizedOperandSegments]> {
  let summary = "begins a product of a warpgroup";
  let description = [{
    Adds to `accumulators`, 64 rows by `columns`, the product of `a`, 64 rows by
    32 bytes, and `b`, 32 bytes by `columns`. Without accumulators the sum
    begins at zero. All 128 threads of the warpgroup take part. Thread t holds,
    for each 8 columns from c on, the elements of row r = 16 (t / 32) + t % 32 / 4
    in columns c + 2 (t % 4) and the next, and then those of row r + 8.

    `a` lies in shared memory, or in the four registers `fragment`, each with
    two elements (four of 8 bits): row r, row r + 8, and both again 16 bytes
    further along the contracted dimension. `b` lies in shared memory. Its
    elements are those of `a`, or of `b_element_type`: f8E4M3FN and f8E5M2 may
    meet.

    The registers `results` hold the sum after a `tile.wgmma_wait`, and until
    then no thread may change the shared memory.
  }];
  let arguments = (ins Variadic<F32>:$accumulators, Variadic<I32>:$fragment,
                       Optional<LLVM_PointerInAddressSpace<3>>:$a,
                       LLVM_PointerInAddressSpace<3>:$b,
                       I64Attr:$columns, TypeAttr:$element_type,
                       OptionalAttr<Tile_SharedMatrixAttr>:$a_matrix,
                       Tile_SharedMatrixAttr:$b_matrix,
                       OptionalAttr<TypeAttr>:$b_element_type);
  let results = (outs Variadic<F32>:$results);
  let hasVerifier = 1;
}

class Tile_CounterOp<string mnemonic> : Tile_Op<mnemonic> {
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$address, I32:$count);
  let assemblyFormat =
      "$address `,` $count attr-dict `:` qualified(type($address))";
}

def Tile_PollCountOp : Tile_CounterOp<"poll_count"> {
  let summary = "waits until the number at an address has reached `count`";
  let description = [{
    The thread reads the number again and again, until it is `count` or more. It
    then sees what the thread that has set the number saw (acquire), wherever on
    the GPU that ran.
  }];
}

def Tile_PublishCountOp : Tile_CounterOp<"publish_count"> {
  let summary = "sets the number at an address to `count`";
  let description = [{
    A thread anywhere on the GPU that polls the number sees what the calling
    thread has written, and what it saw (release).
  }];
}

#endif // BASTILE_DIALECT_THREADOPS_TD
