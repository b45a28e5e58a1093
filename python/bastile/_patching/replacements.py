# Part of Bastile, under the MIT License. See LICENSE.
"""Replacements for the classes and functions of a module: the functions that are set,
and on what, once the originals were checked."""

import contextlib
import dataclasses
import types
import weakref

import torch

from bastile._patching import code, kind, kinds, probes, table


@dataclasses.dataclass(frozen=True)
class Replacement:
    """``owner.name`` is to be ``value``; of a class, ``value`` is a method unless
    ``is_static``."""

    model_type: str
    op: str
    owner: object
    name: str
    value: object
    is_static: bool = False
    #: The name of the module of Python that has the model.
    module: str | None = None

    @property
    def target(self):
        owner = getattr(self.owner, "__qualname__", None)
        return f"{owner}.{self.name}" if owner else self.name


def of_source(source, ops):
    """The replacements in a module for the ops in ``ops``, and a `kind.LeftAlone` for
    each thing that they might be expected of. For a module that the table has, these
    are entries which are not what the module has."""
    module = source.load()
    if module is None:
        return [], [
            kind.LeftAlone(tuple(ops), source.module, "there is no such module")
        ]
    found, left = [], []
    with on_the_cpu(), torch.no_grad():
        for patch in candidates(source, module):
            if ops.isdisjoint(patch.ops):
                continue
            if isinstance(patch, kind.LeftAlone):
                left.append(patch)
                continue
            try:
                built = list(kinds.BY_ENTRY[type(patch)].build(patch, module, ops))
            except probes.Mismatch as problem:
                left.append(kind.LeftAlone(patch.ops, patch.target, str(problem)))
                continue
            found += [
                Replacement(source.name, *setting, source.module)
                for setting in built
                if setting.op in ops
            ]
    return found, left


#: By module, what its originals were when they were looked at, and what was found.
_seen = weakref.WeakKeyDictionary()


def candidates(source, module):
    """The entries for a module, each of them an entry of the table or a
    `kind.LeftAlone`: those that somebody has registered, or else what is found."""
    if source.name in table.MODELS:
        return table.MODELS[source.name].patches
    originals = _originals(module)
    seen = _seen.get(module)
    if seen is None or seen[0] != originals:
        found = tuple(x for each in kinds.KINDS for x in each.find(module))
        _seen[module] = seen = originals, found
    return seen[1]


def _originals(module):
    """What a look at the module depends on: it may be loaded again, and methods may be
    replaced by others."""
    own = {
        (cls, name): kind.without_patches(value)
        for cls in code.layers(module)
        for name, value in vars(cls).items()
        if isinstance(value, types.FunctionType)
    }
    functions = code.functions(module)
    return own | {x: kind.without_patches(value) for x, value in functions.items()}


def on_the_cpu():
    """A context in which tensors are made on the CPU, whatever device the user makes a
    model on. It is an empty one where that is the CPU, since a context of PyTorch's
    costs time with each call."""
    if torch.get_default_device().type == "cpu":
        return contextlib.nullcontext()
    return torch.device("cpu")
