# Part of Bastile, under the MIT License. See LICENSE.
"""From a model type to the modules of Python that have its classes.

A module is known by the name of its folder in Transformers, as in ``gemma3`` for the
types ``gemma3`` and ``gemma3_text``, whose classes are the same.
"""

import importlib
import importlib.util
import sys
from typing import NamedTuple

from bastile._patching import code, table


class Source(NamedTuple):
    """A module of Python with models, and the name that its patches go by."""

    name: str
    module: str

    def load(self):
        """The module; None where this version of Transformers has none."""
        if not _has_module(self):
            return None
        return importlib.import_module(self.module)


def _has_module(source):
    if source.module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(source.module) is not None
    except ModuleNotFoundError:
        return False


def find(model_type):
    """The sources of a model type: its own and, for one that is made of several models,
    those of its parts; empty where nobody knows the type."""
    registered = find_registered(model_type)
    if registered:
        return [registered]
    mapping = _mapping()
    if model_type not in mapping:
        return []
    found = {}
    _collect(mapping[model_type], found)
    return list(found.values())


def find_registered(model_type):
    """The source of a type that `register_patch` has added, if it is one."""
    for name, model in table.MODELS.items():
        if model_type == name or model_type in model.aliases:
            return Source(name, model.module)
    return None


def known():
    """Every model type that there is: Transformers' and those of the table."""
    return sorted({*table.MODELS, *_mapping()})


def _mapping():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING


def _collect(config, found):
    """Adds the sources of a class of configurations and of its parts to ``found``."""
    source = _of_configuration(config)
    # A part may be of a model elsewhere, with no module of its own.
    if not found or _has_module(source):
        found.setdefault(source.name, source)
    parts = getattr(config, "sub_configs", None)
    made = parts and code.default_configuration(config)
    for part in parts or ():
        kind = type(getattr(made, part, None))
        if hasattr(kind, "model_type") and kind is not config:
            _collect(kind, found)


def _of_configuration(config):
    """The source of a class of configurations: beside it or, where another model's
    classes serve it, as Llama's serve InternLM 3, theirs."""
    package = config.__module__.rpartition(".")[0]
    name = package.rpartition(".")[2]
    source = Source(name, f"{package}.modeling_{name}")
    if _has_module(source):
        return source
    from transformers.models.auto import modeling_auto

    for mapping in (
        modeling_auto.MODEL_MAPPING,
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    ):
        if config in mapping:
            found = mapping[config]
            cls = found[0] if isinstance(found, tuple) else found
            return of_module(cls.__module__)
    return source


def of_classes(classes):
    """The sources of the classes of a model's own layers."""
    found = {}
    for cls in set(classes):
        for parent in cls.__mro__:
            name = parent.__module__
            if name not in sys.modules or not _may_have_models(name):
                continue
            source = of_module(name)
            found.setdefault(source.module, source)
    return [found[name] for name in sorted(found)]


def of_module(module):
    """The source of a module, by the module's name."""
    for name, model in table.MODELS.items():
        if model.module == module:
            return Source(name, module)
    return Source(module.rpartition(".")[2].removeprefix("modeling_"), module)


def _may_have_models(module):
    return module.rpartition(".")[2].startswith("modeling_") and module not in (
        "transformers.modeling_utils",
        "transformers.modeling_layers",
    )


def loaded():
    """The sources whose modules have been imported, of Transformers and elsewhere."""
    names = [x for x in sys.modules if ".models." in x and _may_have_models(x)]
    own = [Source(name, x.module) for name, x in table.MODELS.items()]
    own = [x for x in own if x.module in sys.modules]
    others = [of_module(name) for name in sorted(names)]
    return list(dict.fromkeys([*own, *others]))
