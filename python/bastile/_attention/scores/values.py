# Part of Bastile, under the MIT License. See LICENSE.
"""Symbols that behave as PyTorch's tensors of one number, which is what functions of
scores compute with."""

import functools
from typing import Any, NamedTuple

import torch
from bastile import functions
from bastile._attention.scores import calls
from bastile._compiler.symbols import Symbol
from bastile._formulas.attention import in_ranges
from torch.overrides import TorchFunctionMode

#: The dimensions of scores [B, H, Q, K], by the names of the indices that go along them.
AXES = ("batch", "head", "query", "key")
#: Integers that kernels have no type for, and take elements of as int32.
NARROW = torch.uint8, torch.int16, torch.uint16


class Refused(TypeError):
    """What a function does is no part of a kernel."""


class Place(NamedTuple):
    """An index into a dimension of a captured tensor: the index along one of `AXES`, plus
    ``shift``; or the number ``shift`` itself."""

    axis: str | None
    shift: int


class Read(NamedTuple):
    """What is read of a captured tensor: its number, and for each dimension where: a
    `Place`, a `Read` or a `Computed`."""

    number: int
    places: tuple[Any, ...]

    def axes(self):
        return set().union(*map(_axes_of, self.places))

    def is_view(self):
        """Whether the numbers are a view of the tensor: of each dimension one number, or
        all of an axis that no other dimension goes along."""
        axes = [axis for place in self.places for axis in _axes_of(place)]
        is_plain = all(isinstance(place, Place) for place in self.places)
        return is_plain and len(set(axes)) == len(axes)


class Computed(NamedTuple):
    """What PyTorch's function of that name computes of indices and captured tensors. An
    operand is a `Place`, a `Read`, a `Computed` or anything of Python."""

    name: str
    operands: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]


def _axes_of(source):
    if isinstance(source, Place):
        return {source.axis} - {None}
    if isinstance(source, Read):
        return source.axes()
    if isinstance(source, Computed):
        parts = *source.operands, *(x for _, x in source.named)
        return set().union(*map(_axes_of, parts))
    return set()


class Value:
    """A number of each score: a symbol, or a number of Python. What follows from indices
    and captured tensors alone has a ``source`` as well, from which PyTorch can compute it:
    a `Place`, a `Read` or a `Computed`. ``narrow`` is the type of integers that kernels
    have no type for, and compute with as int32."""

    __slots__ = ("_trace", "content", "narrow", "source")

    def __init__(self, trace, content, source=None, narrow=None):
        self._trace = trace
        self.content = content
        self.source = source
        self.narrow = narrow

    @classmethod
    def __torch_function__(cls, function, types, operands=(), named=None):
        traces = (x._trace for x in operands if isinstance(x, Value))
        trace = next(traces, None)
        if trace is None:
            raise Refused(f"a call of '{function.__name__}' with a list of tensors")
        return trace.call(function.__name__, operands, named or {})

    def where(self, condition, other):
        return self._trace.call("where", (condition, self, other), {})

    def __getattr__(self, name):
        if name in calls.CALLS:
            return lambda *operands, **named: self._trace.call(
                name, (self, *operands), named
            )
        raise Refused(f"'{name}' of a tensor")

    @property
    def dtype(self):
        if self.narrow is not None:
            return self.narrow
        if isinstance(self.content, Symbol):
            return getattr(torch, self.content.dtype)
        return torch.bool if isinstance(self.content, bool) else torch.float32

    @property
    def device(self):
        # Whatever is moved there stays where it is.
        return torch.device("cpu")

    @property
    def shape(self):
        return torch.Size([])

    def __bool__(self):
        raise Refused(
            "a choice by a condition in Python, as of 'if', 'and' or 'min'; there are "
            "torch.where, '&' and torch.minimum"
        )

    def _convert(self, what):
        raise Refused(f"a conversion to a number of Python by {what}")

    def __float__(self):
        return self._convert("float")

    def __int__(self):
        return self._convert("int")

    def __index__(self):
        return self._convert("int")

    def __iter__(self):
        raise Refused("iteration over a tensor of one number")

    def __getitem__(self, index):
        raise Refused("an index of what the function has computed")

    # Comparisons make conditions.
    __hash__ = object.__hash__

    def __add__(self, other):
        return self._move("add", other, 1)

    def __radd__(self, other):
        return self._move("add", other, 1)

    def __sub__(self, other):
        return self._move("sub", other, -1)

    def _move(self, call, other, sign):
        """The sum or the difference; that of an index and a number of Python is an index,
        too."""
        moved = self._trace.call(call, (self, other), {})
        if not isinstance(self.source, Place) or type(other) is not int:
            return moved
        axis, shift = self.source
        return Value(self._trace, moved.content, Place(axis, shift + sign * other))


def _define_operators():
    def define(name, call, swaps=False):
        def operate(self, *others):
            operands = (*others, self) if swaps else (self, *others)
            return self._trace.call(call, operands, {})

        setattr(Value, name, operate)

    binary = "mul truediv floordiv mod pow and or xor lshift rshift"
    for name in binary.split():
        define(f"__{name}__", name)
        define(f"__r{name}__", name, swaps=True)
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "abs", "pos"):
        define(f"__{name}__", name)
    define("__rsub__", "sub", swaps=True)


_define_operators()


class Part:
    """A captured tensor that is indexed in its first dimensions alone so far."""

    __slots__ = ("_index", "_tensor", "_trace")

    def __init__(self, trace, tensor, index):
        self._trace, self._tensor, self._index = trace, tensor, index

    def __getitem__(self, index):
        return self._trace.read(self._tensor, (*self._index, *_items_of(index)))

    @classmethod
    def __torch_function__(cls, function, types, operands=(), named=None):
        raise Refused(
            f"a call of '{function.__name__}' with a part of a tensor; index all of its "
            "dimensions"
        )

    def __getattr__(self, name):
        raise Refused(f"'{name}' of a part of a tensor; index all of its dimensions")


class Trace(TorchFunctionMode):
    """Follows functions of scores while they run.

    Args:
        what: what the functions are called in messages.
        scores: the symbol of all scores.
        captured: what the functions capture (`captured.Captured`).
        take: gives the symbol, with five dimensions, of a `Read`.
        take_ranges: gives the symbols by query and by key, as `in_ranges` takes them, of
            the ranges in which two `Read`, of the query and of the key, are equal.
    """

    def __init__(self, what, scores, captured, take, take_ranges):
        super().__init__()
        self.what, self.scores = what, scores
        self._captured, self._take = captured, take
        self._take_ranges = take_ranges
        #: What each query has a number of, so that all else can be repeated to it.
        self.column = functions.iota(scores, -2)

    def __torch_function__(self, function, types, operands=(), named=None):
        name = function.__name__
        if (
            operands
            and function in _CONSTANTS
            and type(operands[0]) in (bool, int, float)
        ):
            dtype = (named or {}).get("dtype")
            number = calls.CALLS["full_like"](None, operands[0], dtype=dtype)
            return Value(self, number)
        if function is torch.Tensor.where:
            operands = operands[1], operands[0], *operands[2:]
        if name == "__getitem__" and self._is_read(*operands):
            return self.read(*operands)
        if any(isinstance(x, Value) or self._is_number(x) for x in operands):
            return self.call(name, operands, named or {})
        result = function(*operands, **(named or {}))
        if not _is_of_tensors(result) and name not in _KNOWN:
            # As part of the code, it would stay as it is for other tensors.
            raise Refused(
                f"a number of Python from the elements or the shape of a tensor, by "
                f"'{_attribute_of(function)}'; compute it outside of the function"
            )
        return result

    def _is_read(self, tensor, index):
        """Whether ``index`` says where a captured tensor is read."""
        items = _items_of(index)
        if any(isinstance(item, Value) for item in items):
            return True
        are_numbers = all(type(item) is int for item in items)
        return are_numbers and self._captured.find(tensor) is not None

    def _is_number(self, x):
        """Whether ``x`` is a captured tensor of one number."""
        is_tensor = isinstance(x, torch.Tensor)
        return is_tensor and not x.dim() and self._captured.find(x) is not None

    def indices(self, offsets):
        """The indices that functions get: of the batch, the head, the query and the key.
        ``offsets`` has, by axis, what is added to all of them."""
        symbols = [
            functions.iota(self.scores, 0),
            functions.iota(self.scores, (1, 2)),
            self.column,
            functions.iota(self.scores, -1),
        ]
        made = []
        for axis, symbol in zip(AXES, symbols):
            if axis in offsets:
                symbol = symbol + offsets[axis]
            made.append(Value(self, symbol, Place(axis, 0)))
        return made

    def run(self, function, *operands):
        """What ``function`` makes of values, a symbol or a number.

        Raises `Refused` for what cannot be followed.
        """
        try:
            with self:
                result = function(*operands)
        except RecursionError:
            raise Refused(
                f"{self.what}: '{_name_of(function)}' calls itself without an end"
            ) from None
        except Refused as error:
            raise Refused(
                f"{self.what}: a kernel cannot do what '{_name_of(function)}' does: "
                f"{error}"
            ) from None
        return self.content_of(result)

    def run_of_score(self, function, indices):
        """What a function of scores makes of them."""
        result = self.run(function, Value(self, self.scores), *indices)
        return number_of(result, self.scores)

    def call(self, name, operands, named):
        """What PyTorch's function of this name computes."""
        name = name.strip("_") if name.endswith("__") else name
        call = calls.CALLS.get(name)
        if call is None:
            raise Refused(f"a call of '{name}'; there are {', '.join(calls.NAMES)}")
        contents = [self.content_of(x) for x in operands]
        contents_named = {key: self.content_of(x) for key, x in named.items()}
        try:
            content = call(*contents, **contents_named)
            if call is calls.CALLS["eq"]:
                content = self._bound(content, operands)
            narrow = self._narrow_type(name, content, (*operands, *named.values()))
            if narrow is not None:
                content = calls.wrap(content, narrow)
            source = self._find_source(name, operands, named)
            return Value(self, content, source, narrow)
        except (TypeError, ValueError, AttributeError) as error:
            raise Refused(f"a call of '{name}' ({error})") from None

    def _narrow_type(self, name, content, operands):
        """The type of PyTorch's result of a call, ``content``, if kernels have none for
        it: they compute with wider integers, which wrap around elsewhere."""
        is_number = isinstance(content, Symbol) and content.dtype == "int32"
        if not is_number:
            return None
        typed = [x for x in operands if isinstance(x, (Value, torch.Tensor))]
        if name in calls.CASTS:
            typed = typed[1:]
        with torch._C.DisableTorchFunction():
            types = [x.dtype for x in typed if x.dtype != torch.bool]
            found = functools.reduce(torch.promote_types, types) if types else None
        return found if found in NARROW else None

    def _find_source(self, name, operands, named):
        """The `Computed` of a call; None where a score is among its operands."""
        sources = [self._source_of(x) for x in (*operands, *named.values())]
        if any(isinstance(x, Value) for x in sources):
            return None
        count = len(operands)
        return Computed(name, tuple(sources[:count]), (*zip(named, sources[count:]),))

    def _source_of(self, operand):
        """What PyTorch computes ``operand`` from: itself, if it is no source."""
        if isinstance(operand, torch.Tensor):
            return Read(self._number_of(operand, 0), ())
        if not isinstance(operand, Value):
            return operand
        if operand.source is None and not isinstance(operand.content, Symbol):
            return operand.content
        return operand if operand.source is None else operand.source

    def _is_of_integers(self, read):
        """Whether ``read`` is a view of a captured tensor of integers."""
        if not isinstance(read, Read) or not read.is_view():
            return False
        tensor = self._captured.tensors[read.number]
        with torch._C.DisableTorchFunction():
            return not tensor.is_floating_point() and tensor.dtype != torch.bool

    def _bound(self, equal, operands):
        """The condition ``equal``, that operands are equal, within its ranges if one is a
        number of the query and the other one of the key."""
        reads = [x.source if isinstance(x, Value) else None for x in operands]
        if not all(map(self._is_of_integers, reads)):
            return equal
        axes = [read.axes() & {"query", "key"} for read in reads]
        if axes == [{"key"}, {"query"}]:
            reads.reverse()
        elif axes != [{"query"}, {"key"}]:
            return equal
        return in_ranges(self.scores, *self._take_ranges(*reads), equal)

    def content_of(self, operand) -> Any:
        if isinstance(operand, Value):
            return operand.content
        if isinstance(operand, Part):
            raise Refused("a part of a tensor; index all of its dimensions")
        if not isinstance(operand, torch.Tensor):
            return operand
        return self.read(operand, ()).content

    def read(self, tensor, index):
        """The numbers of a captured tensor at some places."""
        # The mode follows what operators ask of tensors, too.
        with torch._C.DisableTorchFunction():
            return self._read(tensor, index)

    def _read(self, tensor, index):
        items = _items_of(index)
        if 0 < len(items) < tensor.dim():
            return Part(self, tensor, items)
        places = tuple(map(self._place_of, items))
        read = Read(self._number_of(tensor, len(places)), places)
        symbol = self._take(read)
        like = self.scores if "key" in read.axes() else self.column
        symbol = functions.expand_as(symbol, like)
        # Conditions are bytes to kernels.
        content = symbol != 0 if tensor.dtype == torch.bool else symbol
        narrow = tensor.dtype if tensor.dtype in NARROW else None
        return Value(self, content, read, narrow)

    def _number_of(self, tensor, places):
        """The number of a captured tensor that is indexed by so many ``places``."""
        # The mode follows what operators ask of tensors, too.
        with torch._C.DisableTorchFunction():
            dimensions = tensor.dim()
        if dimensions and not places:
            raise Refused(
                f"a tensor of {dimensions} dimensions as a whole; a kernel takes one "
                "number of it for each score, as t[q_idx] does"
            )
        if places != dimensions:
            raise Refused(
                f"an index of a tensor of {dimensions} dimensions by {places} places"
            )
        number = self._captured.find(tensor)
        if number is None:
            raise Refused(
                "a tensor that it neither closes over nor finds by a global name; "
                "compute outside of it what follows from whole tensors"
            )
        return number

    def _place_of(self, item):
        """Where a captured tensor is read that is indexed by ``item``."""
        source = self._source_of(item)
        if type(source) is int:
            return Place(None, source)
        is_bool = getattr(item, "dtype", None) == torch.bool
        if isinstance(source, (Place, Read, Computed)) and not is_bool:
            return source
        raise Refused(
            "an index of a tensor that is no integer, or is computed of a score"
        )


#: These make tensors of a number of Python.
_CONSTANTS = torch.tensor, torch.as_tensor, torch.scalar_tensor
#: What is known of captured tensors wherever code is shared.
_KNOWN = ("dim", "is_floating_point")


def _is_of_tensors(result):
    if isinstance(result, (tuple, list)):
        return any(isinstance(x, torch.Tensor) for x in result)
    known = torch.Tensor, torch.dtype, torch.device, type(None)
    return isinstance(result, known)


def _attribute_of(function):
    """The name of a function, or of the attribute that it gets."""
    if function.__name__ == "__get__":
        return function.__self__.__name__
    return function.__name__


def _items_of(index):
    """What an index has for each dimension."""
    return index if isinstance(index, tuple) else (index,)


def _name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def condition_of(content) -> Any:
    """A condition of what a function of a mask returned: a symbol, or True or False."""
    if isinstance(content, Symbol):
        return content if content.dtype == "bool" else content != 0
    return bool(content)


def number_of(content, like) -> Any:
    """Floats of what a function of scores returned, in the shape of ``like``."""
    if not isinstance(content, Symbol):
        # A constant of all scores.
        return functions.iota(like, -1).to(like.dtype) * 0.0 + float(content)
    if content.dtype != like.dtype:
        content = content.to(like.dtype)
    return functions.expand_as(content, like)
