# Part of Bastile, under the MIT License. See LICENSE.
"""Functions of primitives: their text, and their values and gradients."""

import numpy as np

import bounded
import floats
import tape


class Value:
    """A result of a node. `leading` is None for a row vector, else a tuple of
    sizes, None where known only at launch. Conditions have the kind i1."""

    def __init__(self, name, leading, length, kind):
        self.name = name
        self.leading = leading
        self.length = length
        self.kind = kind

    def type(self, kind=None):
        sizes = "".join(
            f"{'?' if size is None else size}x"
            for size in (*(self.leading or ()), self.length)
        )
        return f"tensor<{sizes}{kind or self.kind}>"


class Node:
    """Some lines of text with one formula, from `operands` to `results`. `rounds`
    says how the results are rounded to their type: after a formula in a wider one,
    or by a single op on that type; None if they are not."""

    FORMULA, OP = range(2)

    def __init__(self, results, operands, lines, formula, rounds):
        self.results = results
        self.operands = operands
        self.lines = lines
        self.formula = formula
        self.rounds = rounds

    def apply(self, known):
        """Adds the results to `known`, by name."""
        results = self.formula(*[known[x.name] for x in self.operands])
        if len(self.results) == 1:
            results = (results,)
        for value, result in zip(self.results, results):
            if self.rounds is not None:
                result = round_to(value.kind, result, self.rounds == self.OP)
            known[value.name] = result


def round_to(kind, variable, is_op):
    if not bounded.ROUNDINGS[kind][0]:
        return variable
    return tape.rounded(variable, kind, is_op)


class Graph:
    def __init__(self, name):
        self.name = name
        self.arguments = []
        self.nodes = []
        self.results = []
        # The maximum of no rows is not tested.
        self.needs_rows = False

    def text(self):
        arguments = ", ".join(f"%{x.name}: {x.type()}" for x in self.arguments)
        types = ", ".join(x.type() for x in self.results)
        returned = ", ".join(f"%{x.name}" for x in self.results)
        return "\n".join(
            [
                f"func.func @{self.name}({arguments}) -> ({types}) {{",
                *["  " + line for node in self.nodes for line in node.lines],
                f"  return {returned} : {types}",
                "}\n",
            ]
        )

    def evaluate(self, values):
        """All variables by name, from a dictionary of the arguments' values."""
        known = {
            name: tape.Variable(bounded.Bounded(array))
            for name, array in values.items()
        }
        for node in self.nodes:
            node.apply(known)
        return known

    def expected(self, known, seeds, names):
        """The results, and the gradients of the arguments called `names`."""
        outputs = [known[value.name] for value in self.results]
        results = {f"result{i}": x.number for i, x in enumerate(outputs)}
        if seeds is None:
            return results
        arguments = [known[name] for name in names]
        gradients = tape.gradients(outputs, seeds, arguments)
        return results | {
            "grad_" + name: gradient for name, gradient in zip(names, gradients)
        }

    def kinds(self):
        """The types of all results and gradients."""
        kinds = {f"result{i}": x.kind for i, x in enumerate(self.results)}
        return kinds | {"grad_" + x.name: x.kind for x in self.arguments}


class Comparison:
    """The outcome of comparing numbers with bounds. An element whose bound is too
    wide is not counted as checked."""

    def __init__(self, kind, got, expected):
        value, error = expected.value, expected.error
        with np.errstate(all="ignore"):
            reach = np.abs(value) + error
            reach = np.where(np.isfinite(reach), reach, 0)
            fair = error + 0.505 * floats.ulp(kind, np.maximum(reach, 1e-300))
            # Beyond the type's largest number there is infinity.
            is_open = ~np.isfinite(fair) | ~np.isfinite(value)
            if kind == "f16":
                is_open |= reach > 65000
            parts = np.abs(got - value) / fair
        parts = np.where(is_open, 0, np.where(np.isnan(parts), np.inf, parts))
        scale = np.abs(value[np.isfinite(value)]).max(initial=0)
        self.count = value.size
        self.checked = int(
            (~is_open & (fair <= 0.1 * np.maximum(np.abs(value), scale / 8))).sum()
        ) + int((~is_open & (scale == 0)).sum())
        self.worst = float(parts.max(initial=0))
        self.message = None
        if self.worst > 1:
            where = np.unravel_index(np.argmax(parts), parts.shape)
            self.message = (
                f"{int((parts > 1).sum())} of {parts.size} elements are wrong: "
                f"[{', '.join(map(str, where))}] is {got[where]!r} and not "
                f"{value[where]!r}, {self.worst:.3g} times what is fair"
            )
