# Part of Bastile, under the MIT License. See LICENSE.
"""Masks of attention: `table.Masks`."""

import ast
import functools
import inspect
import weakref

import torch
import transformers

from bastile._patching import code, kind, probes, table
from bastile._patching.attention import kernels, masks

_POSITIONS = "position_ids"
_MAKERS = {"create_causal_mask", "create_sliding_window_causal_mask"}
#: The sizes of a batch, [sequences, tokens], that positions are made for.
_SHAPE = (2, 5)
#: What a forward may make positions of beside other parameters: no values of tokens.
_HIDDEN = ("inputs_embeds", "hidden_states")
_CACHE = "past_key_values"


@functools.cache
def _replace(original, patch):
    names = list(inspect.signature(original).parameters)[1:]

    @functools.wraps(original)
    def forward(self, *operands, **named):
        # Transformers asks nothing of positions that are compiled.
        if torch.compiler.is_compiling():
            return original(self, *operands, **named)
        given = {**dict(zip(names, operands)), **named}
        is_own = all(given.get(name) is None for name in patch.positions)
        is_alone = _is_alone(self)
        replaced = kernels.takes(self, given) if is_alone else None
        with masks.within(is_own and is_alone, replaced):
            return original(self, *operands, **named)

    return forward


#: By decoder, whether there is no other model of Transformers in it.
_alone = weakref.WeakKeyDictionary()


def _is_alone(model):
    """Whether all masks that are made while the decoder runs are its own."""
    found = _alone.get(model)
    if found is None:
        inner = (x for x in model.modules() if x is not model)
        found = not any(isinstance(x, transformers.PreTrainedModel) for x in inner)
        _alone[model] = found
    return found


def _find(module):
    for cls in code.layers(module):
        if code.own_forward(cls) is None:
            continue
        original = kind.original_of(cls, "forward")
        given = {x.name for x in code.operands(original)[0]}
        if _POSITIONS not in given or not _MAKERS & code.names_in(original):
            continue
        try:
            positions = _look(original)
        except probes.Mismatch as problem:
            target = f"{cls.__name__}.forward"
            yield kind.LeftAlone(table.Masks.ops, target, str(problem))
        else:
            if positions is not None:
                yield table.Masks(cls.__name__, positions)


@functools.cache
def _look(original):
    """The parameters of a forward without which tokens have consecutive positions; None
    where it makes no positions."""
    tree = code.tree_of(original)
    blocks = _blocks_for_none(tree)
    if _POSITIONS not in blocks:
        return None
    inner = {node for block in blocks.values() for node in ast.walk(block)}
    for node in ast.walk(tree):
        if node not in inner and _changes_or_renames(node):
            raise probes.Mismatch("its masks are of other positions than it makes")
    needed = [_POSITIONS]
    for name in needed:
        used = {x.id for x in ast.walk(blocks[name]) if isinstance(x, ast.Name)}
        used.difference_update(needed, _HIDDEN, [_CACHE])
        needed += [x for x in blocks if x in used]
    kept = [block for name, block in blocks.items() if name in needed]
    made = probes.run("forward that counts positions", _run, kept, needed)
    if not isinstance(made, torch.Tensor) or made.dim() != 2:
        raise probes.Mismatch("its positions are not one number for each token")
    if made.shape[1] != _SHAPE[1] or not (made.diff() == 1).all():
        raise probes.Mismatch("the positions that it makes are not consecutive")
    return tuple(needed)


def _blocks_for_none(tree):
    """By name, in their order, the statements ``if name is None:`` of a function."""
    found = {}
    for node in tree.body:
        test = getattr(node, "test", None)
        if (
            isinstance(node, ast.If)
            and isinstance(test, ast.Compare)
            and isinstance(test.left, ast.Name)
            and isinstance(test.ops[0], ast.Is)
            and isinstance(test.comparators[0], ast.Constant)
            and test.comparators[0].value is None
        ):
            found.setdefault(test.left.id, node)
    return found


def _changes_or_renames(node):
    """Whether a part of a forward gives positions another value, or gives something
    else on as positions."""
    if isinstance(node, ast.Name):
        return node.id == _POSITIONS and not isinstance(node.ctx, ast.Load)
    pairs = []
    if isinstance(node, ast.keyword):
        pairs = [(node.arg, node.value)]
    elif isinstance(node, ast.Dict):
        pairs = [(getattr(k, "value", None), v) for k, v in zip(node.keys, node.values)]
    return any(
        name == _POSITIONS and getattr(value, "id", None) != _POSITIONS
        for name, value in pairs
    )


def _run(blocks, names):
    """The positions that blocks of a forward make of nothing but hidden states."""
    hidden = torch.zeros(*_SHAPE, 4, device="cpu")
    scope = {**dict.fromkeys(_HIDDEN, hidden), **dict.fromkeys((*names, _CACHE))}
    scope["torch"] = torch
    body = ast.fix_missing_locations(ast.Module(blocks, []))
    exec(compile(body, "<positions>", "exec"), scope)
    return scope[_POSITIONS]


def _prove(original, patch, cls):
    positions = _look(original)
    if positions != patch.positions:
        raise probes.Mismatch(
            f"the table says positions={patch.positions!r}, but it makes those of "
            f"{positions!r}"
        )


def _build(patch, module, ops):
    cls = kind.look_up(module, patch.cls)
    yield kind.method(patch, cls, "forward", _replace, _prove)


KIND = kind.Kind(table.Masks, _find, _build)
