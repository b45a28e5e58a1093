# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What type checkers are told of the extension module is what it has."""

import ast
import pathlib

from bastile import _bastile


def declared(nodes):
    """The public names that a stub declares, and those of its classes."""
    names = {}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            names[node.name] = declared(node.body)
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
    return {name: inner for name, inner in names.items() if is_public(name)}


def is_public(name):
    return not name.startswith("_") or name == "__version__"


def test_the_stub_has_every_name_and_no_other():
    package = pathlib.Path(_bastile.__file__).parent
    stub = declared(ast.parse((package / "_bastile.pyi").read_text()).body)
    assert set(stub) == set(filter(is_public, vars(_bastile)))
    for name, members in stub.items():
        if members:
            found = vars(getattr(_bastile, name))
            assert set(members) == set(filter(is_public, found)), name


def test_the_stub_has_the_parameters():
    package = pathlib.Path(_bastile.__file__).parent
    for node in ast.parse((package / "_bastile.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            signature = getattr(_bastile, node.name).__doc__.splitlines()[0]
            for argument in node.args.args:
                assert f"{argument.arg}: " in signature, node.name
