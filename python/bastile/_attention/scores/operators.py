# Part of Bastile, under the MIT License. See LICENSE.
"""Operators of attention with functions of scores and of positions in their formula."""

import functools
import inspect
import itertools
import types
from typing import NamedTuple

import torch
from bastile import _bastile
from bastile._attention.scores import values
from bastile._attention.scores.captured import Captured
from bastile._compiler import capture, symbols, tensor_types, traced_graph
from bastile._compiler.symbols import Symbol
from bastile._compiler.traced_operators import TracedOperator
from bastile._formulas.attention import attend, scores_of
from bastile._torch.constants import constant_in_graphs
from bastile.functions import where

_OPERANDS = ("query", "key", "value")
_OPTIONS = ("query_offset", "key_offset", "sinks", "seed")
_NUMBERS = {"scale": 1.0, "softcap": 0.0, "dropout": 0.0, "with_lse": 0.0}
#: The operands of ranges, as `in_ranges` takes them, by the axis that they go along.
_RANGES = {
    axis: [f"{name}_by_{axis}" for name in ("first", "end", "others")]
    for axis in ("query", "key")
}
#: What kernels take elements of captured tensors as, which they have no type for.
KERNEL_TYPES = {torch.bool: torch.int8, **dict.fromkeys(values.NARROW, torch.int32)}
_known = {}


class Functions:
    """A function of scores and one of a mask, each of which may be None, with what
    they capture.

    ``offsets`` are the axes, out of "query" and "key", whose indices begin at a number
    that a call gives.
    """

    def __init__(self, what, score_mod, mask_mod, offsets=()):
        self.what = what
        self.score_mod, self.mask_mod = score_mod, mask_mod
        self.offsets = tuple(offsets)
        self.captured = Captured()
        try:
            functions = self.captured.key_of((score_mod, mask_mod))
        except AttributeError:
            if not torch.compiler.is_dynamo_compiling():
                raise
            # The code of such a function is known once it has run.
            raise TypeError(
                f"{what}: a function of scores or masks is made within what "
                "torch.compile compiles; make it outside of that"
            ) from None
        self.key = what, self.offsets, functions

    def formula(self) -> "Formula":
        """The formula of all functions that differ in nothing but captured tensors."""
        key, reads = self.key, None
        if not self.captured.is_complete:
            # What they compute has to be seen, as it may have changed.
            reads = Reads(self)
            key = *key, reads.text()
        found = _known.get(key)
        if found is None:
            found = _known[key] = Formula(self, reads or Reads(self))
        # Code for other types and shapes is traced from functions of a later call, so
        # that tensors of an earlier one do not live on.
        found.functions = self
        return found

    def apply(self, scores, take, take_ranges, offsets):
        """Scores, and the condition that says which are seen, None for all of them."""
        trace = values.Trace(self.what, scores, self.captured, take, take_ranges)
        indices = trace.indices(offsets)
        if self.score_mod is not None:
            scores = trace.run_of_score(self.score_mod, indices)
        if self.mask_mod is None:
            return scores, None
        seen = values.condition_of(trace.run(self.mask_mod, *indices))
        if not isinstance(seen, Symbol):
            # A constant of all scores.
            seen = indices[-1].content >= (0 if seen else 2**31 - 1)
        return scores, seen


class Reads:
    """What functions read of captured tensors, and what they compute."""

    def __init__(self, functions):
        #: Each `Read`, and the pairs of these, of the query and of the key, that the
        #: functions find equal.
        self.reads, self.equals = [], []
        graph = _bastile.Graph("functions")
        scores = Symbol(graph, graph.argument("scores", "tensor<?x?x?x?x?xf32>", ()))

        def argument(name, axes, element):
            batch, head, query, key = (
                None if axis in axes else 1 for axis in values.AXES
            )
            type = tensor_types.tensor_type([batch, head, head, query, key], element)
            return Symbol(graph, graph.argument(name, type, ()))

        def take(read):
            if read not in self.reads:
                self.reads.append(read)
            dtype = functions.captured.tensors[read.number].dtype
            element = tensor_types.element_type(KERNEL_TYPES.get(dtype, dtype))
            return argument(f"read{len(self.reads)}", read.axes(), element)

        def take_ranges(*pair):
            if pair not in self.equals:
                self.equals.append(pair)
            shared = (pair[0].axes() | pair[1].axes()) - _RANGES.keys()
            return [
                [
                    argument(f"{name}{len(self.equals)}", shared | {axis}, "i32")
                    for name in names
                ]
                for axis, names in _RANGES.items()
            ]

        with traced_graph.tracing_into(graph):
            offsets = dict.fromkeys(functions.offsets, 0)
            scores, seen = functions.apply(scores, take, take_ranges, offsets)
            if seen is not None:
                scores = where(seen, scores, 0.0)
        self._graph, self._scores = graph, scores

    def text(self) -> str:
        """The formula of the scores, with 0 for what is not seen."""
        with traced_graph.tracing_into(self._graph):
            return symbols.finish(self._graph, "functions", [self._scores])


class Formula:
    """Attention with functions in it, as an operator."""

    def __init__(self, functions, found):
        self.functions = functions
        self.reads, self.equals = found.reads, found.equals
        names = [f"captured{i}" for i in range(len(self.reads))]
        along_keys = [
            name for name, read in zip(names, self.reads) if "key" in read.axes()
        ]
        for i in range(len(self.equals)):
            names += [f"{name}{i}" for axis in _RANGES for name in _RANGES[axis]]
            along_keys += [f"{name}{i}" for name in _RANGES["key"]]

        def flex_attention(*operands):
            return self._compute(*operands)

        flex_attention.__signature__ = inspect.Signature(
            [
                *map(_parameter, _OPERANDS),
                *(_parameter(name, None) for name in (*_OPTIONS, *names)),
                *itertools.starmap(_parameter, _NUMBERS.items()),
            ]
        )
        self.operator = TracedOperator(
            flex_attention, any_length=along_keys, key=f"flex_attention_{len(_known)}"
        )

    def _compute(self, query, key, value, query_offset, key_offset, sinks, seed, *rest):
        *captured, scale, softcap, dropout, with_lse = rest
        ranges = captured[len(self.reads) :]

        def take_ranges(*pair):
            at = 6 * self.equals.index(pair)
            return ranges[at : at + 3], ranges[at + 3 : at + 6]

        offsets = {"query": query_offset, "key": key_offset}
        scores, seen = self.functions.apply(
            scores_of(query, key, scale, softcap),
            lambda read: captured[self.reads.index(read)],
            take_ranges,
            {axis: x for axis, x in offsets.items() if x is not None},
        )
        return attend(
            scores,
            value,
            seen=seen,
            sink=sinks,
            may_be_empty=self.functions.score_mod is not None,
            drop=(dropout, seed),
            with_lse=with_lse,
            dtype=query.dtype,
        )


def find(functions):
    """What a call by `Functions` needs: what they read and find equal, as `Formula` has
    it, and a function of the operands and the numbers that computes the results."""
    if torch.compiler.is_dynamo_compiling():
        arguments = functions.what, functions.score_mod, functions.mask_mod
        if not _OBJECTS_ARE_CONSTANTS and not all(
            isinstance(x, _CONSTANTS) for x in (functions.score_mod, functions.mask_mod)
        ):
            raise TypeError(
                f"{functions.what}: torch.compile of PyTorch before 2.13 takes functions "
                "of scores and masks alone, no other objects that are called; give a "
                "function that calls the object"
            )
        key, reads, equals = _find_constants(*arguments, functions.offsets)
        return reads, equals, functools.partial(capture.call_traced, _Named(key))
    formula = functions.formula()
    return (
        formula.reads,
        formula.equals,
        lambda operands, numbers: formula.operator(*operands, attributes=numbers),
    )


#: Whether Dynamo gives objects that are called to what it takes for constant, and what
#: it gives to that in any version.
_OBJECTS_ARE_CONSTANTS = torch.torch_version.TorchVersion(torch.__version__) >= (2, 13)
_CONSTANTS = types.FunctionType, functools.partial, types.NoneType


class _Named(NamedTuple):
    """An operator as torch.compile knows it."""

    key: str


@constant_in_graphs
def _find_constants(*arguments):
    """The key of the operator, what it reads and what it finds equal. torch.compile does
    not look into this: it follows from the functions' code, which does not change."""
    formula = Functions(*arguments).formula()
    reads, equals = map(_constant_of, (tuple(formula.reads), tuple(formula.equals)))
    return formula.operator.key, reads, equals


def _constant_of(source):
    """Of what is read, tuples alone, as torch.compile takes them."""
    if isinstance(source, tuple):
        return tuple(map(_constant_of, source))
    return source


def _parameter(name, default=inspect.Parameter.empty):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default)
