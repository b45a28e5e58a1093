# Part of Bastile, under the MIT License. See LICENSE.
"""The five dimensions of attention: batch, heads of keys, queries' heads for each of
these, queries and keys or elements of heads.

Operands that have fewer dimensions, or fewer heads, are views with sizes of 1, so that a
kernel repeats them.
"""

from typing import NamedTuple

import torch
from bastile._losses import checks


class Heads(NamedTuple):
    """The sizes of a call: of the batch, of keys' heads, of queries' heads for each of
    these, and how many queries and keys there are."""

    call: str
    batch: int
    key_heads: int
    group: int
    queries: int
    keys: int

    def split_query(self, query):
        return query.reshape(
            self.batch, self.key_heads, self.group, self.queries, query.shape[-1]
        )

    def join(self, result):
        """What belongs to each query, [B, H, Q, ...], of the five dimensions."""
        heads = self.key_heads * self.group
        return result.reshape(self.batch, heads, self.queries, result.shape[-1])

    def of_heads(self, name, values):
        """One number for each of the queries' heads."""
        if values is None:
            return None
        heads = self.key_heads * self.group
        self.check(name, values, values.shape == (heads,), f"[{heads}]")
        return values.reshape(1, self.key_heads, self.group, 1, 1)

    def of_scores(self, name, values):
        """What belongs to each score, or is the same along some of the dimensions. All
        keys are there in the result."""
        if values is None:
            return None
        heads = self.key_heads * self.group
        wanted = (self.batch, heads, self.queries, self.keys)
        shape = (1,) * (4 - values.dim()) + tuple(values.shape)
        fits = len(shape) == 4 and all(
            size in (1, want) for size, want in zip(shape, wanted)
        )
        self.check(name, values, fits, f"{list(wanted)}, or 1 along some dimensions")
        # Other rows have one element, which would be one column.
        values = values.expand(*shape[:-1], self.keys)
        if values.stride(-1) != 1 and self.keys != 1:
            values = values.contiguous()
        return self.split_heads(values.reshape(*shape[:-1], self.keys))

    def split_heads(self, values):
        """What has the dimensions of scores, or sizes of 1, with those of heads apart."""
        if values.shape[1] == 1:
            return values.unsqueeze(1)
        return values.reshape(
            values.shape[0], self.key_heads, self.group, *values.shape[2:]
        )

    def of_keys(self, name, values):
        """What belongs to each key of a sequence, or of all."""
        if values is None:
            return None
        values = self._of_sequences(name, values, self.keys)
        if values.stride(-1) != 1:
            values = values.contiguous()
        return values[:, None, None, None, :]

    def of_queries(self, name, values):
        """What belongs to each query of a sequence, or of all."""
        if values is None:
            return None
        values = self._of_sequences(name, values, self.queries)
        return values[:, None, None, :, None]

    def _of_sequences(self, name, values, length):
        if values.dim() == 1:
            values = values.unsqueeze(0)
        fits = values.dim() == 2 and values.shape[1] == length
        fits = fits and values.shape[0] in (1, self.batch)
        self.check(name, values, fits, f"{[self.batch, length]}")
        return values

    def check(self, name, values, fits, wanted):
        if not fits:
            raise ValueError(
                f"{self.call}: '{name}' has shape {list(values.shape)}, but it must be "
                f"{wanted}"
            )


def find(call, query, key, value) -> Heads:
    """The sizes of a call; raises for heads that do not go together."""
    for name, heads in (("query", query), ("key", key), ("value", value)):
        checks.check_whole(call, name, heads)
        checks.check_floats(call, name, heads)
        if heads.dim() != 4:
            raise ValueError(
                f"{call}: '{name}' has shape {list(heads.shape)}, but it must be "
                "[batch, heads, sequence, size]"
            )
        if heads.dtype != query.dtype:
            raise TypeError(
                f"{call}: '{name}' has elements of type {heads.dtype}, but 'query' of "
                f"type {query.dtype}"
            )
    checks.check_place(call, {"query": query, "key": key, "value": value})
    batch, heads, queries, size = query.shape
    key_heads, keys = key.shape[1:3]
    if (
        key.shape[0] != batch
        or key.shape[3] != size
        or key.shape[:3] != value.shape[:3]
    ):
        raise ValueError(
            f"{call}: heads of the shapes {list(query.shape)}, {list(key.shape)} and "
            f"{list(value.shape)} do not go together; they must be [B, H, Q, D], "
            "[B, G, K, D] and [B, G, K, E]"
        )
    if key_heads == 0 or heads % key_heads:
        raise ValueError(
            f"{call}: {heads} heads of queries cannot share {key_heads} heads of keys"
        )
    return Heads(call, batch, key_heads, heads // key_heads, queries, keys)


def one_number(values) -> torch.Tensor:
    """A tensor of one number, with all five dimensions."""
    return values.reshape(1, 1, 1, 1, 1)
