//===- Passes.td - The passes, in the order data flows ------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PASSES_TD
#define BASTILE_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def TargetOption : Option<"target", "target", "std::string",
    /*default=*/"\"sm_90\"", "what to compile for: sm_90, host, ...">;

def Decompose : Pass<"decompose", "::mlir::ModuleOp"> {
  let summary = "replace model ops by the primitives that define them";
  let description = [{
    Every op with the `DecomposableOpInterface` is replaced by its graph of
    `arith`, `math` and primitive ops, until none is left.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::bastile::tile::TileDialect"];
}

def Differentiate : Pass<"differentiate", "::mlir::ModuleOp"> {
  let summary = "derive the backward of each function";
  let description = [{
    For each function `f` with one of the arguments that `gradients` names
    (`all`: every argument of floats), a function `f_backward` computes their
    gradients from those of the results. It reads what of the forward's
    arguments and results takes the fewest bytes, and statistics of rows, which
    the forward is made to return as `saved0`, `saved1`, ...; the rest it
    computes again. The attribute `tile.backward` of `f` says what it takes:

    ```mlir
    func.func @f(%x: ...) -> (..., ...) attributes {tile.backward = {
        function = @f_backward,
        inputs = [{grad = 0}, {input = 0}, {output = 1} ],
        gradients = {x = {result = 0}}}}
    ```

    Where every gradient has 16 bits or fewer, what is returned as `saved` is
    marked `tile.approximate`.

    A gradient may also be that of a result as it is, `{grad = 0}`, and two
    arguments may share one. Arguments that no result depends on have none.

    With `together`, `f` itself returns the gradients of the sum of its first
    result, `in-place` in the place of the arguments where types agree. Where
    that result is one number, a loss, a function `f_scale` multiplies them by
    the loss's own gradient, in their place if the caller likes, and is what
    `tile.backward` says. It has nothing to do where that gradient is 1. With
    `drop-value`, that result is only there to be differentiated, and `f` does
    not return it: of `f(x, d) = x^3 d`, the gradient of `x` is what a backward
    would make of an upstream gradient `d`.

    Without `gradients`, nothing is derived. Either way, no
    `tile.stop_gradient` is left.
  }];
  let options = [
    ListOption<"gradients", "gradients", "std::string",
               "arguments to compute gradients for, or 'all'">,
    Option<"together", "together", "bool", /*default=*/"false",
           "add the gradients to the function instead of a backward">,
    Option<"inPlace", "in-place", "bool", /*default=*/"false",
           "gradients computed together take the arguments' memory">,
    Option<"dropValue", "drop-value", "bool", /*default=*/"false",
           "leave out the result that gradients are computed together with">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::bastile::tile::TileDialect"];
}

def SplitRows : Pass<"split-rows", "::mlir::func::FuncOp"> {
  let summary = "compute on the pieces of rows that are taken apart";
  let description = [{
    Moves every `tile.split` up to the function's arguments and every `tile.join`
    down to its results, so that all between computes on pieces:

    ```mlir
    %0 = arith.mulf %x, %cos : tensor<?x128xf32>
    %low, %high = tile.split %0 : tensor<?x128xf32> -> ...
    ```

    becomes a split of `%x`, a split of `%cos` and two products. A row that is
    taken apart for one user is so for all; rows that are taken apart in several
    ways are cut to the greatest length that divides all of their pieces, into
    contiguous parts of interleaved pieces where they have both. What needs a
    whole row, and pieces that no such cut makes, are errors. Functions without
    `tile.split` and `tile.join` stay as they are.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::bastile::tile::TileDialect"];
}

def Fuse : Pass<"fuse", "::mlir::ModuleOp"> {
  let summary = "gather the ops of each function into kernels";
  let description = [{
    Ops on row tensors that depend on each other and walk the same rows become
    one `tile.kernel`, in which every input is read once and every output
    written once; the function keeps the launches. Ops on row vectors and
    scalars are repeated in each kernel that needs them; a row vector that the
    function returns and that depends on no rows has a kernel of a single row.

    A `tile.reduce_rows` ends a kernel with one row of partial results for each
    of its programs. A second, small kernel combines these and computes what
    follows on row vectors. What reads such a vector on rows again is a later
    stage, a kernel after that one. Each op runs in the last stage that its users
    allow, and what a later stage shares with an earlier one is computed again,
    from arguments and from statistics, which are stored.

    No kernel leaves a condition, or an integer of 16 bits, for another: what
    needs one computes it again from the operands of the comparison.

    A `tile.reduce_rows` over some leading dimensions has a kernel of its own, which
    reads the rows from memory and computes what follows element by element on those
    that are left.

    Arguments and values that are returned twice are copied. A kernel is told
    which operands are written in place, unless a later one reads them.
  }];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def Schedule : Pass<"schedule", "::mlir::ModuleOp"> {
  let summary = "choose how each kernel is laid over the machine";
  let description = [{
    Gives every kernel a complete `#tile.schedule`, by a heuristic from its ops,
    types and row length and from the target's limits. What the user pinned,
    with the option or with the function's attribute `tile.schedule`, is kept;
    a schedule that cannot work on the target is an error.

    The option pins fields in every kernel, `rows = 2, threads = 128`, or in
    those that it names, `f_kernel: rows = 2; f_backward_kernel0: threads = 128`.
    What is for one kernel takes the place of what is for all. Fields for all
    leave out the kernels that only finish what others began.

    Where elements move in vectors and nothing is pinned, unless by the kernel's
    name, the kernel gets an `unaligned_schedule` as well, for operands whose
    addresses allow no vectors: one in which a thread holds less, since each
    element takes instructions of its own.

    On the host a block is one thread, and its tile is straight code. Where
    `threads` says that a tile was meant for the threads of a GPU, `columns` is
    halved until 4096 ops on vectors or fewer are left, a function such as `exp`
    counting as 16, and a longer one such as `powf` as 64. What is pinned without
    `threads` is kept, and refused above 16384 ops, which take ten seconds to
    compile. Where groups of columns have to fit, 32768 ops may take twenty.

    Vectors divide the row unless only narrow ones do: then they are wide, for
    rows that are misaligned, and the `unaligned_schedule` has those that divide it.
  }];
  let options = [
    TargetOption,
    Option<"schedule", "schedule", "std::string", /*default=*/"",
           "fields of every kernel's schedule, as in 'rows = 2, threads = 128', "
           "or of kernels by name, as in 'f_kernel: rows = 2; g_kernel: rows = 1'">
  ];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def Tile : Pass<"tile", "::mlir::ModuleOp"> {
  let summary = "apply each kernel's schedule: blocks, loops and masks";
  let description = [{
    A kernel on whole tensors becomes a program on tiles of static shape that
    one block runs: it loads, computes, masks what lies past the end of a row
    before reducing, and stores. A row wider than a tile is walked in a loop,
    once more for each row reduction that waits for another. Pieces of rows are
    loaded and stored by their place in the row, interleaved ones together.

    A kernel that combines rows keeps to its columns while it walks rows, adds
    them up in registers, or in memory where a row takes several passes, and
    stores one row of partial results at the end.

    One program is made for each way its operands may lie in memory, fastest
    first: leading dimensions merged into one or walked one by one, and
    addresses aligned to the vector width or only to the element; the latter
    program follows the kernel's `unaligned_schedule` if there is one. Where
    vectors do not divide the row, the first takes rows whose addresses are all
    as far behind an aligned one (`tile.misalignment`), and reads what they share
    element by element.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::bastile::tile::TileDialect"];
}

def MergeLaunches : Pass<"merge-launches", "::mlir::ModuleOp"> {
  let summary = "launch kernels that share an operand together";
  let description = [{
    Launches of one function that do not depend on each other, but read a common
    operand, become one: that of a kernel which walks the rows of each in a
    space of their own. Query and key, rotated by the same angles, have
    different heads, so `fuse` cannot put them into one set of rows:

    ```mlir
    tile.kernel @q(%rows0: index, %rows1: index, ...)
        attributes {spaces = 2 : i64, ...} {
      %program = tile.program_id
      %first = arith.cmpi ult, %program, %programs0 : index
      scf.if %first {
        ...  // what @q did
      } else {
        ...  // what @k did, of program %program - %programs0
      }
    }
    ```

    The kernels must have the same schedule and, variant by variant, walk as many
    leading dimensions. Those of clusters, of persistent programs or of programs
    that combine rows or have one for each band of others, and those that write
    in place, stay apart.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::bastile::tile::TileDialect"];
}

def KeepRows : Pass<"keep-rows", "::mlir::ModuleOp"> {
  let summary = "keep in shared memory what a program reads again or soon";
  let description = [{
    Where a schedule says `reread = shared`, the first loop that loads a tile
    of a row also leaves it in a buffer, and loops that follow take it from
    there.

    Where it says `stages` = n > 2, rows are copied to n slots that take turns,
    each n - 1 rows before it is computed on.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::bastile::tile::TileDialect"];
}

def OverlapLaunches : Pass<"overlap-launches", "::mlir::ModuleOp"> {
  let summary = "let a launch start before the one that it waits for ends";
  let description = [{
    Where a launch reads what the one before it has written, and all programs of
    that one run at once, the GPU may set up the second while the first runs. The
    first says so and the second waits for its results itself, by the
    attributes `tile.overlap_next` and `tile.overlap_previous` of their kernels.
  }];
  let options = [TargetOption];
}

def Distribute : Pass<"distribute", "::mlir::ModuleOp"> {
  let summary = "choose which thread holds which element of each tile";
  let description = [{
    Puts a `#tile.blocked` layout on the type of every tile, from the kernel's
    schedule. On the host, a block is one thread.
  }];
  let options = [TargetOption];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def LowerTiles : Pass<"lower-tiles", "::mlir::ModuleOp"> {
  let summary = "turn tiles into the vectors that each thread holds";
  let description = [{
    A tile becomes as many vectors as its layout gives each thread; loads and
    stores become accesses of that width, reductions a tree within the thread,
    shuffles within a warp and shared memory across warps, which the blocks of a
    cluster write into each other's. Where the block is one thread, as on the
    host, nothing of the `gpu` dialect is left.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"];
}

def ExpandMath : Pass<"expand-math", "::mlir::ModuleOp"> {
  let summary = "rewrite the functions and casts that a target lacks";
  let description = [{
    The GPU has no exp, erf or division without a library, the host no vector
    ones and no rounding to bf16 or f8. Both get vectorizable arithmetic, with
    the GPU's own approximations for what is rounded to 16 bits or fewer before
    it reaches a result, or reaches one that is marked `tile.approximate`. It is
    free of branches, save that a vector with an angle above 2^20, which takes
    many bits of pi to reduce, has its sines, cosines and tangents corrected.
    Integers are divided by 1 in place of 0, over which a processor would end the
    process.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerToNVVM : Pass<"lower-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "lower kernels to the NVVM dialect";
  let description = [{
    Kernels become functions of the LLVM dialect with the `nvvm.kernel`
    attribute. The functions that launch them are dropped: the launch metadata
    stands for them.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerToHost : Pass<"lower-to-host", "::mlir::ModuleOp"> {
  let summary = "lower kernels to functions that the host calls";
  let description = [{
    Kernels become functions `void (void **args, i64 begin, i64 end, i64 count)`
    of the LLVM dialect that run the programs from `begin` to `end` out of
    `count`; `args[i]` points to the i-th argument, as in a launch on the GPU.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

#endif // BASTILE_PASSES_PASSES_TD
