# Part of Bastile, under the MIT License. See LICENSE.
"""Rotary embeddings of queries and keys: `table.Rope`."""

import functools
import inspect

import torch
from bastile import ops
from bastile._formulas.rope import (
    rope_half_angles,
    rope_halves,
    rope_into_halves,
    rope_neighbours,
)
from bastile._patching import code, kind, probes, table


def _all(angles):
    return angles


def _first_half(angles):
    return angles[..., : angles.shape[-1] // 2]


def _every_second(angles):
    return angles[..., ::2]


#: By kind, the kernel and the columns of angles that it takes.
_KERNELS = {
    "halves": (rope_halves, _all),
    "half_angles": (rope_half_angles, _all),
    "neighbours": (rope_neighbours, _first_half),
    "into_halves": (rope_into_halves, _first_half),
    "neighbours_in_turn": (rope_neighbours, _every_second),
}


@functools.cache
def _heads(original, patch):
    kernel, columns = _KERNELS[patch.kind]
    step = 1 if patch.kind == "half_angles" else 2

    @functools.wraps(original)
    def apply_rotary(q, k=None, cos=None, sin=None, *rest, **named):
        place = 1
        if rest or named:
            place = named.get("unsqueeze_dim") if len(named) == 1 and not rest else None
        # Qwen4's indexer has queries alone.
        is_known = k is not None and cos is not None and sin is not None
        if not is_known or place not in (1, 2) or cos.dim() != 3:
            return original(q, k, cos, sin, *rest, **named)
        if cos.shape[-1] % step:
            return original(q, k, cos, sin, *rest, **named)
        cos, sin = columns(cos).unsqueeze(2), columns(sin).unsqueeze(2)
        if place == 2:
            return kernel(q, k, cos, sin)
        # Heads are transposed views of a projection's rows. Transposed back, results
        # and gradients lie as the projection wants them, and nothing is copied.
        q, k = kernel(q.transpose(1, 2), k.transpose(1, 2), cos, sin)
        return q.transpose(1, 2), k.transpose(1, 2)

    return apply_rotary


@functools.cache
def _one(original, patch):
    columns = _KERNELS[patch.kind][1]
    is_interleaved = patch.kind in ("neighbours", "neighbours_in_turn")
    each = 1 if patch.kind == "halves" else 2
    step = 1 if patch.kind == "half_angles" else 2

    @functools.wraps(original)
    def apply_rotary(x, cos, sin, unsqueeze_dim=1):
        if unsqueeze_dim not in (1, 2) or cos.dim() != 3 or cos.shape[-1] % step:
            return original(x, cos, sin, unsqueeze_dim)
        cos, sin = columns(cos).unsqueeze(2), columns(sin).unsqueeze(2)
        if unsqueeze_dim == 1:
            x = x.transpose(1, 2)
        x = ops.rope(
            x, cos, sin, interleaved=is_interleaved, rotary=each * cos.shape[-1]
        )
        return x.transpose(1, 2) if unsqueeze_dim == 1 else x

    return apply_rotary


@functools.cache
def _tokens(original, patch):
    kernel, columns = _KERNELS[patch.kind]
    step = 1 if patch.kind == "half_angles" else 2

    @functools.wraps(original)
    def apply_rotary(q, k, cos, sin):
        if q.dim() != 3 or cos.dim() != 2 or cos.shape[-1] % step:
            return original(q, k, cos, sin)
        return kernel(q, k, columns(cos).unsqueeze(1), columns(sin).unsqueeze(1))

    return apply_rotary


@functools.cache
def _sections(original, patch):
    turn = _heads(original, patch)

    @functools.wraps(original)
    def apply_rotary(q, k, cos, sin, sections, unsqueeze_dim=1):
        if unsqueeze_dim != 1 or cos.dim() != 4:
            return original(q, k, cos, sin, sections, unsqueeze_dim)
        return turn(q, k, _chosen(cos, sections), _chosen(sin, sections))

    return apply_rotary


def _chosen(angles, sections):
    """Of three tables of angles, the columns of each that ``sections`` say."""
    pieces = angles.split(2 * list(sections), dim=-1)
    return torch.cat([table[i % 3] for i, table in enumerate(pieces)], dim=-1)


@functools.cache
def _complex(original, patch):
    kernel, _ = _KERNELS[patch.kind]

    @functools.wraps(original)
    def apply_rotary(q, k, angles):
        if q.dim() != 4 or angles.dim() != 3:
            return original(q, k, angles)
        angles = angles.unsqueeze(2)
        return kernel(q, k, angles.real, angles.imag)

    return apply_rotary


#: By operands, what makes the replacement, and the kinds that there are kernels for.
_FORMS = {
    "heads": (_heads, tuple(_KERNELS)),
    "one": (_one, tuple(name for name in _KERNELS if name != "into_halves")),
    "tokens": (_tokens, tuple(_KERNELS)),
    "sections": (_sections, tuple(name for name in _KERNELS if name != "half_angles")),
    "complex": (_complex, ("neighbours",)),
}


def _find(module):
    found, left = [], []
    for name in code.functions(module):
        original = kind.original_of(module, name)
        names = [x.name for x in code.operands(original)[0]]
        if not {"cos", "sin"} <= set(names) and names[2:] != ["freqs_cis"]:
            continue
        patch, reason = _match(name, original, names, module)
        if patch:
            found.append((patch, original))
        else:
            left.append(kind.LeftAlone(table.Rope.ops, name, reason))
    yield from (patch for patch, _ in found)
    # What only another one is made of is not called any more, and what is made of
    # another one calls that.
    inner = set().union(*(code.names_in(original) for _, original in found))
    names = {patch.function for patch, _ in found}
    for each in left:
        outer = code.names_in(kind.original_of(module, each.target))
        if each.target not in inner and names.isdisjoint(outer):
            yield each


def _match(name, original, names, module):
    """The entry for a function, or None, and the reason why there is none."""
    forms = ["heads", "tokens"]
    if names[1:3] == ["cos", "sin"]:
        forms = ["one"]
    elif names[2:] == ["freqs_cis"]:
        forms = ["complex"]
    elif "mrope_section" in names:
        forms = ["sections"]
    reasons = []
    for form in forms:
        for turned in _FORMS[form][1]:
            patch = table.Rope(turned, name, form)
            try:
                _prove(original, patch, module)
            except probes.Mismatch as problem:
                reasons.append(str(problem))
            else:
                return patch, None
    # The kind that some heads fit says more than those that none does.
    partly = [x for x in reasons if "elements turn" in x]
    if partly:
        return None, partly[0]
    if any("turn pairs" in x for x in reasons):
        return None, f"it turns pairs of none of the kinds {', '.join(_KERNELS)}"
    return None, reasons[0]


#: The sizes of heads and how many of their elements turn: all of them, half as in
#: GLM 4, and three quarters as in Phi 4 mini.
_TURNS = ((12, 12), (24, 12), (16, 12))


@functools.cache
def _prove(original, patch, module):
    for size, turned in _TURNS:
        try:
            results, expected = _run(original, patch, size, turned)
        except probes.Mismatch:
            if turned < size:
                # Of these models all elements turn, and it says so.
                continue
            raise
        if len(results) != len(expected) or any(
            probes.difference(a, b) > 1e-5 for a, b in zip(results, expected)
        ):
            raise probes.Mismatch(
                f"it does not turn pairs of the kind {patch.kind!r}"
                + (f" where {turned} of {size} elements turn" if size > turned else "")
            )
    if patch.kind == "neighbours_in_turn":
        _prove_angles(module, 2 if patch.operands == "tokens" else 3)


def _run(original, patch, size, turned):
    """What the function makes of a few numbers, and what it should."""
    half = turned // 2
    has_all = patch.kind != "half_angles" and patch.operands != "complex"
    # Columns differ, unless a kind says that they do not.
    angles = probes.numbers(2, 5, turned if has_all else half, seed=5)
    if patch.kind == "neighbours_in_turn":
        angles = angles[..., :half].repeat_interleave(2, -1)
    q = probes.numbers(2, 5, 3, size, seed=3)
    k = probes.numbers(2, 5, 1, size, seed=4)
    cos, sin = angles.cos(), angles.sin()
    wide, call = (cos, sin), functools.partial(probes.run, _WORDS[patch.operands])

    if patch.operands == "complex":
        results = call(original, q, k, torch.polar(torch.ones_like(angles), angles))
    elif patch.operands == "tokens":
        q, k, wide = q[0], k[0], (cos[0], sin[0])
        results = call(original, q, k, *wide)
    elif patch.operands == "sections":
        tables = [probes.numbers(3, 2, 5, turned, seed=x) for x in (6, 7)]
        sections = [half // 3, half // 6, half - half // 3 - half // 6]
        heads = q.transpose(1, 2), k.transpose(1, 2)
        results = call(original, *heads, *tables, sections)
        results = [x.transpose(1, 2) for x in results]
        wide = [_chosen(x, sections) for x in tables]
    else:
        results = _run_heads(original, patch, (q, k), (cos, sin), call)
    cos, sin = (x.unsqueeze(-2) for x in wide)
    return results, [_rotate(x, cos, sin, patch.kind, half) for x in (q, k)]


def _run_heads(original, patch, heads, angles, call):
    """The results of both ways in which heads may lie, if there are two: they must
    be the same."""
    given = inspect.signature(original).parameters
    places = (1, 2) if "unsqueeze_dim" in given else (1,)
    made = []
    for place in places:
        named = {"unsqueeze_dim": place} if len(places) > 1 else {}
        laid = [x.transpose(1, 2) if place == 1 else x for x in heads]
        if patch.operands == "one":
            found = [call(lambda x=x: original(x, *angles, **named)) for x in laid]
        else:
            found = call(lambda laid=laid: original(*laid, *angles, **named))
        made.append([x.transpose(1, 2) if place == 1 else x for x in found])
    for a, b in zip(made[0], made[-1]):
        if probes.difference(a, b) > 1e-6:
            raise probes.Mismatch("'unsqueeze_dim' does not say where heads lie")
    return made[0]


_WORDS = {
    "heads": "function of q, k, cos and sin",
    "one": "function of x, cos and sin",
    "tokens": "function of tokens' q, k, cos and sin",
    "sections": "function of q, k, cos, sin and sections",
    "complex": "function of q, k and complex angles",
}


def _rotate(x, cos, sin, kind, half):
    """The formula: ``x`` [..., D] of which 2 ``half`` elements turn."""
    x, others = x[..., : 2 * half], x[..., 2 * half :]
    if kind in ("halves", "half_angles"):
        a, b = x.chunk(2, -1)
        if kind == "half_angles":
            cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
        turned = x * cos + torch.cat((-b, a), -1) * sin
    else:
        a, b = x[..., 0::2], x[..., 1::2]
        is_in_turn = kind == "neighbours_in_turn"
        cos, sin = (
            _every_second(t) if is_in_turn else t[..., :half] for t in (cos, sin)
        )
        pairs = a * cos - b * sin, b * cos + a * sin
        turned = torch.cat(pairs, -1)
        if kind != "into_halves":
            turned = torch.stack(pairs, -1).flatten(-2)
    return torch.cat((turned, others), -1)


def _prove_angles(module, rank):
    """That columns 2 i and 2 i + 1 of the module's angles of ``rank`` dimensions are the
    same, which the function alone does not say."""
    words = "layer of angles"
    checked = 0
    for cls in code.layers(module):
        if not cls.__name__.endswith("RotaryEmbedding"):
            continue
        for config in code.configurations(module):
            try:
                made = _angles(cls, config)
            except Exception:  # it is of another configuration
                continue
            for angles in probes.run(words, tuple, made):
                if angles.dim() != rank:
                    # Of pictures, where others are of text: another function's.
                    continue
                if not torch.equal(angles[..., ::2], angles[..., 1::2]):
                    raise probes.Mismatch("columns of its angles are not in pairs")
                checked += 1
    if not checked:
        raise probes.Mismatch("where its angles come from is not known")


def _angles(cls, config):
    """Cosines and sines that a layer of angles makes of a few positions."""
    layer = cls(config)
    sections = getattr(layer, "mrope_section", None)
    if sections:
        # Those of a default configuration may be of another size of heads.
        half = layer.inv_freq.numel()
        third = 3 * half // 8
        layer.mrope_section = [third, third, half - 2 * third]
    return layer(probes.numbers(1, 4, 8), torch.arange(4)[None])


def _build(patch, module, ops):
    kind.look_up(module, patch.function)
    make, kinds = _FORMS[patch.operands]
    if patch.kind not in kinds:
        raise probes.Mismatch(
            f"there is no kernel for the kind {patch.kind!r} of {patch.operands!r}"
        )
    yield kind.method(patch, module, patch.function, make, _prove)


KIND = kind.Kind(table.Rope, _find, _build)
