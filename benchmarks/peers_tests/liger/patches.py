# Part of Bastile, under the MIT License. See LICENSE.
"""``apply_liger_kernel_to_X``, which is ``bastile.apply``, and what tells Liger's tests
what a forward computes.

Liger's function for a model type keeps its signature, so that its switches are those
that its tests find, and calls ``bastile.apply_to_model`` with a model and
``bastile.apply`` without. A switch that only Liger has, as ``layer_norm``, does
nothing.
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
import types
from typing import Any

import bastile
from peers_tests import stand_ins

_MODULE = "liger_kernel.transformers.monkey_patch"
_SWITCHES = (
    "rope",
    "rms_norm",
    "swiglu",
    "geglu",
    "cross_entropy",
    "fused_linear_cross_entropy",
)


class _Loader(importlib.abc.Loader):
    """Loads Liger's module, and puts Bastile in the place of its functions."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._loader.exec_module(module)
        replace(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != _MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def install() -> None:
    """Has Liger's module of patches changed when it is imported. Its forwards of whole
    models, which are not run, are not read either: they name classes that not every
    version of Transformers has."""
    stand_ins.install(stand_ins.Finder("liger_kernel.transformers.model", _no_names))
    sys.meta_path.insert(0, _Finder())


def _no_names(module):
    return {}


def replace(module: types.ModuleType) -> None:
    """Puts Bastile in the place of each function for a model type in Liger's module
    of patches, and in its table."""
    table = vars(module)["MODEL_TYPE_TO_APPLY_LIGER_FN"]
    replaced = {}
    for function in set(table.values()):
        types_of = [name for name, entry in table.items() if entry is function]
        replaced[function] = _patching(function, types_of)
    for name, value in list(vars(module).items()):
        if inspect.isfunction(value) and value in replaced:
            setattr(module, name, replaced[value])
    for name, function in table.items():
        table[name] = replaced[function]


def _patching(function, model_types):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def patch(*given, **settings):
        arguments = signature.bind(*given, **settings)
        arguments.apply_defaults()
        chosen = arguments.arguments
        wanted = {name: chosen[name] for name in _SWITCHES if name in chosen}
        if "swiglu" in wanted:
            wanted["moe"] = wanted["swiglu"]
        model = chosen.get("model")
        if model is not None:
            bastile.apply_to_model(model, **wanted)
            return
        for model_type in model_types:
            bastile.apply(model_type, **wanted)

    return patch


#: What Liger's layers compute, by the beginning of their names.
_LAYERS = {
    "LigerRMSNorm": "rms_norm",
    "LigerLayerNorm": "layer_norm",
    "LigerSwiGLU": "gated MLP",
    "LigerGEGLU": "gated MLP",
    "LigerPhi3SwiGLU": "gated MLP",
    "LigerQwen3MoeSwiGLU": "gated MLP",
    "LigerBlockSparseTop2": "gated MLP",
    "LigerExperts": "moe",
}
_GATED = "swiglu", "geglu", "reglu"


def computed(function: Any) -> str | None:
    """Which op a forward of Liger's computes, or one of a module that Bastile has
    patched; None for any other."""
    if isinstance(function, stand_ins.Missing):
        return "fused_linear_cross_entropy"
    name = getattr(function, "__qualname__", "")
    if getattr(function, "__module__", "").startswith("liger_kernel."):
        found = [op for start, op in _LAYERS.items() if name.startswith(start)]
        return found[0] if found else None
    owner = getattr(function, "__self__", None)
    # What is set on a model's module alone is in its own names.
    if owner is None or "forward" not in vars(owner):
        return None
    patched = {op for ops in bastile.get_patched_ops(owner).values() for op in ops}
    if "fused_linear_cross_entropy" in patched:
        return "fused_linear_cross_entropy"
    if "moe" in patched:
        return "moe"
    if patched & set(_GATED):
        return "gated MLP"
    return "rms_norm" if "rms_norm" in patched else None


def source_of(function: Any) -> str:
    """As ``inspect.getsource``, but the op that is computed where a kernel is: Liger's
    tests compare a forward's source with that of its own layer."""
    op = computed(function)
    return inspect.getsource(function) if op is None else f"computes {op}"


def tell(module: types.ModuleType) -> None:
    """Has a module of tests ask `source_of`, and gives it rotary modules that take a
    ``device``, as those of Transformers before 5.18 do."""
    if "inspect" in vars(module):
        asked = types.SimpleNamespace(**vars(inspect))
        asked.getsource = source_of
        setattr(module, "inspect", asked)
    for name, value in list(vars(module).items()):
        if name.endswith("RotaryEmbedding") and inspect.isclass(value):
            if "device" not in inspect.signature(value).parameters:
                setattr(module, name, functools.partial(_on_device, value))


def _on_device(kind, *arguments, device=None, **settings):
    return kind(*arguments, **settings).to(device)
