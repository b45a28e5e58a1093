# Part of Bastile, under the MIT License. See LICENSE.
"""Expressions as functions of Python, short enough to read."""

from bastile_bench._random_formulas.nodes import visit

_OPERATORS = {
    "add": ("+", 1),
    "subtract": ("-", 1),
    "multiply": ("*", 2),
    "divide": ("/", 2),
}
_CALLS = {"gelu_tanh": 'gelu({}, approximate="tanh")'}
#: How strongly a number or a call binds.
_ATOM = 3
#: The length from which on a value has a line of its own.
_LONG = 60


def write(name: str, operands, results) -> str:
    """The definition of function ``name`` of ``operands``, names, that returns
    ``results``, nodes: their value, or a tuple of them."""
    nodes = visit(results)
    users = {}
    for node in nodes:
        for each in node.inputs:
            users[each] = users.get(each, 0) + 1
    for result in results:
        users[result] = users.get(result, 0) + 1
    texts, lines = {}, []
    for node in nodes:
        text, binding = _text(node, texts)
        is_shared = users[node] > 1 and node.inputs
        if is_shared or (len(text) > _LONG and node not in results):
            line = f"t{len(lines)}"
            lines.append(f"    {line} = {text}")
            text, binding = line, _ATOM
        texts[node] = text, binding
    returned = ", ".join(texts[result][0] for result in results)
    lines = [f"def {name}({', '.join(operands)}):", *lines, f"    return {returned}"]
    return "\n".join(lines) + "\n"


def _text(node, texts):
    if node.op == "number":
        short = f"{node.value:.6g}"
        return short if float(short) == node.value else repr(node.value), _ATOM
    if node.op == "operand":
        return node.value, _ATOM
    if node.op not in _OPERATORS:
        call = _CALLS.get(node.op, node.op + "({})")
        return call.format(", ".join(texts[x][0] for x in node.inputs)), _ATOM
    sign, binding = _OPERATORS[node.op]
    words = []
    for place, each in enumerate(node.inputs):
        text, inner = texts[each]
        # The right operand of a difference or quotient keeps its parentheses.
        if inner < binding or (place and inner == binding and node.op != "add"):
            text = f"({text})"
        words.append(text)
    return f" {sign} ".join(words), binding
