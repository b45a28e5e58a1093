# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of a layer's projections of one operand as one call."""

import ast

from bastile._patching.fused import rewriting

#: What the function that stands for them is called, and the variables of its results.
HELPER = "bastile_project"
#: What names of projections end in.
_SUFFIX = "_proj"
#: Expressions whose parts may not run, or several times.
_CONDITIONAL = (
    ast.BoolOp,
    ast.Compare,
    ast.DictComp,
    ast.GeneratorExp,
    ast.IfExp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
)


def join(statements):
    """``statements`` of a function with calls ``self.a_proj(x)``, ``self.b_proj(x)`` of
    one variable as one call of `HELPER`, changed in place; as they are where no two see
    the same value of ``x`` for certain.
    """
    calls = {}
    for place, statement in enumerate(statements):
        if isinstance(statement, ast.Assign):
            for call in _calls_in(statement.value):
                calls.setdefault(call.args[0].id, []).append((place, call))
    for name, found in calls.items():
        first, last = found[0][0], found[-1][0]
        between = statements[first : last + 1]
        # Whatever else has the variable may change it, or what it refers to.
        is_certain = all(isinstance(x, ast.Assign) for x in between)
        if is_certain and rewriting.count_names(between, name) == len(found) > 1:
            each = [call for _, call in found]
            joined = _joined(name, each, between[0])
            between = [_Results(each).visit(x) for x in between]
            return [*statements[:first], joined, *between, *statements[last + 1 :]]
    return statements


def _calls_in(node):
    """The calls of projections on variables in an expression, in their order."""
    if isinstance(node, _CONDITIONAL):
        return
    called = rewriting.own_call(node)
    if called and called[0].endswith(_SUFFIX) and rewriting.name_of(called[1]):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _calls_in(child)


def _joined(name, calls, before):
    """The statement that makes what ``calls`` make of the variable ``name``, which
    become variables of their own."""
    attributes = [call.func.attr for call in calls]
    layers = ast.List(rewriting.own_attributes(attributes), ast.Load())
    made = rewriting.call(HELPER, ast.Name(name, ast.Load()), layers)
    results = [ast.Name(_result_of(x), ast.Store()) for x in attributes]
    statement = ast.Assign([ast.Tuple(results, ast.Store())], made)
    return ast.copy_location(statement, before)


def _result_of(attribute):
    return f"{HELPER}_{attribute}"


class _Results(ast.NodeTransformer):
    """Puts the variables of results in the places of calls."""

    def __init__(self, calls):
        self._calls = calls

    def visit_Call(self, node):
        if node in self._calls:
            result = ast.Name(_result_of(node.func.attr), ast.Load())
            return ast.copy_location(result, node)
        return self.generic_visit(node)
