# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Single ops of programs for tensor cores, at all layouts that they take: tiles of
products in registers, copies of boxes, products. The programs run on the emulator, or
on a GPU of Hopper's kind."""

import re

import numpy as np
import pytest

import floats
from runner import HOPPER, run


def unit_of_sums(kind):
    """What a sum of 256 products may be off by, relative to their sizes. A GPU adds
    those of 8-bit floats with fewer bits."""
    return 2.0**-12 if kind in floats.SMALL and not HOPPER else 256 * 2.0**-23


def program(sizes, operands, results, parts, threads, body):
    """The text of a function that launches one program. Operands and results are
    pairs of name and type in memory, with the dimensions behind the type; `parts`
    are the lengths of parts that programs take."""
    arguments = [f"%{size}: index" for size in sizes]
    arguments += [
        f"%{name}: {type} {{tile.dimensions = {dimensions}}}"
        for name, type, dimensions in (*operands, *results)
    ]

    def tensor(type):
        shape, kind = re.search(r"memref<((?:[?\d]+x)*)(\w+)", type).groups()
        return f"tensor<{shape}{kind}>"

    inputs = ", ".join(tensor(type) for _, type, _ in operands)
    outputs = ", ".join(tensor(type) for _, type, _ in results)
    named = ", ".join(f"%{name}: {tensor(type)}" for name, type, _ in operands)
    names = ", ".join(f"%{name}" for name, _, _ in operands)
    values = ", ".join(f"%r#{i}" for i in range(len(results)))
    lengths = ", ".join(f"{size} = {length} : i64" for size, length in parts.items())
    dimensions = ", ".join(f'"{size}"' for size in sizes)
    return f"""
func.func @f({named}) -> ({outputs}) {{
  %r:{len(results)} = tile.launch [@f_program]({names}) : ({inputs}) -> ({outputs})
  return {values} : {outputs}
}}
tile.program @f_program({", ".join(arguments)}) attributes {{
    dimensions = [{dimensions}], programs = {{{lengths}}},
    schedule = #tile.launch<threads = {threads}>}} {{
{body}
  tile.return
}}
"""


def matrix(kind):
    return f"memref<?x?x{kind}, strided<[?, 1]>>"


def tile(rows, columns, kind, warps):
    return f"tensor<{rows}x{columns}x{kind}, #tile.mma<warps = {warps}>>"


def map_type(kind, rows, columns, swizzle):
    return (
        f"!tile.tensor_map<{matrix(kind)}, box = [{rows}, {columns}], "
        f"swizzle = {swizzle}>"
    )


@pytest.mark.long(every=5)
@pytest.mark.parametrize("m,n", ((1, 1), (37, 27), (64, 32), (133, 31)))
@pytest.mark.parametrize("rows,warps", ((64, 4), (128, 4), (128, 8)))
def test_tiles_in_registers(m, n, rows, warps):
    """Loads and stores beyond an operand's odd sizes, statistics and what is made of
    them, splits, and numbers of rows and columns."""
    t, row, column = (
        tile(*shape, "f32", warps) for shape in ((rows, 32), (1, 32), (rows, 1))
    )
    numbers, number_row = (tile(count, 32, "i32", warps) for count in (rows, 1))
    number_column = tile(rows, 1, "i32", warps)
    truth = tile(rows, 32, "i1", warps)
    piece, half = (tile(rows, count, "f32", warps) for count in (8, 16))
    memory, narrow = matrix("f32"), "memref<?x{}xf32, strided<[?, 1]>>"
    body = f"""
  %c0 = arith.constant 0 : index
  %length = arith.constant {rows} : index
  %program = tile.program_id
  %row = arith.muli %program, %length : index
  %t = tile.load %x[%row, %c0] : {memory} -> {t}
  %v_row = tile.load %v[%c0] : memref<?xf32> -> {row}
  %v_all = tile.broadcast %v_row : {row} -> {t}
  %columns = tile.iota from %c0 : {number_row}
  %column = tile.broadcast %columns : {number_row} -> {numbers}
  %n32 = arith.index_cast %n : index to i32
  %limit = tile.broadcast %n32 : i32 -> {numbers}
  %is_inside = arith.cmpi slt, %column, %limit : {numbers}
  %lowest = arith.constant dense<0xFF800000> : {t}
  %highest = arith.constant dense<0x7F800000> : {t}
  %low = arith.select %is_inside, %t, %lowest : {truth}, {t}
  %high = arith.select %is_inside, %t, %highest : {truth}, {t}
  %max = tile.reduce max %low : {t} -> {column}
  %min = tile.reduce min %high : {t} -> {column}
  %sum = tile.reduce add %t : {t} -> {column}
  %same = tile.reduce add %sum : {column} -> {column}
  tile.store %max, %largest[%row, %c0] : {column}, {narrow.format(1)}
  tile.store %same, %total[%row, %c0] : {column}, {narrow.format(1)}
  %min_all = tile.broadcast %min : {column} -> {t}
  %product = arith.mulf %t, %v_all : {t}
  %shifted = arith.subf %product, %min_all : {t}
  tile.store %shifted, %y[%row, %c0] : {t}, {memory}
  %a, %b, %c, %d = tile.split %t : {t} -> {piece}, {piece}, {piece}, {piece}
  %ab = arith.subf %a, %b : {piece}
  %cd = arith.divf %c, %v8 : {piece}
  %abcd = arith.addf %ab, %cd : {piece}
  %less = arith.subf %abcd, %d : {piece}
  tile.store %less, %pieces[%row, %c0] : {piece}, {narrow.format(8)}
  %first, %second = tile.split %t : {t} -> {half}, {half}
  %both = arith.subf %first, %second : {half}
  tile.store %both, %halves[%row, %c0] : {half}, {narrow.format(16)}
  %row_numbers = tile.iota_rows from %row : {number_column}
  tile.store %row_numbers, %numbers[%row, %c0] : {number_column}, memref<?x1xi32, strided<[?, 1]>>
  tile.store %v_row, %w[%c0] : {row}, memref<?xf32>
""".replace("  %cd =", f"  %v8 = arith.constant dense<4.0> : {piece}\n  %cd =")
    source = program(
        ("m", "n"),
        [("x", memory, '["m", "n"]'), ("v", "memref<?xf32>", '["n"]')],
        [
            ("y", memory, '["m", "n"]'),
            ("largest", narrow.format(1), '["m", 1]'),
            ("total", narrow.format(1), '["m", 1]'),
            ("pieces", narrow.format(8), '["m", 8]'),
            ("halves", narrow.format(16), '["m", 16]'),
            ("numbers", "memref<?x1xi32, strided<[?, 1]>>", '["m", 1]'),
            ("w", "memref<?xf32>", '["n"]'),
        ],
        {"m": rows},
        32 * warps,
        body,
    )
    x = floats.random("f32", (m, n), 1)
    v = floats.random("f32", (n,), 2)
    y, largest, total, pieces, halves, numbers, w = run(
        source,
        {"x": ("f32", x), "v": ("f32", v)},
        ["f32"] * 5 + ["i32", "f32"],
        *HOPPER,
    )
    expected = x * v - x.min(axis=1, keepdims=True)
    assert np.abs(y - expected).max() <= 2.0**-22 * np.abs(expected).max() + 2.0**-22
    assert np.array_equal(largest, x.max(axis=1, keepdims=True))
    sums = x.sum(axis=1, keepdims=True)
    assert np.abs(total - sums).max() <= n * 2.0**-24 * np.abs(x).sum(axis=1).max()
    padded = np.pad(x, ((0, 0), (0, 32 - n))).astype(np.float32)
    a, b, c, d = np.split(padded, 4, axis=1)
    assert np.array_equal(pieces, a - b + c / 4 - d)
    assert np.array_equal(halves, padded[:, :16] - padded[:, 16:])
    assert np.array_equal(numbers, np.arange(m)[:, None])
    assert np.array_equal(w, v)


@pytest.mark.long(every=4)
@pytest.mark.parametrize("kind,bytes", (("f32", 4), ("bf16", 2), ("i8", 1)))
@pytest.mark.parametrize("swizzle", (32, 64, 128))
def test_kept_tiles(kind, bytes, swizzle):
    """A tile goes through shared memory, of two panels, to boxes of an operand."""
    rows, warps, width = 128, 8, swizzle // bytes
    columns = 2 * width
    m, n = rows - 5, columns - 16 // bytes
    t = tile(rows, columns, kind, warps)
    map_ = map_type(kind, rows, width, swizzle)
    slots = f"memref<1x{rows}x{columns}x{kind}, #tile.shared<swizzle = {swizzle}>>"
    body = f"""
  %c0 = arith.constant 0 : index
  %slots = tile.buffer {{offset = 0 : i64}} : {slots}
  %t = tile.load %x[%c0, %c0] : {matrix(kind)} -> {t}
  tile.keep %t, %slots[%c0] : {t}, {slots}
  tile.fence_shared
  tile.synchronize
  tile.store_box %slots[%c0] to %y[%c0, %c0] : {slots}, {map_}
  tile.wait_stores 0
"""
    source = program(
        ("m", "n"),
        [("x", matrix(kind), '["m", "n"]')],
        [("y", map_, '["m", "n"]')],
        {"m": rows},
        32 * warps,
        body,
    )
    values = np.arange(m * n).reshape(m, n) % 127
    (y,) = run(source, {"x": (kind, values)}, [kind], *HOPPER)
    assert np.array_equal(floats.decode(kind, y), values)


def product_cases():
    """How each operand lies, for each swizzle; other types lie along their rows."""
    for swizzle in (32, 64, 128):
        for left in ("rows", "columns", "registers"):
            for right in ("rows", "columns"):
                yield "bf16", swizzle, left, right
    for kind in ("f16", *floats.SMALL):
        yield kind, 128, "rows", "rows"
    yield "f16", 64, "registers", "columns"


class SharedOperand:
    """An operand of a product: `free` elements of its own dimension, named
    `dimension`, times `depth` that are contracted, along rows or along columns."""

    def __init__(self, name, dimension, free, depth, kind, swizzle, place):
        self.name, self.kind, self.place = name, kind, place
        bytes = 1 if kind in floats.SMALL else 2
        self.in_registers = place == "registers"
        self.shape = (depth, free) if place == "columns" else (free, depth)
        names = ("k", dimension) if place == "columns" else (dimension, "k")
        self.dimensions = '["{}", "{}"]'.format(*names)
        self.contracted = 0 if place == "columns" else 1
        rows, columns = self.shape
        self.bytes = 0 if self.in_registers else rows * columns * bytes
        shared = f"#tile.shared<swizzle = {swizzle}>"
        self.slots = f"memref<1x{rows}x{columns}x{kind}, {shared}>"
        self.tile = f"memref<{rows}x{columns}x{kind}, {shared}>"
        self.memory = map_type(kind, rows, swizzle // bytes, swizzle)
        if self.in_registers:
            self.tile, self.memory = tile(rows, columns, kind, 4), matrix(kind)

    def begin(self, offset):
        if self.in_registers:
            return f"%{self.name}_tile = tile.load %{self.name}[%c0, %c0] : {self.memory} -> {self.tile}"
        return (
            f"%{self.name}_slots = tile.buffer {{offset = {offset} : i64}} : {self.slots}\n"
            f"tile.copy_box %{self.name}[%c0, %c0] to %{self.name}_slots[%c0] "
            f"arrive %full[%c0] : {self.memory}, {self.slots}, !tile.barriers<1>"
        )

    def wait(self):
        if self.in_registers:
            return ""
        return (
            f"%{self.name}_tile = tile.await %full[%c0] parity %c0 of %{self.name}_slots "
            f": !tile.barriers<1>, {self.slots} -> {self.tile}"
        )

    def values(self, seed, missing):
        """Random elements, [free, contracted], of an operand that ends ahead of the
        tile; and the operand itself."""
        rows, columns = self.shape
        own = floats.random(self.kind, (rows - missing, columns - 16), seed)
        return own.T if self.place == "columns" else own, own


@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind,swizzle,left,right", product_cases())
def test_products(kind, swizzle, left, right):
    """Twice the product of 128 rows by one warpgroup, which takes 64 of them at a
    time, over several steps and panels, of operands that end within the tiles."""
    x = SharedOperand("x", "m", 128, 128, kind, swizzle, left)
    w = SharedOperand("w", "n", 128, 128, kind, swizzle, right)
    sum_ = tile(128, 128, "f32", 4)
    pending = f"!tile.pending<{sum_}>"
    contract = [x.contracted, w.contracted]
    dot = f"contract {contract} : {x.tile}, {w.tile}, {pending} -> {pending}"
    body = f"""
  %c0 = arith.constant 0 : index
  %full = tile.make_barriers arrivals 1 : !tile.barriers<1>
  tile.synchronize
  tile.expect {x.bytes + w.bytes} bytes at %full[%c0] : !tile.barriers<1>
  {x.begin(0)}
  {w.begin(x.bytes)}
  {x.wait()}
  {w.wait()}
  %start = arith.constant dense<1.5> : {sum_}
  %begin = tile.begin_dots %start : {sum_} -> {pending}
  %once = tile.dot %x_tile, %w_tile, %begin {dot}
  %twice = tile.dot %x_tile, %w_tile, %once {dot}
  %sum = tile.wait_dots 0 of %twice : ({pending}) -> {sum_}
  tile.store %sum, %y[%c0, %c0] : {sum_}, {matrix("f32")}
"""
    source = program(
        ("m", "n", "k"),
        [("x", x.memory, x.dimensions), ("w", w.memory, w.dimensions)],
        [("y", matrix("f32"), '["m", "n"]')],
        {"m": 128},
        128,
        body,
    )
    # The contracted dimension of both ends at the same place.
    a, x_operand = x.values(1, 3 if left != "columns" else 16)
    b, w_operand = w.values(2, 3 if right != "columns" else 16)
    (y,) = run(
        source, {"x": (kind, x_operand), "w": (kind, w_operand)}, ["f32"], *HOPPER
    )
    size = 1.5 + 2 * np.abs(a) @ np.abs(b).T
    assert (np.abs(y - (1.5 + 2 * a @ b.T)) <= unit_of_sums(kind) * size).all()


@pytest.mark.long(every=13)
@pytest.mark.parametrize("kind", ("bf16", "f16", *floats.SMALL))
@pytest.mark.parametrize("swizzle", (32, 64, 128))
def test_products_of_warps(kind, swizzle):
    """Twice the product of operands in registers, which end within the tiles; the
    left one goes through shared memory once more, as matrices."""
    is_small = kind in floats.SMALL
    vector = 4 if is_small else 2
    m, n, k = 64, 48, 128
    left = f"tensor<{m}x{k}x{kind}, #tile.mma<warps = 2, vector = {vector}>>"
    right = f"tensor<{n}x{k}x{kind}, #tile.mma_rhs<vector = {vector}>>"
    sum_ = tile(m, n, "f32", 2)
    shared = f"#tile.shared<swizzle = {swizzle}>"
    x_slots = f"memref<2x{m}x{k}x{kind}, {shared}>"
    w_slots = f"memref<1x{n}x{k}x{kind}, {shared}>"
    x_bytes = 2 * m * k * (1 if is_small else 2)
    dot = f"contract [1, 1] : {left}, {right}"
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x_slots = tile.buffer {{offset = 0 : i64}} : {x_slots}
  %w_slots = tile.buffer {{offset = {x_bytes} : i64}} : {w_slots}
  tile.copy_tile %x[%c0, %c0] to %x_slots[%c0] : {matrix(kind)}, {x_slots}
  tile.copy_tile %w[%c0, %c0] to %w_slots[%c0] : {matrix(kind)}, {w_slots}
  tile.synchronize
  %x_part = tile.take %x_slots[%c0] : {x_slots} -> {left}
  tile.keep %x_part, %x_slots[%c1] : {left}, {x_slots}
  tile.synchronize
  %x_again = tile.take %x_slots[%c1] : {x_slots} -> {left}
  %w_part = tile.take %w_slots[%c0] : {w_slots} -> {right}
  %once = tile.dot %x_part, %w_part {dot} -> {sum_}
  %twice = tile.dot %x_again, %w_part, %once {dot}, {sum_} -> {sum_}
  tile.store %twice, %y[%c0, %c0] : {sum_}, {matrix("f32")}
"""
    source = program(
        ("m", "n", "k"),
        [("x", matrix(kind), '["m", "k"]'), ("w", matrix(kind), '["n", "k"]')],
        [("y", matrix("f32"), '["m", "n"]')],
        {"m": m},
        64,
        body,
    )
    x = floats.random(kind, (m - 3, k - 17), 1)
    w = floats.random(kind, (n - 5, k - 17), 2)
    for target_ in ("sm_89", "sm_90a") if HOPPER else ("gpu",):
        where = ("--emulate", f"--target={target_}") if HOPPER else ()
        (y,) = run(source, {"x": (kind, x), "w": (kind, w)}, ["f32"], *where)
        size = 2 * np.abs(x) @ np.abs(w).T
        assert (np.abs(y - 2 * x @ w.T) <= unit_of_sums(kind) * size).all()


def blocked(rows, columns, kind, vector, thread_rows, thread_columns):
    return (
        f"tensor<{rows}x{columns}x{kind}, #tile.blocked<vector = {vector}, "
        f"threadRows = {thread_rows}, threadColumns = {thread_columns}>>"
    )


@pytest.mark.long(every=4)
@pytest.mark.parametrize("kind", ("f32", "bf16"))
@pytest.mark.parametrize(
    "rows,columns,warps,deal",
    (
        # Whole rows for half a warp, as stores would like it; columns of rows.
        (128, 64, 8, (4, 16, 16)),
        (64, 32, 4, (1, 4, 32)),
        (64, 16, 4, (8, 64, 2)),
        # Threads keep what they have, in another order.
        (16, 32, 1, (2, 8, 4)),
        # The number of columns of threads is no power of two's part of a warp.
        (64, 128, 4, (2, 2, 64)),
    ),
)
def test_conversions_of_layouts(rows, columns, warps, deal, kind):
    """Numbers of columns are added in the one layout, maxima of rows that are reduced
    there in the other one, in a loop that goes through the same memory again."""
    t, column = (tile(rows, count, kind, warps) for count in (columns, 1))
    d, d_row, d_column = (
        blocked(*shape, kind, *deal)
        for shape in ((rows, columns), (1, columns), (rows, 1))
    )
    number_row = blocked(1, columns, "i32", *deal)
    memory = matrix(kind)
    reduce = f"%max = tile.reduce max %dealt : {d} -> {d_column}"
    if kind == "bf16":
        wide, wide_column = (
            blocked(rows, count, "f32", *deal) for count in (columns, 1)
        )
        reduce = f"""%wide = arith.extf %dealt : {d} to {wide}
    %wide_max = tile.reduce max %wide : {wide} -> {wide_column}
    %max = arith.truncf %wide_max : {wide_column} to {d_column}"""
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %length = arith.constant {rows} : index
  %program = tile.program_id
  %row = arith.muli %program, %length : index
  %t = tile.load %x[%row, %c0] : {memory} -> {t}
  %numbers = tile.iota from %c0 : {number_row}
  %number = arith.sitofp %numbers : {number_row} to {d_row}
  %number_all = tile.broadcast %number : {d_row} -> {d}
  %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%before = %t) -> ({t}) {{
    %dealt = tile.convert_layout %before : {t} -> {d}
    {reduce}
    %more = arith.addf %dealt, %number_all : {d}
    %back = tile.convert_layout %more : {d} -> {t}
    %max_back = tile.convert_layout %max : {d_column} -> {column}
    %max_all = tile.broadcast %max_back : {column} -> {t}
    %both = arith.addf %back, %max_all : {t}
    scf.yield %both : {t}
  }}
  tile.store %sum, %y[%row, %c0] : {t}, {memory}
"""
    source = program(
        ("m", "n"),
        [("x", memory, '["m", "n"]')],
        [("y", memory, '["m", "n"]')],
        {"m": rows},
        32 * warps,
        body,
    )
    x = np.random.default_rng(1).integers(-2, 3, (rows, columns)).astype(float)
    (y,) = run(source, {"x": (kind, x)}, [kind], *HOPPER)
    expected = x
    for _ in range(2):
        largest = expected.max(axis=1, keepdims=True)
        expected = floats.round_to(kind, expected + np.arange(columns))
        expected = floats.round_to(kind, expected + largest)
    assert np.array_equal(floats.decode(kind, y), expected)


@pytest.mark.parametrize("kind,vector", (("bf16", 2), ("f8E4M3FN", 4)))
def test_conversions_between_operands(kind, vector):
    """A left operand becomes the right one of the same product, and back, in a role
    whose threads are not the block's first ones."""
    t = f"tensor<32x64x{kind}, #tile.mma<warps = 2, vector = {vector}>>"
    right = f"tensor<32x64x{kind}, #tile.mma_rhs<vector = {vector}>>"
    total = tile(32, 32, "f32", 2)
    body = f"""
  %c0 = arith.constant 0 : index
  tile.roles warps [1, 2] threads [1, 64] {{
  }}, {{
    %t = tile.load %x[%c0, %c0] : {matrix(kind)} -> {t}
    %right = tile.convert_layout %t : {t} -> {right}
    %left = tile.convert_layout %right : {right} -> {t}
    %sum = tile.dot %left, %right contract [1, 1] : {t}, {right} -> {total}
    tile.store %sum, %y[%c0, %c0] : {total}, {matrix("f32")}
  }}
"""
    source = program(
        ("m", "n", "k"),
        [
            ("x", matrix(kind), '["m", "k"]'),
            ("other", matrix(kind), '["n", "k"]'),
        ],
        [("y", matrix("f32"), '["m", "n"]')],
        {"m": 32},
        96,
        body,
    )
    x = np.random.default_rng(1).integers(-4, 5, (32, 64)).astype(float)
    (y,) = run(source, {"x": (kind, x), "other": (kind, x)}, ["f32"], *HOPPER)
    assert np.array_equal(y, x @ x.T)
