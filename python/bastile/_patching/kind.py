# Part of Bastile, under the MIT License. See LICENSE.
"""What each kind of patch is made of (`bastile._patching.kinds`)."""

import dataclasses
import inspect
import types
import weakref
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bastile._patching import probes


@dataclasses.dataclass(frozen=True)
class LeftAlone:
    """Something that looks like a kind of patch, and the reason why it is none."""

    ops: tuple[str, ...]
    #: What would have been replaced, as entries name it.
    target: str
    reason: str


class Setting(NamedTuple):
    """``owner.name`` is to be ``value`` for the sake of ``op``; of a class, ``value``
    is a method unless ``is_static``."""

    op: str
    owner: object
    name: str
    value: object
    is_static: bool = False


class Kind(NamedTuple):
    """One kind of patch.

    Attributes:
        entry: the class of its entries, one of `bastile._patching.table`.
        find: gives, for a module of Python, an entry for each class or function that
            looks like this kind, or a `LeftAlone`. It may read code and run originals,
            but need not prove anything.
        build: gives, for an entry, the module and the ops that are asked for, the
            `Setting`s that replace the originals. It raises ``probes.Mismatch`` where
            these do not compute what the entry says.
    """

    entry: type
    find: Callable[[types.ModuleType], Iterable[object]]
    build: Callable[[object, types.ModuleType, set[str]], Iterable[Setting]]


def look_up(module, name):
    """What ``module`` has under ``name``."""
    found = getattr(module, name, None)
    if found is None:
        raise probes.Mismatch("there is no such name in this version")
    return found


#: The functions that were made to replace others.
_ours = weakref.WeakSet()


def original_of(owner, name):
    """What ``owner`` has, or had before Bastile replaced it."""
    return without_patches(inspect.getattr_static(owner, name))


def without_patches(function):
    """The original of what Bastile has made, and anything else itself."""
    # A wrapper has the attributes of what it wraps, so an attribute alone says nothing.
    return function.bastile_original if function in _ours else function


def made(make, original, patch):
    """The function that ``make`` makes of the original and an entry."""
    value = make(original, patch)
    value.bastile_original = original
    _ours.add(value)
    return value


def method(patch, owner, name, make, probe):
    """The `Setting` of a method or function, made of the original once ``probe`` has
    found that it is what ``patch`` says."""
    original = original_of(owner, name)
    probe(original, patch, owner)
    return Setting(patch.ops[0], owner, name, made(make, original, patch))
