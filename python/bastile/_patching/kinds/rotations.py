# Part of Bastile, under the MIT License. See LICENSE.
"""Rotary embeddings of queries and keys: `table.Rope`."""

import functools

import torch

from bastile._formulas.rope import rope_half_angles, rope_halves, rope_neighbours
from bastile._patching import code, kind, probes, table


def _all_columns(angles):
    return angles.unsqueeze(2)


def _first_half(angles):
    return angles[..., : angles.shape[-1] // 2].unsqueeze(2)


_KERNELS = {
    "halves": (rope_halves, _all_columns),
    "half_angles": (rope_half_angles, _all_columns),
    "neighbours": (rope_neighbours, _first_half),
}


@functools.cache
def _replace(original, patch):
    kernel, prepare = _KERNELS[patch.kind]
    step = 1 if patch.kind == "half_angles" else 2

    @functools.wraps(original)
    def apply_rotary(q, k, cos, sin, *rest, **named):
        if rest or named or cos.shape[-1] % step:
            return original(q, k, cos, sin, *rest, **named)
        # Heads are transposed views of a projection's rows. Transposed back, results
        # and gradients lie as the projection wants them, and nothing is copied.
        q, k = kernel(q.transpose(1, 2), k.transpose(1, 2), prepare(cos), prepare(sin))
        return q.transpose(1, 2), k.transpose(1, 2)

    return apply_rotary


def _find(module):
    found, left = [], []
    for name in code.functions(module):
        original = kind.original_of(module, name)
        names = [x.name for x in code.operands(original)[0]]
        if not {"cos", "sin"} <= set(names):
            continue
        patch, reason = _match(name, original)
        if patch:
            found.append((patch, original))
        else:
            left.append(kind.LeftAlone(table.Rope.ops, name, reason))
    yield from (patch for patch, _ in found)
    # What only another one is made of is not called any more.
    inner = set().union(*(code.names_in(original) for _, original in found))
    yield from (each for each in left if each.target not in inner)


def _match(name, original):
    """The entry for a function, or None, and the reason why there is none."""
    reasons = []
    for turned in _KERNELS:
        patch = table.Rope(turned, name)
        try:
            _prove(original, patch)
        except probes.Mismatch as problem:
            reasons.append(str(problem))
        else:
            return patch, None
    # The kind that some heads fit says more than those that none does.
    partly = [x for x in reasons if "elements turn" in x]
    if partly or not all("turn pairs" in x for x in reasons):
        return None, (partly or reasons)[0]
    return None, f"it turns pairs of none of the kinds {', '.join(_KERNELS)}"


#: The sizes of heads and how many of their elements turn: all of them, half as in
#: GLM 4, and three quarters as in Phi 4 mini.
_TURNS = ((8, 8), (16, 8), (16, 12))


@functools.cache
def _prove(original, patch, owner=None):
    for size, turned in _TURNS:
        half = turned // 2
        columns = half if patch.kind == "half_angles" else turned
        q = probes.numbers(2, 3, 5, size, seed=3)
        k = probes.numbers(2, 1, 5, size, seed=4)
        angles = probes.numbers(1, 5, half, seed=5).repeat(1, 1, columns // half)
        cos, sin = angles.cos(), angles.sin()
        what = "function of q, k, cos and sin"
        try:
            results = probes.run(what, original, q, k, cos, sin)
        except probes.Mismatch:
            if turned < size:
                # Of these models all elements turn, and it says so.
                continue
            raise
        expected = [_rotate(x, cos, sin, patch.kind, half) for x in (q, k)]
        if len(results) != 2 or any(
            probes.difference(a, b) > 1e-5 for a, b in zip(results, expected)
        ):
            raise probes.Mismatch(
                f"it does not turn pairs of the kind {patch.kind!r}"
                + (f" where {turned} of {size} elements turn" if size > turned else "")
            )


def _rotate(x, cos, sin, kind, half):
    cos, sin = cos[:, None, :, :half], sin[:, None, :, :half]
    x, others = x[..., : 2 * half], x[..., 2 * half :]
    if kind == "neighbours":
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        turned = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return torch.cat((turned, others), -1)


def _build(patch, module, ops):
    kind.look_up(module, patch.function)
    yield kind.method(patch, module, patch.function, _replace, _prove)


KIND = kind.Kind(table.Rope, _find, _build)
