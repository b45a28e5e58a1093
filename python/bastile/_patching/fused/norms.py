# Part of Bastile, under the MIT License. See LICENSE.
"""Norms of a module of Python, and whether one of them is called in the plain way, so
that a kernel may compute it together with something else."""

import ast
import functools
import types
from typing import NamedTuple

import torch
from torch.nn.modules.module import _has_any_global_hook as has_global_hooks

from bastile._patching import code, kind, modules, probes, table


class Norm(NamedTuple):
    """What a class of norms computes, as its entry says."""

    casting: str
    offset: float
    eps: str
    #: The forwards that compute this: the original and Bastile's.
    forwards: tuple


class Norms(dict):
    """By class, the norms of a module that `table.Norm` has entries of."""

    def are_plain(self, owner, names):
        """Whether the norms that ``owner`` has by these names are called in the plain
        way, and compute the same but for epsilon."""
        if has_global_hooks():
            return False
        first = None
        for name in names:
            found = self._plain(owner._modules.get(name))
            if found is None:
                return False
            if first is not None and found[:2] != first[:2]:
                return False
            first = found
        return True

    def _plain(self, norm):
        """What ``norm`` computes, if a call of it computes this and no more: no hooks,
        adapters or functions in its place, and a weight that lies here."""
        found = self.get(type(norm))
        if found is None or modules.has_hooks(norm):
            return None
        # Read in this way, which `torch.compile` follows, be it the module's or its
        # class'.
        own = norm.forward
        if type(own) is not types.MethodType or own.__func__ not in found.forwards:
            return None
        weight = norm._parameters.get("weight")
        is_here = type(weight) is torch.nn.Parameter and weight.dim() == 1
        return found if is_here else None


def of_module(module, find, replace):
    """The `Norms` of a module: ``find(module)`` gives entries, and ``replace(original,
    entry)`` what takes the original's place."""
    found = Norms()
    for entry in find(module):
        if isinstance(entry, table.Norm):
            cls = getattr(module, entry.cls)
            original = kind.original_of(cls, "forward")
            forwards = original, replace(original, entry)
            found[cls] = Norm(entry.casting, entry.offset, entry.eps, forwards)
    return found


def names_of(cls, classes):
    """The attributes that ``cls`` sets to norms of ``classes`` when it is made."""
    constructors = {x.__name__ for x in classes}
    makers = (
        vars(parent).get("__init__")
        for parent in cls.__mro__
        if parent is not torch.nn.Module
    )
    made = (pair for make in makers if make is not None for pair in _made_by(make))
    return {attribute for attribute, name in made if name in constructors}


# Several kinds of patches look at a class, each when it is found and when it is built.
@functools.cache
def _made_by(make):
    """Attributes that an ``__init__`` sets to calls of a name, each with this name."""
    try:
        tree = code.tree_of(make)
    except probes.Mismatch:
        return []
    return [
        (node.targets[0].attr, node.value.func.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
    ]


def where_plain(original, fused, known, names):
    """The forward ``fused``, or the ``original`` where one of the norms ``names`` is not
    called in the plain way."""

    @functools.wraps(original)
    def forward(self, *operands, **named):
        if known.are_plain(self, names):
            return fused(self, *operands, **named)
        return original(self, *operands, **named)

    return forward


def builder(replace):
    """What builds an entry of a class: ``replace(original, entry, cls, module)`` proves
    what it does as it makes the forward."""

    def build(patch, module, ops):
        cls = kind.look_up(module, patch.cls)
        make = functools.partial(replace, cls=cls, module=module)
        yield kind.method(patch, cls, "forward", make, lambda *_: None)

    return build


def example(norm_class, size, seed):
    """A norm of a class, with some weight, for probes."""
    made = norm_class(size)
    made.weight.data = probes.numbers(size, seed=seed)
    return made
