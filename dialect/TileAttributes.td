//===- TileAttributes.td - Schedules and layouts ------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILEATTRIBUTES_TD
#define BASTILE_DIALECT_TILEATTRIBUTES_TD

include "dialect/TileDialect.td"
include "dialect/TileInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class Tile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_Reread : I32EnumAttr<"Reread", "where a row is that later sweeps read again", [
    I32EnumAttrCase<"Unset", 0, "unset">,
    I32EnumAttrCase<"Memory", 1, "memory">,
    I32EnumAttrCase<"Shared", 2, "shared">,
  ]> {
  let cppNamespace = "::bastile::tile";
}

def Tile_RowsAttr : Tile_Attr<"Rows", "rows", [Tile_ScheduleInterface]> {
  let summary = "The schedule of a kernel on rows";
  let description = [{
    A schedule says how a kernel runs and never what it computes: another
    schedule gives the same result up to rounding. This one is of kernels that
    go through rows.

    One block of `threads` threads holds a *tile* of `rows` x `columns` elements
    at a time, each thread in pieces of `vector` neighbouring elements. Where
    `columns` is less than the row, a kernel without row reductions gives each
    tile its own block. A kernel with reductions goes through the row tile by
    tile, in one sweep for each reduction that waits for another. With
    `persistent` = k, at most k blocks are launched for each multiprocessor, and
    each goes through several groups of rows; 0 launches one block for each
    group.

    On a GPU, a `vector` need not divide the row if the kernel computes only
    along the columns of rows. Rows are then *misaligned*: the first vector of a
    row begins at the last address before the row that vectors divide, and the
    first and the last vector are moved element by element.

    With `cluster` = n, the n blocks of a cluster share the tile, each holding
    `columns` / n neighbouring columns of every row, and reduce rows together
    through each other's shared memory. 1 means no cluster, and so does 0 in a
    complete schedule.

    With `stages` = 2, a program that goes through several groups of rows starts
    to load the next group before it computes on the current one. With `stages`
    = n above 2, the next n - 1 groups are on their way to shared memory. 1
    loads nothing ahead, and so does 0 in a complete schedule.

    Where a row takes more than one sweep, `reread = shared` has the first sweep
    keep in shared memory the elements that later sweeps read again; `reread =
    memory` has each sweep load them.

    A field that is 0 (or left out) is chosen by the `schedule` pass:

    ```mlir
    func.func @f(...) attributes {tile.schedule = #tile.rows<threads = 128>}
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0", "rows of a tile">:$rows,
    DefaultValuedParameter<"int64_t", "0", "threads of a block">:$threads,
    DefaultValuedParameter<"int64_t", "0",
        "neighbouring elements that a thread moves at once">:$vector,
    DefaultValuedParameter<"int64_t", "0", "columns of a tile">:$columns,
    DefaultValuedParameter<"int64_t", "0",
        "blocks a multiprocessor, 0 for a block each row group">:$persistent,
    DefaultValuedParameter<"int64_t", "0", "blocks that share a row">:$cluster,
    DefaultValuedParameter<"int64_t", "0",
        "groups of rows that are loaded or computed on at a time">:$stages,
    DefaultValuedParameter<"::bastile::tile::Reread",
        "::bastile::tile::Reread::Unset",
        "where a row is that later sweeps read again">:$reread);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBlocks() const { return getCluster() ? getCluster() : 1; }
    bool isComplete() const {
      return getRows() && getThreads() && getVector() && getColumns();
    }
  }];
}

def Tile_MatmulAttr : Tile_Attr<"Matmul", "matmul", [Tile_ScheduleInterface]> {
  let summary = "The schedule of a kernel that multiplies";
  let description = [{
    One block of `threads` threads computes a tile of `rows` x `columns`
    elements of a product, and what follows it element by element. Each thread
    holds pieces of `vector` neighbouring elements.

    With `stages` = n above 1, the block multiplies on tensor cores: the next
    n - 1 parts of both factors, each of `depth` elements of the dimension that
    is summed over, are on their way to shared memory while one is multiplied.
    Otherwise each thread multiplies what it loads by itself, and `depth` means
    nothing. Tensor cores multiply matrices of 16 bits that have more than one
    row and column, and 8-bit floats along their rows.

    With `roles` = 2, the warps part: one thread copies boxes of the factors, and
    warpgroups multiply them, of 64 `rows` each. There are then as many blocks
    as the machine runs at once, and each computes one tile after the other. A
    `cluster` of blocks has as many times the rows, and copies the factors of
    its columns once. With `roles` = 1, all threads copy and multiply. Where a
    target does not have both ways, `roles` and `cluster` are 0.

    With `split` = n above 1, the n blocks of a cluster sum a part each of the
    dimension that is summed over, of the same tile. Then they share the tile's
    columns, and each adds up the sums of all blocks for its own, always in the
    same order. This is for products that have few tiles.

    Where left factors are computed and warps have roles, `steps` = 2 lets the
    products of a step run while the next step's factors are computed; with
    `steps` = 1, a warpgroup ends a step before it begins another, which leaves
    registers for more sums: other warpgroups multiply meanwhile. 0 means 2 in a
    complete schedule.

    There, `resident` = 2 or 3 blocks share a multiprocessor, in each of which
    one warpgroup multiplies, with tiles and stages of its own. The warpgroups
    of one block share what is copied, and visit what any of them needs. 0 means
    1.

    With `matrices` = n above 1, the rows of a tile are `rows` / n of each of n
    neighbouring matrices, along the last dimension of the batch. Factors that
    are the same for these matrices are copied once for all of them, and where
    masks show few elements around each row, fewer steps have some of them than
    for as many rows of one matrix. The matrices of a batch have to be whole
    groups of n. 0 means 1.

    A field that is 0 (or left out) is chosen by the `schedule` pass, so that a
    user pins some and leaves the others:

    ```mlir
    func.func @f(...) attributes {tile.schedule = #tile.matmul<columns = 64>}
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0", "rows of a tile">:$rows,
    DefaultValuedParameter<"int64_t", "0", "columns of a tile">:$columns,
    DefaultValuedParameter<"int64_t", "0",
        "elements of the summed dimension that are copied at a time">:$depth,
    DefaultValuedParameter<"int64_t", "0", "threads of a block">:$threads,
    DefaultValuedParameter<"int64_t", "0",
        "neighbouring elements that a thread holds at once">:$vector,
    DefaultValuedParameter<"int64_t", "0",
        "parts of the factors that are copied or multiplied at a time">:$stages,
    DefaultValuedParameter<"int64_t", "0",
        "1 if all warps copy and multiply, 2 if some only copy">:$roles,
    DefaultValuedParameter<"int64_t", "0",
        "blocks that copy some of their factors together">:$cluster,
    DefaultValuedParameter<"int64_t", "0",
        "blocks that sum parts of the same tile">:$split,
    DefaultValuedParameter<"int64_t", "0",
        "steps that a warpgroup computes at once">:$steps,
    DefaultValuedParameter<"int64_t", "0",
        "blocks that a multiprocessor runs at once">:$resident,
    DefaultValuedParameter<"int64_t", "0",
        "matrices whose rows a tile has">:$matrices);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The blocks of a cluster.
    int64_t getBlocks() const { return getRowBlocks() * getSplitBlocks(); }
    /// Those with rows of their own, and those that share a tile.
    int64_t getRowBlocks() const { return getCluster() ? getCluster() : 1; }
    int64_t getSplitBlocks() const { return getSplit() ? getSplit() : 1; }
    int64_t getPersistent() const {
      if (!isSpecialized())
        return 0;
      return getResident() ? getResident() : 1;
    }
    bool isComplete() const {
      return getRows() && getColumns() && getThreads() && getVector() &&
             (getDepth() || !isStaged()) &&
             (getCluster() || !isSpecialized());
    }
    /// Whether tensor cores multiply parts of both factors in shared memory.
    bool isStaged() const { return getStages() > 1 || isSpecialized(); }
    /// Of how many matrices the rows of a tile are.
    int64_t getTileMatrices() const {
      return getMatrices() ? getMatrices() : 1;
    }
    /// Whether one thread copies, and the other warps multiply.
    bool isSpecialized() const { return getRoles() == 2; }
    /// The warps that copy, and those that multiply.
    int64_t getCopyWarps() const { return isSpecialized() ? 4 : 0; }
    int64_t getDotWarps() const { return getThreads() / 32 - getCopyWarps(); }
  }];
}

def Tile_LaunchAttr : Tile_Attr<"Launch", "launch", [Tile_ScheduleInterface]> {
  let summary = "The schedule of a program that was written by hand";
  let description = [{
    Such a program says itself what each block does, so that its schedule says
    only how it is launched: in blocks of `threads` threads, `cluster` blocks in
    a cluster, and with `persistent` = k in at most k blocks for each
    multiprocessor.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0", "threads of a block">:$threads,
    DefaultValuedParameter<"int64_t", "0", "blocks of a cluster">:$cluster,
    DefaultValuedParameter<"int64_t", "0",
        "blocks a multiprocessor, 0 for a block each program">:$persistent);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBlocks() const { return getCluster() ? getCluster() : 1; }
    bool isComplete() const { return getThreads() > 0; }
  }];
}

def Tile_BlockedAttr : Tile_Attr<"Blocked", "blocked", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<Tile_LayoutInterface>]> {
  let summary = "Which thread holds which element of a tile";
  let description = [{
    Deals a tile to the threads of a block in pieces of `vector` neighbouring
    elements. The threads form a grid of `threadRows` x `threadColumns`; thread
    t stands at row t / threadColumns and column t % threadColumns. A tile
    larger than one such deal is covered by repeating it, rows outermost. A
    dimension of size one is held by every thread along it.

    Where a cluster of `blocks` shares the tile, each deal goes to the threads
    of one block after the other: only the last one can leave the row.

    `#tile.blocked<vector = 2, threadRows = 1, threadColumns = 4>` on a tile of
    1 x 16, each cell naming its thread and piece:

    ```
    column  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    thread  0  0  1  1  2  2  3  3  0  0  1  1  2  2  3  3
    piece   0  0  0  0  0  0  0  0  1  1  1  1  1  1  1  1
    ```

    and with `threadColumns = 2, blocks = 2`:

    ```
    column  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    block   0  0  0  0  1  1  1  1  0  0  0  0  1  1  1  1
    thread  0  0  1  1  0  0  1  1  0  0  1  1  0  0  1  1
    piece   0  0  0  0  0  0  0  0  1  1  1  1  1  1  1  1
    ```

    A tile with `group` = g has one element for each g neighbouring columns of
    another tile that is dealt as above. For each of its pieces of the other
    tile, a thread holds the element of the piece's group. With `vector = 2,
    threadRows = 1, threadColumns = 4, group = 4` on a tile of 1 x 4:

    ```
    column    0    1    2    3
    threads  0,1  2,3  0,1  2,3
    piece     0    0    1    1
    ```

    With `columns` = c as well, the other tile has c columns, which need not be
    a multiple of g: the last element stands for the columns that are left.
  }];
  let parameters = (ins "int64_t":$vector, "int64_t":$threadRows,
                        "int64_t":$threadColumns,
                        DefaultValuedParameter<"int64_t", "1">:$blocks,
                        DefaultValuedParameter<"int64_t", "1">:$group,
                        DefaultValuedParameter<"int64_t", "0">:$columns);
  let builders = [AttrBuilder<(ins "int64_t":$vector, "int64_t":$threadRows,
                                   "int64_t":$threadColumns,
                                   "int64_t":$blocks,
                                   CArg<"int64_t", "1">:$group), [{
    return $_get($_ctxt, vector, threadRows, threadColumns, blocks, group,
                 /*columns=*/0);
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Number of times the deal repeats along the rows of a tile with `shape`.
    int64_t getRowRepeats(::llvm::ArrayRef<int64_t> shape) const {
      return shape[0] == 1 ? 1 : shape[0] / getThreadRows();
    }
    /// Number of times the deal repeats along the columns.
    int64_t getColumnRepeats(::llvm::ArrayRef<int64_t> shape) const {
      int64_t columns = getColumns() ? getColumns() : shape[1] * getGroup();
      return shape[1] == 1 ? 1 : columns / getColumnsPerDeal();
    }
    /// Columns that one deal covers.
    int64_t getColumnsPerDeal() const {
      return getBlocks() * getThreadColumns() * getVector();
    }
    /// Whether groups lie with as many neighbouring threads each, from a
    /// multiple of their number on, and a whole number of pieces of these.
    bool isGroupAligned() const {
      if (getGroup() == 1)
        return true;
      int64_t threads = getGroupThreads();
      return getGroup() % (getVector() * threads) == 0 &&
             getThreadColumns() % threads == 0;
    }
    /// Neighbouring threads that hold one group, and pieces of each of them,
    /// where it is aligned.
    int64_t getGroupThreads() const {
      return std::min(getThreadColumns(), getGroup() / getVector());
    }
    int64_t getGroupPieces() const {
      return getGroup() / (getVector() * getGroupThreads());
    }
  }];
}

def Tile_MmaAttr : Tile_Attr<"Mma", "mma", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<Tile_LayoutInterface>]> {
  let summary = "Which thread holds which element of a product's tile";
  let description = [{
    Deals a tile as the tensor cores hold the sum of a product. `warps` warps
    stand below each other, each over 16 rows; a tile with more rows repeats
    them. Thread t of a warp holds, of every 4 * `vector` columns, `vector`
    neighbours from `vector` * (t % 4) on, in row t / 4 as one piece and in row
    t / 4 + 8 as the next piece. A sum has a `vector` of 2. The left operand of a
    product has the same layout in registers where its elements have 16 bits; of
    8 bits it has a `vector` of 4.

    `#tile.mma<warps = 1>` on a tile of 16 x 8, each cell naming its thread and
    piece:

    ```
    column   0    1    2    3    4    5    6    7
    row 0   0:0  0:0  1:0  1:0  2:0  2:0  3:0  3:0
    row 1   4:0  4:0  5:0  5:0  6:0  6:0  7:0  7:0
    ...
    row 8   0:1  0:1  1:1  1:1  2:1  2:1  3:1  3:1
    ```

    A dimension of size one is held by every thread along it. The warps are
    those of the role that computes the tile (`tile.roles`), in order.
  }];
  let parameters = (ins "int64_t":$warps,
                        DefaultValuedParameter<"int64_t", "2">:$vector);
  let builders = [AttrBuilder<(ins "int64_t":$warps), [{
    return $_get($_ctxt, warps, /*vector=*/2);
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Rows of a warp's part, and lanes that share a row.
    static constexpr int64_t kWarpRows = 16, kLanesPerRow = 4;
    /// Columns that one piece of each thread covers.
    int64_t getChunkColumns() const { return kLanesPerRow * getVector(); }
    /// How often the warps repeat along the rows.
    int64_t getRowRepeats(::llvm::ArrayRef<int64_t> shape) const {
      return shape[0] == 1 ? 1 : shape[0] / (kWarpRows * getWarps());
    }
    /// How many rows a thread holds in each repetition.
    int64_t getRowsPerRepeat(::llvm::ArrayRef<int64_t> shape) const {
      return shape[0] == 1 ? 1 : 2;
    }
    /// How many chunks of columns there are.
    int64_t getChunks(::llvm::ArrayRef<int64_t> shape) const {
      return shape[1] == 1 ? 1 : shape[1] / getChunkColumns();
    }
    /// The number of the piece of a chunk that lies in a thread's row `half` of
    /// a repetition.
    int64_t getPiece(::llvm::ArrayRef<int64_t> shape, int64_t repeat,
                     int64_t chunk, int64_t half) const {
      return (repeat * getChunks(shape) + chunk) * getRowsPerRepeat(shape) +
             half;
    }
  }];
}

def Tile_MmaRhsAttr : Tile_Attr<"MmaRhs", "mma_rhs", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<Tile_LayoutInterface>]> {
  let summary = "Which thread holds which element of a product's right operand";
  let description = [{
    Deals a tile with a row for each column of a product's sum, and a column for
    each element that is contracted. Every warp holds the whole tile. Thread t of
    a warp holds, of every 8 rows, row t / 4; of every 8 * `vector` columns of
    it, `vector` neighbours from `vector` * (t % 4) on as one piece, and those
    that lie 4 * `vector` columns further along as the next piece. Elements of 16
    bits have a `vector` of 2, which need not be said, those of 8 bits one of 4.

    `#tile.mma_rhs` on a tile of 16 x 16, each cell naming its thread and piece:

    ```
    column   0    1    2    3    4    5    6    7    8    9   10  ...
    row 0   0:0  0:0  1:0  1:0  2:0  2:0  3:0  3:0  0:1  0:1  1:1
    row 1   4:0  4:0  5:0  5:0  6:0  6:0  7:0  7:0  4:1  4:1  5:1
    ...
    row 8   0:2  0:2  1:2  1:2  2:2  2:2  3:2  3:2  0:3  0:3  1:3
    ```
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "2">:$vector);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Rows of the smallest tile, rows that one piece of each thread covers, and
    /// pieces of each step.
    static constexpr int64_t kRows = 16, kChunk = 8, kPieces = 2;
    /// Columns of a step, which one product contracts.
    int64_t getStepColumns() const {
      return kPieces * MmaAttr::kLanesPerRow * getVector();
    }
    /// The number of the first piece in rows `chunk` * 8 of step `step`.
    int64_t getPiece(::llvm::ArrayRef<int64_t> shape, int64_t chunk,
                     int64_t step) const {
      return (chunk * (shape[1] / getStepColumns()) + step) * kPieces;
    }
  }];
}

def Tile_SharedAttr : Tile_Attr<"Shared", "shared"> {
  let summary = "Shared memory in which the elements of a tile have a place";
  let description = [{
    The memory space of a buffer whose tiles any thread may read. The columns of
    a tile are cut into panels of `swizzle` bytes, which lie one behind the
    other, each with one row after the other. Within a panel, bits 4 to 6 of an
    address (4 to 5 with 64 bytes, 4 with 32) are combined by exclusive or with
    bits 7 to 9 (7 to 8, 7), so that neither rows nor columns collide in a bank.
    Copies of tensors write this order and products read it.
  }];
  let parameters = (ins "int64_t":$swizzle);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_HeldAttr : Tile_Attr<"Held", "held"> {
  let summary = "Shared memory in which each thread has a place";
  let description = [{
    The memory space of a buffer of sums of products, each of whose tiles lies
    there as the threads of a role hold it: in units of 16 bytes, the first one
    of all threads in their order, then the second one. A thread reads what it
    has written itself (`tile.keep`), or what the thread of the same number has
    sent from another block (`tile.send`), and neighbouring threads are in
    different banks.
  }];
}

#endif // BASTILE_DIALECT_TILEATTRIBUTES_TD
