# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of a linear layer's loss with its gradients, by several libraries, and their
times."""

import dataclasses
import gc
import time

import bastile
import torch
import torch.nn.functional as F
from bastile._losses import plan
from bastile._losses.options import Settings


#: How often each row has its turn.
_TURNS = 2


@dataclasses.dataclass(frozen=True)
class Case:
    #: Tokens, length of a hidden state, classes.
    shape: tuple
    #: Tokens and classes of the problem whose gradients are compared.
    checked: tuple
    dtype: torch.dtype
    device: object
    #: The bytes of logits of the row "budget".
    budget: int


@dataclasses.dataclass
class Measured:
    """What was found of one way: seconds of each call, bytes, errors of dX and dW."""

    seconds: list = dataclasses.field(default_factory=list)
    peak: int | None = None
    errors: tuple = ()
    #: In how many chunks or slabs the logits are computed, where that is known.
    pieces: int | None = None
    error: str = ""


def measure(case, names, rounds) -> dict:
    """`Measured` of each of ``names``, which take turns."""
    case.device.start_case()
    # torch.compile gives up after eight shapes.
    torch._dynamo.reset()
    inputs = _inputs(case, *case.shape)
    found = {name: Measured() for name in names}
    calls = {}
    for name in names:
        _guard(found[name], case, lambda name=name: _open(name, case, inputs, calls))
    for name, call in calls.items():
        _guard(found[name], case, lambda name=name: _watch(name, call, case, found))
    for turn in range(_TURNS):
        count = len(range(turn, rounds, _TURNS))
        for name, call in calls.items():
            _guard(
                found[name],
                case,
                lambda: _time(found[name], call, count, case.device),
            )
    return found


def _guard(measured, case, action):
    """Runs ``action``; if it fails, the other rows go on.

    Raises ``RuntimeError`` where the device itself is lost.
    """
    if measured.error:
        return
    try:
        action()
    except Exception as error:  # whatever a library raises
        text = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        measured.error = text
    if measured.error:
        gc.collect()
        case.device.synchronize()


def _inputs(case, tokens, length, classes):
    generator = torch.Generator(case.device.name).manual_seed(0)

    def random(*sizes):
        return torch.randn(sizes, generator=generator, device=case.device.name)

    hidden = random(tokens, length).to(case.dtype)
    weight = (random(classes, length) * length**-0.5).to(case.dtype)
    targets = torch.randint(
        classes, (tokens,), generator=generator, device=case.device.name
    )
    return hidden.requires_grad_(), weight.requires_grad_(), targets


def _open(name, case, inputs, calls):
    """Compiles and warms up."""
    call = _MAKERS[name](case, inputs, None)
    for _ in range(2):
        call()
    calls[name] = call


def _watch(name, call, case, found):
    """What a call needs, and how far its gradients are from those of float64."""
    found[name].peak = case.device.peak_bytes(call)
    if name in ("bastile", "recompute", "budget"):
        found[name].pieces = _chunks(name, case)
    if name != "products":
        found[name].errors = _errors(name, case)


def _time(measured, call, count, device):
    """``count`` calls, one behind the other, as soon as the GPU's clock is that which
    such calls leave it with: products of matrices lower it within a while, and whose
    turn came after a slow library had rested it would be the faster for it."""
    calls = device.capture([[call]], can_capture=False)
    settled = time.perf_counter() + device.settling_seconds
    while time.perf_counter() < settled:
        device.seconds(calls)
    for _ in range(count):
        measured.seconds.append(device.seconds(calls, behind=calls))


def _errors(name, case):
    tokens, classes = case.checked
    inputs = _inputs(case, tokens, case.shape[1], classes)
    found = _MAKERS[name](case, inputs, _chunks(name, case))()[1:]
    hidden, weight, targets = inputs
    wide = [x.detach().double().requires_grad_() for x in (hidden, weight)]
    loss = F.cross_entropy(wide[0] @ wide[1].t(), targets)
    expected = torch.autograd.grad(loss, wide)
    return tuple(
        ((one.double() - other).norm() / other.norm()).item()
        for one, other in zip(found, expected)
    )


def _chunks(name, case):
    """In how many pieces the logits of the whole are computed."""
    tokens, length, classes = case.shape
    size = case.dtype.itemsize
    settings = Settings(
        recompute=name == "recompute",
        budget=case.budget if name == "budget" else None,
    )
    budget = plan.budget_of(tokens, length, classes, size, settings)
    if settings.recompute:
        return len(plan.pieces(classes, tokens * size, budget))
    return len(plan.pieces(tokens, classes * size, budget))


def _products(case, inputs, chunks):
    hidden, weight, _ = (x.detach() for x in inputs)
    logits = hidden.new_empty(len(hidden), len(weight))
    gradients = torch.empty_like(hidden), torch.empty_like(weight)

    def call():
        torch.mm(hidden, weight.t(), out=logits)
        torch.mm(logits, weight, out=gradients[0])
        torch.mm(logits.t(), hidden, out=gradients[1])
        return gradients

    return call


def _differentiated(loss):
    """A maker of calls of ``loss`` and its gradients."""

    def make(case, inputs, chunks):
        def call():
            value = loss(*inputs)
            return value, *torch.autograd.grad(value, inputs[:2])

        return call

    return make


def _bastile(**options):
    def make(case, inputs, chunks):
        given = dict(options)
        if given.pop("has_budget", False):
            given["budget"] = case.budget
        if chunks is not None:
            hidden, weight, _ = inputs
            logits = len(hidden) * len(weight) * hidden.element_size()
            given["budget"] = -(-logits // chunks)

        def loss(hidden, weight, targets):
            return bastile.ops.linear_cross_entropy(hidden, weight, targets, **given)

        return _differentiated(loss)(case, inputs, chunks)

    return make


def _plain(hidden, weight, targets):
    return F.cross_entropy(F.linear(hidden, weight), targets)


def _compiled(case, inputs, chunks):
    loss = torch.compile(_plain, fullgraph=True, dynamic=False)
    return _differentiated(loss)(case, inputs, chunks)


def _liger(case, inputs, chunks):
    from liger_kernel.ops import LigerFusedLinearCrossEntropyFunction

    def loss(hidden, weight, targets):
        return LigerFusedLinearCrossEntropyFunction.apply(hidden, weight, targets)[0]

    return _differentiated(loss)(case, inputs, chunks)


def _quack(case, inputs, chunks):
    from quack.linear_cross_entropy import chunked_linear_cross_entropy

    return _differentiated(chunked_linear_cross_entropy)(case, inputs, chunks)


_MAKERS = {
    "products": _products,
    "bastile": _bastile(),
    "recompute": _bastile(recompute=True),
    "budget": _bastile(has_budget=True),
    "torch": _differentiated(_plain),
    "compile": _compiled,
    "liger": _liger,
    "quack": _quack,
}
