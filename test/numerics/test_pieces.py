# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Pieces of rows, of both kinds and in each other, forward and backward."""

import re

import numpy as np
import pytest

import floats
from runner import execute, run, run_backward, target, tensor

HOST = ("", "vector=1,columns=16", "rows=3,columns=32")
GPU = ("", "threads=32,columns=64", "rows=4,threads=64,vector=1,columns=64")


@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
@pytest.mark.parametrize("words", ("", "interleaved", "interleaved parts(2)"))
@pytest.mark.parametrize("reduced", (False, True))
def test_single_elements(words, schedule, reduced):
    four, one, row = (tensor((None, n), "f32") for n in (4, 1, 304))
    factor = "%p1" if not reduced else "%s"
    source = f"""
func.func @f(%x: {four}, %y: {row}) -> ({four}, {row}) {{
  %p0, %p1, %p2, %p3 = tile.split {words} %x
      : {four} -> {one}, {one}, {one}, {one}
  %m = tile.reduce max %y : {row} -> {one}
  %s = arith.mulf %p1, %m : {one}
  %0 = tile.broadcast {factor} like %y : {one}, {row} -> {row}
  %1 = arith.mulf %y, %0 : {row}
  %2 = arith.negf %p3 : {one}
  %3 = tile.join {words} %p1, %p0, %2, %p2
      : {one}, {one}, {one}, {one} -> {four}
  return %3, %1 : {four}, {row}
}}
"""
    x, y = floats.random("f32", (7, 4), 1), floats.random("f32", (7, 304), 2)
    flags = [f"--schedule={schedule}"] if schedule else []
    pieces, product = run(
        source, {"x": ("f32", x), "y": ("f32", y)}, ["f32"] * 2, *flags
    )
    assert np.array_equal(pieces, (x * [1, 1, 1, -1])[:, [1, 0, 3, 2]])
    factor = x[:, 1:2]
    if reduced:
        factor = (factor * y.max(axis=1, keepdims=True)).astype(np.float32)
    assert np.array_equal(product, (y * factor).astype(np.float32))


def split(array, count, words):
    """The pieces of rows, as `tile.split` with `words` makes them."""
    parts = re.search(r"parts\((\d+)\)", words)
    parts = int(parts.group(1)) if parts else 1 if words else count
    cut = array.reshape(len(array), parts, -1, count // parts)
    return [
        np.ascontiguousarray(cut[:, part, :, strand])
        for part in range(parts)
        for strand in range(count // parts)
    ]


def join(pieces, words):
    order = split(np.arange(sum(p.shape[1] for p in pieces))[None], len(pieces), words)
    return np.concatenate(pieces, axis=1)[:, np.argsort(np.concatenate(order, 1)[0])]


class Program:
    """A random function of x that only moves, negates and adds, in MLIR and in
    NumPy. Its pieces are taken apart and put together in several ways."""

    LENGTH = 48

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.lines = []
        self.steps = []
        self.lengths = {"x": self.LENGTH}
        for _ in range(self.random.integers(3, 7)):
            self.random.choice(
                [self.add_split, self.add_split, self.add_join, self.add_sum]
            )()
        lengths = sorted(set(self.lengths.values()))
        of_length = {
            n: [v for v in self.lengths if self.lengths[v] == n] for n in lengths
        }
        self.results = [
            self._add("arith.negf", (str(self.random.choice(of_length[n])),))
            for n in lengths[:3]
        ]

    def _type(self, name):
        return tensor((None, self.lengths[name]), "f32")

    def _add(self, op, operands):
        """An elementwise op."""
        name = f"v{len(self.lengths)}"
        self.lengths[name] = self.lengths[operands[0]]
        values = ", ".join(f"%{one}" for one in operands)
        self.lines.append(f"%{name} = {op} {values} : {self._type(name)}")
        self.steps.append((op, operands, "", (name,)))
        return name

    def _pick(self):
        return str(self.random.choice(list(self.lengths)))

    def _words(self, count):
        choices = ["", "interleaved"]
        choices += [f"interleaved parts({n})" for n in (2, 3) if count == 2 * n]
        return str(self.random.choice(choices))

    def add_split(self):
        whole = self._pick()
        counts = [n for n in (2, 3, 4, 6) if self.lengths[whole] % n == 0]
        if not counts:
            return
        count = int(self.random.choice(counts))
        words = self._words(count)
        names = tuple(f"v{len(self.lengths) + i}" for i in range(count))
        for name in names:
            self.lengths[name] = self.lengths[whole] // count
        types = ", ".join(self._type(name) for name in names)
        self.lines.append(
            ", ".join(f"%{name}" for name in names)
            + f" = tile.split {words} %{whole} : {self._type(whole)} -> {types}"
        )
        self.steps.append(("split", (whole,), words, names))

    def add_join(self):
        first = self._pick()
        same = [v for v in self.lengths if self.lengths[v] == self.lengths[first]]
        count = int(self.random.choice([2, 4]))
        if self.lengths[first] * count > 2 * self.LENGTH:
            return
        pieces = [str(self.random.choice(same)) for _ in range(count)]
        words = self._words(count)
        name = f"v{len(self.lengths)}"
        self.lengths[name] = self.lengths[first] * count
        values = ", ".join(f"%{one}" for one in pieces)
        types = ", ".join(self._type(one) for one in pieces)
        self.lines.append(
            f"%{name} = tile.join {words} {values} : {types} -> {self._type(name)}"
        )
        self.steps.append(("join", pieces, words, (name,)))

    def add_sum(self):
        first = self._pick()
        same = [v for v in self.lengths if self.lengths[v] == self.lengths[first]]
        self._add("arith.addf", (first, str(self.random.choice(same))))

    def source(self):
        types = ", ".join(self._type(name) for name in self.results)
        values = ", ".join(f"%{name}" for name in self.results)
        return "\n".join(
            [f"func.func @f(%x: {self._type('x')}) -> ({types}) {{"]
            + self.lines
            + [f"return {values} : {types}", "}\n"]
        )

    def evaluate(self, x):
        known = {"x": x}
        for op, operands, words, names in self.steps:
            given = [known[name] for name in operands]
            if op == "split":
                known.update(zip(names, split(given[0], len(names), words)))
            elif op == "join":
                known[names[0]] = join(given, words)
            else:
                known[names[0]] = -given[0] if "neg" in op else sum(given)
        return [known[name] for name in self.results]


SEEDS = range(32)


def attempt(seed):
    """Whether the compiler takes the program; its numbers are exact."""
    program = Program(seed)
    source = program.source()
    random = np.random.default_rng(seed)
    x = random.integers(-8, 9, (5, program.LENGTH)).astype(np.float32)
    expected = program.evaluate(x)
    cotangents = [
        random.integers(-8, 9, array.shape).astype(np.float32) for array in expected
    ]
    done = execute(source, "--grad=x", "--rows=0")
    if done.returncode != 0:
        assert "do not fit the other pieces" in done.stderr, (seed, done.stderr)
        return False
    results, got = run_backward(
        source,
        {"x": ("f32", x)},
        {f"grad_result{i}": ("f32", one) for i, one in enumerate(cotangents)},
        ["f32"] * len(expected),
        {"x": "f32"},
    )
    for result, array in zip(results, expected):
        assert np.array_equal(result, array), seed
    # Row i holds the share of element i of x in the results.
    effects = program.evaluate(np.eye(program.LENGTH, dtype=np.float32))
    gradient = sum(one @ effect.T for one, effect in zip(cotangents, effects))
    assert np.array_equal(got["x"], gradient), seed
    return True


def test_pieces_of_pieces():
    """The compiler refuses exactly the programs whose rows cannot all be cut to one
    length, and none keeps it busy for ever."""
    taken = sum(map(attempt, SEEDS))
    assert taken > len(SEEDS) // 2, taken


def test_partial_interleaved_rope():
    """Rotates the first half of a head by pairs of neighbours."""
    row, half, quarter = (tensor((None, n), "f32") for n in (64, 32, 16))
    source = f"""
func.func @f(%x: {row}, %cos: {quarter}, %sin: {quarter}) -> {row} {{
  %low, %rest = tile.split %x : {row} -> {half}, {half}
  %even, %odd = tile.split interleaved %low : {half} -> {quarter}, {quarter}
  %0 = arith.mulf %even, %cos : {quarter}
  %1 = arith.mulf %odd, %sin : {quarter}
  %2 = arith.subf %0, %1 : {quarter}
  %3 = arith.mulf %odd, %cos : {quarter}
  %4 = arith.mulf %even, %sin : {quarter}
  %5 = arith.addf %3, %4 : {quarter}
  %6 = tile.join interleaved %2, %5 : {quarter}, {quarter} -> {half}
  %7 = tile.join %6, %rest : {half}, {half} -> {row}
  return %7 : {row}
}}
"""
    x, dy = (floats.random("f32", (7, 64), seed) for seed in (1, 2))
    angles = floats.random("f32", (7, 16), 3)
    cos, sin = np.cos(angles), np.sin(angles)

    def turn(array, sin):
        even, odd = array[:, 0:32:2], array[:, 1:32:2]
        turned = np.stack([even * cos - odd * sin, odd * cos + even * sin], -1)
        return np.concatenate([turned.reshape(7, 32), array[:, 32:]], axis=1)

    (result,), got = run_backward(
        source,
        {
            name: ("f32", value)
            for name, value in zip(("x", "cos", "sin"), (x, cos, sin))
        },
        {"grad_result0": ("f32", dy)},
        ["f32"],
        {"x": "f32"},
    )
    np.testing.assert_allclose(result, turn(x, sin), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got["x"], turn(dy, -sin), rtol=1e-6, atol=1e-6)
