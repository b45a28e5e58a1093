# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Attention under what PyTorch does with calls: torch.compile, autocast, checkpoints,
transformations and graphs of the GPU."""

import pytest
import torch
import torch._dynamo.testing
from attention import attend, make_heads, places
from bastile import functional, ops
from torch.utils.checkpoint import checkpoint


def step(query, key, value, sinks, mask, boundaries=None):
    return functional.scaled_dot_product_attention(
        query,
        key,
        value,
        is_causal=True,
        enable_gqa=True,
        window=(5, 0),
        softcap=4.0,
        sinks=sinks,
        key_mask=mask,
        cu_seqlens=boundaries,
        return_lse=True,
    )


def make_operands(queries=9, keys=9, **options):
    heads = make_heads(queries, keys, torch.float32, **options)
    sinks = torch.randn(6, requires_grad=True)
    mask = torch.ones(heads[0].shape[0], keys, dtype=torch.bool)
    mask[-1, :2] = False
    return [*heads, sinks], mask


def differentiate(results, operands):
    total = results[0].square().sum() + results[1].clamp(min=-10).sin().sum()
    return torch.autograd.grad(total, operands)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("dynamic", [True, False])
def test_compiled_without_a_graph_break(dynamic):
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for lengths in ((9, 9), (12, 12)):
        operands, mask = make_operands(*lengths)
        results, expected = compiled(*operands, mask), step(*operands, mask)
        torch.testing.assert_close(results, expected)
        gradients = (differentiate(x, operands) for x in (results, expected))
        torch.testing.assert_close(*gradients)


def test_compiled_with_options_of_their_defaults():
    # In a graph of any shapes these, and the scale, are symbols.
    def attend(x):
        return functional.scaled_dot_product_attention(x, x, x.sin())

    compiled = torch.compile(attend, fullgraph=True, dynamic=True, backend="eager")
    for shape in ((2, 4, 9, 16), (1, 2, 5, 16), (1, 2, 5, 24)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), attend(x))


def test_compiled_once_for_all_lengths():
    counter = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    compiled = torch.compile(step, fullgraph=True, backend=counter, dynamic=True)
    for length in (9, 12, 17):
        operands, mask = make_operands(length, length, batch=1)
        boundaries = torch.tensor([0, 4, length])
        results = compiled(*operands, mask, boundaries)
        torch.testing.assert_close(results, step(*operands, mask, boundaries))
    assert counter.frame_count == 1


def sees_all_keys(query, key, value):
    return functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)


def by_distance(score, b, h, q_idx, kv_idx):
    return score - (q_idx - kv_idx).abs()


def score_by_distance(query, key, value):
    return functional.flex_attention(query, key, value, by_distance, enable_gqa=True)


@pytest.mark.parametrize("function", [sees_all_keys, score_by_distance])
def test_no_option_compiles_new_lengths(function):
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(function, fullgraph=True, backend=counter, dynamic=True)
    for length in (9, 12, 17):
        heads = make_heads(length, length, torch.float32)
        torch.testing.assert_close(compiled(*heads), function(*heads))
    assert counter.frame_count == 1


def test_dropout_compiled():
    heads = make_heads(9, 9, torch.float32)
    compiled = torch.compile(
        lambda *x: ops.attention(*x, dropout=0.5), fullgraph=True, backend="aot_eager"
    )
    torch.manual_seed(1)
    expected = ops.attention(*heads, dropout=0.5)
    torch.manual_seed(1)
    assert torch.equal(compiled(*heads), expected)


def test_autocast():
    heads = make_heads(9, 9, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        result = ops.attention(*heads, causal=True)
    assert result.dtype == torch.bfloat16
    expected = ops.attention(*(x.bfloat16() for x in heads), causal=True)
    assert torch.equal(result, expected)
    result.float().sum().backward()
    assert all(x.grad.dtype == torch.float32 for x in heads)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints_drop_the_same_elements(use_reentrant):
    heads = make_heads(9, 9)

    def run(*heads):
        return ops.attention(*heads, causal=True, dropout=0.4)

    found = []
    for call in (run, lambda *x: checkpoint(run, *x, use_reentrant=use_reentrant)):
        torch.manual_seed(1)
        for x in heads:
            x.grad = None
        call(*heads).square().sum().backward()
        found.append([x.grad for x in heads])
    assert all(map(torch.equal, *found))


def test_functions_of_torch_func():
    heads = [x.detach() for x in make_heads(5, 9)]
    position, place = places(5, 9)

    def mine(*heads):
        return ops.attention(*heads, causal=True).square().sum()

    def written(*heads):
        return attend(*heads, seen=place <= position)[0].square().sum()

    found, expected = (
        torch.func.grad(function, argnums=(0, 1, 2))(*heads)
        for function in (mine, written)
    )
    torch.testing.assert_close(found, expected)


def test_tensors_without_memory():
    heads = [x.detach().to("meta") for x in make_heads(5, 9, sizes=(16, 24))]
    result, lse = ops.attention(*heads, causal=True, return_lse=True)
    assert result.is_meta and result.shape == (2, 6, 5, 24)
    assert lse.shape == (2, 6, 5) and lse.dtype == torch.float64


@pytest.mark.gpu
def test_a_graph_of_the_gpu():
    operands, mask = make_operands(70, 70, sizes=(64, 64))
    operands = [x.detach().cuda().to(torch.bfloat16) for x in operands]
    operands = [x.requires_grad_() for x in operands]
    mask = mask.cuda()

    def run():
        results = ops.attention(
            *operands[:3],
            causal=True,
            offset=3,
            sinks=operands[3],
            key_mask=mask,
            dropout=0.2,
            return_lse=True,
        )
        return *results, *differentiate(results, operands)

    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        run()
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    torch.cuda.manual_seed(3)
    graph.replay()
    first = [x.clone() for x in results]
    torch.cuda.manual_seed(3)
    graph.replay()
    for found, other in zip(results, first):
        torch.testing.assert_close(found, other, rtol=0, atol=0)
