# Part of Bastile, under the MIT License. See LICENSE.
"""Sums with the residual and the norms before and after them: `table.Residual`."""

import ast
import copy
import functools
import types

import torch

from bastile import ops
from bastile._formulas.norms import norm_add, norm_add_norm
from bastile._patching import code, kind, probes, table
from bastile._patching.fused import norms, rewriting
from bastile._patching.kinds.norms import of_module

#: By whether there is a norm before a sum and after it, the helper that stands for the
#: statements.
_HELPERS = {
    (True, False): "bastile_norm_add",
    (False, True): "bastile_add_norm",
    (True, True): "bastile_norm_add_norm",
}
_SIZE = 16


class _Sum:
    """Statements of a forward of which one adds the residual, in a list of them:

    x = self.before(x); x = residual + x; kept = x; y = self.after(x)

    with one of the norms or both, and ``kept`` where y is x.
    """

    def __init__(self, statements, place, attributes):
        statement = statements[place]
        self.x = rewriting.target_of(statement)
        sides = statement.value.left, statement.value.right
        names = [rewriting.name_of(side) for side in sides]
        self.residual = names[1 - names.index(self.x)]
        self.first, self.end = place, place + 1
        self.before = self.after = None
        self._take_before(statements, attributes)
        self._take_after(statements, attributes)
        self.statements = statements[self.first : self.end]

    def _take_before(self, statements, attributes):
        if not self.first:
            return
        statement = statements[self.first - 1]
        name, _ = _norm_of(statement, self.x, attributes)
        if name and rewriting.target_of(statement) == self.x:
            self.before, self.first = name, self.first - 1

    def _take_after(self, statements, attributes):
        rest = statements[self.end : self.end + 2]
        self.sums = self.result = self.x
        if rest and rewriting.name_of(getattr(rest[0], "value", None)) == self.x:
            kept = rewriting.target_of(rest.pop(0))
            if kept is None or not rest:
                return
            name, result = _norm_of(rest[0], self.x, attributes)
            if name and result == self.x:
                self.after, self.sums, self.end = name, kept, self.end + 2
        elif rest:
            name, result = _norm_of(rest[0], self.x, attributes)
            if name and result not in (None, self.x):
                self.after, self.result, self.end = name, result, self.end + 1

    @property
    def norms(self):
        return [name for name in (self.before, self.after) if name]

    def replacement(self):
        """The statement that stands for all of them."""
        helper = _HELPERS[bool(self.before), bool(self.after)]
        own = rewriting.own_attributes(self.norms)
        names = [ast.Name(x, ast.Load()) for x in (self.x, self.residual)]
        target = ast.Name(self.x, ast.Store())
        if self.after:
            results = [ast.Name(x, ast.Store()) for x in (self.result, self.sums)]
            target = ast.Tuple(results, ast.Store())
        made = ast.Assign([target], rewriting.call(helper, *own, *names))
        return ast.copy_location(made, self.statements[0])


def _norm_of(statement, operand, attributes):
    """The norm and the name it assigns to, if a statement is a call of one of the norms
    ``attributes`` on the name ``operand``."""
    target = rewriting.target_of(statement)
    called = target and rewriting.own_call(statement.value)
    if not called or called[0] not in attributes:
        return None, None
    if rewriting.name_of(called[1]) != operand:
        return None, None
    return called[0], target


def _sums_in(tree, attributes):
    """Each list of statements of a function that has sums with norms beside them, with
    these `_Sum`s."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if not isinstance(statements, list):
                continue
            found = [
                _Sum(statements, place, attributes)
                for place, statement in enumerate(statements)
                if _is_sum(statement)
            ]
            found = [x for x in found if x.norms]
            # A norm that stands between two sums is taken with one of them.
            found = [
                x for x, last in zip(found, [None, *found]) if not _overlap(last, x)
            ]
            if found:
                yield statements, found


def _overlap(first, second):
    return first is not None and first.end > second.first


def _is_sum(statement):
    """Whether a statement is ``x = residual + x`` or ``x = x + residual``."""
    target = rewriting.target_of(statement)
    value = getattr(statement, "value", None)
    if target is None or not isinstance(value, ast.BinOp):
        return False
    names = [rewriting.name_of(value.left), rewriting.name_of(value.right)]
    return (
        isinstance(value.op, ast.Add)
        and None not in names
        and target in names
        and names[0] != names[1]
    )


def _find(module):
    known = of_module(module)
    if not known:
        return
    for cls in code.layers(module):
        if code.own_forward(cls) is None:
            continue
        attributes = norms.names_of(cls, known)
        if not attributes:
            continue
        original = kind.original_of(cls, "forward")
        try:
            tree = code.tree_of(original)
        except probes.Mismatch:
            continue
        if next(_sums_in(tree, attributes), None):
            yield table.Residual(cls.__name__)


def _rewrite(original, cls, known):
    """The forward with sums and norms in one call, and the names of these norms."""
    attributes = norms.names_of(cls, known)
    tree = code.tree_of(original)
    names = []
    for statements, sums in _sums_in(tree, attributes):
        for each in reversed(sums):
            _prove(each, next(iter(known)))
            statements[each.first : each.end] = [each.replacement()]
            names += each.norms
    if not names:
        raise probes.Mismatch("it adds no residual beside one of its norms")
    fused = rewriting.compile_again(original, tree, _helpers(known))
    return fused, tuple(dict.fromkeys(names))


def _prove(found, norm_class):
    """Runs the statements of a sum, and what stands for them, on a few numbers."""
    made = {
        name: norms.example(norm_class, _SIZE, seed)
        for seed, name in enumerate(found.norms)
    }
    scope = {
        "self": types.SimpleNamespace(**made),
        found.x: probes.numbers(3, _SIZE, seed=5),
        found.residual: probes.numbers(3, _SIZE, seed=6),
        **{name: _apart(*places) for places, name in _HELPERS.items()},
    }
    expected = rewriting.run(copy.deepcopy(found.statements), scope)
    result = rewriting.run([found.replacement()], scope)
    for name in {found.x, found.residual, found.sums, found.result}:
        if not torch.equal(expected[name], result[name]):
            raise probes.Mismatch(f"the sum gives '{name}' another value")


def _apart(has_before, has_after):
    """A helper that calls the norms and adds by itself."""

    def helper(*operands):
        *called, x, residual = operands
        if has_before:
            x = called[0](x)
        sums = residual + x
        return (called[-1](sums), sums) if has_after else sums

    return helper


def _fits(x, residual):
    return x.dtype == residual.dtype and x.shape == residual.shape


def _helpers(known):
    """The functions that a forward calls, by name."""
    apart = {name: _apart(*places) for places, name in _HELPERS.items()}

    def bastile_norm_add(before, x, residual):
        if not _fits(x, residual):
            return apart["bastile_norm_add"](before, x, residual)
        casting, offset, eps, _ = known[type(before)]
        attributes = getattr(before, eps), offset
        return norm_add[casting](x, residual, before.weight, attributes=attributes)

    def bastile_add_norm(after, x, residual):
        if not _fits(x, residual):
            return apart["bastile_add_norm"](after, x, residual)
        casting, offset, eps, _ = known[type(after)]
        return ops.add_rms_norm(
            x,
            residual,
            after.weight,
            casting=casting,
            eps=getattr(after, eps),
            offset=offset,
        )

    def bastile_norm_add_norm(before, after, x, residual):
        if not _fits(x, residual):
            return apart["bastile_norm_add_norm"](before, after, x, residual)
        casting, offset, eps, _ = known[type(before)]
        attributes = getattr(before, eps), getattr(after, known[type(after)].eps)
        return norm_add_norm[casting](
            x,
            residual,
            before.weight,
            after.weight,
            attributes=(*attributes, offset),
        )

    made = bastile_norm_add, bastile_add_norm, bastile_norm_add_norm
    return {function.__name__: function for function in made}


@functools.cache
def _replace(original, patch, cls, module):
    known = of_module(module)
    fused, names = _rewrite(original, cls, known)
    forward = norms.where_plain(original, fused, known, names)
    return rewriting.in_place_of(original, cls, forward)


KIND = kind.Kind(table.Residual, _find, norms.builder(_replace))
