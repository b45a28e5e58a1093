"""What is patched: applying all or nothing, and putting back what was there."""

import inspect
import threading
import types
import warnings
import weakref

from bastile.patching import scopes

_MISSING = object()
_lock = threading.RLock()
#: By owner, a class or a module of Python, and name: what was set there.
_applied = {}
#: The same for each model that was patched alone, by model.
_instances = weakref.WeakKeyDictionary()


class Applied:
    """A replacement that was made, and what it takes to undo it."""

    def __init__(self, replacement, owner, name, value):
        self.model_type = replacement.model_type
        self.op = replacement.op
        self.target = replacement.target
        self.name = name
        self._function = _function_of(value)
        self._before = vars(owner).get(self.name, _MISSING)
        # A module of a model is not kept alive by what was done to it.
        self._owner = weakref.ref(owner)
        setattr(owner, self.name, value)

    def undo(self):
        owner = self._owner()
        if owner is None:
            return
        if _function_of(vars(owner).get(self.name)) is not self._function:
            warnings.warn(
                f"{self.target} was replaced again after Bastile had patched it, "
                "and is left as it is",
                RuntimeWarning,
                stacklevel=5,
            )
        elif self._before is _MISSING:
            delattr(owner, self.name)
        else:
            setattr(owner, self.name, self._before)

    def is_named(self, names):
        """Whether one of ``names`` is its model type, its op, or both as in
        ``qwen3.rope``."""
        own = {self.model_type, self.op, f"{self.model_type}.{self.op}"}
        return names is None or not own.isdisjoint(names)


def _function_of(value):
    return getattr(value, "__func__", value)


class Patched:
    """What one call patched. As a context manager, it undoes that on leaving."""

    def __init__(self, places):
        self._places = places

    @property
    def ops(self):
        """Model types and ops that were patched, as in ``qwen3.rope``, sorted."""
        made = (place[key] for place, key in self._places if key in place)
        return sorted({f"{x.model_type}.{x.op}" for x in made})

    def reset(self):
        """Puts back what was there before."""
        with _lock:
            for place, key in reversed(self._places):
                applied = place.pop(key, None)
                if applied is not None:
                    applied.undo()
            self._places = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reset()

    def __repr__(self):
        return f"<bastile patches: {', '.join(self.ops) or 'none'}>"


def patch_classes(wanted):
    """Makes replacements in classes and modules of Python; those that are made
    already are left out."""

    def places():
        for replacement in wanted:
            key = replacement.owner, replacement.name
            value = replacement.value
            if replacement.is_static:
                value = staticmethod(value)
            yield _applied, key, replacement, *key, value

    return _make(places())


def patch_instance(model, wanted):
    """Makes replacements in the modules of one model."""
    place = _instances.setdefault(model, {})

    def places():
        for path, module in model.named_modules():
            for replacement in wanted:
                name, value = _for_class(replacement, type(module))
                if value is None:
                    continue
                if not replacement.is_static:
                    value = types.MethodType(value, module)
                yield place, (path, name), replacement, module, name, value

    return _make(places())


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
                if key not in place:
                    place[key] = Applied(replacement, owner, name, value)
                    made.append((place, key))
        except BaseException:
            Patched(made).reset()
            raise
    return Patched(made)


def undo(names=None):
    """Undoes what is of ``names``, or everything, in classes and in models."""
    with _lock:
        for place in (_applied, *_instances.values()):
            for key in reversed(list(place)):
                if place[key].is_named(names):
                    place.pop(key).undo()


def in_place(model=None):
    """What is patched in classes, or in ``model`` alone."""
    with _lock:
        place = _applied if model is None else _instances.get(model, {})
        return list(place.values())
