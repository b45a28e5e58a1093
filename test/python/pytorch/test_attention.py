# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Attention with masks, caps, sinks, biases, documents and dropout, beside the same
written out in PyTorch: results, log-sum-exps and gradients."""

import json
import pathlib

import bastile
import pytest
import torch
from attention import LOWEST, attend, make_heads, places
from bastile import _bastile, functional, ops
from bastile._attention import ranges
from bastile._formulas.attention import attention
from torch.nn import functional as F

TOLERANCES = {torch.float64: 1e-12, torch.float32: 4e-6, torch.bfloat16: 2e-2}
#: Queries and keys: as many, more keys, and more queries, some of which see nothing.
LENGTHS = [(9, 9), (5, 9), (9, 5)]


def compare(mine, expected, tolerance):
    assert mine.shape == expected.shape
    expected = expected.double()
    error = (mine.double() - expected).norm()
    assert error <= tolerance * max(expected.norm(), 1e-3), error


def check(operands, mine, expected, tolerance=1e-12, exact=None):
    """Compares results and gradients of two functions of no arguments, of ``operands``,
    which ``expected`` may have in float64, ``exact``."""
    exact = exact or operands
    results, wanted = mine(), expected()
    generator = torch.Generator().manual_seed(1)
    upstream = [torch.randn(x.shape, generator=generator) for x in wanted]
    for result, want in zip(results, wanted, strict=True):
        compare(result, want, tolerance)
    for of, made in ((operands, results), (exact, wanted)):
        total = sum((x * up.to(x.dtype)).sum() for x, up in zip(made, upstream))
        of[:] = [(x, torch.autograd.grad(total, x, retain_graph=True)[0]) for x in of]
    for (_, gradient), (_, want) in zip(operands, exact):
        compare(gradient, want, 4 * tolerance)


def check_case(queries, keys, named, written, others=()):
    heads = make_heads(queries, keys)
    check(
        [*heads, *others],
        lambda: ops.attention(*heads, return_lse=True, **named),
        lambda: attend(*heads, **written),
        exact=[*heads, *others],
    )


@pytest.mark.long(every=3)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_causal(lengths):
    position, place = places(*lengths)
    check_case(*lengths, {"causal": True}, {"seen": place <= position})


@pytest.mark.long(every=17)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(
    "window", [(3, 1), (None, 2), (0, None), (2**31 - 1, 2**31 - 1), (2, 2**40)]
)
def test_windows(lengths, window):
    position, place = places(*lengths)
    left, right = window
    seen = torch.ones(lengths, dtype=torch.bool)
    if left is not None:
        seen &= place >= position - left
    if right is not None:
        seen &= place <= position + right
    check_case(*lengths, {"window": window}, {"seen": seen})


@pytest.mark.long(every=3)
@pytest.mark.parametrize("offset", [0, 2, torch.tensor(2)])
def test_positions_of_queries(offset):
    position, place = places(5, 9, offset)
    named = {"offset": offset, "causal": True}
    check_case(5, 9, named, {"seen": place <= position})


def test_scale_and_soft_cap():
    named = {"scale": 0.7, "softcap": 1.5}
    check_case(7, 9, named, named)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("masked", [False, True])
def test_sinks(masked):
    sinks = torch.randn(6, dtype=torch.float64, requires_grad=True)
    position, place = places(9, 5)
    seen = place <= position if masked else None
    named = {"causal": masked, "sinks": sinks}
    check_case(9, 5, named, {"seen": seen, "sinks": sinks}, [sinks])


@pytest.mark.long
def test_sinks_of_minus_infinity_take_nothing():
    sinks = torch.full((6,), -torch.inf, dtype=torch.float64)
    position, place = places(9, 5)
    named = {"causal": True, "sinks": sinks}
    check_case(9, 5, named, {"seen": place <= position})


SHAPES = [(2, 6, 7, 9), (1, 6, 7, 9), (7, 9), (2, 1, 1, 9), (2, 6, 7, 1)]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("shape", SHAPES)
def test_masks(shape):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.6
    check_case(7, 9, {"mask": mask}, {"seen": mask})


@pytest.mark.long(every=5)
@pytest.mark.parametrize("shape", SHAPES)
def test_biases(shape):
    bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    check_case(7, 9, {"bias": bias}, {"bias": bias}, [bias])


@pytest.mark.long
def test_biases_of_minus_infinity():
    bias = torch.zeros(7, 9, dtype=torch.float64)
    bias[2] = bias[3, 4:] = -torch.inf
    check_case(7, 9, {"bias": bias}, {"bias": bias})


@pytest.mark.long
def test_padded_keys():
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, :4] = mask[1, :] = False
    check_case(7, 9, {"key_mask": mask}, {"seen": mask[:, None, None]})


@pytest.mark.long
def test_slopes_of_distances():
    slopes = torch.rand(6, dtype=torch.float64, requires_grad=True)
    position, place = places(5, 9)
    bias = -slopes[:, None, None] * (position - place).abs()
    check_case(5, 9, {"alibi_slopes": slopes}, {"bias": bias}, [slopes])


DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [5, 4, 4, 4, 4, 4, 3, 3, 1]])


@pytest.mark.long
def test_documents():
    position, place = places(9, 9)
    alike = (DOCUMENTS[:, :, None] == DOCUMENTS[:, None, :])[:, None]
    written = {"seen": alike & (place <= position)}
    check_case(9, 9, {"causal": True, "documents": DOCUMENTS}, written)


@pytest.mark.long
def test_documents_of_queries_and_keys():
    pair = DOCUMENTS[:, 2:7], DOCUMENTS
    alike = (pair[0][:, :, None] == pair[1][:, None, :])[:, None]
    check_case(5, 9, {"documents": pair}, {"seen": alike})


def test_documents_that_lie_apart():
    """In any order, of any numbers, and of queries alone."""
    apart = torch.tensor(
        [[0, 9, -3, 9, 2**40, 0, 0, 4, 18], [7, 7, 3, 3, 7, 7, 2, 3, 3]]
    )
    pair = apart[:, [4, 1, 2, 8, 6]], apart.flip(0)
    for documents, queries in ((apart, 9), (pair, 5)):
        ours, theirs = documents if queries == 5 else (documents, documents)
        alike = (ours[:, :, None] == theirs[:, None, :])[:, None]
        check_case(queries, 9, {"documents": documents}, {"seen": alike})


@pytest.mark.parametrize("most", [3, 9, 2**60])
def test_ranges_of_equal_numbers(most):
    """They have all equal numbers, and nothing else where they say so. Numbers that are
    few as far as they are small have no more."""
    generator = torch.Generator().manual_seed(5)
    numbers = torch.randint(-most, most, (40, 13), generator=generator)
    numbers[::2] = numbers[::2].sort().values
    queries, keys = numbers[:, :5], numbers[:, 4:]
    for ours, theirs in ((queries, keys), (keys, queries), (keys, keys)):
        found = ranges.of_equals(ours, theirs)[0]
        alike = ours[:, :, None] == theirs[:, None, :]
        place = torch.arange(theirs.shape[1])
        first, end, others = (x[:, :, None] for x in found)
        within = (place >= first) & (place < end)
        assert not (alike & ~within).any()
        assert (alike == within)[(others == 0).expand_as(alike)].all()
        is_run = (alike.int().diff(dim=-1) == 1).sum(-1) + alike[..., 0] == 1
        if most == 3 and theirs.shape[1] > 2 * most:
            assert (others[..., 0] == 0)[is_run].all()


@pytest.mark.long
def test_positions_that_start_anew():
    positions = torch.tensor([[0, 1, 2, 0, 1, 0, 1, 2, 3], [7, 0, 1, 2, 3, 4, 0, 1, 0]])
    alike = (DOCUMENTS[:, :, None] == DOCUMENTS[:, None, :])[:, None]
    check_case(9, 9, {"position_ids": positions}, {"seen": alike})


def test_boundaries_of_documents():
    heads = make_heads(9, 9, batch=1)
    boundaries = torch.tensor([0, 3, 5, 9], dtype=torch.int32)
    of = DOCUMENTS[0]
    expected, _ = attend(*heads, seen=of[:, None] == of)
    result = ops.attention(*heads, cu_seqlens=boundaries)
    torch.testing.assert_close(result, expected)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("p", [0.4, 1.0])
def test_dropout(p):
    heads = make_heads(7, 9)
    named = {"dropout": p, "seed": torch.tensor([3], dtype=torch.int32)}
    # Of values that are the identity, the results are the weights.
    identity = torch.eye(9, dtype=torch.float64).expand(2, 2, 9, 9)
    weights = ops.attention(*heads[:2], identity, **named)
    kept = (weights != 0).double() / max(1 - p, 1e-30)
    assert p == 1 or 0.4 < (weights != 0).double().mean() < 0.8
    check(
        list(heads),
        lambda: [ops.attention(*heads, **named)],
        lambda: attend(*heads, kept=kept)[:1],
        exact=list(heads),
    )


@pytest.mark.long
def test_the_generator_draws_what_is_dropped():
    heads = make_heads(7, 9)
    torch.manual_seed(1)
    one, other = (ops.attention(*heads, dropout=0.5) for _ in range(2))
    assert not torch.equal(one, other)
    torch.manual_seed(1)
    assert torch.equal(ops.attention(*heads, dropout=0.5), one)


@pytest.mark.long(every=7)
@pytest.mark.parametrize("name", ["causal", "window", "mask", "key_mask", "bias"])
def test_rows_that_see_nothing_have_no_gradients(name):
    heads = make_heads(9, 5)
    nothing = torch.zeros(2, 1, 9, 5, dtype=torch.bool)
    arguments = {
        "causal": True,
        "window": (0, 0),
        "mask": nothing,
        "key_mask": nothing[:, 0, 0],
        "bias": torch.full((9, 5), -torch.inf, dtype=torch.float64),
    }
    result, lse = ops.attention(*heads, **{name: arguments[name]}, return_lse=True)
    empty = lse == LOWEST
    assert empty.any() and not result[empty].any()
    result.sum().backward()
    assert not heads[0].grad[empty].any()
    assert all(x.grad.isfinite().all() for x in heads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_whose_mask_adds_the_lowest_number(dtype):
    # Such a row sees all keys alike, as in PyTorch: any score is lost beside the mask.
    heads = make_heads(5, 5, dtype=dtype)
    bias = torch.full((5, 5), LOWEST, dtype=dtype).triu(1)
    bias[0] = LOWEST
    bias.requires_grad_()
    check(
        [*heads, bias],
        lambda: [ops.attention(*heads, bias=bias)],
        lambda: attend(*heads, bias=bias)[:1],
        TOLERANCES[dtype],
        exact=[*heads, bias],
    )


@pytest.mark.long(every=17)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lengths", [(70, 129), (1, 9), (9, 1)])
def test_types(dtype, lengths):
    heads = make_heads(*lengths, dtype=dtype, sizes=(64, 32))
    exact = [x.detach().double().requires_grad_() for x in heads]
    position, place = places(*lengths)
    sinks = torch.randn(6)
    check(
        list(heads),
        lambda: [ops.attention(*heads, causal=True, sinks=sinks)],
        lambda: attend(*exact, seen=place <= position, sinks=sinks.double())[:1],
        TOLERANCES[dtype],
        exact=exact,
    )


@pytest.mark.long(every=3)
@pytest.mark.parametrize("key_heads", [1, 2, 6])
def test_heads_that_share_keys(key_heads):
    heads = make_heads(7, 9, key_heads=key_heads, sizes=(24, 40))
    check(
        list(heads),
        lambda: [ops.attention(*heads)],
        lambda: attend(*heads)[:1],
        exact=list(heads),
    )


@pytest.fixture
def first_call(monkeypatch):
    """Attention as in a process that has called none: which sizes are part of the code
    is not known yet."""
    for name in ("_fixed", "_requests"):
        monkeypatch.setattr(attention, name, {})
    attention.native.clear()


@pytest.mark.long(every=5)
@pytest.mark.parametrize("key_heads", [1, 2, 3, 6])
def test_windows_of_heads_that_share_keys(key_heads, first_call):
    """The number of heads that share keys is a part of such code."""
    heads = make_heads(7, 9, key_heads=key_heads)
    query, key = places(7, 9)
    seen = (key <= query) & (key >= query - 3)
    check(
        list(heads),
        lambda: [ops.attention(*heads, causal=True, window=(3, 0))],
        lambda: attend(*heads, seen=seen)[:1],
        exact=list(heads),
    )


def test_which_heads_are_a_part_of_the_code():
    def source(key_heads, **named):
        heads = make_heads(7, 9, key_heads=key_heads)
        return find_request(heads, {"causal": True, **named}).source

    assert source(2, window=(3, 0)) != source(3, window=(3, 0))
    assert source(2) == source(3)


def test_any_strides():
    heads = [x.detach() for x in make_heads(7, 9)]
    apart = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in heads]
    assert torch.equal(ops.attention(*apart), ops.attention(*heads))


def test_no_length_compiles_anything():
    def run(queries, keys):
        heads = make_heads(queries, keys)
        mask = torch.ones(2, keys, dtype=torch.bool)
        ops.attention(*heads, causal=True, key_mask=mask, softcap=3.25).sum().backward()

    run(7, 9)
    count = bastile.compilations()
    for lengths in ((6, 9), (20, 33), (9, 5)):
        run(*lengths)
    assert bastile.compilations() == count


def find_request(heads, named):
    """What a call asks the compiler for."""
    requests = []
    request = attention.request

    def note(*arguments):
        requests.append(request(*arguments))
        return requests[-1]

    attention.native.clear()
    attention.request = note
    try:
        ops.attention(*heads, **named)
    finally:
        del attention.request
    return requests[0]


def count_launches(heads, named):
    """How many kernels a GPU runs forward."""
    text = _bastile.describe_text(find_request(heads, named).on("sm_90").native())
    return len(json.loads(text)["functions"][0]["launches"])


@pytest.mark.long(every=7)
@pytest.mark.parametrize(
    "named",
    [
        {},
        {"causal": True, "window": (3, 0), "softcap": 3.0, "sinks": torch.zeros(6)},
        {"mask": torch.ones(7, 9, dtype=torch.bool), "return_lse": True},
        {"key_mask": torch.ones(2, 9, dtype=torch.bool), "dropout": 0.5},
        {"bias": torch.zeros(7, 9), "alibi_slopes": torch.ones(6)},
        {"documents": (torch.zeros(2, 7), torch.zeros(2, 9)), "offset": 1},
    ],
)
def test_one_kernel(named):
    heads = make_heads(7, 9, torch.bfloat16, sizes=(64, 64))
    assert count_launches(heads, named) == 1


def test_one_key():
    mask = torch.tensor([[True], [False]])
    check_case(5, 1, {"key_mask": mask}, {"seen": mask[:, None, None]})


@pytest.mark.long(every=11)
@pytest.mark.parametrize(
    "batch, queries, keys", [(2, 0, 9), (0, 7, 9), (2, 5, 0), (2, 0, 0)]
)
@pytest.mark.parametrize("name", ["nothing", "sinks"])
def test_nothing_to_attend(batch, queries, keys, name):
    heads = make_heads(queries, keys, batch=batch, sizes=(16, 24))
    sinks = torch.full((6,), -torch.inf, dtype=torch.float64)
    named = {"sinks": sinks} if name == "sinks" else {}
    result, lse = ops.attention(*heads, return_lse=True, **named)
    assert result.shape == (batch, 6, queries, 24) and lse.shape == result.shape[:3]
    if keys == 0:
        assert not result.any() and (lse == LOWEST).all()
    gradients = torch.autograd.grad(result.sum() + lse.sum(), heads)
    assert all(x.isfinite().all() for x in gradients)


@pytest.mark.parametrize("queries, size", [(1, 8), (3, 300), (3, 1)])
def test_no_keys_of_scores_in_memory(queries, size):
    heads = make_heads(queries, 0, sizes=(size, size))
    sinks = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
    result, lse = ops.attention(*heads, causal=True, sinks=sinks, return_lse=True)
    assert not result.any()
    torch.testing.assert_close(lse, sinks[:, None].expand_as(lse))
    (gradient,) = torch.autograd.grad(lse.sum(), sinks)
    torch.testing.assert_close(gradient, torch.full_like(sinks, 2.0 * queries))
    _, lse = ops.attention(*heads, causal=True, return_lse=True)
    assert (lse == LOWEST).all()


def test_examples_of_the_guide():
    root = pathlib.Path(__file__).resolve().parents[3]
    blocks = (root / "docs/attention.md").read_text().split("```python\n")[1:]
    examples = [x.split("```")[0] for x in blocks if "from_pretrained" not in x]
    assert len(examples) == 2
    for example in examples:
        names = {}
        exec(example, names)
        assert names["result"].shape == (2, 8, 100, 64)
    assert names["slopes"].grad.isfinite().all()


def test_gradcheck():
    heads = make_heads(3, 4, batch=1, heads=2, key_heads=1, sizes=(3, 2))
    sinks = torch.randn(2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)

    def function(query, key, value, sinks, bias):
        return ops.attention(
            query,
            key,
            value,
            causal=True,
            softcap=2.0,
            sinks=sinks,
            bias=bias,
            return_lse=True,
        )

    assert torch.autograd.gradcheck(function, [*heads, sinks, bias])


class TestScaledDotProductAttention:
    @pytest.mark.long(every=5)
    @pytest.mark.parametrize(
        "named",
        [
            {},
            {"is_causal": True},
            {"scale": 0.3},
            {"attn_mask": torch.rand(7, 9) < 0.7},
            {"attn_mask": torch.randn(2, 6, 7, 9, dtype=torch.float64)},
        ],
    )
    def test_as_pytorch(self, named):
        heads = make_heads(7, 9, key_heads=6)
        check(
            list(heads),
            lambda: [functional.scaled_dot_product_attention(*heads, **named)],
            lambda: [F.scaled_dot_product_attention(*heads, **named)],
            exact=list(heads),
        )

    def test_without_a_batch(self):
        heads = [x.detach()[0] for x in make_heads(7, 9, key_heads=6)]
        expected = F.scaled_dot_product_attention(*heads, is_causal=True)
        result = functional.scaled_dot_product_attention(*heads, is_causal=True)
        torch.testing.assert_close(result, expected)

    def test_fewer_heads_of_keys(self):
        heads = [x.detach() for x in make_heads(7, 9)]
        with pytest.raises(ValueError, match="6 heads of queries and 2 of keys"):
            functional.scaled_dot_product_attention(*heads)
        result = functional.scaled_dot_product_attention(*heads, enable_gqa=True)
        expected = F.scaled_dot_product_attention(*heads, enable_gqa=True)
        torch.testing.assert_close(result, expected)

    def test_what_pytorch_lacks(self):
        heads = [x.detach() for x in make_heads(9, 9)]
        named = {"window": (3, 0), "softcap": 2.0, "sinks": torch.randn(6).double()}
        one = functional.scaled_dot_product_attention(
            *heads, enable_gqa=True, is_causal=True, return_lse=True, **named
        )
        other = ops.attention(*heads, causal=True, return_lse=True, **named)
        assert all(map(torch.equal, one, other))


@pytest.mark.parametrize(
    "named, message",
    [
        ({"sinks": torch.zeros(5)}, r"'sinks' has shape \[5\], but it must be \[6\]"),
        ({"mask": torch.zeros(7, 9)}, "'mask' has elements of type torch.float32"),
        (
            {"mask": torch.zeros(3, 9, dtype=torch.bool)},
            r"'mask' has shape \[3, 9\], but it must be \[2, 6, 7, 9\]",
        ),
        ({"window": 3}, "'window' must be a pair of numbers"),
        ({"window": (-2, 0)}, "'window' must be a pair of numbers"),
        ({"dropout": 1.5}, "'dropout' must be from 0 to 1, but is 1.5"),
        ({"cu_seqlens": torch.arange(3)}, "'cu_seqlens' is for a batch of one"),
        (
            {"documents": torch.zeros(7), "position_ids": torch.zeros(7)},
            "said by one of 'documents', 'position_ids' and 'cu_seqlens', but 2",
        ),
    ],
)
def test_refusals(named, message):
    with pytest.raises((TypeError, ValueError), match=f"attention: .*{message}"):
        ops.attention(*make_heads(7, 9), **named)


def test_heads_that_do_not_go_together():
    query, key, value = make_heads(7, 9)
    with pytest.raises(ValueError, match="6 heads of queries cannot share 4"):
        ops.attention(query, *(torch.cat([x, x], 1) for x in (key, value)))
    with pytest.raises(ValueError, match="do not go together"):
        ops.attention(query, key[:, :, :, :8], value)
    with pytest.raises(TypeError, match="'key' has elements of type torch.float32"):
        ops.attention(query, key.float(), value)
