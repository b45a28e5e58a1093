# Part of Bastile, under the MIT License. See LICENSE.
"""Compiling the source of a function again, with other statements."""

import ast
import functools
import inspect

from bastile._patching import probes

_FACTORY = "bastile_factory"


def compile_again(function, tree, helpers):
    """The function whose definition ``tree`` is that of ``function`` with some other
    statements, which may call ``helpers``, functions by name.

    Its globals are those of ``function``, and its decorators are applied again. Lines
    are where they were, for tracebacks.
    """
    inner = inspect.unwrap(function)
    if inner.__code__.co_freevars:
        raise probes.Mismatch("its forward depends on where it was made")
    parameters = [ast.arg(name) for name in helpers]
    factory = ast.FunctionDef(
        name=_FACTORY,
        args=ast.arguments([], parameters, None, [], [], None, []),
        body=[tree, ast.Return(ast.Name(tree.name, ast.Load()))],
        decorator_list=[],
    )
    module = ast.fix_missing_locations(ast.Module([factory], []))
    scope = {}
    code = compile(module, inner.__code__.co_filename, "exec", dont_inherit=True)
    exec(code, inner.__globals__, scope)
    made = probes.run("forward with a source", scope[_FACTORY], *helpers.values())
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    return made


def in_place_of(original, cls, function):
    """``function`` as the forward of ``cls``, whose ``original`` it calls in some cases.

    Since Transformers 5.23, a layer's forward is wrapped as its class is made, and the
    wrapper does gradient checkpointing if it is what the layer's own class has.
    """
    members = {"forward": function, "__module__": cls.__module__}
    made = type(cls.__name__, cls.__bases__, members).forward
    if made is function:
        return function

    @functools.wraps(original)
    def forward(self, *operands, **named):
        # Set on one layer alone, it has the original's checkpoints around nothing else.
        if type(self).forward is original:
            if self.training and getattr(self, "gradient_checkpointing", False):
                return original(self, *operands, **named)
        return function(self, *operands, **named)

    members["forward"] = forward
    return type(cls.__name__, cls.__bases__, members).forward


def run(statements, scope):
    """The variables that statements leave, of ``scope``, a dictionary that has what
    they use."""
    scope = dict(scope)
    module = ast.fix_missing_locations(ast.Module(statements, []))
    exec(compile(module, "<forward>", "exec"), scope)
    return scope


def call(name, *operands):
    """A call of a helper with expressions."""
    return ast.Call(ast.Name(name, ast.Load()), list(operands), [])


def own_attributes(names):
    """The expressions ``self.name``."""
    return [
        ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load()) for name in names
    ]


def own_call(node):
    """The attribute of ``self`` and the operand, if an expression is a call
    ``self.attribute(operand)``."""
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1:
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and name_of(function.value) == "self":
        return function.attr, node.args[0]
    return None


def name_of(node):
    """The name that an expression is, if it is one."""
    return node.id if isinstance(node, ast.Name) else None


def target_of(statement):
    """The name that a statement assigns to, if it does no more."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return name_of(statement.targets[0])
    return None


def count_names(nodes, name):
    """How often a name is in expressions and statements."""
    return sum(name_of(x) == name for node in nodes for x in ast.walk(node))
