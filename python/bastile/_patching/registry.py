# Part of Bastile, under the MIT License. See LICENSE.
"""Patches that are in force: made all or none, and undone."""

import collections
import inspect
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from bastile import _log
from bastile._patching import scopes

_channel = _log.Channel("patching")
_MISSING = object()
_lock = threading.RLock()
#: By owner (a class or a module of Python) and name, what was set there.
_applied = {}
#: By model that was patched alone, what was set on its modules, by path and name.
_instances = weakref.WeakKeyDictionary()
#: By function that was set on modules of models, one replacement that it was set for.
#: A copy of a module has the function as well, and is found by it.
_set_on_modules = weakref.WeakKeyDictionary()
#: Where Accelerate keeps a module's forward while its hooks take the forward's place.
_HOOKED = "_old_forward"


class Patch:
    """What is kept of a patch: of which model type and op it is."""

    model_type: str
    op: str
    #: Whether something was replaced; a patch may have to wait for it.
    is_made = True
    #: The patch that was made in the same place before, and that somebody has put out of
    #: force since. It is in force again once he takes back what he did.
    former = None

    def is_standing(self):
        """Whether it would be of no use to patch again."""
        return self.is_in_force()

    def is_named(self, names):
        """Whether one of ``names`` is its model type, its op, or both as in
        ``qwen3.rope``."""
        own = {self.model_type, self.op, f"{self.model_type}.{self.op}"}
        return names is None or not own.isdisjoint(names)


class Applied(Patch):
    """A replacement that was made, and what it takes to undo it."""

    def __init__(self, replacement, owner, name, value, former=None):
        self.former = former
        self.model_type = replacement.model_type
        self.op = replacement.op
        self.target = replacement.target
        self.name = name
        self._module = replacement.module
        self.function = _function_of(value)
        self._before = vars(owner).get(self.name, _MISSING)
        # A module of a model is not kept alive by what was done to it.
        self._owner = weakref.ref(owner)
        setattr(owner, self.name, value)
        if not isinstance(owner, (type, types.ModuleType)):
            _set_on_modules[self.function] = self

    @property
    def owner(self):
        """The object that the function was set on; None where that is gone."""
        return self._owner()

    def _current_name(self):
        """The name under which the owner has the function now, if any: Accelerate
        puts a forward away for its hooks, and back."""
        own = vars(self.owner) if self.owner is not None else {}
        for name in (self.name, "forward", _HOOKED):
            if _function_of(own.get(name)) is self.function:
                return name
        return None

    def is_in_force(self):
        """Whether calls still come to the function. They do not where somebody has set
        another one, or where a module of Python was loaded again and has a new
        class."""
        if self._current_name() is None:
            return False
        owner = self.owner
        module = sys.modules.get(self._module)
        if module is None or not isinstance(owner, type):
            return True
        return any(value is owner for value in vars(module).values())

    def undo(self):
        owner = self.owner
        if owner is None:
            return
        name = self._current_name()
        if name is None:
            warnings.warn(
                f"{self.target} was replaced again after Bastile had patched it, "
                "and is left as it is",
                RuntimeWarning,
                stacklevel=5,
            )
            return
        if self._before is not _MISSING and name == self.name:
            setattr(owner, name, self._before)
        elif name == _HOOKED:
            setattr(owner, name, getattr(type(owner), "forward").__get__(owner))
        else:
            delattr(owner, name)
        _channel.debug("put back %s (%s.%s)", self.target, self.model_type, self.op)


def _function_of(value):
    return getattr(value, "__func__", value)


class Patched:
    """The patches that one call made. As a context manager, it undoes them on
    leaving."""

    def __init__(self, places: list[tuple[Any, Any]]) -> None:
        self._places = places
        self._undo: list[Callable[[], None]] = []

    def add(self, other: "Patched") -> None:
        """Takes the patches of ``other`` as well."""
        with _lock:
            self._places = self._places + other._places
            self._undo = self._undo + other._undo

    def on_reset(self, undo: Callable[[], None]) -> None:
        """Has ``undo()`` called when the patches are undone."""
        self._undo.append(undo)

    @property
    def ops(self) -> list[str]:
        """Model types and ops that were patched, as in ``qwen3.rope``, sorted."""
        made = (place[key] for place, key in self._places if key in place)
        return sorted({f"{x.model_type}.{x.op}" for x in made if x.is_made})

    def reset(self) -> None:
        """Puts back what was there before."""
        with _lock:
            while self._undo:
                self._undo.pop()()
            for place, key in reversed(self._places):
                applied = place.pop(key, None)
                if applied is not None:
                    applied.undo()
                    if applied.former is not None:
                        place[key] = applied.former
            self._places = []

    def __enter__(self) -> "Patched":
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()

    def __repr__(self) -> str:
        return f"<bastile patches: {', '.join(self.ops) or 'none'}>"


def patch_classes(wanted):
    """Makes replacements in classes and modules of Python, but for those that are in
    force already."""

    def places():
        for replacement in wanted:
            key = replacement.owner, replacement.name
            value = replacement.value
            if replacement.is_static:
                value = staticmethod(value)
            yield _applied, key, replacement, *key, value

    return _make(places())


def add(wanted):
    """Makes patches, of which ``wanted`` has keys and functions that make them, but for
    those that stand already."""
    made = []
    with _lock:
        for key, make in wanted:
            if key not in _applied or not _applied[key].is_standing():
                _applied[key] = make()
                made.append((_applied, key))
    return Patched(made)


def patch_instance(model, wanted):
    """Makes replacements in the modules of one model. What somebody else has set on a
    module stays, and a warning names it."""
    place = _instances.setdefault(model, {})
    left = {}

    def places():
        for path, module in model.named_modules():
            for replacement in wanted:
                name, function = _for_class(replacement, type(module))
                if function is None:
                    continue
                name, present = _present(module, name)
                if present is function:
                    continue
                if present in _set_on_modules:
                    # What another patch has set here is of this op as well.
                    continue
                if present is not _MISSING:
                    left[replacement.target, replacement.op] = present
                    continue
                value = function
                if not replacement.is_static:
                    value = types.MethodType(function, module)
                yield place, (path, name), replacement, module, name, value

    patched = _make(places())
    if left:
        _warn_of(left)
    return patched


def _present(module, name):
    """The name under which a function is to be set on a module in place of ``name``,
    and the function that is set there already, or `_MISSING`."""
    own = vars(module)
    if name == "forward" and _HOOKED in own:
        hooked = _function_of(own[_HOOKED])
        is_plain = hooked is _static(type(module), name)
        return _HOOKED, _MISSING if is_plain else hooked
    return name, _function_of(own.get(name, _MISSING))


def _warn_of(left):
    names = []
    for (target, op), function in left.items():
        # A wrapper may have the name of what it wraps; its code has its own.
        code = getattr(function, "__code__", None)
        kind = type(function)
        whose = f"{kind.__module__}.{kind.__qualname__}"
        if code is not None:
            whose = f"{function.__globals__['__name__']}.{code.co_name}"
        names.append(f"{target} by {whose} ('{op}')")
    warnings.warn(
        "what somebody else has set on modules of this model stays, and Bastile does "
        f"not patch it: {', '.join(names)}. Call apply_to_model before, or leave the "
        "op out",
        RuntimeWarning,
        stacklevel=4,
    )


def _for_class(replacement, cls):
    """The name and the function to set on an instance of ``cls``, or Nones."""
    owner, name, value = replacement.owner, replacement.name, replacement.value
    if not isinstance(owner, type):
        # A function of the module is seen by methods of its classes.
        if scopes.uses(cls, owner, name):
            return "forward", scopes.rebind(cls, name, value)
        return None, None
    # FSDP makes a subclass of each class that it shards.
    if issubclass(cls, owner) and _static(cls, name) is _static(owner, name):
        return name, value
    return None, None


def _static(cls, name):
    return inspect.getattr_static(cls, name, None)


def _make(places):
    made = []
    with _lock:
        try:
            for place, key, replacement, owner, name, value in places:
                if key not in place or not place[key].is_in_force():
                    former = place.get(key)
                    place[key] = Applied(replacement, owner, name, value, former)
                    made.append((place, key))
        except BaseException:
            Patched(made).reset()
            raise
    applied = [place[key] for place, key in made]
    counts = collections.Counter((x.model_type, x.op, x.target) for x in applied)
    for (model_type, op, target), count in counts.items():
        where = f", in {count} modules" if count > 1 else ""
        _channel.info("patched %s.%s: %s%s", model_type, op, target, where)
    return Patched(made)


def made():
    """The patches of classes and of models that were made and not undone, in force or
    not."""
    with _lock:
        places = (_applied, *_instances.values())
        return [applied for place in places for applied in place.values()]


#: What is called where everything is undone.
on_undo_of_all = []


def undo(names=None):
    """Undoes the patches that ``names`` name, or all, in classes and in models."""
    with _lock:
        if names is None:
            for each in on_undo_of_all:
                each()
        for place in (_applied, *_instances.values()):
            for key in reversed(list(place)):
                if place[key].is_named(names):
                    applied = place.pop(key)
                    while applied is not None:
                        applied.undo()
                        applied = applied.former


def in_place(model=None):
    """The patches in force in classes or, with ``model``, in its modules alone."""
    with _lock:
        if model is None:
            return [x for x in _applied.values() if x.is_in_force()]
        modules = set(model.modules())
        own = [x for place in _instances.values() for x in place.values()]
        found = [x for x in own if x.owner in modules and x.is_in_force()]
        functions = {
            _function_of(value)
            for module in modules
            for value in vars(module).values()
            if isinstance(value, (types.MethodType, types.FunctionType))
        }
        # What is left are functions of copies, which were set on other modules.
        functions.difference_update(x.function for x in found)
        return found + [_set_on_modules[x] for x in functions if x in _set_on_modules]
