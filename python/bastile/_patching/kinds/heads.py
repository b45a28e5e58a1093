# Part of Bastile, under the MIT License. See LICENSE.
"""Norms of queries and keys with their rotation: `table.Heads`."""

import ast
import copy
import functools
import types

import torch

from bastile._formulas.norms import norm_rope
from bastile._patching import code, kind, probes, table
from bastile._patching.fused import norms, projecting, rewriting
from bastile._patching.kinds import rotations
from bastile._patching.kinds.norms import of_module
from bastile._patching.products import projections

_HELPER = "bastile_norm_rope"
#: The sizes of what a forward is run on: sequences, tokens, heads, length of a head.
_SIZES = 2, 3, 2, 8


class _Turn:
    """The statements of a forward that norm queries and keys and turn them:

    q = self.q_norm(...); k = self.k_norm(...); q, k = rotate(q, k, cos, sin)

    in which a norm may be followed by ``.transpose(1, 2)``, and other statements may
    stand between them.
    """

    def __init__(self, statements, place):
        self.place = place
        call = statements[place].value
        self.names = tuple(x.id for x in call.args[:2])
        #: The places of the norms' statements.
        self.places, self.norms = [], []
        self._statements = statements

    def find_norms(self, attributes):
        """Whether both are normed, and nothing else sees what the norms give."""
        for name in self.names:
            found = [
                i
                for i, x in enumerate(self._statements[: self.place])
                if rewriting.count_names([x], name)
            ]
            if not found or rewriting.target_of(self._statements[found[-1]]) != name:
                return False
            called = rewriting.own_call(_without_transpose(self._statements[found[-1]]))
            if not called or called[0] not in attributes:
                return False
            self.places.append(found[-1])
            self.norms.append(called[0])
        return True

    def replacement(self):
        """All statements up to the rotation, with one call for norms and rotation."""
        made = copy.deepcopy(self._statements[: self.place + 1])
        normed = {place: _without_transpose(made[place]) for place in self.places}
        # Heads that are all transposed behind their norms come as they were before.
        are_rows = all(made[place].value is not call for place, call in normed.items())
        for place, call in normed.items():
            operand = call.args[0]
            if are_rows or made[place].value is call:
                made[place].value = operand
            else:
                made[place].value.func.value = operand
        turned = made[-1]
        own = rewriting.own_attributes(self.norms)
        call = turned.value
        operands = *own, call.func, *call.args, ast.Constant(are_rows)
        turned.value = rewriting.call(_HELPER, *operands)
        ast.copy_location(turned.value, call)
        return projecting.join(made)


def _without_transpose(statement):
    """What a statement assigns, without a call of ``transpose(1, 2)`` on it."""
    value = statement.value
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "transpose"
        and not value.keywords
        and [getattr(x, "value", None) for x in value.args] == [1, 2]
    ):
        return value.func.value
    return value


def _look(tree, attributes, functions):
    """The `_Turn` in a forward; None where there is none."""
    for place, statement in enumerate(tree.body):
        if _is_rotation(statement, functions):
            found = _Turn(tree.body, place)
            return found if found.find_norms(attributes) else None
    return None


def _is_rotation(statement, functions):
    """Whether a statement is ``q, k = rotate(q, k, cos, sin)``."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign) or not isinstance(value, ast.Call):
        return False
    if rewriting.name_of(value.func) not in functions or value.keywords:
        return False
    (target,) = statement.targets[:1]
    targets = [rewriting.name_of(x) for x in getattr(target, "elts", ())]
    names = [rewriting.name_of(x) for x in value.args]
    return len(names) == 4 and len(targets) == 2 and targets == names[:2]


def _functions_of(module):
    """The names of functions that turn heads in the way that there is a kernel for."""
    return {
        entry.function
        for entry in rotations.KIND.find(module)
        if isinstance(entry, table.Rope)
        and (entry.kind, entry.operands) == ("halves", "heads")
    }


def _find(module):
    known = of_module(module)
    functions = known and _functions_of(module)
    if not functions:
        return
    for cls in code.layers(module):
        if code.own_forward(cls) is None:
            continue
        attributes = norms.names_of(cls, known)
        original = kind.original_of(cls, "forward")
        if not attributes or not functions & code.names_in(original):
            continue
        try:
            found = _look(code.tree_of(original), attributes, functions)
        except probes.Mismatch:
            continue
        if found:
            yield table.Heads(cls.__name__)


def _rewrite(original, cls, module):
    """The forward with norms and rotation in one call, what its norms compute, and
    their names."""
    known = of_module(module)
    tree = code.tree_of(original)
    attributes = norms.names_of(cls, known)
    found = _look(tree, attributes, _functions_of(module))
    if found is None:
        raise probes.Mismatch("it does not turn what two of its norms give")
    made = found.replacement()
    before = tree.body[: found.place + 1]
    _prove(before, made, found, next(iter(known)), vars(module))
    tree.body[: found.place + 1] = made
    helpers = {_HELPER: _helper(known), projecting.HELPER: projections.project}
    return rewriting.compile_again(original, tree, helpers), known, tuple(found.norms)


class _Attention(types.SimpleNamespace):
    """A layer whose projections give numbers of their own and of their operand."""

    def __getattr__(self, name):
        if not name.endswith("_proj"):
            raise AttributeError(name)
        sequences, tokens, heads, length = _SIZES
        made = probes.numbers(
            sequences, tokens, heads * length, seed=sum(map(ord, name))
        )
        return lambda x: made + x.mean()


def _prove(before, after, found, norm_class, scope):
    """Runs the statements up to the rotation, and what stands for them."""
    sequences, tokens, heads, length = _SIZES
    made = {
        name: norms.example(norm_class, length, seed)
        for seed, name in enumerate(found.norms)
    }
    layer = _Attention(**made, head_dim=length, config=types.SimpleNamespace())
    angles = probes.numbers(sequences, tokens, length, seed=7)
    call = before[-1].value
    scope = {
        **scope,
        _HELPER: _apart,
        projecting.HELPER: projections.project,
        "self": layer,
        "hidden_states": probes.numbers(sequences, tokens, heads * length, seed=8),
        "position_embeddings": (angles.cos(), angles.sin()),
        call.func.id: kind.without_patches(scope[call.func.id]),
    }
    words = "forward that norms and turns heads of a projection"
    expected, results = (
        probes.run(words, rewriting.run, copy.deepcopy(x), scope)
        for x in (before, after)
    )
    for name, value in expected.items():
        is_tensor = isinstance(value, torch.Tensor)
        if is_tensor and probes.difference(results[name], value) > 1e-6:
            raise probes.Mismatch(f"the call gives '{name}' another value")


def _apart(q_norm, k_norm, rotate, q, k, cos, sin, are_rows):
    q, k = q_norm(q), k_norm(k)
    if are_rows:
        q, k = q.transpose(1, 2), k.transpose(1, 2)
    return rotate(q, k, cos, sin)


def _helper(known):
    """The function that a forward calls, with heads [B, S, H, D] if they ``are_rows`` of
    the projections, and otherwise [B, H, S, D], which it returns."""

    def bastile_norm_rope(q_norm, k_norm, rotate, q, k, cos, sin, are_rows):
        is_usual = (
            q.dim() == 4
            and cos.dim() == 3
            and q.dtype == k.dtype
            and cos.shape[-1] % 2 == 0
            and cos.shape[-1] <= q.shape[-1]
        )
        if not is_usual:
            return _apart(q_norm, k_norm, rotate, q, k, cos, sin, are_rows)
        casting, offset, eps, _ = known[type(q_norm)]
        attributes = getattr(q_norm, eps), getattr(k_norm, known[type(k_norm)].eps)
        if not are_rows:
            # They are transposed views of such rows, as for a rotation alone.
            q, k = q.transpose(1, 2), k.transpose(1, 2)
        q, k = norm_rope[casting](
            q,
            k,
            q_norm.weight,
            k_norm.weight,
            cos.unsqueeze(2),
            sin.unsqueeze(2),
            attributes=(*attributes, offset),
        )
        return q.transpose(1, 2), k.transpose(1, 2)

    return bastile_norm_rope


@functools.cache
def _replace(original, patch, cls, module):
    return norms.where_plain(original, *_rewrite(original, cls, module))


KIND = kind.Kind(table.Heads, _find, norms.builder(_replace))
