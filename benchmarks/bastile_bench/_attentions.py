# Part of Bastile, under the MIT License. See LICENSE.
"""Attention by several libraries: cases, calls, errors and times."""

import dataclasses
import functools
import gc
import importlib
import math
import time

import torch

#: How often each row has its turn.
_TURNS = 2
#: The longest sequence, the most heads and the largest batch whose errors are measured.
_CHECKED = 512, 8, 1
#: The most bytes of scores that the formula written out in PyTorch may have.
_MOST_WRITTEN = 2**32
#: Operations of a direction by those of a forward, which has two products.
PRODUCTS = {"forward": 1.0, "backward": 2.5}


@dataclasses.dataclass(frozen=True)
class Case:
    """What is computed: each size, and what is seen."""

    name: str
    batch: int
    length: int
    heads: int
    key_heads: int
    size: int
    causal: bool = True
    #: How many keys a query sees, its own among them; None for all.
    window: int | None = None
    sinks: bool = False

    @property
    def shape(self) -> tuple:
        return self.batch, self.length, self.heads, self.key_heads, self.size

    @property
    def operations(self) -> float:
        """Those of both products of a forward, of the scores that are seen."""
        seen = self.length**2
        if self.causal:
            seen /= 2
        if self.window is not None and self.window < self.length:
            seen = self.window * (self.length - self.window / 2)
        return 4.0 * self.batch * self.heads * self.size * seen

    def checked(self) -> "Case":
        """A case as this one that is small enough to be compared with float64."""
        length, heads, batch = _CHECKED
        group = self.heads // self.key_heads
        key_heads = max(1, min(self.heads, heads) // group)
        return dataclasses.replace(
            self,
            batch=min(self.batch, batch),
            length=min(self.length, length),
            heads=key_heads * group,
            key_heads=key_heads,
        )


@dataclasses.dataclass
class Measured:
    """What was found of one library: seconds of each call by direction, bytes and errors
    by direction, seconds of the first calls."""

    seconds: dict = dataclasses.field(default_factory=dict)
    peak: dict = dataclasses.field(default_factory=dict)
    errors: dict = dataclasses.field(default_factory=dict)
    first: dict = dataclasses.field(default_factory=dict)
    error: str = ""


class Inputs:
    """The operands of a case, [B, H, S, D] in memory as models have them, and what its
    result is differentiated by."""

    def __init__(self, case, dtype, device):
        generator = torch.Generator(device).manual_seed(0)

        def random(*sizes):
            return torch.randn(sizes, generator=generator, device=device).to(dtype)

        rows = case.batch, case.length
        self.query, self.key, self.value = (
            random(*rows, heads, case.size).transpose(1, 2).requires_grad_()
            for heads in (case.heads, case.key_heads, case.key_heads)
        )
        self.sinks = random(case.heads).requires_grad_() if case.sinks else None
        self.upstream = random(*rows, case.heads, case.size).transpose(1, 2)

    @property
    def heads(self) -> tuple:
        return self.query, self.key, self.value

    @property
    def differentiated(self) -> list:
        return [*self.heads] + ([] if self.sinks is None else [self.sinks])


def measure(case, names, rounds, directions, dtype, device) -> dict:
    """`Measured` of each of ``names``, which take turns."""
    device.start_case()
    # torch.compile gives up after eight shapes.
    torch._dynamo.reset()
    found = {name: Measured() for name in names}
    calls = {}
    inputs = Inputs(case, dtype, device.name)
    for name in names:

        def prepare(name=name):
            found[name].errors = _errors(name, case, directions, dtype, device)
            calls[name] = _open(name, case, inputs, directions, found[name], device)

        _guard(found[name], prepare, device)
    for turn in range(_TURNS):
        count = len(range(turn, rounds, _TURNS))
        for direction in directions:
            for name in calls:

                def run(name=name, direction=direction, count=count):
                    call = calls[name].get(direction)
                    if call:
                        times = found[name].seconds.setdefault(direction, [])
                        _time(times, call, count, device)

                _guard(found[name], run, device)
    return found


def _guard(measured, action, device):
    """Runs ``action``; if it fails, the other rows go on."""
    if measured.error:
        return
    try:
        action()
    except Exception as error:  # whatever a library raises
        measured.error = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        gc.collect()
        device.synchronize()


def _open(name, case, inputs, directions, measured, device):
    """The calls by direction, each of which has run."""
    forward = MAKERS[name](case, inputs)
    calls = {"forward": forward}
    if "backward" in directions and name not in FORWARD_ONLY:
        result = forward()
        calls["backward"] = lambda: torch.autograd.grad(
            result, inputs.differentiated, inputs.upstream, retain_graph=True
        )
    for direction, call in calls.items():
        device.synchronize()
        start = time.perf_counter()
        call()
        device.synchronize()
        measured.first[direction] = time.perf_counter() - start
        call()
        measured.peak[direction] = device.peak_bytes(call)
    return calls


def _time(times, call, count, device):
    """``count`` calls, one behind the other, at the clock that such calls leave the GPU
    with."""
    calls = device.capture([[call]], can_capture=False)
    settled = time.perf_counter() + device.settling_seconds
    while time.perf_counter() < settled:
        device.seconds(calls)
    for _ in range(count):
        times.append(device.seconds(calls, behind=calls))


def _errors(name, case, directions, dtype, device):
    """By direction, the largest error relative to the norm, of a smaller case."""
    small = case.checked()
    inputs = Inputs(small, dtype, device.name)
    result = MAKERS[name](small, inputs)()
    exact = Inputs(small, dtype, device.name)
    for field in ("query", "key", "value", "sinks"):
        tensor = getattr(exact, field)
        if tensor is not None:
            setattr(exact, field, tensor.detach().double().requires_grad_())
    expected = written_out(small, exact)()
    errors = {"forward": _error(result, expected)}
    if "backward" in directions and name not in FORWARD_ONLY:
        gradients = torch.autograd.grad(result, inputs.differentiated, inputs.upstream)
        upstream = inputs.upstream.double()
        wanted = torch.autograd.grad(expected, exact.differentiated, upstream)
        errors["backward"] = max(map(_error, gradients, wanted))
    return errors


def _error(found, expected):
    return ((found.double() - expected).norm() / expected.norm()).item()


# The libraries: each makes the call of a forward, which returns [B, H, S, D].


def _bastile(case, inputs):
    import bastile

    return lambda: bastile.ops.attention(
        *inputs.heads,
        causal=case.causal,
        window=(None if case.window is None else case.window - 1, None),
        sinks=inputs.sinks,
    )


def _seen(case, device):
    """What is seen, [S, S]; None for all."""
    places = torch.arange(case.length, device=device)
    distance = places[:, None] - places
    seen = distance >= 0 if case.causal else None
    if case.window is None:
        return seen
    near = distance < case.window
    return near if seen is None else seen & near


def written_out(case, inputs):
    """The formula in PyTorch, as Transformers writes it out."""
    query, key, value = inputs.heads
    bytes_of_scores = 4 * case.batch * case.heads * case.length**2
    if bytes_of_scores > _MOST_WRITTEN:
        raise ValueError(f"its scores have {bytes_of_scores / 2**30:.0f} GiB")
    seen = _seen(case, query.device)

    def call():
        repeated = (
            x.repeat_interleave(case.heads // case.key_heads, 1) for x in (key, value)
        )
        keys, values = repeated
        scores = query @ keys.mT * case.size**-0.5
        if seen is not None:
            scores = scores.masked_fill(~seen, -math.inf)
        if inputs.sinks is not None:
            column = inputs.sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
            scores = torch.cat([scores, column], -1)
        weights = torch.softmax(scores, -1)[..., : case.length]
        return weights @ values

    return call


def _backend(kind):
    """One of the kernels behind PyTorch's function."""

    def make(case, inputs):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        attend = functools.partial(
            torch.nn.functional.scaled_dot_product_attention,
            is_causal=case.causal,
            enable_gqa=True,
        )

        def call():
            with sdpa_kernel(getattr(SDPBackend, kind)):
                return attend(*inputs.heads)

        return call

    return make


def _flex(case, inputs):
    from torch.nn.attention import flex_attention as flex

    device = inputs.query.device

    def mask(b, h, q, kv):
        seen = q >= kv if case.causal else q >= 0
        return seen if case.window is None else seen & (q - kv < case.window)

    block_mask = None
    if case.causal or case.window is not None:
        block_mask = flex.create_block_mask(
            mask, None, None, case.length, case.length, device=device
        )
    attend = torch.compile(flex.flex_attention, dynamic=False)
    named = {"block_mask": block_mask, "enable_gqa": case.heads != case.key_heads}
    if inputs.sinks is None:
        return lambda: attend(*inputs.heads, **named)

    def call():
        # As Transformers has it.
        result, aux = attend(
            *inputs.heads, **named, return_aux=flex.AuxRequest(lse=True)
        )
        share = torch.sigmoid(aux.lse - inputs.sinks.reshape(1, -1, 1))
        return result * share.unsqueeze(-1).to(result.dtype)

    return call


def _flash_attention_4(case, inputs):
    attend = importlib.import_module("flash_attn.cute").flash_attn_func
    named = {"causal": case.causal}
    if case.window is not None:
        named["window_size"] = (case.window - 1, 0 if case.causal else case.window - 1)
    if inputs.sinks is not None:
        named["learnable_sink"] = inputs.sinks

    def call():
        rows = (x.transpose(1, 2) for x in inputs.heads)
        return _first(attend(*rows, **named)).transpose(1, 2)

    return call


def _flash_attention_3(case, inputs):
    attend = importlib.import_module("fa3_fwd_interface").flash_attn_func
    window = (-1, -1) if case.window is None else (case.window - 1, 0)

    def call():
        with torch.no_grad():
            rows = (x.transpose(1, 2) for x in inputs.heads)
            result = attend(*rows, causal=case.causal, window_size=window)
        return _first(result).transpose(1, 2)

    return call


def _first(result):
    return result[0] if isinstance(result, tuple) else result


MAKERS = {
    "bastile": _bastile,
    "written": written_out,
    "flash": _backend("FLASH_ATTENTION"),
    "cudnn": _backend("CUDNN_ATTENTION"),
    "flex": _flex,
    "fa4": _flash_attention_4,
    "fa3": _flash_attention_3,
}
#: Libraries without a backward.
FORWARD_ONLY = ("fa3",)


def can_have(name, case, device) -> bool:
    """Whether a library has this case at all, on this device."""
    if name in ("bastile", "written"):
        return True
    if device == "cpu":
        return False
    if name in ("flash", "cudnn"):
        return case.window is None and not case.sinks
    return not (name == "fa3" and case.sinks)
