//===- KernelOps.td - Kernels, programs and launches --------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_KERNELOPS_TD
#define BASTILE_DIALECT_KERNELOPS_TD

include "dialect/programs/AsyncOps.td"
include "dialect/SpaceAttributes.td"
include "dialect/programs/ThreadOps.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

/// What kernels and programs have in common: a name, arguments and a body.
class Tile_LaunchedOp<string mnemonic>
    : Tile_Op<mnemonic, [FunctionOpInterface, IsolatedFromAbove, Symbol,
                         AffineScope, AutomaticAllocationScope]> {
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  code functionDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
  }];
}

def Tile_KernelOp : Tile_LaunchedOp<"kernel"> {
  let summary = "one kernel: ops on whole tensors that share a launch";
  let description = [{
    The pass `fuse` makes a kernel from a part of a function. The kernel takes
    and returns row tensors and row vectors:

    ```mlir
    tile.kernel @f(%x: tensor<?x2880xf32>) -> tensor<?x2880xf32> {
      %0 = arith.addf %x, %x : tensor<?x2880xf32>
      tile.return %0 : tensor<?x2880xf32>
    }
    ```

    The pass `schedule` gives it a complete `schedule`, and where vectors need
    alignment an `unaligned_schedule` as well, for the program that takes
    operands of any alignment. A product has `few_rows_schedules` where few
    rows are computed in other ways: each is for calls of at most as many rows
    as its number in `few_rows`, which grow. The pass `tile` then replaces the
    kernel by its programs (`tile.program`).

    All row operands of a kernel have the same leading sizes. The `space` says
    which dimensions it goes along, and which of them each of its tensors has
    (`#tile.space`). The pass `fuse` writes it, which knows of the whole function
    what dataflow makes one. A kernel that was written by hand may leave it out:
    `schedule` or `tile` then adds what the kernel's ops show.

    The argument attribute `tile.in_place` is the number of the result that may
    take the operand's place in memory. Where the number that has `tile.factor`
    is 1, every result equals the operand whose place it may take. A result with
    `tile.approximate` may be approximate, as every value computed of it is
    rounded to 16 bits or fewer.
  }];
  let hasRegionVerifier = 1;
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<Tile_SpaceAttr>:$space,
                       OptionalAttr<Tile_ScheduleInterface>:$schedule,
                       OptionalAttr<Tile_ScheduleInterface>:$unaligned_schedule,
                       OptionalAttr<DenseI64ArrayAttr>:$few_rows,
                       OptionalAttr<TypedArrayAttrBase<
                           Tile_ScheduleInterface,
                           "schedules">>:$few_rows_schedules);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = functionDeclaration;
}

def Tile_ProgramOp : Tile_LaunchedOp<"program"> {
  let summary = "a kernel tiled: what one block does";
  let description = [{
    The pass `tile` turns a kernel into programs, one for each way in which its
    operands may lie in memory. The arguments are the sizes of the `leading`
    leading dimensions, and the operands in memory, results last; the body
    computes on tiles, by the complete `schedule`:

    ```mlir
    tile.program @f(%rows: index, %x: memref<?x2880xf32, strided<[?, 1]>>,
                    %y: memref<?x2880xf32, strided<[?, 1]>>)
        attributes {leading = 1 : i64, schedule = #tile.rows<rows = 1,
            threads = 256, vector = 4, columns = 1024>} {
      %program = tile.program_id
      ...
    }
    ```

    A launch runs a program as many times as the rows need. `column_blocks` of
    these share a group of rows. With `row_programs`, that many go through all
    rows, however many rows there are. With `combines`, one combines rows over
    the leading dimensions listed, for each index of the other dimensions. Row
    space 0 then holds the rows that are combined, with the sizes and strides of
    the other dimensions first, and row space 1 the rows that are left.

    With `band`, a program takes the rows of a band together; otherwise it takes
    as many rows at a time as the schedule says.

    A program over named dimensions has `dimensions`, the names, in place of
    `leading`: its first arguments are their sizes. Each operand's
    `tile.dimensions` names the dimension of the program along each of its own,
    or is the size of one that has no name. There is one program for each
    combination of parts of the dimensions in `programs`, which gives the length
    of these parts. The rows of a tile are those of a part of dimension m, for
    each place of a part of dimension b0 one after the other. A dimension that
    some result does not have counts as one part where it is 0, since sums of
    nothing are written, too. A program with `least` is for calls in which each of the
    dimensions listed has at least so many elements: others take the next
    program of the launch. With `persistent` in the schedule, that many blocks at
    most for each multiprocessor go through all parts. The schedule of a program
    that was written by hand is a `#tile.launch`:

    ```mlir
    tile.program @product(%m: index, %n: index, %k: index,
        %a: !tile.tensor_map<memref<?x?xbf16, strided<[?, 1]>>,
                             box = [128, 64], swizzle = 128>
            {tile.dimensions = ["m", "k"]}, ...)
        attributes {dimensions = ["m", "n", "k"],
                    programs = {m = 128 : i64, n = 256 : i64},
                    schedule = #tile.launch<threads = 384>} {
    ```

    Copies of such a program may be as wide as `tile.alignment` says of its
    operands. `alignments` has smaller numbers of bytes, in descending order. For
    each of them, the compiler makes one more variant of the program, in which
    no operand has an alignment above it: with `alignments = array<i64: 4, 2>`,
    @product has the variants @product, @product_align4 and @product_align2 in
    its launches.

    The pass `merge-launches` makes programs of several row spaces, `spaces` in
    number: the first blocks go through the rows of row space 0, the next ones
    through those of row space 1. The sizes of each row space come first, one
    row space after the other. `merged` has the names of the kernels of all row
    spaces but the first, for reports.

    The runtime merges leading dimensions where it can. `unmerged_sizes` lists
    those whose sizes ahead of that are arguments, too, behind the sizes: numbers
    of rows along a dimension follow from them.

    `in_place` says that some result may take the place of an operand in memory.
    With `overlap_next`, the next launch may start before that of the program
    has ended; with `overlap_previous`, the program waits for the launch before
    its own.

    Attributes of the arguments that are operands:

    | Attribute | Meaning |
    |---|---|
    | `tile.readonly` | The program only reads the operand. |
    | `tile.alignment` | A number of bytes, a power of two, that divides the operand's base address and each of its leading strides; 1 if absent. |
    | `tile.phase` | A number of elements. All operands of a row space with this attribute leave the same remainder when their base addresses are divided by it, and so do their leading strides. |
    | `tile.partial` | The operand is a partial result, with one row for each program and without gaps. |
    | `tile.band` | How many neighbouring rows share each row of the operand, whose rows lie without gaps. |
    | `tile.space` | The row space to which the operand's rows belong; 0 if absent. |
    | `tile.approximate` | The operand is a result that may be approximate. |
    | `tile.dimensions` | The name of the program's dimension, or the static size, of each dimension of the operand. |
    | `tile.counters` | The operand, a `memref<?xi32>`, has no `tile.dimensions` but a counter for each combination of parts of these lengths, like those of `programs`; `tile.await_count` and `tile.release_count` use them. It is a result of the launch that no function returns, and the runtime sets it to 0 before. |
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$leading,
                       Tile_ScheduleInterface:$schedule,
                       OptionalAttr<StrArrayAttr>:$dimensions,
                       OptionalAttr<DictionaryAttr>:$programs,
                       OptionalAttr<DictionaryAttr>:$least,
                       OptionalAttr<DenseI64ArrayAttr>:$alignments,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$column_blocks,
                       OptionalAttr<I64Attr>:$row_programs,
                       OptionalAttr<I64Attr>:$band,
                       DefaultValuedOptionalAttr<I64Attr, "1">:$spaces,
                       OptionalAttr<DenseI64ArrayAttr>:$combines,
                       OptionalAttr<DenseI64ArrayAttr>:$unmerged_sizes,
                       OptionalAttr<StrArrayAttr>:$merged, UnitAttr:$in_place,
                       UnitAttr:$overlap_next, UnitAttr:$overlap_previous);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::mlir::FunctionType":$type,
                                 "int64_t":$leading,
                                 "ScheduleInterface":$schedule)>];
  let extraClassDeclaration = functionDeclaration # [{
    /// Names of the attributes of arguments.
    static constexpr ::llvm::StringLiteral kReadOnlyAttrName = "tile.readonly";
    static constexpr ::llvm::StringLiteral kAlignmentAttrName =
        "tile.alignment";
    static constexpr ::llvm::StringLiteral kPhaseAttrName = "tile.phase";
    static constexpr ::llvm::StringLiteral kPartialAttrName = "tile.partial";
    static constexpr ::llvm::StringLiteral kBandAttrName = "tile.band";
    static constexpr ::llvm::StringLiteral kSpaceAttrName = "tile.space";
    static constexpr ::llvm::StringLiteral kDimensionsAttrName =
        "tile.dimensions";
    static constexpr ::llvm::StringLiteral kCountersAttrName = "tile.counters";

    /// How many of the arguments are sizes; operands follow.
    int64_t getNumSizes() {
      if (getDimensions())
        return getDimensions()->size();
      return getSpaces() * getLeading() +
             getUnmergedSizes().value_or(::llvm::ArrayRef<int64_t>()).size();
    }
    /// The size of leading dimension `dimension` ahead of merging, which is one
    /// of `unmerged_sizes`.
    ::mlir::Value getUnmergedSize(int64_t dimension);
    /// Sizes of the leading dimensions of a row space.
    ::llvm::ArrayRef<::mlir::BlockArgument> getSizes(int64_t space = 0) {
      return getArguments().slice(space * getLeading(), getLeading());
    }
    /// How many rows the program takes at a time.
    int64_t getRowsPerProgram() {
      return getBand().value_or(getRowsSchedule().getRows());
    }
    /// The schedule of a program over rows, which has no named dimensions.
    RowsAttr getRowsSchedule() {
      return ::llvm::cast<RowsAttr>(getSchedule());
    }

    /// Bytes of shared memory that the program's buffers take in a block, which
    /// a launch gives to it.
    int64_t getSharedBytes();
    /// Bytes of shared memory that a block takes in all: buffers begin behind
    /// what the code declares for barriers and numbers.
    int64_t getAllSharedBytes();
    /// What divides the addresses from which swizzles count, in bytes.
    static constexpr int64_t kSwizzleAlignment = 1024;
    /// What divides the address at which buffers begin, in bytes.
    int64_t getSharedAlignment();

    /// What the attributes say of the argument at `position`.
    bool isArgReadOnly(unsigned position) {
      return bool(getArgAttr(position, kReadOnlyAttrName));
    }
    bool isArgPartial(unsigned position) {
      return bool(getArgAttr(position, kPartialAttrName));
    }
    bool isArgApproximate(unsigned position) {
      return bool(getArgAttr(position, TileDialect::kApproximateAttrName));
    }
    int64_t getArgAlignment(unsigned position);
    std::optional<int64_t> getArgPhase(unsigned position);
    std::optional<int64_t> getArgBand(unsigned position);
    int64_t getArgSpace(unsigned position);
    /// The names or sizes of the operand's dimensions; null for none.
    ::mlir::ArrayAttr getArgDimensions(unsigned position);
    /// The lengths of the parts of dimensions of which each combination has a
    /// counter in the operand; null if it holds none.
    ::mlir::DictionaryAttr getArgCounters(unsigned position);
    /// The size of dimension `name` of the program; null if there is none.
    ::mlir::Value getSize(::llvm::StringRef name);
  }];
}

def Tile_LaunchOp : Tile_Op<"launch", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a kernel, or one of its programs";
  let description = [{
    Before the pass `tile`, `kernels` names one `tile.kernel` of the launch's
    type. After it, `kernels` names the kernel's variants, each a
    `tile.program`, fastest first: the runtime launches the first one that can
    take the operands.

    With `overlap_next`, the next launch may start before this one has ended.

    Example:

    ```mlir
    %0 = tile.launch [@f](%x) : (tensor<?x2880xf32>) -> tensor<?x2880xf32>
    ```
  }];
  let arguments = (ins TypedArrayAttrBase<FlatSymbolRefAttr,
                           "kernel symbols">:$kernels,
                       Variadic<AnyRankedTensor>:$inputs,
                       UnitAttr:$overlap_next);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernels `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
  }];
  let extraClassDeclaration = [{
    /// The names of `kernels`.
    auto getNames() {
      return ::llvm::map_range(
          getKernels().getAsRange<::mlir::FlatSymbolRefAttr>(),
          [](::mlir::FlatSymbolRefAttr name) { return name.getValue(); });
    }
    /// The kernel's name, which its fastest program has as well.
    ::llvm::StringRef getFirstName() { return *getNames().begin(); }
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [
    Pure, ParentOneOf<["KernelOp", "ProgramOp"]>, Terminator]> {
  let summary = "ends a kernel, with its results, or a program";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

#endif // BASTILE_DIALECT_KERNELOPS_TD
