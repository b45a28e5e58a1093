# Part of Bastile, under the MIT License. See LICENSE.
"""Random functions of primitives, model ops and products of matrices."""

import math

import numpy as np

import graphs
import tape

# The sizes of rows: of matrices, ahead of them those of batches.
LEADING = (
    ((None,), (5,)),
    ((None,), (9,)),
    ((7,), (7,)),
    ((None, None), (2, 3)),
    ((None, 6), (2, 6)),
    ((3, 8), (3, 8)),
    ((2, None), (2, 5)),
    ((1, None), (1, 4)),
    ((None, 1, None), (2, 1, 3)),
    ((2, None, 5), (2, 3, 5)),
)
LENGTHS = (1, 2, 7, 8, 12, 17, 24, 33, 64, 66, 130)
CONTRACTS = ((0, 0), (0, 1), (1, 0), (1, 1))
#: Sizes of batches that only some factor has, from the last dimension on.
BATCH = (3, 2)


class Matrix:
    """A value seen as matrices: its dimensions, None where known only at launch."""

    def __init__(self, value):
        self.value = value
        self.batch = value.leading[:-1]
        self.sizes = (value.leading[-1], value.length)


def _whole(a, b):
    """The batch of a product, None where the two factors' do not fit."""
    rank = max(len(a), len(b))
    a, b = ((1,) * (rank - len(x)) + x for x in (a, b))
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        return None
    return tuple(y if x == 1 else x for x, y in zip(a, b))


class ProductGenerator(graphs.Generator):
    """Grows a graph of which every third op or so is a product, or there for one.

    A dimension that is known only at launch has the same size in all values: it is
    told by its place ahead of the columns."""

    lengths = LENGTHS
    leadings = LEADING

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.has_pieces &= self.chance(0.5)

    def step(self):
        return self.product() if self.chance(0.5) else super().step()

    def has_rows(self, x):
        return x.leading is not None

    def can_repeat(self, x, leading, length):
        if x.leading and leading and len(x.leading) != len(leading):
            return False
        return super().can_repeat(x, leading, length)

    def product(self):
        """A product of two values, or of a value and an argument."""
        matrices = [v for v in self.values if v.leading]
        x = self.pick(matrices[-4:] if self.chance(0.7) else matrices)
        if self.chance(0.45):
            kind = self.factor_kind(x)
            x = self.cast(x, kind)
            pair = x and self.with_argument(x)
        else:
            pair = self.with_value(x, matrices)
        return pair and self.multiply(*pair)

    def factor_kind(self, *values):
        """Mostly the type that one of the factors has."""
        if self.is_double:
            return "f64"
        return self.pick((*(x.kind for x in values), "f32", "bf16", "f16"))

    def with_argument(self, x):
        """`x` and a new argument in some order, and the dimensions that are summed."""
        matrix = Matrix(x)
        contract = self.pick(CONTRACTS)
        is_left = self.chance(0.7)
        own = contract[0 if is_left else 1]
        contracted, free = matrix.sizes[own], matrix.sizes[1 - own]
        if not is_left and free is None:
            # The rows of an operand are known only at launch, columns never are.
            return None
        other = self.pick(self.lengths)
        sizes = [other, other]
        sizes[contract[1 if is_left else 0]] = contracted
        if sizes[1] is None:
            return None
        # A batch of matrices, of its own or that of `x`.
        batch = ()
        rank = len(matrix.batch)
        if self.chance(0.4):
            batch = tuple(s if self.chance(0.7) else 1 for s in matrix.batch)
            if rank and self.chance(0.3):
                batch = batch[1:]
        if rank < len(BATCH) and len(batch) == rank and self.chance(0.15):
            batch = (BATCH[rank], *batch)
        known = self.known[x.name].shape
        at_launch = (*known[:-2], known[-2])
        whole = (*batch, sizes[0])
        actual = [
            at_launch[i - len(whole)] if size is None else size
            for i, size in enumerate(whole)
        ]
        # Sums of many products are no larger than those of few.
        summed = known[own - 2]
        weight = self.argument(
            whole, actual, sizes[1], "m", x.kind, scale=self.scale_of(summed)
        )
        pair = (x, weight) if is_left else (weight, x)
        return (*pair, contract)

    def scale_of(self, count):
        return 2.0 ** -math.ceil(math.log2(max(count, 1)) / 2)

    def with_value(self, x, matrices):
        """`x` and another value that fits, maybe itself, and the dimensions that are
        summed."""
        fits = []
        for y in matrices:
            for first, second in ((x, y), (y, x)):
                a, b = Matrix(first), Matrix(second)
                if _whole(a.batch, b.batch) is None:
                    continue
                for contract in CONTRACTS:
                    if (
                        a.sizes[contract[0]] == b.sizes[contract[1]]
                        and b.sizes[1 - contract[1]] is not None
                    ):
                        fits.append((first, second, contract))
        if not fits:
            return None
        # Most pairs fit where their rows are summed: each way is as likely.
        contract = self.pick(sorted({fit[2] for fit in fits}))
        first, second, _ = self.pick([fit for fit in fits if fit[2] == contract])
        kind = self.factor_kind(first, second)
        left = self.cast(first, kind)
        right = left if second is first else self.cast(second, kind)
        if left is None or right is None:
            return None
        count = self.known[left.name].shape[contract[0] - 2]
        if count > 4 and self.chance(0.8):
            left = self.with_number("arith.mulf", left, self.scale_of(count))
            if left is None:
                return None
        return left, right, contract

    def multiply(self, left, right, contract):
        a, b = Matrix(left), Matrix(right)
        batch = _whole(a.batch, b.batch)
        if batch is None:
            return None
        # Some dimensions of the batch are added up, the first ones are left out.
        if self.chance(0.25):
            batch = tuple(s if self.chance(0.5) else 1 for s in batch)
            while batch and batch[0] == 1 and self.chance(0.7):
                batch = batch[1:]
        leading = (*batch, a.sizes[1 - contract[0]])
        length = b.sizes[1 - contract[1]]
        result = self.new(leading, length, self.wide)

        def formula(x, y):
            # Where a size is known only at launch, it is that of the factors.
            full = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
            ahead = full[len(full) - len(batch) :]
            sizes = [f if s is None else s for s, f in zip(batch, ahead)]
            shape = (*sizes, x.shape[-1 - contract[0]], length)
            return tape.product(x, y, contract, shape, left.kind)

        return self.node(
            result,
            [left, right],
            [
                f"%{result.name} = tile.dot %{left.name}, %{right.name} contract "
                f"[{contract[0]}, {contract[1]}] : {left.type()}, {right.type()} -> "
                f"{result.type()}"
            ],
            formula,
        )


def generate(seed, is_double=False):
    """A graph with products, and values for its arguments."""
    return graphs.generate(seed, is_double, ProductGenerator, "p", most=20)
