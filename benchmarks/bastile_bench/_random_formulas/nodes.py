# Part of Bastile, under the MIT License. See LICENSE.
"""Expressions on rows, which formulas and their gradients are made of."""

import enum


class Kind(enum.IntEnum):
    """What a value has one number for; a larger kind is what operations make of it and a
    smaller one, but that a row vector and a statistic make rows."""

    NUMBER = 0
    #: Each column, as a weight has.
    VECTOR = 1
    #: Each row.
    STATISTIC = 2
    #: Each element.
    ROWS = 3


#: Reductions of each row, and of all rows.
ROW_REDUCTIONS = ("row_sum", "row_mean", "row_max")
REDUCTIONS = (*ROW_REDUCTIONS, "sum_of_rows")


class Node:
    """An operation on other nodes, an operand or a number."""

    __slots__ = ("graph", "inputs", "kind", "op", "value")

    def __init__(self, graph, op, inputs, kind, value=None):
        self.graph = graph
        self.op = op
        self.inputs = inputs
        self.kind = kind
        #: An operand's name, or a number.
        self.value = value

    def __add__(self, other):
        return self.graph.apply("add", self, other)

    def __sub__(self, other):
        return self.graph.apply("subtract", self, other)

    def __mul__(self, other):
        return self.graph.apply("multiply", self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other):
        return self.graph.apply("subtract", other, self)

    def __truediv__(self, other):
        return self.graph.apply("divide", self, other)

    def __rtruediv__(self, other):
        return self.graph.apply("divide", other, self)


class Graph:
    """Makes nodes: equal ones are one object, so that what needs to be computed once is
    there once."""

    def __init__(self):
        self._known = {}

    def operand(self, name: str, kind: Kind) -> Node:
        return self._intern("operand", (), kind, name)

    def number(self, value: float) -> Node:
        return self._intern("number", (), Kind.NUMBER, float(value))

    def apply(self, op: str, *inputs) -> Node:
        """The node of an operation on nodes and Python's numbers."""
        nodes = [x if isinstance(x, Node) else self.number(x) for x in inputs]
        simple = _simplify(op, nodes)
        if simple is not None:
            return simple
        return self._intern(op, tuple(nodes), _kind_of(op, nodes))

    def _intern(self, op, inputs, kind, value=None):
        key = op, inputs, kind, value
        if key not in self._known:
            self._known[key] = Node(self, op, inputs, kind, value)
        return self._known[key]


def _kind_of(op, nodes):
    if op in ROW_REDUCTIONS:
        return Kind.STATISTIC
    if op == "sum_of_rows":
        return Kind.VECTOR
    kinds = {node.kind for node in nodes}
    if {Kind.VECTOR, Kind.STATISTIC} <= kinds:
        return Kind.ROWS
    return max(kinds)


def _simplify(op, nodes):
    """What the operation is without computing anything, or None."""
    if op == "multiply":
        for one, other in (nodes, nodes[::-1]):
            if one.value == 1.0:
                return other
            if one.value == 0.0 and one.op == "number":
                return one
    if op in ("add", "subtract") and nodes[1].value == 0.0:
        return nodes[0]
    if op == "add" and nodes[0].value == 0.0:
        return nodes[1]
    return None


def visit(outputs, stop=()) -> list:
    """The nodes that ``outputs`` are computed from, each behind its inputs; nothing
    behind those of ``stop``, which come themselves."""
    found, seen = [], set()

    def enter(node):
        if node in seen:
            return
        seen.add(node)
        if node not in stop:
            for each in node.inputs:
                enter(each)
        found.append(node)

    for output in outputs:
        enter(output)
    return found
