# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Functions of scores and masks in attention, beside the same functions of whole tensors
in PyTorch: results, log-sum-exps and gradients, of captured tensors, too."""

import collections
import functools
import gc
import os
import types
import weakref

import bastile
import pytest
import torch
import torch.nn.functional as F
from attention import attend, make_heads
from bastile._attention.scores import operators
from bastile.functional import flex_attention
from torch.nn.attention import flex_attention as pytorch

#: Whether Dynamo knows constant objects and functions that are made within functions.
is_dynamo_new = torch.torch_version.TorchVersion(torch.__version__) >= (2, 13)

BATCH, HEADS, QUERIES, KEYS = 2, 6, 7, 9
DOCUMENTS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2])
PADDING = torch.rand(BATCH, KEYS, generator=torch.Generator().manual_seed(0)) < 0.7


def parameter(*shape):
    generator = torch.Generator().manual_seed(len(shape))
    x = torch.randn(shape, dtype=torch.float64, generator=generator)
    return x.requires_grad_()


SLOPES, PER_QUERY = parameter(HEADS), parameter(QUERIES)
PER_KEY, TEMPERATURE = parameter(HEADS, KEYS), parameter()
BIAS = parameter(BATCH, HEADS, QUERIES, KEYS)


def indices():
    sizes = BATCH, HEADS, QUERIES, KEYS
    for dimension, size in enumerate(sizes):
        shape = [1, 1, 1, 1]
        shape[dimension] = size
        yield torch.arange(size).reshape(shape)


def written(query, key, value, score_mod, mask_mod):
    repeats = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(repeats, 1).mT * query.shape[-1] ** -0.5
    changed = score_mod(scores, *indices()) if score_mod else scores
    seen = mask_mod(*indices()).bool() if mask_mod else None
    return attend(query, key, value, bias=changed - scores, seen=seen)


def check(score_mod=None, mask_mod=None, captured=()):
    operands = [*make_heads(QUERIES, KEYS), *captured]
    results = flex_attention(
        *operands[:3], score_mod, mask_mod, enable_gqa=True, return_lse=True
    )
    expected = written(*operands[:3], score_mod, mask_mod)
    torch.testing.assert_close(results, expected)
    found, wanted = (
        torch.autograd.grad(x.sin().sum() + lse.clamp(min=-50).sum(), operands)
        for x, lse in (results, expected)
    )
    torch.testing.assert_close(found, wanted)


def alibi(score, b, h, q, kv):
    return score + SLOPES[h] * (q - kv)


def soft_cap(score, b, h, q, kv):
    return 2 * torch.tanh(score / 2)


def relative(score, b, h, q, kv):
    return score + BIAS[b, h, q, kv]


def several(score, b, h, q, kv):
    score = score * torch.exp(PER_QUERY[q]) / (1 + TEMPERATURE**2)
    return torch.where(q >= kv - 1, score + PER_KEY[h, kv], -float("inf"))


def parity(score, b, h, q, kv):
    return torch.where((q % 2 == kv % 2) ^ (h < 3), score, score - (q - kv).abs())


def by_temperature(score, b, h, q, kv):
    score = score * TEMPERATURE + (1 - TEMPERATURE) * 0.1
    return score / (2**TEMPERATURE + 1) - 2.0 ** (-(h + 1)) * (q - kv).abs()


def of_conditions(score, b, h, q, kv):
    ahead, even = q >= kv, kv % 2 == 0
    score = score + (ahead + even) * 0.5 - ~(ahead * even) * 0.25
    score = torch.where(ahead + even == 1, score, score.relu())
    return torch.where(even, score, torch.full_like(score, -0.5))


def causal(b, h, q, kv):
    return q + KEYS - QUERIES >= kv


def window(b, h, q, kv):
    return (q - kv < 3) & (kv - q <= 2)


def documents(b, h, q, kv):
    return DOCUMENTS[q] == DOCUMENTS[kv]


def padding(b, h, q, kv):
    return PADDING[b, kv]


def prefix(b, h, q, kv):
    return kv < 2


def later(b, h, q, kv):
    """Documents of tokens that lie two behind."""
    return DOCUMENTS[q + 2] == DOCUMENTS[kv]


APART = torch.tensor([[4, 4, 0, 4, 4, 0, 7, 1, 1], [2**40, 3, 3, 3, 3, 1, 1, 1, 1]])


def apart(b, h, q, kv):
    """Numbers in any order, of tokens that lie one behind."""
    return (APART[b, kv] == APART[b, q + 1]) & (q >= kv - 1)


NARROW = DOCUMENTS.to(torch.uint8), DOCUMENTS.to(torch.int16)


def narrow_documents(b, h, q, kv):
    """Numbers of types that kernels do not have."""
    return (NARROW[0][q] == NARROW[0][kv]) & (NARROW[1][q] + 1 > NARROW[1][kv])


def either_documents(b, h, q, kv):
    return documents(b, h, q, kv) | (APART[b, q] == APART[b, kv])


TABLE = parameter(5, HEADS)
STARTS, GROUPS = torch.tensor([0, 2, 5]), torch.tensor([1, 0, 1, 1, 0, 0])


def by_distance(score, b, h, q, kv):
    """A bias of buckets of distances, the farther the wider."""
    distance = (q - kv).abs()
    far = 1 + torch.log2(distance.clamp(min=1).float()).long()
    bucket = torch.where(distance < 2, distance, torch.minimum(far, q * 0 + 4))
    return score + TABLE[bucket, h]


def of_functions(score, b, h, q, kv):
    score = F.gelu(score) + score.sign() * F.gelu(score, approximate="tanh")
    return F.logsigmoid(score) + torch.sign(q - kv)


def by_group(score, b, h, q, kv):
    """Of places of their own, and of numbers that are read themselves."""
    return score + TABLE[GROUPS[h], q % HEADS] * PER_KEY[kv % 2, kv]


def within_documents(b, h, q, kv):
    """By places within documents."""
    place, other = q - STARTS[DOCUMENTS[q]], kv - STARTS[DOCUMENTS[kv]]
    return documents(b, h, q, kv) & (other.where(h < 2, other + 1) <= place + 2)


@pytest.mark.long(every=17)
@pytest.mark.parametrize(
    "score_mod, captured",
    [
        (alibi, [SLOPES]),
        (soft_cap, []),
        (relative, [BIAS]),
        (several, [PER_QUERY, PER_KEY, TEMPERATURE]),
        (by_temperature, [TEMPERATURE]),
        (by_distance, [TABLE]),
        (by_group, [TABLE, PER_KEY]),
        (of_functions, []),
        (parity, []),
        (of_conditions, []),
        (lambda score, *_: score.clamp(min=-0.5, max=0.5).float() * score, []),
        (lambda score, b, h, q, kv: (score > 0) & (h > 1), []),
        # These make nothing of the score.
        (lambda score, b, h, q, kv: (q - kv) * 0.5, []),
        (lambda score, *_: torch.zeros_like(score), []),
        (lambda *_: 1.5, []),
    ],
)
def test_functions_of_scores(score_mod, captured):
    if captured or score_mod in (soft_cap, parity, of_conditions):
        check(score_mod, causal, captured)
        return
    heads = [x.detach() for x in make_heads(QUERIES, KEYS)]
    result = flex_attention(*heads, score_mod, enable_gqa=True)
    repeats = heads[0].shape[1] // heads[1].shape[1]
    key, value = (x.repeat_interleave(repeats, 1) for x in heads[1:])
    scores = heads[0] @ key.mT * heads[0].shape[-1] ** -0.5
    changed = torch.as_tensor(score_mod(scores, *indices()), dtype=torch.float64)
    weights = torch.softmax(changed.expand_as(scores), -1)
    torch.testing.assert_close(result, weights @ value, rtol=1e-6, atol=1e-6)


def test_tensors_of_numbers_of_python():
    heads = [x.detach() for x in make_heads(QUERIES, KEYS)]

    def score_mod(score, b, h, q, kv):
        shifted = score * torch.tensor(2) - torch.as_tensor(True, dtype=torch.float32)
        return torch.where(q >= kv, shifted, torch.tensor(-1e9))

    def mask_mod(b, h, q, kv):
        return torch.tensor(False) | torch.scalar_tensor(2, dtype=torch.bool)

    result = flex_attention(*heads, score_mod, mask_mod, enable_gqa=True)
    expected = pytorch.flex_attention(*heads, score_mod, enable_gqa=True)
    torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6)


SHORT = torch.tensor([20000, -7, -32768, 3, 32767, 5, 0, -20000, 9], dtype=torch.int16)


def of_narrow_integers(score, b, h, q, kv):
    """Numbers of types that kernels do not have, beyond these types."""
    byte, other = NARROW[0][q], NARROW[0][kv]
    short = (SHORT[q] + SHORT[kv]) // 2 - (-SHORT[q]) + (SHORT[kv] << 3)
    mixed = torch.where(q > kv, byte * 100 - other, ~other) ^ SHORT[kv]
    wide = byte.int() * 300 + torch.where(q > kv, kv, other - byte)
    return score + (byte - other) * 0.01 + short * 1e-4 + mixed * 1e-4 + wide * 1e-3


def test_narrow_integers_wrap_around():
    heads = [x.detach() for x in make_heads(QUERIES, KEYS)]
    result = flex_attention(*heads, of_narrow_integers, enable_gqa=True)
    expected = pytorch.flex_attention(*heads, of_narrow_integers, enable_gqa=True)
    torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.long(every=17)
@pytest.mark.parametrize(
    "mask_mod",
    [
        documents,
        padding,
        later,
        apart,
        either_documents,
        narrow_documents,
        within_documents,
        pytorch.and_masks(causal, window, documents),
        pytorch.or_masks(pytorch.and_masks(causal, padding), prefix),
        lambda b, h, q, kv: torch.logical_not(torch.where(h % 2 == 0, q >= kv, b > 0)),
        lambda b, h, q, kv: q // 3 == torch.div(kv, 3, rounding_mode="floor"),
        # What is true of integers is not what their bits have in common.
        lambda b, h, q, kv: torch.logical_and(q % 3, kv % 4),
        lambda b, h, q, kv: torch.logical_xor(q % 3, kv % 4),
        lambda b, h, q, kv: torch.logical_not((q + kv) % 3),
        lambda b, h, q, kv: ((q & kv) == 0) | (kv % 2) & (q >= kv),
        lambda b, h, q, kv: ((q >> 1) + (kv << 1) + (1 << b)) % 3 != 0,
        lambda b, h, q, kv: ~torch.ones_like(q >= kv) | (q >= kv),
        # Nothing is left of one part but its sizes.
        lambda b, h, q, kv: (
            (documents(b, h, q, kv) ^ documents(b, h, q, kv)) & (q >= kv)
        ),
        pytorch.and_masks(),
        pytorch.or_masks(),
    ],
)
def test_masks(mask_mod):
    check(None, mask_mod)


def test_elements_at_computed_places():
    check(by_distance, within_documents, [TABLE])


def test_parts_of_tensors():
    """One dimension may be indexed after the other, and by numbers of Python."""

    def by_parts(score, b, h, q, kv):
        return score * PER_QUERY[0] + TABLE[q % 5][h] - TABLE[2][-1]

    def at_once(score, b, h, q, kv):
        return score * PER_QUERY[h * 0] + TABLE[q % 5, h] - TABLE[2, h * 0 + HEADS - 1]

    heads = make_heads(QUERIES, KEYS)
    found, expected = (
        flex_attention(*heads, function, enable_gqa=True)
        for function in (by_parts, at_once)
    )
    torch.testing.assert_close(found, expected)


def test_both():
    check(alibi, pytorch.and_masks(documents, padding), [SLOPES])


def test_a_block_mask_is_its_function():
    heads = [x.detach() for x in make_heads(KEYS, KEYS)]
    mask = pytorch.create_block_mask(documents, None, None, KEYS, KEYS, device="cpu")
    result = flex_attention(*heads, block_mask=mask, enable_gqa=True)
    expected = flex_attention(*heads, mask_mod=documents, enable_gqa=True)
    assert torch.equal(result, expected)


def test_pytorch_computes_the_same():
    heads = [x.detach().float() for x in make_heads(KEYS, KEYS, key_heads=6)]
    mask = pytorch.create_block_mask(documents, None, None, KEYS, KEYS, device="cpu")
    named = {"block_mask": mask, "return_aux": pytorch.AuxRequest(lse=True)}
    found, expected = (
        function(*heads, soft_cap, **named)
        for function in (flex_attention, pytorch.flex_attention)
    )
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1].lse, expected[1].lse)


def make_mask(tokens, width):
    def mask(b, h, q, kv):
        return (tokens[q] == tokens[kv]) & (q - kv < width)

    return mask


def test_functions_that_are_made_anew_compile_nothing():
    heads = [x.detach() for x in make_heads(KEYS, KEYS)]
    results = []
    for tokens in (DOCUMENTS, DOCUMENTS.flip(0), torch.zeros_like(DOCUMENTS)):
        mask = make_mask(tokens, 3)
        results.append(flex_attention(*heads, mask_mod=mask, enable_gqa=True))
        if len(results) == 1:
            count = bastile.compilations()
    assert bastile.compilations() == count
    assert not torch.equal(results[0], results[1])
    other = flex_attention(*heads, mask_mod=make_mask(DOCUMENTS, 2), enable_gqa=True)
    assert not torch.equal(other, results[0])


class Near:
    """A mask with a state."""

    def __init__(self):
        self.width, self.tokens = 2, DOCUMENTS

    def __call__(self, b, h, q, kv):
        return (q - kv).abs() < self.width

    def within(self, b, h, q, kv):
        return self(b, h, q, kv) & (self.tokens[q] == self.tokens[kv])


def make_keyword(width):
    def mask(b, h, q, kv, *, width=width):
        return (q - kv).abs() < width

    return mask


def test_what_functions_capture_may_change():
    """Attributes, elements of dictionaries and defaults by keyword are numbers of the
    code like any others."""
    heads = [x.detach() for x in make_heads(QUERIES, KEYS)]
    near, settings = Near(), {"width": 2}
    space = types.SimpleNamespace(width=2)

    def by_dictionary(b, h, q, kv):
        return (q - kv).abs() < settings["width"]

    def by_attribute(b, h, q, kv):
        return (q - kv).abs() < space.width

    for width in (2, 4):
        near.width = space.width = settings["width"] = width
        expected = make_keyword(width)
        for mask in (near, by_dictionary, by_attribute, expected, near.within):
            found = flex_attention(*heads, mask_mod=mask, enable_gqa=True)
            wanted = written(*heads, None, mask)[0]
            torch.testing.assert_close(found, wanted)


class Settings:
    width = 2
    widths = (2,)


class Inherited(Settings):
    pass


class Contents:
    def __init__(self):
        self.own = {"width": 2}

    def __getitem__(self, name):
        return self.own[name]


def test_numbers_that_functions_find_elsewhere_may_change(monkeypatch):
    """In other modules, classes, containers and, where a name is computed, anywhere."""
    heads = [x.detach() for x in make_heads(QUERIES, KEYS)]
    module = types.ModuleType("settings_of_a_test")
    exec("def near(b, h, q, kv):\n    return (q - kv).abs() < width", vars(module))
    module.space = types.SimpleNamespace()
    widths, contents = collections.deque([2]), Contents()

    def of_function(b, h, q, kv):
        return (q - kv).abs() < of_function.own["width"]

    masks = [
        lambda b, h, q, kv: module.near(b, h, q, kv),
        lambda b, h, q, kv: (q - kv).abs() < module.parts["width"],
        lambda b, h, q, kv: (q - kv).abs() < module.space.width,
        lambda b, h, q, kv: (q - kv).abs() < Inherited.width,
        lambda b, h, q, kv: (q - kv).abs() < Settings.widths[0],
        lambda b, h, q, kv: (q - kv).abs() < getattr(module.space, "width"),
        lambda b, h, q, kv: (q - kv).abs() < max(module.some),
        lambda b, h, q, kv: (q - kv).abs() < widths[0],
        lambda b, h, q, kv: (q - kv).abs() < contents["width"],
        lambda b, h, q, kv: (q - kv).abs() < int(os.environ["BASTILE_TEST_WIDTH"]),
        of_function,
    ]
    for width in (2, 4):
        module.width = module.space.width = widths[0] = width
        module.parts, module.some = {"width": width}, {1, width}
        contents.own["width"] = width
        of_function.own = {"width": width}
        monkeypatch.setenv("BASTILE_TEST_WIDTH", str(width))
        monkeypatch.setattr(Settings, "width", width)
        monkeypatch.setattr(Settings, "widths", (width,))
        wanted = written(*heads, None, make_keyword(width))[0]
        for mask in masks:
            found = flex_attention(*heads, mask_mod=mask, enable_gqa=True)
            torch.testing.assert_close(found, wanted)


def test_functions_that_are_looked_at_again_compile_nothing():
    contents, compiled = Contents(), None
    for _ in range(3):
        functions = operators.Functions(
            "a test", None, lambda b, h, q, kv: q - kv < contents["width"]
        )
        assert not functions.captured.is_complete
        formula = functions.formula()
        assert compiled in (None, formula)
        compiled = formula


def test_captured_tensors_do_not_live_on():
    heads = [x.detach() for x in make_heads(KEYS, KEYS)]
    tokens = DOCUMENTS.clone()
    alive = weakref.ref(tokens)
    flex_attention(*heads, mask_mod=make_mask(tokens, 4), enable_gqa=True)
    del tokens
    flex_attention(*heads, mask_mod=make_mask(DOCUMENTS, 4), enable_gqa=True)
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    "score_mod, message",
    [
        (lambda s, *_: torch.sort(s)[0], "a call of 'sort'"),
        (lambda s, *_: s.cumsum(0), "'cumsum' of a tensor"),
        (lambda s, b, h, q, kv: s if q > kv else -s, "a choice by a condition"),
        (lambda s, b, h, q, kv: s + DOCUMENTS[(s > 0).int()], "computed of a score"),
        (lambda s, b, h, q, kv: s + DOCUMENTS[q > kv], "that is no integer"),
        (lambda s, b, h, q, kv: s + BIAS[b, h, q], "index all of its dim"),
        (lambda s, b, h, q, kv: s * float(q), "a number of Python by float"),
        (lambda s, *_: s + torch.ones(()), "neither closes over nor finds"),
        # These would stay as they are for other tensors.
        (lambda s, *_: s * DOCUMENTS.max().item(), "a number of Python .* by 'item'"),
        (lambda s, *_: s * DOCUMENTS.shape[0], "a number of Python .* by 'shape'"),
        (lambda s, *_: s if DOCUMENTS[0] > 1 else -s, "a choice by a condition"),
        (lambda s, b, h, q, kv: s * (DOCUMENTS == q).any(), "1 dimensions as a whole"),
        (lambda s, *_: torch.stack([s, s]), "a call of 'stack' with a list"),
    ],
)
def test_what_cannot_be_followed(score_mod, message):
    heads = make_heads(QUERIES, KEYS)
    with pytest.raises(
        TypeError, match=f"flex_attention: .*'<lambda>' does: .*{message}"
    ):
        flex_attention(*heads, score_mod, enable_gqa=True)


def test_captured_tensors_that_are_too_short():
    def mask(b, h, q, kv):
        return DOCUMENTS[kv + 2] == 0

    heads = make_heads(QUERIES, KEYS)
    with pytest.raises(ValueError, match=r"shape \[9\] is indexed from 2 to 10"):
        flex_attention(*heads, mask_mod=mask, enable_gqa=True)


def test_no_keys():
    query, key, value = make_heads(5, 0)
    for score_mod in (None, soft_cap):
        result = flex_attention(query, key, value, score_mod, enable_gqa=True)
        assert result.shape == query.shape and not result.any()


def test_captured_numbers_that_change_compiled():
    """Of functions that are arguments, and of objects."""
    heads = [x.detach() for x in make_heads(KEYS, KEYS)]
    near = Near()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(mask):
        return flex_attention(*heads, mask_mod=mask, enable_gqa=True)

    called = near if is_dynamo_new else lambda *at: near(*at)
    if not is_dynamo_new:
        with pytest.raises(Exception, match="give a function that calls the object"):
            step(near)
    for width in (2, 3, 5):
        near.width = width
        for mask in (make_mask(DOCUMENTS, width), called):
            expected = flex_attention(*heads, mask_mod=mask, enable_gqa=True)
            assert torch.equal(step(mask), expected)


def test_partial_functions_compiled():
    def within(width, b, h, q, kv):
        return (q >= kv) & (q - kv < width)

    heads = [x.detach() for x in make_heads(KEYS, KEYS)]
    mask = functools.partial(within, 3)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step():
        return flex_attention(*heads, mask_mod=mask, enable_gqa=True)

    assert torch.equal(step(), flex_attention(*heads, mask_mod=mask, enable_gqa=True))


@pytest.mark.long(every=2)
@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize(
    "score_mod, mask_mod, captured",
    [(alibi, documents, SLOPES), (by_distance, within_documents, TABLE)],
)
def test_compiled_without_a_graph_break(dynamic, score_mod, mask_mod, captured):
    def step(query, key, value):
        return flex_attention(
            query, key, value, score_mod, mask_mod=mask_mod, enable_gqa=True
        )

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for length in (KEYS, KEYS - 1):
        operands = [*make_heads(length, length), captured]
        found, expected = (function(*operands[:3]) for function in (compiled, step))
        torch.testing.assert_close(found, expected)
        gradients = (
            torch.autograd.grad(x.sin().sum(), operands) for x in (found, expected)
        )
        torch.testing.assert_close(*gradients)


def test_functions_that_are_made_within_what_is_compiled():
    """They break the graph, and a whole graph is refused by what is to be done."""
    heads = [x.detach() for x in make_heads(KEYS, KEYS)]

    def step(*heads):
        def mask(b, h, q, kv):
            return (q >= kv) & documents(b, h, q, kv)

        return flex_attention(*heads, mask_mod=mask, enable_gqa=True)

    # Earlier versions stop ahead of that, at the function's global names.
    said = (
        "made within what torch.compile compiles"
        if is_dynamo_new
        else "__globals__|hasattr"
    )
    with pytest.raises(Exception, match=said):
        torch.compile(step, backend="aot_eager", fullgraph=True)(*heads)
    torch._dynamo.reset()
    compiled = torch.compile(step, backend="aot_eager")
    assert torch.equal(compiled(*heads), step(*heads))
