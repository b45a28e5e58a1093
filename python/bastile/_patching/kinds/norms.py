# Part of Bastile, under the MIT License. See LICENSE.
"""RMS norms: `table.Norm`."""

import functools
import inspect

import torch

from bastile import ops
from bastile._patching import code, kind, probes, table
from bastile._patching.fused import norms

#: The parameter of a norm's class, where it has one, that says whether there is a
#: weight, and the attribute that keeps it.
_WITH_WEIGHT = "with_scale"
#: What classes call the parameter that epsilon is given by.
EPSILONS = ("eps", "epsilon", "variance_epsilon", "norm_eps", "rms_norm_eps")
#: What operands are multiplied by, and epsilon. Of small operands, epsilon is most of
#: what they are divided by.
PROBES = ((1.0, 1e-3), (0.01, 1e-5), (0.01, 1e-3))
_SIZE = 64


@functools.cache
def _replace(original, patch, options=None):
    casting, offset, eps = patch.casting, patch.offset, patch.eps
    has_weight = patch.weight
    rms_norm = ops.rms_norm

    @functools.wraps(original)
    def forward(self, hidden_states):
        # Kernels go along rows, of which a vector has none.
        if hidden_states.dim() < 2:
            return original(self, hidden_states)
        if not has_weight:
            return rms_norm(hidden_states, None, eps=getattr(self, eps))
        weight = getattr(self, "weight", None)
        if not getattr(self, _WITH_WEIGHT, True):
            # Gemma 3n of Transformers 4 keeps a 1 in its place.
            weight = None
        # What a class of another kind does without a weight is not known.
        if weight is None and not hasattr(self, _WITH_WEIGHT):
            return original(self, hidden_states)
        if options is not None and not _is_as_proven(self, options):
            return original(self, hidden_states)
        return rms_norm(
            hidden_states,
            weight,
            casting=casting,
            eps=getattr(self, eps),
            offset=offset,
        )

    return forward


def _find(module):
    for cls in code.layers(module):
        forward = code.own_forward(cls)
        if forward is None or not _looks_like_one(cls) or has_gate(forward):
            continue
        target = f"{cls.__qualname__}.forward"
        try:
            original = kind.original_of(cls, "forward")
            fields = _measure(original, cls)
            _options(cls)
        except probes.Mismatch as problem:
            yield kind.LeftAlone(table.Norm.ops, target, str(problem))
        else:
            yield table.Norm(cls.__name__, *fields)


def find_uniform(module):
    """Entries for those classes of norms that all have a weight and differ in their size
    and epsilon alone."""
    for entry in _find(module):
        if isinstance(entry, table.Norm) and entry.weight:
            cls = getattr(module, entry.cls)
            if _options(cls) is None:
                yield entry


def of_module(module):
    """The norms of a module that may be part of another patch."""
    make = functools.partial(kind.made, _replace)
    return norms.of_module(module, find_uniform, make)


def _looks_like_one(cls):
    """Whether a class divides by a root mean square, or is called after that."""
    if "rmsnorm" in cls.__name__.replace("_", "").lower():
        return True
    if not cls.__name__.lower().endswith("norm"):
        return False
    methods = [x for x in vars(cls).values() if inspect.isfunction(x)]
    used = set().union(*map(code.names_in, methods))
    return bool(used & {"rsqrt", "rms_norm"})


def has_gate(forward):
    """Whether a norm's forward takes a tensor and a gate: it is one of `gated_norms`."""
    return [x.name for x in code.operands(forward)[0]][2:] == ["gate"]


@functools.cache
def _measure(original, cls):
    """Casting, offset, the attribute of epsilon and whether there is a weight, of the
    norm that ``cls`` computes, after its numbers."""
    kind_of = "norm of one tensor with a size, an epsilon and 'weight'"
    by_place, _ = code.operands(original)
    needed = [x for x in by_place[1:] if x.default is x.empty]
    if len(needed) != 1 or len(by_place) > 2:
        names = ", ".join(x.name for x in by_place[1:])
        raise probes.Mismatch(f"it is no {kind_of}: its forward takes {names}")
    given = [x for x in inspect.signature(cls).parameters if x in EPSILONS]
    if not given:
        raise probes.Mismatch(f"it is no {kind_of}: its class takes no epsilon")
    eps = _attribute_of_epsilon(cls, given[0], kind_of)
    module = probes.run(kind_of, lambda: _new(cls, **{given[0]: 1e-6}))
    if not _parameters(module):
        _prove_weightless(original, cls, given[0], kind_of)
        return "gemma", 0.0, eps, False
    return (*_errors(original, cls, given[0], eps, kind_of), eps, True)


def _new(cls, **options):
    """A norm of a class, which may take no size."""
    first = next(iter(inspect.signature(cls).parameters))
    return cls(**options) if first in EPSILONS else cls(_SIZE, **options)


def _prove_weightless(original, cls, parameter, kind_of):
    for scale, eps in PROBES:
        x = (scale * probes.numbers(16, _SIZE, seed=2)).bfloat16()
        module = _new(cls, **{parameter: eps})
        for buffer in module.buffers():
            # What looks like a weight must not count.
            buffer.normal_()
        result = probes.run(kind_of, original, module, x)
        expected = normalized(x, eps).bfloat16()
        if probes.difference(result, expected) > 1e-3:
            raise probes.Mismatch("its numbers are those of no RMS norm")


def normalized(x, eps):
    """Rows over their root mean square, in float32."""
    wide = x.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)


def _attribute_of_epsilon(cls, parameter, kind_of):
    value = 0.0123
    module = probes.run(kind_of, lambda: _new(cls, **{parameter: value}))
    names = [name for name, x in vars(module).items() if x == value]
    if not names:
        raise probes.Mismatch(f"it is no {kind_of}: it keeps no epsilon")
    return names[0]


def _errors(original, cls, parameter, attribute, kind_of):
    """The casting and offset whose formula gives the numbers of the class."""
    weight = probes.numbers(_SIZE, seed=1).bfloat16()

    def make_and_run(x, eps, **options):
        module = cls(_SIZE, **{parameter: eps}, **options)
        if not options:
            if {name for name, _ in module.named_parameters()} != {"weight"}:
                raise ValueError("its only parameter is not 'weight'")
            module.weight.data = weight
        if getattr(module, attribute) != eps:
            raise ValueError(f"'{attribute}' is {getattr(module, attribute)}")
        return original(module, x)

    def formula(x, eps, casting, factor):
        wide = normalized(x, eps)
        if casting == "llama":
            return factor * wide.bfloat16()
        return (factor.float() * wide).bfloat16()

    errors = {}
    for scale, eps in PROBES:
        x = (scale * probes.numbers(16, _SIZE, seed=2)).bfloat16()
        result = probes.run(kind_of, make_and_run, x, eps)
        for casting in ("llama", "gemma"):
            for offset in (0.0, 1.0):
                # Gemma's order adds the offset in float32.
                wide = weight.float() if casting == "gemma" else weight
                expected = formula(x, eps, casting, wide + offset)
                error = probes.difference(result, expected)
                key = casting, offset
                errors[key] = max(error, errors.get(key, 0.0))
    best = min(errors, key=errors.get)
    if errors[best] > 1e-3:
        raise probes.Mismatch("its numbers are those of no RMS norm")
    if _WITH_WEIGHT in inspect.signature(cls).parameters:
        options = {_WITH_WEIGHT: False}
        result = probes.run(kind_of, lambda: make_and_run(x, eps, **options))
        expected = formula(x, eps, "gemma", torch.ones(()))
        if probes.difference(result, expected) > 1e-3:
            raise probes.Mismatch(
                "without a weight, its numbers are those of no RMS norm"
            )
    return best


def _prove(original, patch, cls):
    casting, offset, eps, has_weight = _measure(original, cls)
    if eps != patch.eps or has_weight != patch.weight:
        given = "'weight' and " if patch.weight else "no weight and "
        raise probes.Mismatch(f"it is no norm with {given}'{patch.eps}'")
    if has_weight and (casting, offset) != (patch.casting, patch.offset):
        raise probes.Mismatch(
            f"the table says casting={patch.casting!r} and offset={patch.offset}, "
            f"but its numbers are those of casting={casting!r} and offset={offset}"
        )


def _is_as_proven(module, options):
    """Whether a norm has the ``options`` that its class was proven with, and no
    parameter but a weight."""
    given = [name for name, x in module._parameters.items() if x is not None]
    own = vars(module)
    return given in ([], ["weight"]) and all(own[name] == x for name, x in options)


@functools.cache
def _options(cls):
    """What the class may be made with besides its size, its epsilon and whether it has a
    weight, by attribute with the value it has by default; None where that is nothing.
    Raises ``probes.Mismatch`` where modules do not tell what they were made with."""
    first, *others = inspect.signature(cls).parameters.values()
    if first.name in EPSILONS:
        others = [first, *others]
    eps = [x.name for x in others if x.name in EPSILONS][0]
    known = (eps, _WITH_WEIGHT, "device", "dtype")
    names = [
        x.name
        for x in others
        if x.name not in known and x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)
    ]
    if not names:
        return None
    made = _new(cls, **{eps: 1e-6})
    found = {name: vars(made)[name] for name in names if name in vars(made)}
    for name in names:
        # Others have to change which parameters there are.
        default = inspect.signature(cls).parameters[name].default
        if name not in found and (
            not isinstance(default, bool)
            or _parameters(_new(cls, **{eps: 1e-6, name: not default}))
            == _parameters(made)
        ):
            raise probes.Mismatch(
                f"its modules do not tell which '{name}' they were made with"
            )
    return tuple(found.items())


def _parameters(module):
    return {name for name, _ in module.named_parameters()}


def _build(patch, module, ops):
    cls = kind.look_up(module, patch.cls)
    options, make = _options(cls), _replace
    if options is not None:
        make = functools.partial(_replace, options=options)
    yield kind.method(patch, cls, "forward", make, _prove)


KIND = kind.Kind(table.Norm, _find, _build)
