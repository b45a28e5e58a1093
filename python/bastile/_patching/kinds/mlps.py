# Part of Bastile, under the MIT License. See LICENSE.
"""Gated MLPs: `table.Mlp`."""

import functools
import types

import torch

from bastile._patching import activations, code, kind, probes, table
from bastile._patching.products import gated, gated_products, projections

#: By name, the activations that a forward may call as functions.
_FUNCTIONS = {
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_pytorch_tanh": functools.partial(
        torch.nn.functional.gelu, approximate="tanh"
    ),
}
#: What configurations call the activation of an MLP.
_NAMES_OF_ACTIVATIONS = (
    "hidden_act",
    "hidden_activation",
    "activation_function",
    "mlp_hidden_act",
)
_WIDTH = 8


def _first(patch):
    """The names of the layers that make the gate and up."""
    return (patch.gate,) if patch.packed else (patch.gate, patch.up)


@functools.cache
def _replace(original, patch):
    first = _first(patch)
    find = activations.finder(patch.packed)
    always = activations.by_name(patch.packed).get(patch.function)

    @functools.wraps(original)
    def forward(self, x):
        activation = always or find(getattr(self, patch.act))
        # Kernels go along rows, of which a vector has none.
        if activation is None or x.dim() < 2:
            return original(self, x)
        layers = [getattr(self, name) for name in first]
        down = getattr(self, patch.down)
        product = gated_products.find(self)
        if product is not None:
            result = product(x, layers, down, activation)
            if result is not None:
                return result
        gate_up = projections.project(x, layers)
        if gated.can_recompute(down, gate_up):
            return gated.project(activation.call, activation.again, gate_up, down)
        return down(activation.call(*gate_up))

    return forward


def _find(module):
    op = None
    for cls in code.layers(module):
        original = code.own_forward(cls) and kind.original_of(cls, "forward")
        if not original or len(code.operands(original)[0]) != 2:
            continue
        seen = _look(original)
        if seen is None:
            continue
        if op is None:
            op = _op(module)
        entry = table.Mlp(cls.__name__, op, **seen)
        try:
            _prove(original, entry, cls)
        except probes.Mismatch as problem:
            yield kind.LeftAlone(entry.ops, entry.target, str(problem))
        else:
            yield entry


@functools.cache
def _look(original):
    """The names of projections and activation in a gated MLP's forward, as fields of its
    entry; None where the forward is of another kind."""
    for packed in (False, True):
        parts, x = (
            _Parts(2 * _WIDTH if packed else _WIDTH),
            probes.numbers(3, 4, seed=5),
        )
        try:
            result = original(parts, x)
        except Exception:
            continue
        first = [name for name, operand, _ in parts.calls if operand is x]
        if len(first) != (1 if packed else 2) or not parts.calls:
            continue
        others = [call for call in parts.calls if call[0] not in first]
        made = {name: value for name, _, value in parts.calls}
        last = [name for name, _, value in others if value is result]
        if not last:
            continue
        pieces = made[first[0]].chunk(2, -1) if packed else [made[x] for x in first]
        fields = {"packed": packed, "down": last[0]}
        called = [call for call in others if call[0] != last[0]]
        found = _gate_of(
            pieces, called, [x for name, x, _ in others if name in last][0]
        )
        if found is None:
            continue
        place, act, function = found
        if packed and place:
            continue
        fields["gate"] = first[place]
        fields["up"] = table.Mlp.up if packed else first[1 - place]
        return {**fields, "act": act, "function": function}
    return None


def _gate_of(pieces, called, hidden):
    """Which of two ``pieces`` is the gate, the layer that is its activation, and the
    function that is, if no layer is; None where ``hidden`` is made otherwise."""
    for place, piece in enumerate(pieces):
        for name, operand, _ in called:
            if operand.shape == piece.shape and torch.equal(operand, piece):
                return place, name, None
        for name, function in _FUNCTIONS.items():
            expected = function(piece) * pieces[1 - place]
            if not called and probes.difference(hidden, expected) < 1e-5:
                return place, None, name
    return None


class _Parts:
    """A layer, of which every attribute is a layer that gives numbers of its own and
    notes its operand."""

    def __init__(self, width):
        self.calls, self._width = [], width

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._call, name)

    def _call(self, name, operand):
        made = probes.numbers(3, self._width, seed=len(self.calls))
        if operand.shape[-1] != 4:
            # Of an activation, which keeps the size.
            made = made[:, : operand.shape[-1]]
        self.calls.append((name, operand, made))
        return made


def _op(module):
    """The op of the activation that configurations of the module have by default."""
    names = set()
    for config in code.configurations(module):
        for name in _NAMES_OF_ACTIVATIONS:
            names.add(getattr(config, name, None))
    is_gelu = any(str(x).startswith("gelu") for x in names)
    return "geglu" if is_gelu and not names & {"silu", "swish"} else "swiglu"


@functools.cache
def _prove(original, patch, cls):
    gate, up = probes.numbers(3, 8, seed=6), probes.numbers(3, 8, seed=7)
    packed = torch.cat((gate, up), -1)
    activation = _FUNCTIONS.get(patch.function, torch.sigmoid)
    parts = {
        patch.gate: lambda x: packed if patch.packed else gate,
        patch.up: lambda x: up,
        patch.down: lambda x: 3 * x,
        patch.act: activation,
    }
    if patch.packed:
        del parts[patch.up]
    if patch.function:
        del parts[patch.act]
    stub = types.SimpleNamespace(**parts, config=types.SimpleNamespace())
    result = probes.run(f"layer of {', '.join(parts)}", original, stub, gate)
    if probes.difference(result, 3 * activation(gate) * up) > 1e-5:
        raise probes.Mismatch("it does not compute down(act(gate(x)) * up(x))")


def _build(patch, module, ops):
    if patch.optional and not hasattr(module, patch.cls):
        return
    cls = kind.look_up(module, patch.cls)
    yield kind.method(patch, cls, "forward", _replace, _prove)
    if patch.op in ops:
        yield kind.Setting("linear", cls, gated_products.NAME, _product(patch))


@functools.cache
def _product(patch):
    return gated_products.method(_first(patch))


KIND = kind.Kind(table.Mlp, _find, _build)
