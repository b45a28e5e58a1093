//===- Passes.td - The passes, in the order they run --------*- tablegen -*-===//
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
    (`all`: every argument of floats), the pass adds a function `f_backward`,
    which computes the gradients of these arguments from the gradients of the
    results. The backward reads those of the forward's arguments and results
    that take the fewest bytes, and statistics of rows, which the forward then
    returns as `saved0`, `saved1`, ...; all other values of the forward are
    computed again. The attribute `tile.backward` of `f` lists the operands of
    `f_backward`:

    ```mlir
    func.func @f(%x: ...) -> (..., ...) attributes {tile.backward = {
        function = @f_backward,
        inputs = [{grad = 0}, {input = 0}, {output = 1} ],
        gradients = {x = {result = 0}}}}
    ```

    Where every gradient has 16 bits or fewer, saved statistics are marked
    `tile.approximate`.

    The gradient of an argument may also be the gradient of a result, unchanged
    (`{grad = 0}`), and two arguments may share one gradient. An argument that
    no result depends on has no gradient.

    With `together`, `f` itself returns the gradients of the sum of its first
    result. With `in-place`, these gradients take the memory of the arguments
    whose types agree. Where the first result is one number, a loss, the pass
    also adds a function `f_scale`, which `tile.backward` then names: it
    multiplies the gradients by the loss's own gradient, in place if the caller
    likes, and does nothing where that gradient is 1. With `drop-value`, `f`
    does not return its first result, which is only there to be differentiated:
    of `f(x, d) = x^3 d`, the gradient of `x` is what a backward would make of
    an upstream gradient `d`.

    Without `gradients`, nothing is derived. Either way, the pass leaves no
    `tile.stop_gradient` behind.
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
  let summary = "compute on pieces of rows instead of splitting and joining them";
  let description = [{
    Moves every `tile.split` up to the function's arguments and products, and
    every `tile.join` down to its results and to products that multiply it, so
    that all ops between them compute on pieces of rows. A product in two pieces
    becomes two products of pieces of its right factor, `tile.piece`, where these
    are views of it:

    ```mlir
    %0 = arith.mulf %x, %cos : tensor<?x128xf32>
    %low, %high = tile.split %0 : tensor<?x128xf32> -> ...
    ```

    becomes a split of `%x`, a split of `%cos` and two products. A row that is
    split for one user is split for all. Rows that are split in several ways are
    cut into pieces of the greatest length that divides the pieces of each way;
    where some of the ways interleave, the row is cut into contiguous parts
    first, and each part into interleaved pieces. An op that needs a whole row,
    and a split that no such cut can serve, are errors. Functions without
    `tile.split` and `tile.join` stay as they are.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::bastile::tile::TileDialect"];
}

def Fuse : Pass<"fuse", "::mlir::ModuleOp"> {
  let summary = "group the ops of each function into kernels";
  let description = [{
    Ops on row tensors that depend on each other, have the same rows and go
    along the same columns, or groups of them, become one `tile.kernel`, which
    reads every input once and writes every output once; the function keeps the
    launches. Dimensions are the same where ops carry them from one value to
    the other, or where the function's arguments and results give them one
    name: `["b", "s", "d"]` as an argument's `tile.dimensions`. Each kernel gets
    its `#tile.space`, which says so for the passes behind this one. Ops on row
    vectors and scalars are repeated in each kernel that needs their results. A
    row vector that the function returns and that depends on no rows gets a
    kernel of a single row.

    A `tile.reduce_rows` over all rows ends a kernel, which leaves one row of
    partial results for each of its programs. A second, small kernel combines
    the partial results and computes the ops on row vectors that follow. An op
    on rows that reads such a combined vector runs in a later *round*, in a
    kernel after the one that combines. Each op runs in the last round that its
    users allow, so that little runs before a combination. Values that several
    rounds need are computed again in each, from arguments and from statistics,
    which are stored.

    No kernel stores a condition or an integer of 16 bits for another kernel,
    which computes it again from the operands of the comparison instead.

    A `tile.reduce_rows` over some of the leading dimensions gets a kernel of
    its own, which reads the rows from memory, combines them and computes the
    elementwise ops that follow on the rows that are left.

    Products that sum over the rows of factors which have ops in common share a
    kernel as far as registers hold all of their sums: more of them where the
    target's warpgroups multiply.

    A function that returns an argument, or one value twice, gets a copy of it.

    A result with `tile.in_place` takes the memory of an argument, and is marked
    so in its kernel. Kernels that read the argument are launched first. It is
    an error if another kernel has to read it later, or if the result's kernel
    reads an element of it for elements at other places, as in a statistic that
    is repeated along its row. Gradients, which `differentiate` places, have
    memory of their own then.
  }];
  let options = [TargetOption];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def SplitCrossed : Pass<"split-crossed", "::mlir::ModuleOp"> {
  let summary = "let programs of two kernels that compute one factor add up sums";
  let description = [{
    Two kernels cross if both compute the same streamed factor, and one sums over
    its rows, the other over its columns, as the kernels of attention's gradients
    do. Where the target's warps have roles, the pass `tile` makes one program of
    both, which computes the factor once: programs add up the sums over columns
    in memory. Since none of them knows when a sum is complete, what follows
    these sums becomes a kernel of its own here, where programs of both kernels
    would fit the target.
  }];
  let options = [TargetOption];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def Schedule : Pass<"schedule", "::mlir::ModuleOp"> {
  let summary = "choose how each kernel is laid over the machine";
  let description = [{
    Gives every kernel a complete schedule: `#tile.rows`, or `#tile.matmul` where it multiplies. A heuristic chooses it by the
    kernel's ops, types and row length and by the target's limits. Fields that
    the user pins, with the option or with the function's attribute
    `tile.schedule`, are kept; a schedule that cannot work on the target is an
    error.

    The option pins fields of every kernel on rows, `rows = 2, threads = 128`, of
    every product, `#tile.matmul<columns = 64>`, or of the kernels that it names,
    `f_kernel: rows = 2; g_kernel: columns = 64`: a kernel's name tells the kind
    of its schedule. Fields for one kernel replace those for every kernel. Fields
    for every kernel do not apply to the small kernels that only finish what
    others began.

    A kernel whose elements move in vectors also gets an `unaligned_schedule`,
    for operands whose addresses allow no vectors, unless fields are pinned
    otherwise than by the kernel's name. A thread holds less by that schedule,
    since each element takes instructions of its own.

    A product of any number of rows also gets `few_rows_schedules` where
    warps have roles and its columns are known, unless fields are pinned: for
    few rows, tiles are smaller, and `split` lets blocks sum parts of the same
    tile.

    Vectors divide the row, unless only narrow vectors would: then wide vectors
    are chosen for misaligned rows, and the `unaligned_schedule` has the vectors
    that divide the row.

    On the host a block is one thread, and the code of its tile has no loops.
    Where `threads` shows that a tile was meant for the threads of a GPU,
    `columns` is halved until the tile has 4096 ops on vectors or fewer; a
    function such as `exp` counts as 16 ops, and a longer one such as `powf` as
    64. Columns that are pinned without `threads` are kept, and refused above
    16384 ops, which take ten seconds to compile. Where groups of columns have
    to fit, 32768 ops are allowed, which take twenty. The tile of a product that
    was meant for such threads is chosen anew.
  }];
  let options = [
    TargetOption,
    Option<"schedule", "schedule", "std::string", /*default=*/"",
           "fields of the schedule of every kernel on rows, as in 'rows = 2, "
           "threads = 128', of every product, as in '#tile.matmul<columns = 64>', "
           "or of kernels by name, as in 'f_kernel: rows = 2; g_kernel: rows = 1'">
  ];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def Tile : Pass<"tile", "::mlir::ModuleOp"> {
  let summary = "apply each kernel's schedule: blocks, loops and masks";
  let description = [{
    A kernel on whole tensors becomes a `tile.program` on tiles of static shape,
    which one block runs: the program loads, computes, masks what lies beyond the end
    of a row before a reduction, and stores. Where a row is wider than a tile,
    the program sweeps the row in a loop over its tiles, and sweeps it once more
    for each row reduction that waits for another. Pieces of rows are loaded and
    stored by their place in the row, interleaved pieces together.

    A program that combines rows stays in its columns while it goes through the
    rows. It adds them up in registers, or in memory where each row takes several
    sweeps, and stores one row of partial results at the end.

    A kernel gets several variants, one program for each way in which operands
    may lie in memory, the fastest first. Leading dimensions are merged into one
    or kept apart, and addresses are aligned to the vector width or to the
    element; the program for the latter follows the kernel's
    `unaligned_schedule` if there is one. Where vectors do not divide the row,
    the first variant is for rows that all have the same misalignment
    (`tile.misalignment`), and reads row vectors element by element.

    Two kernels that cross, one of which returns the sums of a product as they
    are (`split-crossed`), become one program, which computes the factor of both
    once. They share a launch.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::bastile::tile::TileDialect"];
}

def MergeLaunches : Pass<"merge-launches", "::mlir::ModuleOp"> {
  let summary = "launch kernels that share an operand together";
  let description = [{
    Launches of one function that read a common operand and do not depend on
    each other become one launch. Its programs have a row space for each of the
    kernels that were merged. Query and key, rotated by the same angles, have
    different numbers of heads, so `fuse` cannot give them the same rows:

    ```mlir
    tile.program @q(%rows0: index, %rows1: index, ...)
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

    Kernels are merged if they have the same schedule and, variant by variant,
    the same number of leading dimensions. Kernels whose programs run on
    clusters, are persistent, combine rows or have one row for each band of
    others, and kernels that write in place, keep their own launches.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::bastile::tile::TileDialect"];
}

def KeepRows : Pass<"keep-rows", "::mlir::ModuleOp"> {
  let summary = "keep rows in shared memory that a program reads again or soon";
  let description = [{
    Where a schedule says `reread = shared`, a row that a later loop reads again
    is copied to shared memory first: the first loop that loads a tile of the
    row also leaves the tile in a buffer, and later loops take it from there.
    The pass `tile` numbers the tiles that loops load: those of loads with one
    `tile.row_tiles` are the same.

    Where a schedule says `stages` = n > 2, rows are copied to shared memory
    ahead of their use, into n slots that take turns: while the program computes
    on one row, copies of the next n - 1 are under way.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::bastile::tile::TileDialect"];
}

def OverlapLaunches : Pass<"overlap-launches", "::mlir::ModuleOp"> {
  let summary = "let a launch start before the one that it waits for ends";
  let description = [{
    Where a launch reads what the launch before it writes, and all programs of
    the earlier launch run at once, the GPU may set up the later launch while
    the earlier one runs. The programs of the earlier launch get the attribute
    `overlap_next` and allow this; those of the later launch get
    `overlap_previous` and wait for the results themselves.
  }];
  let options = [TargetOption];
}

def SharePrograms : Pass<"share-programs", "::mlir::ModuleOp"> {
  let summary = "let launches of equal programs run one of them";
  let description = [{
    The gradients of two weights of the same shape are the same product of
    other operands. Of a function's programs that differ in their names alone,
    the first one stays, launches of the others run it, and code is generated
    once. Two functions share no program: the kernels of each have its name.
  }];
}

def Distribute : Pass<"distribute", "::mlir::ModuleOp"> {
  let summary = "choose which thread holds which element of each tile";
  let description = [{
    Puts a `#tile.blocked` layout, which follows from the program's schedule, on
    the type of every tile. On the host, a block is one thread.
  }];
  let options = [TargetOption];
  let dependentDialects = ["::bastile::tile::TileDialect"];
}

def LowerTiles : Pass<"lower-tiles", "::mlir::ModuleOp"> {
  let summary = "turn tiles into the vectors that each thread holds";
  let description = [{
    A tile becomes as many vectors as its layout gives each thread, and loads and
    stores become accesses of that width. A reduction becomes a tree within each
    thread, shuffles within a warp, shared memory between warps, and messages
    from shared memory to shared memory between the blocks of a cluster. Where a
    block is one thread, as on the host, the program needs nothing of the `gpu`
    dialect.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"];
}

def ExpandMath : Pass<"expand-math", "::mlir::ModuleOp"> {
  let summary = "rewrite the functions and casts that a target lacks";
  let description = [{
    A GPU has no exp, erf or division without a library; the host has no vector
    versions of these and no rounding to bf16 or f8. Both get arithmetic on
    vectors instead. Where a value is rounded to 16 bits or fewer before it
    reaches a result, or reaches only results that are marked
    `tile.approximate`, a GPU uses the approximations of its instruction set.
    The arithmetic has no branches but one: a sine, cosine or tangent of an
    angle above 2^20, whose reduction takes many bits of pi, is corrected in a
    branch. A division of integers by 0 divides by 1 instead, since a processor
    would end the process.
  }];
  let options = [TargetOption];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerToNVVM : Pass<"lower-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "lower programs to the NVVM dialect";
  let description = [{
    Programs become functions of the LLVM dialect with the `nvvm.kernel`
    attribute. The functions that launch kernels are erased: the launch metadata
    has what they said.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerToHost : Pass<"lower-to-host", "::mlir::ModuleOp"> {
  let summary = "lower programs to functions that the host calls";
  let description = [{
    Programs become functions `void (void **args, i64 begin, i64 end, i64 count)`
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
