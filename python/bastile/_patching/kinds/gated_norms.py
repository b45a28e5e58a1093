# Part of Bastile, under the MIT License. See LICENSE.
"""RMS norms with a gate: `table.GatedNorm`."""

import functools
import inspect
import itertools

import torch

from bastile._formulas.gated_norms import gated_rms_norm
from bastile._patching import code, kind, probes, table
from bastile._patching.kinds import norms

#: Parameters of a class that say how many groups a row has, or their size.
_GROUPS = ("n_groups", "group_size")
#: The parameter that says whether the norm comes ahead of the gate.
_ORDER = "norm_before_gate"
_SIZE, _GROUP = 64, 32
_ACTIVATIONS = {"silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid}
_KIND_OF = "norm of a tensor and a gate with a size, an epsilon and 'weight'"


@functools.cache
def _replace(original, patch, options):
    eps, order = patch.eps, patch.order
    operators = {
        gates_first: gated_rms_norm(patch.activation, patch.casting, gates_first)
        for gates_first in (False, True)
    }

    @functools.wraps(original)
    def forward(self, hidden_states, gate=None):
        own, weight = vars(self), self.weight
        is_known = (
            gate is not None
            and gate.shape == hidden_states.shape
            and weight.dtype == hidden_states.dtype == gate.dtype
            and all(own[name] == value for name, value in options)
        )
        if not is_known:
            return original(self, hidden_states, gate)
        gates_first = order == "gate" or (order == _ORDER and not own[_ORDER])
        operator, attributes = operators[gates_first], (own[eps],)
        groups = _groups(own, weight.numel())
        if groups == 1:
            return operator(hidden_states, gate, weight, attributes=attributes)
        shape = hidden_states.shape
        x, gate = (t.unflatten(-1, (groups, -1)) for t in (hidden_states, gate))
        weight = weight.view(*(1 for _ in shape[:-1]), groups, -1)
        return operator(x, gate, weight, attributes=attributes).reshape(shape)

    return forward


def _groups(own, size):
    """How many groups of a row have norms of their own, after a module's attributes."""
    if "group_size" in own:
        return size // own["group_size"]
    return own.get("n_groups", 1)


def _find(module):
    for cls in code.layers(module):
        if not _looks_like_one(cls):
            continue
        original = kind.original_of(cls, "forward")
        try:
            yield _describe(original, cls)
        except probes.Mismatch as problem:
            target = f"{cls.__qualname__}.forward"
            yield kind.LeftAlone(table.GatedNorm.ops, target, str(problem))


def _looks_like_one(cls):
    """Whether a class is called a norm and its forward takes a gate."""
    forward = code.own_forward(cls)
    if forward is None or "norm" not in cls.__name__.lower():
        return False
    return norms.has_gate(forward)


@functools.cache
def _describe(original, cls):
    """The entry of a class, after its numbers."""
    module = _make(cls, 1e-3)
    eps = [name for name, value in vars(module).items() if value == 1e-3]
    if not eps:
        raise probes.Mismatch(f"it is no {_KIND_OF}: it keeps no epsilon")
    forms = itertools.product(_ACTIVATIONS, ("llama", "gemma"), ("norm", "gate"))
    if _ORDER in inspect.signature(cls).parameters:
        forms = itertools.product(_ACTIVATIONS, ("llama", "gemma"), (_ORDER,))
    errors = {}
    for activation, casting, order in forms:
        patch = table.GatedNorm(cls.__name__, activation, casting, order, eps[0])
        errors[patch] = _error(original, patch, cls)
    best = min(errors, key=errors.get)
    if errors[best] > 1e-3:
        raise probes.Mismatch("its numbers are those of no RMS norm with a gate")
    return best


def _make(cls, eps, **options):
    """A norm of the class with random weights, with several groups where it can."""
    parameters = inspect.signature(cls).parameters
    named = [x for x in parameters if x in norms.EPSILONS]
    if not named:
        raise probes.Mismatch(f"it is no {_KIND_OF}: its class takes no epsilon")
    given = {name: _SIZE // 2 for name in parameters if name == "group_size"}
    given |= {name: _SIZE // _GROUP for name in parameters if name == "n_groups"}
    module = probes.run(
        _KIND_OF, lambda: cls(_SIZE, **given, **{named[0]: eps}, **options)
    )
    if {name for name, _ in module.named_parameters()} != {"weight"}:
        raise probes.Mismatch(f"it is no {_KIND_OF}: its only parameter is not that")
    module.weight.data = probes.numbers(_SIZE, seed=1).bfloat16()
    return module


def _error(original, patch, cls):
    """By how much the numbers of the class differ from those of an entry."""
    worst = 0.0
    orders = (patch.order,)
    if patch.order == _ORDER:
        orders = ("norm", "gate")
    for order, (scale, eps) in itertools.product(orders, norms.PROBES):
        options = {_ORDER: order == "norm"} if patch.order == _ORDER else {}
        module = _make(cls, eps, **options)
        x = (scale * probes.numbers(2, 8, _SIZE, seed=2)).bfloat16()
        gate = (3 * probes.numbers(2, 8, _SIZE, seed=3)).bfloat16()
        result = probes.run(_KIND_OF, original, module, x, gate)
        expected = _formula(module, patch, order, x, gate, eps)
        worst = max(worst, probes.difference(result, expected))
    return worst


def _formula(module, patch, order, x, gate, eps):
    factor = _ACTIVATIONS[patch.activation](gate.float())
    wide = x.float() * factor if order == "gate" else x.float()
    wide = wide.unflatten(-1, (_groups(vars(module), _SIZE), -1))
    wide = norms.normalized(wide, eps).flatten(-2)
    if patch.casting == "llama":
        wide = (wide.to(x.dtype) * module.weight).float()
    else:
        wide = wide * module.weight.float()
    return (wide if order == "gate" else wide * factor).to(x.dtype)


def _prove(original, patch, cls):
    found = _describe(original, cls)
    if found != patch:
        raise probes.Mismatch(
            f"the table says {patch}, but its numbers are those of {found}"
        )


@functools.cache
def _options(cls):
    """Attributes of a norm that may say what it computes, with the values that they have
    in those that are proven."""
    own = vars(_make(cls, 1e-3))
    return tuple(
        (name, value)
        for name, value in own.items()
        if isinstance(value, (str, bool)) and name not in (_ORDER, "training")
    )


def _build(patch, module, ops):
    cls = kind.look_up(module, patch.cls)
    make = functools.partial(_replace, options=_options(cls))
    yield kind.method(patch, cls, "forward", make, _prove)


KIND = kind.Kind(table.GatedNorm, _find, _build)
